#include "engine/passes/lower_soft_labels.h"

#include "engine/ops/op_def.h"
#include "engine/passes/node_lowering.h"

namespace stepscope {
namespace {

class SoftLabels : public NodeLowering {
 public:
  using NodeLowering::NodeLowering;

 private:
  std::vector<ValueId> lower() override {
    if (!applies() || !node().output(0)) return {};
    if (node().output(1))
      return stay("labels are probabilities and its log-probabilities are read; expected the loss alone");
    ValueId terms = emit("Mul", {emit("LogSoftmax", {node().input(0)}, {{"axis", std::int64_t{1}}}), node().input(1)});
    if (node().input(2)) {
      Integers column(graph_.value(node().input(0)).type.shape->size(), 1);
      column[1] = -1;
      terms = emit("Mul", {terms, emit("Reshape", {node().input(2), ints(column)})});
    }
    const ValueId rows = emit("Neg", {emit("ReduceSum", {terms, ints({1})}, {{"keepdims", std::int64_t{0}}})});
    const std::string reduction = node().attrs.text("reduction", "mean");
    if (reduction == "none") return {emit("Identity", {rows})};
    return {emit(reduction == "sum" ? "ReduceSum" : "ReduceMean", {rows}, {{"keepdims", std::int64_t{0}}})};
  }

  bool applies() const {
    if (!is("SoftmaxCrossEntropyLoss") || !node().input(1)) return false;
    const ValueType &scores = graph_.value(node().input(0)).type, &labels = graph_.value(node().input(1)).type;
    return isFloating(labels.dtype) && scores.shape && labels.shape && labels.shape->size() == scores.shape->size();
  }
};

}  // namespace

Status lowerSoftLabels(Graph& graph, PassContext& context) { return SoftLabels(graph, context).run(); }

}  // namespace stepscope
