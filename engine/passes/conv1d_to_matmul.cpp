#include "engine/passes/conv1d_to_matmul.h"

#include <algorithm>

#include "engine/passes/beside.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

std::string refusal(const Graph& graph, const Node& conv) {
  const auto& w = graph.value(conv.input(1)).type.shape;
  const auto all = [&](const char* name, std::int64_t value) {
    return std::ranges::all_of(conv.attrs.integers(name), [&](std::int64_t given) { return given == value; });
  };
  if (!w || !knownDims(*w)) return "the extents of its weights are not known";
  if ((*w)[2] != Dim(1)) return "its windows have more than one place";
  if (!all("strides", 1)) return "its windows skip places";
  if (!all("pads", 0)) return "its input is padded";
  // A window of one place needs no padding, whatever the automatic kind; dilations say nothing about it.
  return {};
}

}  // namespace

Status conv1dToMatMul(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  std::vector<NodeId> order;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node conv = graph.node(id);
    order.push_back(id);
    const auto& shape = conv.input(0) ? graph.value(conv.input(0)).type.shape : std::nullopt;
    if (!isOp(conv, "Conv") || !shape || shape->size() != 3) continue;
    if (std::string why = refusal(graph, conv); !why.empty()) {
      context.miss(id, std::move(why));
      continue;
    }
    const Dims w = *knownDims(*graph.value(conv.input(1)).type.shape);
    const std::int64_t groups = conv.attrs.integer("group", 1), rows = w[0], columns = w[1];
    order.pop_back();
    Status status;
    const auto emit = [&](std::string_view op, std::vector<ValueId> inputs) {
      const ValueId value = emitBeside(graph, id, op, std::move(inputs));
      order.push_back(graph.value(value).producer);
      if (Status inferred = inference.inferNode(order.back()); !inferred && status) status = inferred;
      return value;
    };
    const auto reshaped = [&](ValueId value, const std::vector<std::int64_t>& to) {
      return emit("Reshape", {value, graph.addConstant("shape", Tensor::ints(to))});
    };
    ValueId x = conv.input(0), weights;
    if (groups == 1) {
      weights = reshaped(conv.input(1), {rows, columns});
    } else {
      weights = reshaped(conv.input(1), {groups, rows / groups, columns});
      x = reshaped(x, {0, groups, columns, -1});
    }
    ValueId y = emit("MatMul", {weights, x});
    if (groups != 1) y = reshaped(y, {0, rows, -1});
    if (conv.input(2)) y = emit("Add", {y, reshaped(conv.input(2), {rows, 1})});
    SS_TRY(status);
    // The result keeps its id: a view, a file or a person may ask for it.
    graph.swapOutputs(y, conv.output(0));
    graph.removeNode(id);
    context.match();
  }
  if (context.result.matches > 0) graph.setOrder(std::move(order));
  return {};
}

}  // namespace stepscope
