#include "engine/build/phase_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "engine/build/known_roofs.h"
#include "engine/build/name_pattern.h"
#include "engine/build/pass_stages.h"
#include "engine/passes/run_passes.h"
#include "kernels/device.h"

namespace stepscope {
namespace {

// "saves 330.75 MiB of memory traffic and 38.54 Mflop a step, 28.787 ms by the roofline"; what is less than a
// thousandth of a unit is left out.
std::string savedText(const GraphCost& saved) {
  const bool more = saved.bytes < 0 || (saved.bytes == 0 && saved.flops < 0);
  const double sign = more ? -1 : 1;
  const double mib = sign * static_cast<double>(saved.bytes) / (1 << 20), mflop = sign * saved.flops * 1e-6,
               ms = sign * saved.ns * 1e-6;
  constexpr double kLeast = 0.001;
  std::string text = fmt::format("{} ", more ? "costs" : "saves");
  text +=
      mib < 1 ? fmt::format("{:.2f} KiB of memory traffic", mib * 1024) : fmt::format("{:.2f} MiB of memory traffic", mib);
  if (std::abs(mflop) >= kLeast) text += fmt::format(" and {:.2f} Mflop", mflop);
  text += " a step";
  if (std::abs(ms) >= kLeast) text += fmt::format(", {:.3f} ms by the roofline", ms);
  return text;
}

Roof roofOf(const TrainOptions& options, int threads, BuildLog& log) {
  if (!options.roofline) return {};
  const cpu::MachinePeak& peak = roofsOf(options, threads, &log);
  return {peak.operationsPerSecond, peak.levels.empty() ? 0 : peak.levels.back().bytesPerSecond};
}

}  // namespace

PassContext passContext(const LoadedModel& file, const TrainOptions& options, int threads, Inference& inference,
                        BuildLog& log) {
  PassContext context(inference);
  context.target.device = options.device;
  context.target.threads = threads;
  if (const auto device = findDevice(options.device)) context.target.device = (*device)->facts().kernels;
  context.target.roof = roofOf(options, threads, log);
  for (const auto& [name, origin] : options.origins) context.options[name] = origin.value;
  if (const auto opset = file.opsets.find(""); opset != file.opsets.end()) context.opset = opset->second;
  context.functions = &file.functions;
  for (const PrecisionForce& force : options.precisionForce)
    if (auto pattern = NamePattern::compile("precision.force", force.regex))  // it was checked when it was set
      context.forced.push_back(
          {force.regex, force.dtype, [found = std::move(*pattern)](std::string_view text) { return found.foundIn(text); }});
  return context;
}

Status runPhasePasses(const PassList& list, const TrainOptions& options, Graph& graph, PassContext& context, BuildLog& log,
                      std::map<std::string, std::string>& effects, std::vector<Stage>& stages) {
  StagesOfPasses kept(stages, list.phase);
  std::optional<BuildLog::Scope> span;
  RunOptions run;
  run.enabled = [&](const Pass& pass) {
    const auto it = options.passes.find(std::string(pass.name));
    return it != options.passes.end() ? it->second : pass.enabled == PassSwitch::kOn;
  };
  run.begin = [&](const Pass& pass) {
    span.emplace(log, std::string(pass.name), pass.enabled != PassSwitch::kMandatory);
    kept.begin(graph);
  };
  run.end = [&](const PassRun& ran) {
    const PassResult& result = ran.result;
    kept.end(ran.pass.name, graph, ran.error != nullptr);
    const std::size_t before = ran.nodesBefore, after = ran.nodesAfter;
    writePassReport(span->pass(), ran.pass.name, result, before, after);
    span->count(result.matches);
    if (ran.error) span->fail(*ran.error);
    span.reset();
    for (const std::string& warning : result.warnings) log.warn(std::string(ran.pass.name), warning);
    if (ran.error || ran.pass.enabled == PassSwitch::kMandatory) return;
    auto& effect = effects["pass." + std::string(ran.pass.name)];
    effect += fmt::format("{}{}: {}{} matches, {} nodes {}", effect.empty() ? "" : "; ", list.phase,
                          result.saved ? savedText(*result.saved) + ", " : "", result.matches,
                          after > before ? after - before : before - after, after > before ? "more" : "fewer");
  };
  return runPasses(list, graph, context, run);
}

void writePassReport(snapshot::PassReport& report, std::string_view name, const PassResult& result, std::size_t nodesBefore,
                     std::size_t nodesAfter) {
  report.set_name(std::string(name));
  report.set_matches(static_cast<int>(result.matches));
  report.set_nodes_before(static_cast<std::int64_t>(nodesBefore));
  report.set_nodes_after(static_cast<std::int64_t>(nodesAfter));
  for (const NearMiss& miss : result.nearMisses) {
    auto& m = *report.add_near_misses();
    m.set_node(miss.node.index);
    m.set_condition(miss.condition);
  }
  for (const std::string& note : result.notes) report.add_notes(note);
  if (!result.saved) return;
  report.mutable_effect()->set_saved_bytes(result.saved->bytes);
  report.mutable_effect()->set_saved_flops(result.saved->flops);
  report.mutable_effect()->set_saved_ns(result.saved->ns);
  report.add_notes(savedText(*result.saved));
}

}  // namespace stepscope
