// Expand and Tile: copies with repeated sources.
#include "kernels/cpu/loops/lanes_last.h"
#include "kernels/cpu/loops/strided.h"

namespace stepscope::cpu {
namespace {

std::unique_ptr<Kernel> makeCopy(const KernelSpec& spec, const StridedCopy& copy) {
  return makeBodyKernel(
      "strided copy",
      [copy, size = dtypeSize(spec.inputs[0].dtype), threads = spec.threads](const KernelCall& call) -> Status {
        copy.run(resultBytes(call, 0), bytesOf(call, 0), size, threads);
        return {};
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeExpand(const KernelSpec& spec) {
  if (!movable(spec, 0, 0)) return notTaken(spec, "elements that cannot be copied");
  if (anyBlocked(spec)) {
    const Dims& whole = spec.outputs[0].dims;
    if (isBlocked(spec.inputs[0]) || !isChannelVector(spec.inputs[0].dims, whole))
      return notTaken(spec, "other than one element per channel");
    KernelSpec seen = spec;
    seen.inputs[0].dims = vectorLanesLast(spec.inputs[0].dims, whole);
    seen.outputs[0] = lanesLast(spec.outputs[0]);
    return makeExpand(seen);
  }
  const Dims &x = spec.inputs[0].dims, &y = spec.outputs[0].dims;
  if (x.size() > y.size()) return notTaken(spec, "a result of lower rank");
  const Dims own = rowMajorStrides(x), to = rowMajorStrides(y);
  const std::size_t lead = y.size() - x.size();
  StridedCopy copy;
  for (std::size_t a = 0; a < y.size(); ++a) {
    const std::int64_t extent = a < lead ? 1 : x[a - lead];
    if (extent != y[a] && extent != 1) return notTaken(spec, "a shape that does not broadcast");
    if (!copy.add(y[a], to[a], extent == 1 ? 0 : own[a - lead])) return notTaken(spec, "too many axes");
  }
  return makeCopy(spec, copy);
}

Result<std::unique_ptr<Kernel>> makeTile(const KernelSpec& spec) {
  if (!movable(spec, 0, 0)) return notTaken(spec, "elements that cannot be copied");
  const Dims &x = spec.inputs[0].dims, &y = spec.outputs[0].dims;
  if (x.size() != y.size()) return notTaken(spec, "a result of another rank");
  const Dims own = rowMajorStrides(x), to = rowMajorStrides(y);
  StridedCopy copy;
  for (std::size_t a = 0; a < y.size(); ++a)
    if (y[a] % x[a] != 0 || !copy.add(y[a] / x[a], to[a] * x[a], 0) || !copy.add(x[a], to[a], own[a]))
      return notTaken(spec, "a shape that does not tile");
  return makeCopy(spec, copy);
}

}  // namespace stepscope::cpu
