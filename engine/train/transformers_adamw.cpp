#include "engine/train/transformers_adamw.h"

#include <fmt/format.h>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

class AdamwWriter {
 public:
  explicit AdamwWriter(const OnnxruntimeOptimizer& o) : o_(o) {}

  Graph make() && {
    graph_.name = "adamw of transformers";
    graph_.opsets[""] = kInternalOpset;
    const ValueId weight = input("parameter"), gradient = input("gradient"), rate = input("learning_rate", Shape{});
    const ValueId step = graph_.addValue("step", {.dtype = DType::kI64, .shape = Shape{}}, ValueRole::kInput);
    graph_.mutableInputs().push_back(step);
    const ValueId m = input("exp_avg"), v = input("exp_avg_sq");
    const ValueId nextM = named("exp_avg_next", "Add", {mul(m, o_.beta1), mul(gradient, 1 - o_.beta1)});
    const ValueId square = op("Mul", {gradient, gradient});
    const ValueId nextV = named("exp_avg_sq_next", "Add", {mul(v, o_.beta2), mul(square, 1 - o_.beta2)});
    ValueId factor = rate;
    if (o_.biasCorrection) {
      const ValueId t = op("Cast", {step}, {{"to", std::int64_t{static_cast<int>(DType::kF32)}}});
      factor = op("Div", {op("Mul", {rate, op("Sqrt", {correction(o_.beta2, t)})}), correction(o_.beta1, t)});
    }
    const ValueId denominator = op("Add", {op("Sqrt", {nextV}), constant(o_.epsilon)});
    const ValueId stepped = op("Sub", {weight, op("Mul", {factor, op("Div", {nextM, denominator})})});
    const ValueId decay = op("Mul", {op("Mul", {rate, constant(o_.weightDecay)}), stepped});
    const ValueId next = named("parameter_next", "Sub", {stepped, decay});
    graph_.mutableOutputs() = {next, nextM, nextV};
    return std::move(graph_);
  }

 private:
  ValueId input(const std::string& name, std::optional<Shape> shape = {}) {
    const ValueId id = graph_.addValue(name, {.dtype = DType::kF32, .shape = std::move(shape)}, ValueRole::kInput);
    graph_.mutableInputs().push_back(id);
    return id;
  }
  ValueId constant(double number) { return graph_.addConstant("", Tensor::scalar(DType::kF32, number)); }
  ValueId mul(ValueId x, double factor) { return op("Mul", {x, constant(factor)}); }
  ValueId correction(double beta, ValueId t) { return op("Sub", {constant(1), op("Pow", {constant(beta), t})}); }
  ValueId named(const std::string& name, const std::string& operation, std::vector<ValueId> inputs, Attributes attrs = {}) {
    const NodeId node = graph_.addNode("", "", operation, std::move(inputs), {name}, std::move(attrs));
    graph_.mutableNode(node).sinceVersion = kInternalOpset;
    graph_.mutableValue(graph_.node(node).output(0)).type.dtype = DType::kF32;
    return graph_.node(node).output(0);
  }
  ValueId op(const std::string& operation, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return named(fmt::format("v{}", next_++), operation, std::move(inputs), std::move(attrs));
  }

  const OnnxruntimeOptimizer& o_;
  Graph graph_;
  int next_ = 0;
};

}  // namespace

Graph transformersAdamw(const OnnxruntimeOptimizer& optimizer) { return AdamwWriter(optimizer).make(); }

}  // namespace stepscope
