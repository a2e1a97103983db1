// Float32 kernels for operands in float16 or bfloat16, a slab at a time: each thread converts what fits its cache, computes
// it and writes the rounded results, so that no float32 copy of a tensor goes to memory. For ops whose results in one part
// of the output depend on that part of the operands alone (KernelEntry::parts). The arithmetic is that of the float32
// kernel, and the bits are the same for any number of threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "kernels/kernel.h"

namespace stepscope {

// How an output is cut: axes before `axis` one by one, `axis` into runs of `rows`, what is behind it whole.
struct SlabCut {
  std::size_t axis = 0;
  std::int64_t rows = 1;
};

// The cut whose slabs have about 8192 elements. Nothing when the op cannot be cut: a scalar, an operand that does not
// broadcast to output 0 or is seen through a view, or rows that are not the last axes.
std::optional<SlabCut> slabCutOf(const KernelSpec& spec, IndependentParts parts);

// Finds the kernel of a spec on one device.
using MakeKernel = std::function<Result<std::unique_ptr<Kernel>>(const KernelSpec&)>;

// `make` gives kernels of the device, for the float32 slabs and for casts. Errors: kUnsupported when it has none for the
// slabs.
Result<std::unique_ptr<Kernel>> makeSlabKernel(const KernelSpec& spec, SlabCut cut, const MakeKernel& make);

}  // namespace stepscope
