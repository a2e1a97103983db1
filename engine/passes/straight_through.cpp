#include "engine/passes/straight_through.h"

#include <algorithm>
#include <limits>

#include "engine/ops/op_def.h"
#include "engine/passes/beside.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

struct Limits {
  std::int64_t low = 0, high = 0;
};

std::optional<Limits> limitsOf(DType type) {
  switch (type) {
    case DType::kU8: return Limits{0, 255};
    case DType::kI8: return Limits{-128, 127};
    case DType::kU16: return Limits{0, 65535};
    case DType::kI16: return Limits{-32768, 32767};
    default: return std::nullopt;
  }
}

// Narrows by the bounds of a Clip; false when one of them is not known.
bool narrow(const Inference& inference, const Node& clip, Limits& limits) {
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (!clip.input(i)) continue;
    const Tensor* bound = inference.constant(clip.input(i));
    if (bound == nullptr || bound->elements() != 1) return false;
    const auto value = static_cast<std::int64_t>(elementAsDouble(bound->view(), 0));
    if (i == 1)
      limits.low = std::max(limits.low, value);
    else
      limits.high = std::min(limits.high, value);
  }
  return true;
}

// A DequantizeLinear whose input a QuantizeLinear with the same scale made.
struct Pair {
  const Node* quantize = nullptr;
  Limits limits;
};

std::optional<Pair> pairOf(const Graph& graph, const Inference& inference, const Node& node) {
  if (!isOp(node, "DequantizeLinear") || !node.output(0) || node.attrs.integer("block_size", 0) != 0) return std::nullopt;
  const Node* clip = producerOf(graph, node.input(0), "Clip");
  const Node* quantize = producerOf(graph, clip != nullptr ? clip->input(0) : node.input(0), "QuantizeLinear");
  if (quantize == nullptr || quantize->input(1) != node.input(1) || quantize->input(2) != node.input(2)) return std::nullopt;
  if (quantize->attrs.integer("axis", 1) != node.attrs.integer("axis", 1) ||
      !isFloating(graph.value(quantize->input(0)).type.dtype))
    return std::nullopt;
  auto limits = limitsOf(graph.value(quantize->output(0)).type.dtype);
  if (!limits || (clip != nullptr && !narrow(inference, *clip, *limits))) return std::nullopt;
  return Pair{quantize, *limits};
}

bool hasOne(const Graph& graph, const Readers& readers, ValueId y) {
  const Node* reader = readers.only(y);
  return reader != nullptr && reader->domain == kInternalDomain && reader->op == "StraightThrough" && graph.alive(y);
}

}  // namespace

Status straightThrough(Graph& graph, PassContext& context) {
  const Readers readers(graph);
  std::vector<NodeId> order;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    order.push_back(id);
    const Node node = graph.node(id);
    const auto pair = pairOf(graph, context.inference, node);
    if (!pair || hasOne(graph, readers, node.output(0))) continue;
    const ValueId y = node.output(0);
    std::vector<ValueId> inputs{y, pair->quantize->input(0), node.input(1)};
    if (node.input(2)) inputs.push_back(node.input(2));
    const Attributes attrs{{"axis", node.attrs.integer("axis", 1)}, {"low", pair->limits.low}, {"high", pair->limits.high}};
    const NodeId behind = graph.value(emitBeside(graph, id, "StraightThrough", inputs, attrs, kInternalDomain)).producer;
    putBehind(graph, y, behind, "quantised");
    order.push_back(behind);
    context.match();
  }
  if (context.result.matches > 0) graph.setOrder(std::move(order));
  return {};
}

}  // namespace stepscope
