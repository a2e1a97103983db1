#include "engine/passes/lower_soft_labels.h"

#include "engine/ops/op_def.h"
#include "engine/passes/beside.h"

namespace stepscope {
namespace {

class Lowering {
 public:
  Lowering(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      node_ = id;
      if (!applies() || !node().output(0)) {
        order_.push_back(id);
        continue;
      }
      if (node().output(1)) {
        context_.block(node().label() +
                       ": labels are probabilities and its log-probabilities are read; expected the loss alone");
        order_.push_back(id);
        continue;
      }
      const ValueId loss = lower();
      replacements_.replace(node().output(0), loss);
      replacements_.remove(id);
      context_.match();
    }
    if (context_.result.matches == 0) return {};
    replacements_.apply();
    graph_.setOrder(std::move(order_));
    return {};
  }

 private:
  const Node& node() const { return graph_.node(node_); }

  bool applies() const {
    if (!node().domain.empty() || node().op != "SoftmaxCrossEntropyLoss" || !node().input(1)) return false;
    const ValueType &scores = graph_.value(node().input(0)).type, &labels = graph_.value(node().input(1)).type;
    return isFloating(labels.dtype) && scores.shape && labels.shape && labels.shape->size() == scores.shape->size();
  }

  ValueId lower() {
    const ValueId classAxis = graph_.addConstant(node().name + "/axis", Tensor::ints(std::vector<std::int64_t>{1}));
    ValueId terms = emit("Mul", {emit("LogSoftmax", {node().input(0)}, {{"axis", std::int64_t{1}}}), node().input(1)});
    if (node().input(2)) {
      std::vector<std::int64_t> column(graph_.value(node().input(0)).type.shape->size(), 1);
      column[1] = -1;
      const ValueId shape = graph_.addConstant(node().name + "/column", Tensor::ints(column));
      terms = emit("Mul", {terms, emit("Reshape", {node().input(2), shape})});
    }
    const ValueId rows = emit("Neg", {emit("ReduceSum", {terms, classAxis}, {{"keepdims", std::int64_t{0}}})});
    const std::string reduction = node().attrs.text("reduction", "mean");
    if (reduction == "none") return emit("Identity", {rows});
    return emit(reduction == "sum" ? "ReduceSum" : "ReduceMean", {rows}, {{"keepdims", std::int64_t{0}}});
  }

  ValueId emit(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const ValueId result = emitBeside(graph_, node_, op, std::move(inputs), std::move(attributes));
    order_.push_back(graph_.value(result).producer);
    return result;
  }

  Graph& graph_;
  PassContext& context_;
  Replacements replacements_{graph_};
  NodeId node_;
  std::vector<NodeId> order_;
};

}  // namespace

Status lowerSoftLabels(Graph& graph, PassContext& context) { return Lowering(graph, context).run(); }

}  // namespace stepscope
