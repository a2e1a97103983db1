#include "engine/build/loss_graph.h"

#include <fmt/format.h>

#include "engine/build/splice.h"

namespace stepscope {
namespace {

std::string names(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  for (const ValueId id : values)
    text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", graph.value(id).name, graph.value(id).type.text());
  return text.empty() ? "none" : text;
}

Result<ValueId> lossOf(const Graph& part, const TrainOptions& options) {
  if (options.loss.empty()) {
    const LossChoice choice = proposeLoss(part);
    if (choice.loss) return choice.loss;
    return invalid(fmt::format("loss graph '{}': {}; expected one, or option loss; its outputs are {}", options.lossGraph,
                               choice.reason, names(part, part.outputs())));
  }
  for (const ValueId id : part.outputs())
    if (part.value(id).name == options.loss) return id;
  return fail(ErrorCode::kNotFound, fmt::format("loss '{}': no output of the loss graph '{}'; its outputs are {}",
                                                options.loss, options.lossGraph, names(part, part.outputs())));
}

}  // namespace

Result<LossChoice> attachLossGraph(Graph& graph, Inference& inference, const TrainOptions& options,
                                   std::shared_ptr<const Registry> registry) {
  SS_ASSIGN(const auto part, importPart("loss graph", options.lossGraph, std::move(registry)));
  SS_ASSIGN(const ValueId output, lossOf(part->graph, options));
  Splice request{.prefix = "loss/", .modulePath = "loss"};
  bool reads = false;
  for (const ValueId id : part->graph.inputs()) {
    const std::string& name = part->graph.value(id).name;
    const ValueId value = graph.findValue(name);
    if (!value) continue;
    request.joined.emplace(name, value);
    reads |= graph.value(value).role == ValueRole::kNodeOutput;
  }
  if (!reads)
    return invalid(
        fmt::format("loss graph '{}': its inputs are {}; expected one that is called like a value that the model "
                    "computes; outputs of the model are {}",
                    options.lossGraph, names(part->graph, part->graph.inputs()), names(graph, graph.outputs())));
  request.input = [&graph](const Value& input, ValueType type) -> Result<ValueId> {
    const ValueId id = graph.addValue(input.name, std::move(type), ValueRole::kInput);
    graph.mutableInputs().push_back(id);
    return id;
  };
  SS_ASSIGN(const auto outputs, splice(graph, inference, *part, request));
  const ValueId loss = outputs.at(part->graph.value(output).name);
  if (graph.value(loss).role != ValueRole::kNodeOutput)
    return invalid(fmt::format("loss graph '{}': its output '{}' is not computed; expected the output of a node",
                               options.lossGraph, part->graph.value(output).name));
  graph.renameValue(loss, "loss");
  graph.recordBirths();
  return LossChoice{loss, fmt::format("'{}' of {}", part->graph.value(output).name, options.lossGraph)};
}

}  // namespace stepscope
