// Join: a strided copy for each part (kernels/strided_view.h).
#include <vector>

#include "kernels/cpu/loops/strided.h"
#include "kernels/strided_view.h"

namespace stepscope::cpu {

Result<std::unique_ptr<Kernel>> makeJoin(const KernelSpec& spec) {
  struct Part {
    StridedCopy copy;
    std::int64_t from = 0, to = 0;  // bytes to the first element
  };
  if (spec.outputs.size() != 1) return notTaken(spec, "other than one result");
  const Dims& y = spec.outputs[0].dims;
  const Dims strides = rowMajorStrides(y);
  const auto axis = static_cast<std::size_t>(spec.attrs.integer("axis", 0));
  if (axis >= y.size() || y.size() > StridedCopy::kAxes) return notTaken(spec, "an axis that is not there");
  const auto size = static_cast<std::int64_t>(dtypeSize(spec.outputs[0].dtype));
  std::vector<Part> parts;
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < spec.inputs.size(); ++k) {
    if (!movable(spec, k, 0)) return notTaken(spec, "operands that are empty, text or of several types");
    SS_ASSIGN(const StridedView seen, seenOperand(spec.domain, spec.op, k, spec.inputs[k].dims, spec.attrs));
    Dims fitting = y;
    if (seen.dims.size() == y.size()) fitting[axis] = seen.dims[axis];
    if (seen.dims != fitting || elementCount(seen.dims) == 0) return notTaken(spec, "parts that do not fit");
    Part part{{}, seen.offset * size, begin * strides[axis] * size};
    for (std::size_t a = 0; a < y.size(); ++a) part.copy.add(seen.dims[a], strides[a], seen.strides[a]);
    parts.push_back(part);
    begin += seen.dims[axis];
  }
  if (begin != y[axis]) return notTaken(spec, "parts that do not fill the axis");
  return makeBodyKernel("strided copies",
                        [parts = std::move(parts), size, threads = spec.threads](const KernelCall& call) -> Status {
                          for (std::size_t k = 0; k < parts.size(); ++k)
                            parts[k].copy.run(resultBytes(call, 0) + parts[k].to, bytesOf(call, k) + parts[k].from,
                                              static_cast<std::size_t>(size), threads);
                          return {};
                        });
}

}  // namespace stepscope::cpu
