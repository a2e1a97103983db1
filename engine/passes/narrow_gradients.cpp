#include "engine/passes/narrow_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/ops/op_def.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

bool isInternal(const Node& node, std::string_view op) { return node.domain == kInternalDomain && node.op == op; }

class GradientNarrower {
 public:
  GradientNarrower(Graph& graph, PassContext& context) : graph_(graph), context_(context), readers_(graph) {}

  Status run() {
    std::vector<ValueId> gradients;
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (node.input(i) && takesLow(node, i) && !isInternal(node, "SquareSum") &&
            std::ranges::find(gradients, node.input(i)) == gradients.end())
          gradients.push_back(node.input(i));
    }
    for (const ValueId gradient : gradients) SS_TRY(narrow(gradient));
    graph_.removeNodes(gone_);
    return {};
  }

 private:
  // Whether the kernel of the node widens this input itself.
  bool takesLow(const Node& node, std::size_t input) const {
    if (isInternal(node, "SquareSum")) return true;
    if (!isInternal(node, "AdamUpdate") && !isInternal(node, "SgdUpdate") && !isInternal(node, "LambUpdate") &&
        !isInternal(node, "Accumulate"))
      return false;
    // With a parameter of the low type itself nothing was cast.
    return input == 1 && graph_.value(node.input(0)).type.dtype == DType::kF32;
  }

  // The low value that the value is a float32 cast of, read by nothing else that would need the cast's place; else null.
  const Node* castOfLow(ValueId value) const {
    const Node* cast = producerOf(graph_, value, "Cast");
    if (!cast || graph_.value(value).type.dtype != DType::kF32) return nullptr;
    const Value& from = graph_.value(cast->input(0));
    return isLow(from.type.dtype) && from.producer ? cast : nullptr;
  }

  Status narrow(ValueId gradient) {
    const NodeId producer = graph_.value(gradient).producer;
    if (!producer) return {};
    const Node& node = graph_.node(producer);
    const bool table = isInternal(node, "GatherGrad") && node.input(3) && castOfLow(node.input(3));
    const Node* cast = table ? castOfLow(node.input(3)) : castOfLow(gradient);
    if (!cast) {
      tellOfSum(producer);
      return {};
    }
    const auto& uses = readers_.of(gradient);
    const auto other = std::ranges::find_if(
        uses, [&](const Use& use) { return use.input == SIZE_MAX || !takesLow(graph_.node(use.node), use.input); });
    if (other != uses.end())
      return miss(cast->id, fmt::format("{} reads the gradient in float32", graph_.node(other->node).label()));
    if (graph_.value(cast->input(0)).type.shape != graph_.value(gradient).type.shape)
      return miss(cast->id, "the gradient has other extents");
    if (!readers_.single(cast->input(0))) return miss(cast->id, "what it casts has other readers");
    if (table) return sumInLow(producer, *cast, gradient);
    // The gradient keeps its id and name, and is from here on what the product makes.
    const ValueId made = cast->input(0);
    const NodeId castId = cast->id, product = graph_.value(made).producer;
    const ValueType type = graph_.value(made).type;
    const auto at = static_cast<std::size_t>(graph_.value(made).outputIndex);
    graph_.setInput(castId, 0, gradient);
    graph_.removeValue(made);
    graph_.moveOutput(gradient, product, at);
    graph_.mutableValue(gradient).type = type;
    gone_.push_back(castId);
    context_.match();
    return {};
  }

  Status sumInLow(NodeId gather, const Node& cast, ValueId gradient) {
    if (!readers_.single(cast.output(0))) return miss(cast.id, "the product's gradient is read alone too");
    const NodeId castId = cast.id;
    const ValueId made = cast.input(0);
    graph_.setInput(gather, 3, made);
    SS_TRY(context_.inference.inferNode(gather));
    gone_.push_back(castId);
    context_.match();
    context_.note(fmt::format("'{}': rows of the embedding are added to the product's gradient in float32 and rounded to {}",
                              graph_.value(gradient).name, dtypeName(graph_.value(gradient).type.dtype)));
    return {};
  }

  // Gradients of a parameter with several readers are added in float32, as PyTorch does.
  void tellOfSum(NodeId producer) {
    const Node& node = graph_.node(producer);
    if (!isOp(node, "Sum") && !isOp(node, "Add")) return;
    if (std::ranges::any_of(node.inputs, [&](ValueId id) { return id && castOfLow(id); }))
      context_.miss(producer, "gradients of several readers are added in float32");
  }

  Status miss(NodeId id, std::string condition) {
    context_.miss(id, std::move(condition));
    return {};
  }

  Graph& graph_;
  PassContext& context_;
  const Readers readers_;  // of the graph as it came
  std::vector<NodeId> gone_;
};

}  // namespace

Status narrowGradients(Graph& graph, PassContext& context) { return GradientNarrower(graph, context).run(); }

}  // namespace stepscope
