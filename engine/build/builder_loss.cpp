// Phase attach loss: the loss, what is kept until the end of the step, and what is trained.
#include <fmt/format.h>

#include <algorithm>

#include "engine/autodiff/gradient.h"
#include "engine/build/attach_loss.h"
#include "engine/build/batch_norm_statistics.h"
#include "engine/build/blocked_nodes.h"
#include "engine/build/builder.h"
#include "engine/build/builder_work.h"
#include "engine/build/master_weights.h"
#include "engine/ir/key_index.h"

namespace stepscope {
namespace {

void addOutput(std::vector<ValueId>& outputs, const Graph& graph, ValueId id) {
  if (id && graph.value(id).role == ValueRole::kNodeOutput && std::find(outputs.begin(), outputs.end(), id) == outputs.end())
    outputs.push_back(id);
}

// What else stands in the way is told with the operators that nobody knows.
std::string withMissingRules(std::string unknown, const Graph& graph, const Result<LossChoice>& choice,
                             const TrainOptions& options, const OpRegistry& ops) {
  const auto chosen = choice ? chooseTrained(graph, choice->loss, options, ops) : Result<std::vector<ParameterChoice>>();
  GradientRequest request{choice ? choice->loss : ValueId{}, {}};
  if (chosen)
    for (const ParameterChoice& parameter : *chosen)
      if (parameter.trained) request.trained.push_back(parameter.value);
  auto missing =
      request.trained.empty() ? std::vector<MissingRule>() : checkGradientRules(graph, request.loss, request.trained, ops);
  std::erase_if(missing, [&](const MissingRule& rule) { return ops.find(graph.node(rule.node)) == nullptr; });
  return missing.empty() ? unknown : unknown + "\n" + missingRules(graph, missing);
}

}  // namespace

Status Builder::attachLoss(SymbolicStep& step, Work& work) const {
  const BuildRequest& request = step.request;
  Graph& graph = work.graph;
  if (request.forwardOnly) {
    for (const std::string& name : request.keep) {
      const ValueId id = graph.findValue(name);
      if (!id) return fail(ErrorCode::kNotFound, fmt::format("value '{}': not in the model; expected a value's name", name));
      if (std::find(graph.outputs().begin(), graph.outputs().end(), id) == graph.outputs().end())
        graph.mutableOutputs().push_back(id);
    }
    return {};
  }
  {
    BuildLog::Scope phase(log_, "attach loss");
    graph.setPass("attach loss");
    const OpRegistry& ops = work.inference.ops();
    auto choice = stepscope::attachLoss(graph, work.inference, request.options, model_->registry);
    const std::vector<ValueId> roots = choice ? std::vector<ValueId>{choice->loss} : graph.outputs();
    if (std::string unknown = unknownOperators(graph, roots, ops); !unknown.empty())
      return phase.fail(
          {ErrorCode::kUnsupported, withMissingRules(std::move(unknown), graph, choice, request.options, ops)});
    if (!choice) return phase.fail(choice.error());
    step.loss = choice->loss;
    auto& report = phase.pass();
    report.set_name("attach loss");
    report.add_notes(fmt::format("loss '{}': {}", graph.value(step.loss).name, choice->reason));
    // Only the loss and what the user wants to see keeps the step alive; other outputs of the model are not computed for it.
    std::vector<ValueId> outputs{step.loss};
    for (const std::string& name : request.keep) addOutput(outputs, graph, graph.findValue(name));
    if (!request.pinned.empty()) {
      const KeyIndex keys(graph);
      for (const ValueKey& key : request.pinned) addOutput(outputs, graph, keys.find(key));
    }
    graph.mutableOutputs() = outputs;
    auto chosen = chooseTrained(graph, step.loss, request.options, ops);
    if (!chosen) return phase.fail(chosen.error());
    step.parameters = std::move(*chosen);
    for (std::string& pattern : patternsWithoutMatch(graph, step.parameters, request.options))
      log_.warn("option_without_effect", std::move(pattern));
    for (const ParameterChoice& parameter : step.parameters)
      if (parameter.trained) step.trained.push_back(parameter.value);
    if (step.trained.empty())
      return phase.fail({ErrorCode::kInvalidArgument,
                         fmt::format("loss '{}': no initializer that is trained reaches it; expected at least one; "
                                     "`stepscope inspect` lists why each is not trained",
                                     graph.value(step.loss).name)});
    auto masters = settleMasterWeights(graph, work.inference, request.options, step.trained);
    if (!masters) return phase.fail(masters.error());
    if (masters->widened > 0)
      report.add_notes(fmt::format("{} parameters of the file kept in float32, cast for their readers", masters->widened));
    if (masters->low > 0)
      report.add_notes(fmt::format("{} parameters kept in float16 or bfloat16: {}", masters->low,
                                   request.options.masterWeights == "off"
                                       ? "updates round stochastically"
                                       : "as the file has them; master-weights=fp32 keeps float32 of them"));
    if (request.options.masterWeights != "auto" && masters->widened + masters->low == 0)
      log_.warn("option_without_effect", fmt::format("option 'master-weights': {}; {}", request.options.masterWeights,
                                                     request.options.masterWeights == "off"
                                                         ? "precision is fp32, and no parameter is float16 or bfloat16"
                                                         : "every parameter is float32 already"));
    if (request.options.batchNorm == "batch") {
      std::size_t opened = 0;
      if (Status status = openBatchNorm(graph, work.inference, opened); !status) return phase.fail(status.error());
      if (opened == 0)
        log_.warn("option_without_effect", "option 'batch-norm': batch; the model has no frozen BatchNormalization");
      else
        report.add_notes(fmt::format("{} frozen BatchNormalization opened: statistics of the batch", opened));
    }
    addStatisticsUpdates(graph);
    graph.removeDeadNodes();
    phase.count(step.trained.size());
  }
  keepStage(work.stages, "attach loss", graph, log_);
  return {};
}

}  // namespace stepscope
