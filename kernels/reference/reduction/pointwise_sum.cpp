// The whole chain as the reference kernel of Pointwise computes it, then its sums in double.
#include "kernels/pointwise_sum_shape.h"
#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

Status pointwiseSum(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const PointwiseSumShape shape, pointwiseSumShape(spec));
  const DType type = spec.outputs[0].dtype;
  KernelSpec chain = spec;
  chain.op = "Pointwise";
  chain.outputs = {{isLow(type) ? DType::kF32 : type, shape.dims, false, {}}};
  const Tensor all(chain.outputs[0].dtype, shape.dims);
  SS_ASSIGN(const auto kernel, makeKernel(Backend::kReference, chain));
  std::vector<TensorView> outputs{all.view()};
  SS_TRY(kernel->run({call.inputs, outputs, {}, call.random, call.stream, {}}));
  SS_ASSIGN(const ReducePlan plan, planReduction(shape.dims, shape.axes));
  const double count = shape.mean ? static_cast<double>(plan.count) : 1;
  forEachResultBlock(plan, [&](std::int64_t result, std::int64_t n, std::int64_t at) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      forEachOffset(plan.reduced, at + j, [&](std::int64_t i) { sum += elementAsDouble(all.view(), i); });
      storeElement(call.outputs[0], result + j, sum / count);
    }
  });
  return {};
}

}  // namespace

std::span<const KernelEntry> pointwiseSumKernels() {
  static constexpr KernelEntry kEntries[] = {{"stepscope", "PointwiseSum", plain<pointwiseSum>}};
  return kEntries;
}

}  // namespace stepscope::reference
