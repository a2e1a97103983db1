#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "storage/bounded.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

std::string tile(std::string_view label, std::string_view value, std::string_view foot, std::string_view tooltip) {
  return fmt::format("<div class=tile title=\"{}\"><dt>{}</dt><dd>{}</dd><p>{}</p></div>", tooltip, label, value, foot);
}

std::string lossTile(const ReportData& data) {
  if (!data.run.firstLoss) return tile("Loss", "–", "no step had a loss", "value that is minimised");
  const double first = *data.run.firstLoss;
  const double last = *data.run.lastLoss;
  const std::string value =
      data.run.steps > 1 ? fmt::format("<small>{} →</small> {}", numberText(first), numberText(last)) : numberText(last);
  std::string foot = fmt::format("over {} steps", countText(data.run.steps));
  if (first > 0 && last >= 0 && data.run.steps > 1)
    foot = fmt::format("{}{:.1f} % {}", last <= first ? "−" : "+", std::abs(last - first) / first * 100, foot);
  return tile("Loss", value, foot, "value that is minimised, at the first and the last step");
}

std::string stepTile(const ReportData& data) {
  const TimeStats& t = data.timing.step;
  if (t.n == 0)
    return tile("Step", "–", data.steps.empty() ? "no step was recorded" : "no step ran without a stop or warm-up",
                "wall time of one micro step");
  return tile(
      "Step, median", timeText(static_cast<double>(t.median)),
      fmt::format("p95 {} · n {} · {}", timeText(static_cast<double>(t.p95)), countText(t.n), data.timing.kind.speed()),
      "wall time of one micro step, without warm-up and steps stopped in");
}

// What the threads got of the processors; a machine that did other things too makes every time longer.
std::string processorTile(const ReportData& data) {
  const StepKind& kind = data.timing.kind;
  if (kind.measured == 0) return {};
  return tile("Processor",
              fmt::format("{:.1f} <small>of {} {}</small>", kind.processors(), data.run.threads,
                          data.run.threads == 1 ? "thread" : "threads"),
              fmt::format("waited {:.1f} % of it", 100 * kind.waitShare()),
              "processor time divided by wall time of the steps; waited: of the processor time that its threads asked for, "
              "what they waited for a core");
}

std::string busyNote(const ReportData& data) {
  const StepKind& kind = data.timing.kind;
  if (!kind.busy()) return {};
  return fmt::format(
      "<p class=bad>The machine was busy: {:.0f} % of the processor time that the steps asked for was spent waiting for a "
      "core. Their times are longer for it; run again on a quiet machine before judging them.</p>",
      100 * kind.waitShare());
}

std::string throughputTile(const ReportData& data) {
  std::int64_t samples = 0, tokens = 0, ns = 0;
  for (const StepRow& step : data.steps) {
    if (!step.judged) continue;
    samples = saturatingAdd(samples, step.samples);
    tokens = saturatingAdd(tokens, step.tokens);
    ns = saturatingAdd(ns, step.ns);
  }
  if (ns == 0)
    return tile("Throughput", "–", data.steps.empty() ? "no step was recorded" : "no step ran without a stop or warm-up",
                "samples or tokens per second");
  const double seconds = static_cast<double>(ns) / 1e9;
  const double samplesRate = static_cast<double>(samples) / seconds;
  const auto rate = [](double value) {
    return value >= 1000 ? countText(static_cast<std::int64_t>(std::min(value, 9e18))) : fmt::format("{:.1f}", value);
  };
  if (tokens > 0)
    return tile("Throughput", fmt::format("{} <small>tokens/s</small>", rate(static_cast<double>(tokens) / seconds)),
                fmt::format("{} samples/s", rate(samplesRate)), "tokens divided by the time spent in steps");
  return tile("Throughput", fmt::format("{} <small>samples/s</small>", rate(samplesRate)),
              fmt::format("{} samples in {}", countText(samples), timeText(static_cast<double>(ns))),
              "samples divided by the time spent in steps");
}

std::string memoryTile(const ReportData& data) {
  const std::int64_t planned = data.plannedBytes();
  const std::int64_t measured = data.measuredBytes();
  if (planned == 0 && measured == 0) return tile("Peak memory", "–", "no plan was recorded", "memory of the plan");
  std::string foot = planned > 0 ? fmt::format("planned {}", bytesText(planned)) : "no plan was recorded";
  if (planned > 0 && measured > 0)
    foot += fmt::format(", {:+.1f} %", (static_cast<double>(measured) / static_cast<double>(planned) - 1) * 100);
  const std::int64_t shown = measured > 0 ? measured : planned;
  return tile(measured > 0 ? "Peak memory, measured" : "Peak memory, planned", bytesText(shown),
              measured > 0 ? foot : "not measured",
              fmt::format("{} bytes; parameters, optimizer state, batch and arena", countText(shown)));
}

std::string startUpTile(const ReportData& data) {
  const PhaseRow* longest = nullptr;
  for (const PhaseRow& phase : data.phases) {
    if (phase.depth != 0) continue;
    if (!longest || phase.ns > longest->ns) longest = &phase;
  }
  if (!longest) return tile("Start-up", "–", "no phase was recorded", "from the file to the first step");
  return tile("Start-up", timeText(static_cast<double>(data.startUpNs())),
              fmt::format("longest: {} {}", htmlElided(longest->name, 20), timeText(static_cast<double>(longest->ns))),
              "sum of the phases from the file to the first step");
}

std::string meta(const ReportData& data) {
  const RunRow& run = data.run;
  std::string text = fmt::format("<span class=\"chip {0}\">{0}</span>", html(run.status));
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += fmt::format("<span>{}</span>", part);
  };
  std::string items;
  std::swap(items, text);
  add(dateText(run.startedAt));
  add(html(run.device == "cpu" ? "CPU" : run.device));
  add(html(run.precision));
  add(fmt::format("{} {}", run.threads, run.threads == 1 ? "thread" : "threads"));
  add(html(run.optimizer));
  add(fmt::format("seed {}", run.seed));
  add(fmt::format("weights {}", html(run.weights)));
  return fmt::format("<p class=meta style=\"margin:0\">{} &nbsp;{}</p>", items, text);
}

}  // namespace

std::string summarySection(const ReportData& data) {
  std::string text = fmt::format("<header>\n<h1>{}</h1>\n{}", htmlElided(data.model, 160), meta(data));
  if (!data.run.message.empty()) text += fmt::format("<p class=bad>{}</p>", html(data.run.message));
  text += fmt::format("{}<dl class=tiles>{}{}{}{}{}{}</dl>\n</header>\n", busyNote(data), lossTile(data), stepTile(data),
                      throughputTile(data), processorTile(data), memoryTile(data), startUpTile(data));
  return text;
}

}  // namespace stepscope::storage
