// Cast between float32 and bool, int32, int64, float64, float16, bfloat16, in the directions that do not saturate.
#include "kernels/cpu/loops/low_operands.h"

namespace stepscope::cpu {
namespace {

template <typename From, typename To>
SS_CLONES void castLoop(const void* from, void* to, std::int64_t count) {
  const From* x = static_cast<const From*>(from);
  To* y = static_cast<To*>(to);
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<To, bool>)
      y[i] = x[i] != From{};
    else
      y[i] = static_cast<To>(x[i]);
  }
}

struct Entry {
  DType from, to;
  ConvertLoop loop;
};
template <typename From, typename To>
constexpr Entry entry() {
  return {DTypeOf<From>::value, DTypeOf<To>::value, castLoop<From, To>};
}

const Entry kEntries[] = {
    entry<bool, float>(),
    entry<bool, std::int64_t>(),
    entry<double, float>(),
    entry<float, BFloat16>(),
    entry<float, Float16>(),
    entry<float, bool>(),
    entry<float, double>(),
    entry<BFloat16, float>(),
    entry<Float16, float>(),
    entry<std::int32_t, float>(),
    entry<std::int32_t, std::int64_t>(),
    entry<std::int64_t, bool>(),
    entry<std::int64_t, float>(),
    entry<std::int64_t, std::int32_t>(),
};

}  // namespace

ConvertLoop convertLoop(DType from, DType to) {
  for (const Entry& entry : kEntries)
    if (entry.from == from && entry.to == to) return entry.loop;
  return nullptr;
}

Result<std::unique_ptr<Kernel>> makeCast(const KernelSpec& spec) {
  if (spec.inputs.empty() || spec.outputs.empty() || spec.inputs[0].dynamic || spec.outputs[0].dynamic)
    return notTaken(spec, "extents that depend on data");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count) return notTaken(spec, "a result of another size");
  for (const Entry& entry : kEntries)
    if (entry.from == spec.inputs[0].dtype && entry.to == spec.outputs[0].dtype)
      return makeBodyKernel("vector loop",
                            [=, loop = entry.loop, from = dtypeSize(entry.from), to = dtypeSize(entry.to),
                             threads = spec.threads](const KernelCall& call) -> Status {
                              parallelElements(count, threads, [&](std::int64_t begin, std::int64_t end) {
                                loop(input<std::byte>(call, 0) + static_cast<std::size_t>(begin) * from,
                                     output<std::byte>(call, 0) + static_cast<std::size_t>(begin) * to, end - begin);
                              });
                              return {};
                            });
  return notTaken(spec, "types whose conversion saturates");
}

}  // namespace stepscope::cpu
