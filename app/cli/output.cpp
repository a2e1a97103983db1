#include "app/cli/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/lab/first_cause.h"
#include "engine/snapshot/token_count.h"
#include "engine/snapshot/units.h"
#include "engine/snapshot/utf8.h"

namespace stepscope::cli {
namespace {

std::size_t width(const std::string& text) {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return columns;
}

}  // namespace

Ready table(const std::vector<std::string>& hostileHeader, const std::vector<std::vector<std::string>>& hostile,
            std::size_t leftColumns) {
  std::vector<std::string> header;  // of a query: names from the file
  for (const std::string& cell : hostileHeader) header.push_back(visible(cell));
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : hostile) {
    rows.emplace_back();
    for (const std::string& cell : row) rows.back().push_back(visible(cell));
  }
  std::vector<std::size_t> widths;
  for (const std::string& cell : header) widths.push_back(width(cell));
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  std::string text;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string out;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - std::min(widths[c], width(row[c])), ' ');
      out += (c ? "  " : "") + (c < leftColumns ? row[c] + pad : pad + row[c]);
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    text += out + "\n";
  };
  line(header);
  for (const auto& row : rows) line(row);
  return {text};
}

void Output::phase(const snapshot::PhaseSpan& span) const {
  if (!json_) return;
  nlohmann::json event{{"event", "phase"}, {"name", span.name()},   {"depth", span.depth()},
                       {"ns", span.ns()},  {"count", span.count()}, {"peak_bytes", span.peak_bytes()}};
  if (!span.error().empty()) event["error"] = span.error();
  if (span.has_pass()) {
    event["matches"] = span.pass().matches();
    event["near_misses"] = span.pass().near_misses_size();
    if (span.pass().has_effect())
      event["saved"] = {{"bytes", span.pass().effect().saved_bytes()},
                        {"flops", span.pass().effect().saved_flops()},
                        {"ns", span.pass().effect().saved_ns()}};
    if (span.pass().notes_size() > 0)
      event["notes"] = std::vector<std::string>(span.pass().notes().begin(), span.pass().notes().end());
  }
  sayJson(event);
}

void Output::alert(const snapshot::Alert& alert) const {
  // Other alerts are of the build, or say themselves when.
  const bool ofStep = alert.code() == "nan" || alert.code() == "inf";
  if (json_) {
    nlohmann::json event{{"event", "warning"}, {"code", alert.code()}, {"step", alert.step()}, {"message", alert.message()}};
    if (ofStep) {
      for (const auto& [name, id] : {std::pair("instruction", alert.instruction()), std::pair("node", alert.node()),
                                     std::pair("value", alert.value())})
        if (id >= 0) event[name] = id;
      if (alert.has_sample()) event["row"] = alert.sample();
    }
    sayJson(event);
    return;
  }
  tell("warning: {}{}\n", ofStep ? fmt::format("step {}: ", alert.step()) : "", alert.message());
}

void Output::phaseTable(const std::vector<snapshot::PhaseSpan>& spans) const {
  if (json_) return;
  std::vector<std::vector<std::string>> rows;
  std::int64_t total = 0;
  for (const snapshot::PhaseSpan& span : spans) {
    if (span.depth() == 0) total += span.ns();
    std::string note;
    if (!span.error().empty())
      note = "failed";
    else if (span.name().starts_with("cache ") && span.pass().notes_size() > 0)
      note = span.pass().notes(0);
    else if (span.has_pass() && span.depth() > 0)
      note = fmt::format("{} matches, {} → {} nodes", span.pass().matches(), span.pass().nodes_before(),
                         span.pass().nodes_after());
    rows.push_back({std::string(static_cast<std::size_t>(span.depth()) * 2, ' ') + span.name(), units::time(span.ns()),
                    std::to_string(span.count()), units::bytes(span.peak_bytes()), note});
  }
  rows.push_back({"total", units::time(total), "", "", ""});
  std::string text;
  // The note is prose: left-aligned at the end.
  std::vector<std::string> notes;
  for (auto& row : rows) {
    notes.push_back(row.back());
    row.pop_back();
  }
  const std::string body = table({"phase", "time", "count", "peak"}, rows).text;
  std::size_t line = 0, begin = 0;
  while (begin < body.size()) {
    const std::size_t end = body.find('\n', begin);
    text += body.substr(begin, end - begin);
    if (line > 0 && !notes[line - 1].empty()) text += "  " + notes[line - 1];
    text += "\n";
    ++line;
    begin = end + 1;
  }
  say("{}", Ready{text});
  for (const snapshot::PhaseSpan& span : spans)
    if (span.has_pass() && (span.name() == "inspect inputs" || span.name() == "attach loss"))
      for (const std::string& note : span.pass().notes()) say("  {}\n", note);
}

void Output::cause(const FirstCause& cause, const std::vector<std::string>& trail) const {
  if (json_) {
    nlohmann::json inputs = nlohmann::json::array();
    for (const CauseOperand& operand : cause.operands)
      inputs.push_back({{"name", toUtf8(operand.name)}, {"value", operand.value}, {"index", operand.index}});
    sayJson({{"event", "nan"},
             {"step", cause.step},
             {"first",
              {{"instruction", cause.instruction},
               {"node", toUtf8(cause.name)},
               {"op", cause.op},
               {"module", toUtf8(cause.module)},
               {"source", toUtf8(cause.source)},
               {"kind", cause.kind},
               {"index", cause.index},
               {"inputs", std::move(inputs)}}},
             {"rows", cause.rows}});
    return;
  }
  say("step {}: {} in '{}' [{}]: {}\n", cause.step, cause.nan ? "NaN" : "Inf", cause.value, fmt::join(cause.index, ", "),
      cause.kind);
  say("  {}{} '{}', instruction {}\n", cause.op, cause.backward ? "'s gradient" : "", cause.name, cause.instruction);
  if (!cause.module.empty()) say("  module {}\n", cause.module);
  if (!cause.source.empty()) say("  {}\n", cause.source);
  for (const CauseOperand& operand : cause.operands)
    say("  {} [{}] = {:.9g}\n", operand.name, fmt::join(operand.index, ", "), operand.value);
  if (!cause.rows.empty()) say("  rows of the batch: {}\n", fmt::join(cause.rows, ", "));
  for (const std::string& line : trail) say("  {}\n", line);
}

void Output::compared(const std::string& verdict, std::string_view precision, const std::string& otherwise,
                      const std::string& text) const {
  if (json_)
    sayJson({{"event", "verify"},
             {"verdict", verdict},
             {"precision", precision},
             {"precision_not_compared", toUtf8(otherwise)},
             {"message", text}});
  else
    say("{}\n", text);
}

void Output::recomputeTable(const std::vector<snapshot::PhaseSpan>& spans) const {
  if (json_) return;
  for (const snapshot::PhaseSpan& span : spans) {
    if (span.name() != "recompute" || !span.has_pass() || span.pass().notes_size() == 0) continue;
    say("stashes that could be computed again (options recompute.budget, recompute.plan):\n");
    for (const std::string& note : span.pass().notes()) say("  {}\n", note);
  }
}

void Output::recomputeReport(const snapshot::RecomputeReport& report) const {
  if (json_) {
    for (const auto& p : report.patterns())
      sayJson({{"event", "recompute_pattern"},
               {"pattern", p.pattern()},
               {"occurrences", p.occurrences()},
               {"applied", p.applied()},
               {"kept_bytes", p.stash_bytes()},
               {"saved_bytes", p.saved_bytes()},
               {"saved_arena_bytes", p.saved_arena_bytes()},
               {"cost_ns", p.cost_ns()},
               {"measured", report.measured()},
               {"timed_steps", report.timed_steps()},
               {"cold", report.cold()},
               {"nodes", p.nodes()}});
    for (const auto& p : report.curve())
      sayJson({{"event", "recompute_point"},
               {"peak_bytes", p.peak_bytes()},
               {"arena_bytes", p.arena_bytes()},
               {"extra_ns", p.extra_ns()},
               {"step_ns", p.step_ns()},
               {"nodes", p.nodes()},
               {"plan", p.plan()},
               {"exact", p.exact()}});
    return;
  }
  const auto time = [](double ns) { return units::time(ns); };
  std::vector<std::vector<std::string>> rows;
  for (const auto& p : report.patterns()) {
    std::string ratio = "-";
    if (p.saved_arena_bytes() > 0 && p.cost_ns() > 0)
      ratio =
          units::bytes(static_cast<std::int64_t>(static_cast<double>(p.saved_arena_bytes()) / p.cost_ns() * 1e6)) + "/ms";
    rows.push_back({p.pattern(), fmt::format("{} of {}", p.applied(), p.occurrences()), units::bytes(p.stash_bytes()),
                    units::bytes(p.saved_arena_bytes()), units::bytes(p.saved_bytes()), time(p.cost_ns()), ratio});
  }
  say("stashes that could be computed again (option recompute.plan = PATTERN:1:COUNT,…); saves: by which the arena shrinks, "
      "and the peak of values in it; times: {}\n{}",
      report.basis(), table({"pattern", "applied", "kept", "saves", "of values", "costs", "ratio"}, rows));
  rows.clear();
  for (const auto& p : report.curve())
    rows.push_back({std::to_string(p.peak_bytes()), units::bytes(p.peak_bytes()), units::bytes(p.arena_bytes()),
                    time(p.extra_ns()), time(p.step_ns()), std::to_string(p.nodes())});
  say("what a budget gives (option recompute.budget = BYTES of live activations)\n{}",
      table({"budget", "peak of values", "arena", "costs", "step", "nodes"}, rows, 0));
}

void Output::step(const snapshot::StepRecord& r, std::int64_t done, std::int64_t total, double seconds) const {
  const TokenCount tokens = tokenCount(r);
  if (json_) {
    nlohmann::json event{{"event", "step"},
                         {"step", r.step()},
                         {"ns", r.ns()},
                         {"cpu_ns", r.cpu_ns()},
                         {"wait_ns", r.wait_ns()},
                         {"flight_ns", r.flight_ns()},
                         {"peak_bytes", r.peak_bytes()},
                         {"planned_bytes", r.planned_bytes()},
                         {"learning_rate", r.learning_rate()},
                         {"updated", r.updated()},
                         {"samples", r.samples()},
                         {"tokens", tokens.all},
                         {"trained_tokens", tokens.trained},
                         {"padding_tokens", tokens.padding}};
    event["loss"] = r.has_loss() ? nlohmann::json(r.loss()) : nlohmann::json(nullptr);
    if (r.has_gradient_norm()) event["gradient_norm"] = r.gradient_norm();
    for (const snapshot::InputDensity& density : r.densities())
      if (!density.decision().empty())
        event["densities"].push_back({{"input", density.input()},
                                      {"valid", density.valid()},
                                      {"total", density.total()},
                                      {"computed", density.computed()},
                                      {"decision", density.decision()}});
    if (r.loss_scale() > 0) {
      event["loss_scale"] = r.loss_scale();
      event["skipped"] = r.skipped();
    }
    sayJson(event);
    return;
  }
  // Every step on a short run, then fewer and fewer; all of them are in the project file.
  const bool shown = done <= 10 || done == total || (done <= 100 && done % 10 == 0) || done % 100 == 0;
  const bool terminal = isatty(1) != 0;
  if (shown) {
    std::string line = terminal ? "\r\x1b[K" : "";
    const double loss = units::signless(r.loss());
    line += fmt::format("step {:>6}  loss {:<12.6g}  lr {:<10.4g}  {:>10}", r.step(), loss, r.learning_rate(),
                        units::time(r.ns()));
    if (r.has_gradient_norm()) line += fmt::format("  gradient norm {:.4g}", units::signless(r.gradient_norm()));
    if (r.loss_scale() > 0) line += fmt::format("  loss scale {}{}", r.loss_scale(), r.skipped() ? ", skipped" : "");
    const std::string untrained = untrainedText(tokens);
    if (tokens.all > 0 && r.ns() > 0)
      line += fmt::format("  {:.0f} tokens/s{}{}", static_cast<double>(tokens.trained) * 1e9 / static_cast<double>(r.ns()),
                          untrained.empty() ? "" : ", ", untrained);
    else if (r.samples() > 0 && r.ns() > 0)
      line += fmt::format("  {:.0f} samples/s", static_cast<double>(r.samples()) * 1e9 / static_cast<double>(r.ns()));
    say("{}\n", Ready{line});
  } else if (terminal) {
    const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    say("\r\x1b[Kstep {} of {}  {:.1f} steps/s  {:.0f} s left", done, total, rate,
        rate > 0 ? static_cast<double>(total - done) / rate : 0.0);
  }
}

void Output::finished(std::int64_t steps, std::int64_t ns, const ProcessorTimes& processor) const {
  if (json_) {
    nlohmann::json event{{"event", "done"}, {"steps", steps}, {"ns", ns}};
    if (processor.wall > 0)
      event.update({{"cpu_ns", processor.cpu}, {"wait_ns", processor.wait}, {"busy", processor.busy()}});
    return sayJson(event);
  }
  if (steps > 0) say("{} step{} in {}\n", steps, steps == 1 ? "" : "s", units::time(ns));
  if (const std::string busy = busyText(processor); !busy.empty())
    say("machine busy: {}; the times are longer for it\n", busy);
}

}  // namespace stepscope::cli
