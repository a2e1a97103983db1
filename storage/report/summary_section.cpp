#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/snapshot/units.h"
#include "storage/bounded.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

using doc::Style;
using doc::Text;
using doc::Tile;

constexpr const char* kNone = "–";
constexpr std::size_t kPhaseLetters = 20;

Tile lossTile(const ReportData& data) {
  if (!data.run.firstLoss) return {"Loss", kNone, "no step had a loss", "value that is minimised"};
  const double first = *data.run.firstLoss;
  const double last = *data.run.lastLoss;
  Text value;
  if (data.run.steps > 1) value.add(units::numberShort(first) + " → ", Style::kSmall);
  value.add(units::numberShort(last));
  std::string foot = fmt::format("over {} steps", units::count(data.run.steps));
  if (first > 0 && last >= 0 && data.run.steps > 1)
    foot = fmt::format("{}{:.1f} % {}", last <= first ? "−" : "+", std::abs(last - first) / first * 100, foot);
  if (data.run.lostSteps > 0) foot += fmt::format("; {} more ran and are not recorded", units::count(data.run.lostSteps));
  return {"Loss", std::move(value), std::move(foot), "value that is minimised, at the first and the last step"};
}

Tile stepTile(const ReportData& data) {
  const TimeStats& t = data.timing.step;
  if (t.n == 0)
    return {"Step", kNone, data.steps.empty() ? "no step was recorded" : "no step ran without a stop or warm-up",
            "wall time of one micro step"};
  return {"Step, median", units::time(t.median),
          fmt::format("p95 {} · n {} · {}", units::time(t.p95), units::count(t.n), data.timing.kind.speed()),
          "wall time of one micro step, without warm-up and steps stopped in"};
}

// What the threads got of the processors; a machine that did other things too makes every time longer.
Tile processorTile(const ReportData& data) {
  const StepKind& kind = data.timing.kind;
  return {"Processor",
          Text(fmt::format("{:.1f} ", kind.processors()))
              .add(fmt::format("of {} {}", data.run.threads, data.run.threads == 1 ? "thread" : "threads"), Style::kSmall),
          fmt::format("waited {:.1f} % of it", 100 * kind.waitShare()),
          "processor time divided by wall time of the steps; waited: of the processor time that its threads asked for, "
          "what they waited for a core"};
}

Tile throughputTile(const ReportData& data) {
  std::int64_t samples = 0, ns = 0;
  TokenCount tokens;
  for (std::size_t i = 0; i < data.steps.size(); ++i) {
    const StepRow& step = data.steps[i];
    if (!step.judged) continue;
    samples = saturatingAdd(samples, step.samples);
    tokens.add(data.tokens[i]);
    ns = saturatingAdd(ns, step.ns);
  }
  if (ns == 0)
    return {"Throughput", kNone, data.steps.empty() ? "no step was recorded" : "no step ran without a stop or warm-up",
            "samples or tokens per second"};
  const auto rate = [ns](std::int64_t amount) {
    const double value = static_cast<double>(amount) / (static_cast<double>(ns) / 1e9);
    return value >= 1000 ? units::count(static_cast<std::int64_t>(std::min(value, 9e18))) : fmt::format("{:.1f}", value);
  };
  const std::string untrained = untrainedText(tokens);
  if (tokens.all > 0)
    return {"Throughput", Text(rate(tokens.trained) + " ").add("tokens/s", Style::kSmall),
            fmt::format("{} samples/s{}{}", rate(samples), untrained.empty() ? "" : " · ", untrained),
            "tokens that the loss counts, divided by the time spent in steps; the others of the batch are padding, or their "
            "labels are ignored"};
  return {"Throughput", Text(rate(samples) + " ").add("samples/s", Style::kSmall),
          fmt::format("{} samples in {}", units::count(samples), units::time(ns)),
          "samples divided by the time spent in steps"};
}

Tile memoryTile(const ReportData& data) {
  const std::int64_t planned = data.plannedBytes();
  const std::int64_t measured = data.measuredBytes();
  if (planned == 0 && measured == 0) return {"Peak memory", kNone, "no plan was recorded", "memory of the plan"};
  std::string foot = planned > 0 ? "planned " + units::bytes(planned) : "no plan was recorded";
  if (planned > 0 && measured > 0)
    foot += fmt::format(", {:+.1f} %", (static_cast<double>(measured) / static_cast<double>(planned) - 1) * 100);
  const std::int64_t shown = measured > 0 ? measured : planned;
  return {measured > 0 ? "Peak memory, measured" : "Peak memory, planned", units::bytes(shown),
          measured > 0 ? foot : "not measured", units::bytesExact(shown) + "; parameters, optimizer state, batch and arena"};
}

Tile startUpTile(const ReportData& data) {
  const PhaseRow* longest = nullptr;
  for (const PhaseRow& phase : data.phases) {
    if (phase.depth != 0) continue;
    if (!longest || phase.ns > longest->ns) longest = &phase;
  }
  if (!longest) return {"Start-up", kNone, "no phase was recorded", "from the file to the first step"};
  return {"Start-up", units::time(data.startUpNs()),
          fmt::format("longest: {} {}", elided(longest->name, kPhaseLetters), units::time(longest->ns)),
          "sum of the phases from the file to the first step"};
}

doc::Colour statusColour(std::string_view status) {
  if (status == "finished") return "ok";
  if (status == "failed") return "error";
  if (status == "running") return "accent";
  return "warn";
}

doc::Paragraph meta(const ReportData& data) {
  const RunRow& run = data.run;
  Text text;
  text.add(run.status, Style::kChip, statusColour(run.status));
  for (const std::string& part : {dateText(run.startedAt), run.device == "cpu" ? std::string("CPU") : run.device,
                                  run.precision, fmt::format("{} {}", run.threads, run.threads == 1 ? "thread" : "threads"),
                                  run.optimizer, fmt::format("seed {}", run.seed), "weights " + run.weights}) {
    if (part.empty()) continue;
    text.add(text.parts.size() == 1 ? "  " : " · ", Style::kDim).add(part, Style::kDim);
  }
  return {std::move(text)};
}

}  // namespace

std::vector<doc::Block> summaryBlocks(const ReportData& data) {
  std::vector<doc::Block> blocks = {meta(data)};
  if (!data.run.message.empty()) blocks.push_back(doc::Paragraph{data.run.message, doc::Paragraph::Kind::kBad});
  if (data.timing.kind.busy())
    blocks.push_back(doc::Paragraph{
        fmt::format("The machine was busy: {}. Their times are longer for it; run again on a quiet machine before judging "
                    "them.",
                    busyText(data.timing.kind)),
        doc::Paragraph::Kind::kBad});
  doc::Tiles tiles{{lossTile(data), stepTile(data), throughputTile(data)}};
  if (data.timing.kind.measured > 0) tiles.tiles.push_back(processorTile(data));
  tiles.tiles.push_back(memoryTile(data));
  tiles.tiles.push_back(startUpTile(data));
  blocks.push_back(std::move(tiles));
  return blocks;
}

}  // namespace stepscope::storage
