// Phases attach loss and gradient of a step whose loss somebody else computes.
#include <fmt/format.h>

#include <algorithm>

#include "engine/autodiff/gradient.h"
#include "engine/build/batch_norm_statistics.h"
#include "engine/build/blocked_nodes.h"
#include "engine/build/builder.h"
#include "engine/build/builder_work.h"
#include "engine/build/master_weights.h"

namespace stepscope {
namespace {

Result<std::vector<OuterStep::Seed>> seedsOf(const Graph& graph, const OuterRequest& request) {
  std::vector<OuterStep::Seed> seeds;
  for (const std::string& name : request.outputs) {
    const auto& outputs = graph.outputs();
    const auto found = std::ranges::find_if(outputs, [&](ValueId id) { return graph.value(id).name == name; });
    if (found == outputs.end())
      return fail(ErrorCode::kNotFound, fmt::format("output '{}': the model has none of this name", name));
    seeds.push_back({name, static_cast<std::size_t>(found - outputs.begin()), {}});
  }
  return seeds;
}

}  // namespace

Status Builder::attachOuter(SymbolicStep& step, Work& work) const {
  const BuildRequest& request = step.request;
  Graph& graph = work.graph;
  {
    BuildLog::Scope phase(log_, "attach loss");
    graph.setPass("attach loss");
    const OpRegistry& ops = work.inference.ops();
    if (std::string unknown = unknownOperators(graph, graph.outputs(), ops); !unknown.empty())
      return phase.fail({ErrorCode::kUnsupported, std::move(unknown)});
    OuterStep& outer = step.outer.emplace();
    auto seeds = seedsOf(graph, *request.outer);
    if (!seeds) return phase.fail(seeds.error());
    outer.seeds = *seeds;
    {
      // The stand-in joins the graph when its gradient is built, behind the passes; here it says what is trained.
      Graph probe = graph;
      Inference facts(work.inference);
      facts.rebind(probe);
      auto loss = addOuterLoss(probe, facts, *seeds);
      if (!loss) return phase.fail(loss.error());
      auto chosen = chooseTrained(probe, *loss, request.options, ops);
      if (!chosen) return phase.fail(chosen.error());
      step.parameters = std::move(*chosen);
    }
    for (const ParameterChoice& parameter : step.parameters)
      if (parameter.trained) step.trained.push_back(parameter.value);
    for (const ValueId id : step.trained) outer.gradients.push_back({graph.value(id).name, id});
    for (const std::string& name : request.outer->inputs) {
      const ValueId id = graph.findValue(name);
      if (!id || graph.value(id).role != ValueRole::kInput || !isFloating(graph.value(id).type.dtype))
        return phase.fail(
            {ErrorCode::kNotFound, fmt::format("input '{}': no float input of the model has this name", name)});
      outer.gradients.push_back({name, id});
    }
    if (outer.gradients.empty())
      return phase.fail({ErrorCode::kInvalidArgument,
                         "gradients: no parameter is trained and no input is asked for; expected one of them"});
    auto masters = settleMasterWeights(graph, work.inference, request.options, step.trained);
    if (!masters) return phase.fail(masters.error());
    for (const ValueId id : graph.outputs()) outer.outputs.emplace_back(graph.value(id).name, id);
    addStatisticsUpdates(graph);
    if (Status status = updatesAsOutputs(graph, outer.updates); !status) return phase.fail(status.error());
    graph.removeDeadNodes();
    phase.count(step.trained.size());
  }
  keepStage(work.stages, "attach loss", graph, log_);
  return {};
}

Status Builder::outerGradient(SymbolicStep& step, Work& work) const {
  Graph& graph = work.graph;
  OuterStep& outer = *step.outer;
  {
    BuildLog::Scope phase(log_, "gradient");
    graph.setPass("gradient");
    auto loss = addOuterLoss(graph, work.inference, outer.seeds);
    if (!loss) return phase.fail(loss.error());
    GradientRequest request{*loss, {}};
    for (const OuterStep::Gradient& gradient : outer.gradients) request.trained.push_back(gradient.value);
    for (const OuterStep::Seed& seed : outer.seeds)
      request.outer.emplace_back(graph.outputs().at(seed.index), seed.gradient);
    const auto missing = checkGradientRules(graph, *loss, request.trained, work.inference.ops());
    const std::string kernels = missingKernels(graph, work.inference.operators());
    if (!missing.empty() || !kernels.empty())
      return phase.fail(
          {ErrorCode::kUnsupported,
           missing.empty() ? kernels : missingRules(graph, missing) + (kernels.empty() ? "" : "\n" + kernels)});
    auto report = buildGradient(graph, work.inference, request);
    if (!report) return phase.fail(report.error());
    for (std::size_t i = 0; i < outer.gradients.size(); ++i) {
      outer.gradients[i].value = report->gradients[i];
      if (report->gradients[i]) graph.mutableOutputs().push_back(report->gradients[i]);
    }
    graph.removeDeadNodes();  // the stand-in
    phase.count(graph.order().size());
  }
  keepStage(work.stages, "gradient", graph, log_);
  return {};
}

}  // namespace stepscope
