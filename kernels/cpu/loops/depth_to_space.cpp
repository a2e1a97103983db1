// DepthToSpace and SpaceToDepth: a transposition of memory seen with more axes.
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

// The kernel for the same memory as a tensor of extents `dims` whose axes are taken in the order `perm`.
Result<std::unique_ptr<Kernel>> transposed(const KernelSpec& spec, Dims dims, const std::vector<std::int64_t>& perm) {
  KernelSpec moved;
  moved.op = "Transpose";
  moved.attrs.set("perm", perm);
  moved.threads = spec.threads;
  Dims to;
  for (const std::int64_t axis : perm) to.push_back(dims[static_cast<std::size_t>(axis)]);
  moved.inputs = {{spec.inputs[0].dtype, std::move(dims), false, {}}};
  moved.outputs = {{spec.outputs[0].dtype, std::move(to), false, {}}};
  return makeTranspose(moved);
}

// Four known extents that `block` divides.
bool blocks(const KernelSpec& spec, const Dims& deep, std::int64_t block) {
  return spec.inputPresent(0) && spec.outputPresent(0) && !spec.inputs[0].dynamic && spec.inputs[0].dims.size() == 4 &&
         spec.outputs[0].dims.size() == 4 && block > 0 && deep[1] % (block * block) == 0 &&
         elementCount(spec.inputs[0].dims) == elementCount(spec.outputs[0].dims);
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeDepthToSpace(const KernelSpec& spec) {
  const std::int64_t b = spec.attrs.integer("blocksize", 0);
  if (spec.inputs.empty() || !blocks(spec, spec.inputs[0].dims, b))
    return notTaken(spec, "extents that the block does not divide");
  const Dims& x = spec.inputs[0].dims;
  const std::int64_t channels = x[1] / (b * b);
  if (spec.attrs.text("mode", "DCR") == "CRD")
    return transposed(spec, {x[0], channels, b, b, x[2], x[3]}, {0, 1, 4, 2, 5, 3});
  return transposed(spec, {x[0], b, b, channels, x[2], x[3]}, {0, 3, 4, 1, 5, 2});
}

Result<std::unique_ptr<Kernel>> makeSpaceToDepth(const KernelSpec& spec) {
  const std::int64_t b = spec.attrs.integer("blocksize", 0);
  if (spec.outputs.empty() || !blocks(spec, spec.outputs[0].dims, b))
    return notTaken(spec, "extents that the block does not divide");
  const Dims& y = spec.outputs[0].dims;
  return transposed(spec, {y[0], y[1] / (b * b), y[2], b, y[3], b}, {0, 3, 5, 1, 2, 4});
}

}  // namespace stepscope::cpu
