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

// Trained parameters and what else a gradient is asked of.
Status chooseWanted(const Graph& graph, const OuterRequest& request, SymbolicStep& step) {
  std::vector<ValueId> parameters, inputs;
  for (const std::string& name : request.inputs) {
    const ValueId id = graph.findValue(name);
    const ValueRole role = id ? graph.value(id).role : ValueRole::kConstant;
    if ((role != ValueRole::kInput && role != ValueRole::kInitializer) || !isFloating(graph.value(id).type.dtype))
      return fail(ErrorCode::kNotFound,
                  fmt::format("gradient of '{}': no float input or parameter of the model has this name", name));
    (role == ValueRole::kInput ? inputs : parameters).push_back(id);
  }
  for (ParameterChoice& parameter : step.parameters) {
    if (!parameters.empty()) parameter.trained = std::ranges::find(parameters, parameter.value) != parameters.end();
    if (parameter.trained && parameters.empty()) step.trained.push_back(parameter.value);
  }
  if (!parameters.empty()) step.trained = parameters;
  for (const auto* ids : {&step.trained, &inputs})
    for (const ValueId id : *ids) step.outer->gradients.push_back({graph.value(id).name, id});
  return {};
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
    if (Status status = chooseWanted(graph, *request.outer, step); !status) return phase.fail(status.error());
    if (outer.gradients.empty())
      return phase.fail({ErrorCode::kInvalidArgument,
                         "gradients: no parameter is trained and no input is asked for; expected one of them"});
    auto masters = settleMasterWeights(graph, work.inference, request.options, step.trained);
    if (!masters) return phase.fail(masters.error());
    for (const ValueId id : graph.outputs()) outer.outputs.emplace_back(graph.value(id).name, id);
    addStatisticsUpdates(graph);
    updatesAsOutputs(graph, outer.updates);
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
