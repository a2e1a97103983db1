// The gradients of a round, their norm, and what the update multiplies them by.
#include <algorithm>

#include "engine/build/optimizer_nodes.h"
#include "engine/ops/op_def.h"

namespace stepscope {

Result<ValueId> OptimizerNodes::accumulate(ValueId parameter, ValueId gradient) {
  const std::string name = graph_.value(parameter).name;
  const ValueId sum = state(parameter, ".accumulated", gradientParts());
  std::vector<std::string> outputs{name + ".accumulated_next"};
  if (needsNorm() && ranks_.size == 1) outputs.push_back(name + ".square_sum");
  SS_ASSIGN(const auto next, emit(name + "/accumulate", kInternalDomain, "Accumulate", {sum, gradient, report_.firstMicro},
                                  outputs, Phase::kBackward, parameter));
  graph_.stateUpdates.push_back({sum, next[0]});
  if (next.size() > 1) squares_.push_back(next[1]);
  return next[0];
}

Result<ValueId> OptimizerNodes::scalar(const std::string& name, std::string_view op, std::vector<ValueId> inputs,
                                       std::string output, Attributes attrs) {
  SS_ASSIGN(const auto made,
            emit(name, "", op, std::move(inputs), {std::move(output)}, Phase::kOptimizer, {}, std::move(attrs)));
  return made[0];
}

Result<ValueId> OptimizerNodes::factor(const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients) {
  std::vector<ValueId> squares = squares_;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const ValueId gradient = gradients[i];
    if (!gradient || !squares_.empty()) continue;
    SS_ASSIGN(const auto square, emit(graph_.value(gradient).name + "/square_sum", kInternalDomain, "SquareSum", {gradient},
                                      {graph_.value(gradient).name + ".square_sum"}, Phase::kOptimizer, trained[i]));
    squares.push_back(square[0]);
  }
  if (squares.empty()) return ValueId{};
  // One type for all: float64 where a gradient is.
  const bool wide = std::ranges::any_of(squares, [&](ValueId square) { return typeOf(square) == DType::kF64; });
  const DType dtype = wide ? DType::kF64 : DType::kF32;
  for (ValueId& square : squares)
    if (typeOf(square) != dtype) {
      SS_ASSIGN(square, scalar(graph_.value(square).name + "/cast", "Cast", {square}, graph_.value(square).name + "_cast",
                               {{"to", static_cast<std::int64_t>(dtype)}}));
    }
  const auto constant = [&](const char* name, double value) {
    return graph_.addConstant(name, Tensor::scalar(dtype, value));
  };
  SS_ASSIGN(const auto total, emit("clip/total", "", "Sum", squares, {"stepscope.square_sum"}, Phase::kOptimizer, {}));
  ValueId sum = total[0];
  if (parts()) {
    SS_ASSIGN(const auto all, emit("squares of all parts", kInternalDomain, "AllReduce", {sum},
                                   {"stepscope.square_sum_of_ranks"}, Phase::kOptimizer, {}));
    sum = all[0];
  }
  ValueId unscale;
  if (report_.lossScale) {
    SS_ASSIGN(unscale, judgeScaled(sum));
  }
  SS_ASSIGN(ValueId norm, scalar("clip/norm", "Sqrt", {sum}, unscale ? "stepscope.scaled_norm" : "stepscope.gradient_norm"));
  if (unscale) {
    SS_ASSIGN(norm, scalar("loss_scale/norm", "Mul", {norm, unscale}, "stepscope.gradient_norm"));
  }
  report_.gradientNorm = norm;
  if (o_.clipGradNorm <= 0) return unscale;
  SS_ASSIGN(const auto shifted, emit("clip/shifted", "", "Add", {norm, constant("stepscope.clip_eps", 1e-6)},
                                     {"stepscope.norm_eps"}, Phase::kOptimizer, {}));
  SS_ASSIGN(const auto ratio, emit("clip/ratio", "", "Div", {constant("stepscope.max_norm", o_.clipGradNorm), shifted[0]},
                                   {"stepscope.clip_ratio"}, Phase::kOptimizer, {}));
  SS_ASSIGN(const auto scale, emit("clip/scale", "", "Min", {ratio[0], constant("stepscope.one", 1)},
                                   {"stepscope.clip_scale"}, Phase::kOptimizer, {}));
  if (!unscale) return scale[0];
  return scalar("loss_scale/clip", "Mul", {scale[0], unscale}, "stepscope.update_scale");
}

Result<ValueId> OptimizerNodes::judgeScaled(ValueId squares) {
  SS_ASSIGN(const ValueId nan, scalar("loss_scale/nan", "IsNaN", {squares}, "stepscope.gradients_nan"));
  SS_ASSIGN(const ValueId inf, scalar("loss_scale/inf", "IsInf", {squares}, "stepscope.gradients_inf"));
  SS_ASSIGN(const ValueId bad, scalar("loss_scale/bad", "Or", {nan, inf}, "stepscope.gradients_bad"));
  SS_ASSIGN(report_.finite, scalar("loss_scale/finite", "Not", {bad}, "stepscope.gradients_finite"));
  report_.lossUnscale = input("stepscope.loss_unscale", DType::kF32);
  const DType dtype = graph_.value(squares).type.dtype;
  if (dtype == DType::kF32) return report_.lossUnscale;
  return scalar("loss_scale/cast", "Cast", {report_.lossUnscale}, "stepscope.unscale",
                {{"to", static_cast<std::int64_t>(dtype)}});
}

}  // namespace stepscope
