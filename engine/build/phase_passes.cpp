#include "engine/build/phase_passes.h"

#include <fmt/format.h>

#include <optional>

#include "engine/passes/run_passes.h"

namespace stepscope {

PassContext passContext(const LoadedModel& file, const TrainOptions& options, int threads, Inference& inference) {
  PassContext context(inference);
  context.target.threads = threads;
  for (const auto& [name, origin] : options.origins) context.options[name] = origin.value;
  if (const auto opset = file.opsets.find(""); opset != file.opsets.end()) context.opset = opset->second;
  context.functions = &file.functions;
  return context;
}

Status runPhasePasses(const PassList& list, const TrainOptions& options, Graph& graph, PassContext& context, BuildLog& log,
                      std::map<std::string, std::string>& effects) {
  std::optional<BuildLog::Scope> span;
  RunOptions run;
  run.enabled = [&](const Pass& pass) {
    const auto it = options.passes.find(std::string(pass.name));
    return it != options.passes.end() ? it->second : pass.enabled == PassSwitch::kOn;
  };
  run.begin = [&](const Pass& pass) { span.emplace(log, std::string(pass.name)); };
  run.end = [&](const PassRun& ran) {
    const PassResult& result = ran.result;
    const std::size_t before = ran.nodesBefore, after = ran.nodesAfter;
    writePassReport(span->pass(), ran.pass.name, result, before, after);
    span->count(result.matches);
    if (ran.error) span->fail(*ran.error);
    span.reset();
    for (const std::string& warning : result.warnings) log.warn(std::string(ran.pass.name), warning);
    if (ran.error || ran.pass.enabled == PassSwitch::kMandatory) return;
    auto& effect = effects["pass." + std::string(ran.pass.name)];
    effect += fmt::format("{}{}: {} matches, {} nodes {}", effect.empty() ? "" : "; ", list.phase, result.matches,
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
}

}  // namespace stepscope
