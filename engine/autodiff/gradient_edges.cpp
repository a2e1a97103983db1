#include "engine/autodiff/gradient_edges.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/stop_inputs.h"

namespace stepscope {
namespace {

// The trained values from which `value` is reachable, in the order of `trained`.
std::vector<ValueId> trainedBehind(const Graph& graph, ValueId value, const std::vector<ValueId>& trained,
                                   const OpRegistry& ops) {
  std::vector<bool> seen(graph.valueCapacity(), false);
  std::vector<ValueId> open{value};
  seen[at(value)] = true;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const NodeId producer = graph.value(id).producer;
    if (!producer) continue;
    const Node& node = graph.node(producer);
    const auto output =
        static_cast<std::size_t>(std::find(node.outputs.begin(), node.outputs.end(), id) - node.outputs.begin());
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] && !seen[at(node.inputs[i])] && differentiableEdge(graph, node, i, output, ops)) {
        seen[at(node.inputs[i])] = true;
        open.push_back(node.inputs[i]);
      }
  }
  std::vector<ValueId> found;
  std::copy_if(trained.begin(), trained.end(), std::back_inserter(found), [&](ValueId id) { return seen[at(id)]; });
  return found;
}

std::string opName(const Node& node) { return node.domain.empty() ? node.op.str() : node.domain + "." + node.op; }

std::string cutReason(const OpDef* op, const StopInput* stop, bool floatResult) {
  if (!floatResult) return "the result is not a float";
  if (stop) return std::string(stop->reason);
  if (op && !op->noGradientReason.empty()) return std::string(op->noGradientReason);
  return "the operator passes no gradient to this input";
}

}  // namespace

bool differentiableEdge(const Graph& graph, const Node& node, std::size_t input, std::size_t output, const OpRegistry& ops) {
  const ValueId in = node.input(input), out = node.output(output);
  if (!in || !out) return false;
  const ValueType& from = graph.value(in).type;
  const ValueType& to = graph.value(out).type;
  const OpDef* op = ops.find(node);
  // An unknown operator has no inferred result; it counts as an edge so that the check reports it.
  if (op == nullptr) return isFloating(from.dtype);
  if (!isFloating(from.dtype) || !isFloating(to.dtype)) return false;
  if (op->gradient == nullptr) return maskHas(op->differentiableInputs, input);  // refused by checkGradientRules
  return maskHas(op->differentiableInputs, input) && maskHas(op->differentiableOutputs, output);
}

std::vector<bool> forwardReach(const Graph& graph, const std::vector<ValueId>& from, const OpRegistry& ops) {
  std::vector<bool> reached(graph.valueCapacity(), false);
  for (const ValueId id : from)
    if (id) reached[at(id)] = true;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (!node.outputs[o]) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] && reached[at(node.inputs[i])] && differentiableEdge(graph, node, i, o, ops)) {
          reached[at(node.outputs[o])] = true;
          break;
        }
    }
  }
  return reached;
}

std::vector<bool> backwardReach(const Graph& graph, ValueId loss, const OpRegistry& ops) {
  std::vector<bool> reached(graph.valueCapacity(), false);
  reached[at(loss)] = true;
  for (std::size_t k = graph.order().size(); k-- > 0;) {
    const Node& node = graph.node(graph.order()[k]);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (!node.outputs[o] || !reached[at(node.outputs[o])]) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] && differentiableEdge(graph, node, i, o, ops)) reached[at(node.inputs[i])] = true;
    }
  }
  return reached;
}

std::vector<bool> reachesLoss(const Graph& graph, ValueId loss, const std::vector<ValueId>& candidates,
                              const OpRegistry& ops) {
  const std::vector<bool> backward = backwardReach(graph, loss, ops);
  std::vector<bool> result;
  for (const ValueId id : candidates) result.push_back(backward[at(id)]);
  return result;
}

std::vector<CutEdge> cutEdges(const Graph& graph, const std::vector<bool>& forward, const std::vector<bool>& backward,
                              const std::vector<ValueId>& trained, const OpRegistry& ops) {
  std::vector<CutEdge> cuts;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i] || !forward[at(node.inputs[i])]) continue;
      bool open = false, wanted = false;
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        if (!node.outputs[o]) continue;
        open |= differentiableEdge(graph, node, i, o, ops);
        wanted |= isFloating(graph.value(node.outputs[o]).type.dtype);
      }
      if (open) continue;
      const OpDef* op = ops.find(node);
      const StopInput* stop = op ? findStopInput(*op, i) : nullptr;
      CutEdge cut{id, i, cutReason(op, stop, wanted), {}};
      const bool counts =
          std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId out) { return out && backward[at(out)]; });
      if (wanted && counts && stop && stop->loses) cut.trained = trainedBehind(graph, node.inputs[i], trained, ops);
      cuts.push_back(std::move(cut));
    }
  }
  return cuts;
}

std::vector<MissingRule> checkGradientRules(const Graph& graph, ValueId loss, const std::vector<ValueId>& trained,
                                            const OpRegistry& ops) {
  const std::vector<bool> forward = forwardReach(graph, trained, ops), backward = backwardReach(graph, loss, ops);
  // Next node on the way to the loss, per value: the first consumer that leads there.
  std::vector<NodeId> next(graph.valueCapacity());
  for (std::size_t k = graph.order().size(); k-- > 0;) {
    const Node& node = graph.node(graph.order()[k]);
    const bool leads =
        std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId out) { return out && backward[at(out)]; });
    if (!leads) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] && backward[at(node.inputs[i])]) next[at(node.inputs[i])] = node.id;
  }
  std::vector<MissingRule> missing;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const OpDef* op = ops.find(node);
    if (op && (op->gradient || op->differentiableInputs == 0)) continue;
    const bool fromTrained = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
      return in && forward[at(in)] && isFloating(graph.value(in).type.dtype);
    });
    const auto toLoss =
        std::find_if(node.outputs.begin(), node.outputs.end(), [&](ValueId out) { return out && backward[at(out)]; });
    if (!fromTrained || toLoss == node.outputs.end()) continue;
    MissingRule rule{id,
                     op ? fmt::format("no gradient rule for '{}' ({})", opName(node), op->noGradientReason)
                        : fmt::format("unknown operator '{}'", opName(node)),
                     {}};
    for (NodeId step = next[at(*toLoss)]; step && rule.pathToLoss.size() < graph.order().size();) {
      rule.pathToLoss.push_back(step);
      NodeId following;
      for (const ValueId out : graph.node(step).outputs)
        if (out && backward[at(out)] && next[at(out)]) {
          following = next[at(out)];
          break;
        }
      step = following;
    }
    missing.push_back(std::move(rule));
  }
  return missing;
}

}  // namespace stepscope
