#include "engine/passes/fold_constants.h"

#include <algorithm>
#include <unordered_set>

#include "engine/ops/op_def.h"
#include "engine/passes/float16_range.h"

namespace stepscope {
namespace {

// Choices and predicates whose condition is known.
class Settling {
 public:
  Settling(Graph& graph, const Inference& inference) : graph_(graph), inference_(inference) {}

  std::size_t run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node& node = graph_.node(id);
      if (node.domain == kInternalDomain && node.output(0)) choice(node);
      if (node.origin.kind == Origin::Kind::kSum) sum(node);
      if (!node.predicates.empty()) predicates(node);
    }
    graph_.replaceAllUses(replacements_);
    return matches_;
  }

 private:
  std::optional<bool> known(ValueId condition) const {
    const Tensor* constant = inference_.constant(condition);
    if (!constant || constant->elements() != 1) return std::nullopt;
    return elementAsInt(constant->view(), 0) != 0;
  }

  // Outputs of the graph keep their ids.
  void handOn(const Node& node, ValueId value) {
    if (std::ranges::count(graph_.outputs(), node.output(0)) > 0) return become(node, "Identity", {value}, {});
    replacements_[node.output(0)] = value;
    ++matches_;
  }

  void choice(const Node& node) {
    if (node.op == "ConcatTaken") return concat(node);
    const bool gate = node.op == "Gate";
    if (!gate && node.op != "Select" && node.op != "LoopBound") return;
    const auto condition = known(node.input(0));
    if (!condition) return;
    if (node.op == "Select") return handOn(node, node.input(*condition ? 1 : 2));
    const bool open = gate ? *condition == (node.attrs.integer("expected", 1) != 0) : !*condition;
    if (open) return handOn(node, node.input(1));
    if (gate) zeros(node);
  }

  // Only the parts that are taken.
  void concat(const Node& node) {
    const auto taken = inference_.integers(node.input(0));
    if (!taken || taken->size() + 1 != node.inputs.size()) return;
    std::vector<ValueId> parts;
    for (std::size_t i = 0; i < taken->size(); ++i)
      if ((*taken)[i] != 0) parts.push_back(node.input(i + 1));
    if (parts.empty()) return;
    become(node, "Concat", std::move(parts), node.attrs);
  }

  // What leaves a branch that does not run: nothing behind it is computed for it.
  void zeros(const Node& node) {
    const ValueType& type = graph_.value(node.output(0)).type;
    const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
    if (!dims || type.dtype == DType::kUndefined) return;
    zeros_.insert(node.output(0));
    Tensor zero(type.dtype, {1});
    storeElement(zero.view(), 0, 0);
    const ValueId shape = graph_.addConstant(node.name + "/shape", Tensor::ints(*dims));
    become(node, "ConstantOfShape", {shape}, {{"value", std::move(zero)}});
  }

  // Gradients of one value, all of its shape.
  void sum(const Node& node) {
    std::vector<ValueId> parts;
    for (const ValueId in : node.inputs)
      if (!zeros_.contains(in)) parts.push_back(in);
    if (parts.size() == node.inputs.size()) return;
    if (parts.empty()) zeros_.insert(node.output(0));
    if (parts.size() < 2) return handOn(node, parts.empty() ? node.input(0) : parts.front());
    become(node, parts.size() == 2 ? "Add" : "Sum", std::move(parts), {});
  }

  void predicates(const Node& node) {
    std::vector<Predicate> open;
    for (const Predicate& predicate : node.predicates) {
      // A predicate that is constantly false leaves a node that nothing live reads once the Select is gone.
      if (known(predicate.condition) != predicate.expected) open.push_back(predicate);
    }
    if (open.size() == node.predicates.size()) return;
    graph_.mutableNode(node.id).predicates = std::move(open);
    graph_.logChange(node.id);
    ++matches_;
  }

  void become(const Node& node, const char* op, std::vector<ValueId> inputs, Attributes attributes) {
    const NodeId id = node.id;
    Node& changed = graph_.mutableNode(id);
    changed.domain.clear();
    changed.op = op;
    changed.sinceVersion = kInternalOpset;
    changed.inputs = std::move(inputs);
    changed.attrs = std::move(attributes);
    graph_.logChange(id);
    ++matches_;
  }

  Graph& graph_;
  const Inference& inference_;
  std::unordered_map<ValueId, ValueId> replacements_;
  std::unordered_set<ValueId> zeros_;
  std::size_t matches_ = 0;
};

}  // namespace

Status foldConstants(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  context.result.matches += Settling(graph, inference).run();
  std::unordered_map<ValueId, ValueId> replacements;
  std::vector<std::pair<ValueId, std::string>> names;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!node.predicates.empty()) continue;
    for (const ValueId out : node.outputs) {
      if (!out) continue;
      const auto tensor = inference.sharedConstant(out);
      if (!tensor) continue;
      if (node.op == "Cast" || node.op == "CastLike")
        tellOfOverflow(graph, context, node, node.input(0), tensor->dtype(), "a smaller number, or a file in float32");
      const ValueId constant = graph.addConstant(graph.value(out).name + "_folded", *tensor);
      replacements[out] = constant;
      names.emplace_back(constant, graph.value(out).name);
      context.match();
    }
  }
  graph.replaceAllUses(replacements);
  if (context.result.matches > 0) graph.removeDeadNodes();
  // The constant takes over the name that users know.
  for (const auto& [constant, name] : names)
    if (!graph.findValue(name)) graph.renameValue(constant, name);
  return {};
}

}  // namespace stepscope
