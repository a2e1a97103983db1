#include "engine/build/outer_gradients.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope {
namespace {

class Adder {
 public:
  Adder(Graph& graph, Inference& inference, std::string prefix)
      : graph_(graph), inference_(inference), prefix_(std::move(prefix)) {}

  Result<ValueId> operator()(std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    const std::string name = fmt::format("{}/{}{}", prefix_, op, count_++);
    const NodeId id = graph_.addNode(name, "", std::string(op), std::move(inputs), {name + "_out"}, std::move(attrs));
    Node& node = graph_.mutableNode(id);
    node.sinceVersion = kInternalOpset;
    node.provenance.imported = id;
    node.provenance.modulePath = InternedText(prefix_);
    node.origin = {.kind = Origin::Kind::kRoot, .detail = InternedText(name)};
    SS_TRY(inference_.inferNode(id));
    return graph_.node(id).output(0);
  }

 private:
  Graph& graph_;
  Inference& inference_;
  const std::string prefix_;
  int count_ = 0;
};

}  // namespace

Result<ValueId> addOuterLoss(Graph& graph, Inference& inference, std::vector<OuterStep::Seed>& seeds) {
  Adder add(graph, inference, "outer_loss");
  std::vector<ValueId> parts;
  for (OuterStep::Seed& seed : seeds) {
    const ValueId output = graph.outputs().at(seed.index);
    const ValueType type = graph.value(output).type;
    if (!isFloating(type.dtype))
      return invalid(fmt::format("output '{}': {}; expected floats to take a gradient of", seed.output, type.text()));
    seed.gradient = graph.addValue("gradient_of." + seed.output, type, ValueRole::kInput);
    graph.mutableInputs().push_back(seed.gradient);
    SS_ASSIGN(const ValueId product, add("Mul", {output, seed.gradient}));
    SS_ASSIGN(ValueId sum, add("ReduceSum", {product}, {{"keepdims", std::int64_t{0}}}));
    if (type.dtype != DType::kF32) {
      SS_ASSIGN(sum, add("Cast", {sum}, {{"to", static_cast<std::int64_t>(DType::kF32)}}));
    }
    parts.push_back(sum);
  }
  return parts.size() == 1 ? Result<ValueId>(parts.front()) : add("Sum", parts);
}

Status shapeSeeds(Graph& graph, const OuterStep& step, const Operators& operators) {
  const auto known = [&](const OuterStep::Seed& seed) {
    const auto& shape = graph.value(seed.gradient).type.shape;
    return shape && knownDims(*shape);
  };
  if (std::ranges::all_of(step.seeds, known)) return {};
  Graph forward = graph;
  Inference facts(forward, operators);
  SS_TRY(facts.run());
  for (const OuterStep::Seed& seed : step.seeds)
    graph.mutableValue(seed.gradient).type.shape = forward.value(forward.outputs().at(seed.index)).type.shape;
  return {};
}

void tellOuter(const Graph& graph, OuterStep& step) {
  std::size_t next = 0;
  for (auto& [name, id] : step.outputs) id = graph.outputs().at(next++);
  for (OuterStep::Update& update : step.updates) update.next = graph.outputs().at(next++);
  for (OuterStep::Gradient& gradient : step.gradients)
    if (gradient.value) gradient.value = graph.outputs().at(next++);
}

void updatesAsOutputs(Graph& graph, std::vector<OuterStep::Update>& updates) {
  for (const StateUpdate& update : graph.stateUpdates) {
    OuterStep::Update told{graph.value(update.state).name, update.next, {}, 0};
    if (const NodeId producer = graph.value(update.next).producer) {
      const Node& norm = graph.node(producer);
      if (norm.domain.empty() && norm.op == "BatchNormalization" && norm.output(2) == update.next) {
        told.input = norm.input(0);
        told.momentum = norm.attrs.real("momentum", 0.9F);
      }
    }
    // Without its update in the graph, a state of integers would be taken for a constant and folded.
    if (Value& state = graph.mutableValue(update.state); !isFloating(state.type.dtype)) state.role = ValueRole::kState;
    graph.mutableOutputs().push_back(update.next);
    updates.push_back(std::move(told));
  }
  graph.stateUpdates.clear();
}

Result<std::vector<double>> sampleFactors(const Graph& graph, const OuterStep& step) {
  std::vector<double> factors;
  for (const OuterStep::Update& update : step.updates) {
    factors.push_back(1);
    if (!update.input) continue;
    const ValueType& type = graph.value(update.input).type;
    const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
    if (!dims || dims->size() < 2)
      return fail(ErrorCode::kUnsupported,
                  fmt::format("state '{}': it is of the normalisation of '{}', {}; expected extents "
                              "that are numbers",
                              update.state, graph.value(update.input).name, type.text()));
    const double n = static_cast<double>(elementCount(*dims)) / static_cast<double>(std::max<std::int64_t>((*dims)[1], 1));
    if (n < 2)
      return invalid(
          fmt::format("state '{}': the variance of one element for a channel; expected more than one value per "
                      "channel when training",
                      update.state));
    factors.back() = n / (n - 1);
  }
  return factors;
}

}  // namespace stepscope
