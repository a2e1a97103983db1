#include <type_traits>

#include "kernels/cuda/integers.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"

namespace stepscope::cuda {
inline namespace integers_cu {

enum class IntegerStep { kAdd, kSub, kMul, kEqual, kGreater, kGreaterOrEqual, kLess, kLessOrEqual, kWhere, kCount };

constexpr std::string_view kOps[] = {"Add",  "Sub",         "Mul",  "Equal", "Greater", "GreaterOrEqual",
                                     "Less", "LessOrEqual", "Where"};
static_assert(std::size(kOps) == static_cast<std::size_t>(IntegerStep::kCount));

SS_ANY constexpr bool compares(IntegerStep step) { return step >= IntegerStep::kEqual && step <= IntegerStep::kLessOrEqual; }

// Integers wrap around.
template <IntegerStep kStep, typename T>
SS_DEVICE T joined(T a, T b) {
  using Bits = std::make_unsigned_t<T>;
  if constexpr (kStep == IntegerStep::kAdd) return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
  if constexpr (kStep == IntegerStep::kSub) return static_cast<T>(static_cast<Bits>(a) - static_cast<Bits>(b));
  if constexpr (kStep == IntegerStep::kMul) return static_cast<T>(static_cast<Bits>(a) * static_cast<Bits>(b));
  return a;
}
template <IntegerStep kStep, typename T>
SS_DEVICE bool compared(T a, T b) {
  if constexpr (kStep == IntegerStep::kEqual) return a == b;
  if constexpr (kStep == IntegerStep::kGreater) return a > b;
  if constexpr (kStep == IntegerStep::kGreaterOrEqual) return a >= b;
  if constexpr (kStep == IntegerStep::kLess) return a < b;
  return a <= b;
}

// y[total]; a, b and what chooses between them broadcast to it. One thread per element.
template <IntegerStep kStep, typename T, typename Y>
SS_GLOBAL void integers(Global<const std::uint8_t> condition, Global<const T> a, Global<const T> b, Global<Y> y,
                        Walk<3> walk, std::int64_t total) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= total) return;
  std::int64_t at[3];
  walk.offsets(i, at);
  const T left = a[at[1]], right = b[at[2]];
  if constexpr (kStep == IntegerStep::kWhere)
    y[i] = condition[at[0]] != 0 ? left : right;
  else if constexpr (compares(kStep))
    y[i] = compared<kStep>(left, right) ? 1 : 0;
  else
    y[i] = joined<kStep>(left, right);
}

// The type of the elements: of the last operand.
DType elementsOf(const KernelSpec& spec) { return spec.inputs.empty() ? DType::kUndefined : spec.inputs.back().dtype; }

template <IntegerStep kStep, typename T, typename Y>
std::unique_ptr<Kernel> makeOf(const Walk<3>& walk, std::int64_t total) {
  return makeLaunched("integers", [=](Launcher& gpu) {
    constexpr std::size_t kFirst = kStep == IntegerStep::kWhere ? 1 : 0;
    const auto condition = kFirst == 1 ? gpu.in<std::uint8_t>(0) : Global<const std::uint8_t>();
    return gpu.run("integers", gpu::function<integers<kStep, T, Y>>, blocksFor(total), kThreads, condition,
                   gpu.in<T>(kFirst), gpu.in<T>(kFirst + 1), gpu.out<Y>(0), walk, total);
  });
}

template <typename T>
std::unique_ptr<Kernel> makeStep(IntegerStep step, const Walk<3>& walk, std::int64_t total) {
  switch (step) {
    case IntegerStep::kAdd: return makeOf<IntegerStep::kAdd, T, T>(walk, total);
    case IntegerStep::kSub: return makeOf<IntegerStep::kSub, T, T>(walk, total);
    case IntegerStep::kMul: return makeOf<IntegerStep::kMul, T, T>(walk, total);
    case IntegerStep::kEqual: return makeOf<IntegerStep::kEqual, T, std::uint8_t>(walk, total);
    case IntegerStep::kGreater: return makeOf<IntegerStep::kGreater, T, std::uint8_t>(walk, total);
    case IntegerStep::kGreaterOrEqual: return makeOf<IntegerStep::kGreaterOrEqual, T, std::uint8_t>(walk, total);
    case IntegerStep::kLess: return makeOf<IntegerStep::kLess, T, std::uint8_t>(walk, total);
    case IntegerStep::kLessOrEqual: return makeOf<IntegerStep::kLessOrEqual, T, std::uint8_t>(walk, total);
    default: return makeOf<IntegerStep::kWhere, T, T>(walk, total);
  }
}

IntegerStep integerStepOf(std::string_view op) {
  return static_cast<IntegerStep>(std::find(std::begin(kOps), std::end(kOps), op) - std::begin(kOps));
}

}  // namespace integers_cu

bool isOfIntegers(const KernelSpec& spec) {
  const DType dtype = elementsOf(spec);
  const IntegerStep step = integerStepOf(spec.op);
  if (!spec.domain.empty() || step == IntegerStep::kCount) return false;
  return dtype == DType::kI32 || dtype == DType::kI64 || (step == IntegerStep::kWhere && dtype == DType::kBool);
}

Result<std::unique_ptr<Kernel>> makeIntegers(const KernelSpec& spec) {
  const IntegerStep step = integerStepOf(spec.op);
  const DType dtype = elementsOf(spec), result = compares(step) ? DType::kBool : dtype;
  const bool where = step == IntegerStep::kWhere;
  if (spec.inputs.size() != (where ? 3u : 2u) || spec.outputs.size() != 1 || !takesOutput(spec, 0, result))
    return notTaken(spec, "operands or results of several types");
  const Dims& y = spec.outputs[0].dims;
  std::array<Dims, 3> strides;
  strides.fill(Dims(y.size(), 0));
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const Dims& dims = spec.inputs[i].dims;
    if (!takesInput(spec, i, where && i == 0 ? DType::kBool : dtype) || dims.size() > y.size())
      return notTaken(spec, "operands of several types, or of higher rank than the result");
    const std::size_t lead = y.size() - dims.size();
    const Dims own = rowMajorStrides(dims);
    for (std::size_t a = 0; a < dims.size(); ++a) {
      if (dims[a] != 1 && dims[a] != y[lead + a]) return notTaken(spec, "operands that do not broadcast");
      if (dims[a] != 1) strides[i + (where ? 0 : 1)][lead + a] = own[a];
    }
  }
  Walk<3> walk;
  for (std::size_t a = 0; a < y.size(); ++a)
    if (!walk.add(y[a], {strides[0][a], strides[1][a], strides[2][a]})) return notTaken(spec, "more than eight axes");
  const std::int64_t total = elementCount(y);
  if (dtype == DType::kBool) return makeOf<IntegerStep::kWhere, std::uint8_t, std::uint8_t>(walk, total);
  return dtype == DType::kI32 ? makeStep<std::int32_t>(step, walk, total) : makeStep<std::int64_t>(step, walk, total);
}

}  // namespace stepscope::cuda
