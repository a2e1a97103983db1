#include "engine/passes/weight_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

constexpr int kDeepest = 6;  // ops between a constant and what it is a weight of

struct Slot {
  std::string_view op;
  std::size_t input;
  std::string_view what;
};

constexpr std::array kSlots{
    Slot{"BatchNormalization", 1, "scale"},
    Slot{"BatchNormalization", 2, "bias"},
    Slot{"BatchNormalization", 3, "running statistic"},
    Slot{"BatchNormalization", 4, "running statistic"},
    Slot{"Conv", 1, "weight"},
    Slot{"Conv", 2, "bias"},
    Slot{"ConvTranspose", 1, "weight"},
    Slot{"ConvTranspose", 2, "bias"},
    Slot{"Einsum", 0, "weight"},
    Slot{"Einsum", 1, "weight"},
    Slot{"FusedMatMul", 0, "weight"},
    Slot{"FusedMatMul", 1, "weight"},
    Slot{"GRU", 1, "weight"},
    Slot{"GRU", 2, "weight"},
    Slot{"GRU", 3, "bias"},
    Slot{"Gemm", 0, "weight"},
    Slot{"Gemm", 1, "weight"},
    Slot{"Gemm", 2, "bias"},
    Slot{"GroupNormalization", 1, "scale"},
    Slot{"GroupNormalization", 2, "bias"},
    Slot{"InstanceNormalization", 1, "scale"},
    Slot{"InstanceNormalization", 2, "bias"},
    Slot{"LSTM", 1, "weight"},
    Slot{"LSTM", 2, "weight"},
    Slot{"LSTM", 3, "bias"},
    Slot{"LSTM", 7, "weight"},
    Slot{"LayerNormalization", 1, "scale"},
    Slot{"LayerNormalization", 2, "bias"},
    Slot{"MatMul", 0, "weight"},
    Slot{"MatMul", 1, "weight"},
    Slot{"PRelu", 1, "slope"},
    Slot{"RMSNormalization", 1, "scale"},
    Slot{"RNN", 1, "weight"},
    Slot{"RNN", 2, "weight"},
    Slot{"RNN", 3, "bias"},
    Slot{"SimplifiedLayerNormalization", 1, "scale"},
    Slot{"SkipLayerNormalization", 2, "scale"},
    Slot{"SkipLayerNormalization", 3, "bias"},
    Slot{"SkipLayerNormalization", 4, "bias"},
    Slot{"SkipSimplifiedLayerNormalization", 2, "scale"},
    Slot{"SkipSimplifiedLayerNormalization", 3, "bias"},
};

bool isOneOf(const Node* node, std::initializer_list<std::string_view> ops) {
  return node != nullptr && std::find(ops.begin(), ops.end(), node->op) != ops.end();
}

// Ops whose first input comes out with the same numbers, or some of them.
bool handsOn(const Node& node, std::size_t input) {
  return input == 0 && isOneOf(&node, {"Cast", "CastLike", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze",
                                       "Transpose", "Unsqueeze"});
}

// Whether the value consists of what the file stores: parts of weights may be put together before they are read.
bool isStored(const Graph& graph, ValueId value, int depth = 0) {
  if (!value) return false;
  const NodeId producer = graph.value(value).producer;
  if (!producer) return graph.value(value).role == ValueRole::kInitializer;
  const Node& node = graph.node(producer);
  if (isOneOf(&node, {"Constant"})) return true;
  if (depth >= kDeepest) return false;
  if (isOneOf(&node, {"Concat"}))
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId part) { return isStored(graph, part, depth + 1); });
  return handsOn(node, 0) && isStored(graph, node.input(0), depth + 1);
}

const Node* makerOf(const Graph& graph, ValueId value) {
  for (int depth = 0; value && depth < kDeepest; ++depth) {
    const NodeId producer = graph.value(value).producer;
    if (!producer) return nullptr;
    const Node& node = graph.node(producer);
    if (!handsOn(node, 0)) return &node;
    value = node.input(0);
  }
  return nullptr;
}

// Whether the value is made of positions, which rotary embeddings multiply with their frequencies: no features, no weight.
bool isPositions(const Graph& graph, ValueId value) {
  for (int depth = 0; value && depth < kDeepest; ++depth) {
    if (isInteger(graph.value(value).type.dtype)) return true;
    const NodeId producer = graph.value(value).producer;
    if (!producer) return false;
    const Node& node = graph.node(producer);
    if (isOneOf(&node, {"Range", "Shape", "CumSum", "CumProd"})) return true;
    if (!handsOn(node, 0) && !isOneOf(&node, {"Expand"})) return false;
    value = node.input(0);
  }
  return false;
}

// x / sqrt(…), what comes before the scale of a normalisation that is written out.
bool isNormalised(const Graph& graph, const Node* node) {
  if (isOneOf(node, {"Div"})) return isOneOf(makerOf(graph, node->input(1)), {"Sqrt"});
  if (!isOneOf(node, {"Mul"})) return false;
  return std::any_of(node->inputs.begin(), node->inputs.end(), [&](ValueId input) {
    const Node* maker = makerOf(graph, input);
    return isOneOf(maker, {"Reciprocal"}) && isOneOf(makerOf(graph, maker->input(0)), {"Sqrt"});
  });
}

std::string_view affineRole(const Graph& graph, const Node& node, std::size_t input) {
  if (node.inputs.size() != 2) return {};
  const Node* other = makerOf(graph, node.input(1 - input));
  if (isOneOf(&node, {"Mul"})) return isNormalised(graph, other) ? "scale" : "";
  if (!isOneOf(&node, {"Add"})) return {};
  if (isOneOf(other, {"Conv", "ConvTranspose", "Einsum", "FusedMatMul", "Gemm", "MatMul"})) return "bias";
  const bool scaled =
      isOneOf(other, {"Mul"}) && other->inputs.size() == 2 &&
      (isNormalised(graph, makerOf(graph, other->input(0))) || isNormalised(graph, makerOf(graph, other->input(1))));
  return scaled ? "bias" : "";
}

std::optional<WeightRole> roleWithin(const Graph& graph, const UseTable& uses, ValueId value, int depth) {
  const ValueType& type = graph.value(value).type;
  for (const Use& use : uses.of(value)) {
    if (use.input == SIZE_MAX) continue;
    const Node& node = graph.node(use.node);
    const auto slot =
        std::find_if(kSlots.begin(), kSlots.end(), [&](const Slot& s) { return s.op == node.op && s.input == use.input; });
    const bool product = isOneOf(&node, {"Einsum", "FusedMatMul", "MatMul"}) && node.inputs.size() == 2;
    if (slot != kSlots.end() && !(product && isPositions(graph, node.input(1 - use.input))))
      return WeightRole{slot->what, use.node};
    if (node.op == "Gather" && use.input == 0 && type.shape && type.shape->size() == 2)
      return WeightRole{"embedding table", use.node};
    if (const std::string_view what = affineRole(graph, node, use.input); !what.empty()) return WeightRole{what, use.node};
    const bool joins = isOneOf(&node, {"Concat"}) && isStored(graph, node.output(0));
    if ((!joins && !handsOn(node, use.input)) || depth >= kDeepest) continue;
    for (const ValueId out : node.outputs)
      if (const auto role = out ? roleWithin(graph, uses, out, depth + 1) : std::nullopt) return role;
  }
  return std::nullopt;
}

}  // namespace

std::string WeightRole::text(const Graph& graph) const { return fmt::format("{} of {}", what, graph.node(node).label()); }

std::optional<WeightRole> weightRole(const Graph& graph, const UseTable& uses, ValueId value) {
  return roleWithin(graph, uses, value, 0);
}

bool onlyArithmetic(const Graph& graph, const UseTable& uses, ValueId value) {
  const auto readers = uses.of(value);
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](const Use& use) {
    return use.input != SIZE_MAX &&
           isOneOf(&graph.node(use.node), {"Add", "Clip", "Div", "Equal", "Expand", "Greater", "GreaterOrEqual", "Less",
                                           "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Pow", "Sub", "Sum", "Where"});
  });
}

bool isNeutralInGroupNorm(const Graph& graph, const UseTable& uses, ValueId value) {
  const InitialContents& initial = graph.value(value).data;
  if (!initial || !isFloating(initial.dtype()) || uses.of(value).empty()) return false;
  std::optional<Result<Tensor>> data;  // not read before somebody asks
  const auto holds = [&](double number) {
    if (!data) data = initial.read();
    if (!*data) return false;
    for (std::int64_t i = 0; i < (*data)->elements(); ++i)
      if (elementAsDouble((*data)->view(), i) != number) return false;
    return true;
  };
  return std::ranges::all_of(uses.of(value), [&](const Use& use) {
    if (use.input != 1 && use.input != 2) return false;
    const Node& norm = graph.node(use.node);
    const auto readers = uses.of(norm.output(0));
    return isOneOf(&norm, {"InstanceNormalization"}) && producerOf(graph, norm.input(0), "Reshape") && readers.size() == 1 &&
           readers[0].input == 0 && isOneOf(&graph.node(readers[0].node), {"Reshape"}) && holds(use.input == 1 ? 1 : 0);
  });
}

}  // namespace stepscope
