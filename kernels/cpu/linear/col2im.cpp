// Col2Im and its gradient: blocks of an image are the windows of a pooling, and one element of all blocks is a row of
// columns.
#include <cstring>

#include "kernels/cpu/linear/linear_kernels.h"
#include "kernels/cpu/linear/pool.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

// columns [N, C * block elements, blocks], image [N, C, extents...]; the block's extents are input 2, known at bind.
Result<Pool> blocksOf(const KernelSpec& spec, const OperandSpec& columns, const OperandSpec& image) {
  if (spec.inputs.size() != 3 || !takes(columns) || !takes(image) || columns.dims.size() != 3 || image.dims.size() < 3 ||
      !spec.inputs[2].constant.valid())
    return notTaken(spec, "elements other than float32, or blocks that are not constant");
  const auto block = intElements(spec.inputs[2].constant.view());
  KernelSpec pooling = spec;
  pooling.attrs.set("kernel_shape", std::vector<std::int64_t>(block.begin(), block.end()));
  const std::size_t axes = image.dims.size() - 2;
  const auto window = parseWindow(pooling.attrs, axes);
  if (!window) return notTaken(spec, "blocks that do not fit");
  OperandSpec y = image;
  for (std::size_t a = 0; a < axes; ++a) {
    const auto extent = windowOutput(*window, a, image.dims[a + 2]);
    if (!extent) return notTaken(spec, "blocks that do not fit");
    y.dims[a + 2] = *extent;
  }
  const std::int64_t blocks = elementCount(std::span<const std::int64_t>(y.dims).subspan(2));
  if (columns.dims != Dims{image.dims[0], image.dims[1] * elementCount(Dims(block.begin(), block.end())), blocks})
    return notTaken(spec, "columns that do not fit");
  return poolOf(pooling, image, y);
}

template <int kStride>
SS_CLONES void addRow(const float* from, float* to, std::int64_t stride, std::int64_t n) {
  if (kStride != 0) stride = kStride;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i * stride] += from[i];
}

template <int kStride>
SS_CLONES void takeRow(const float* from, std::int64_t stride, float* to, std::int64_t n) {
  if (kStride != 0) stride = kStride;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeCol2Im(const KernelSpec& spec) {
  SS_ASSIGN(const Pool p, blocksOf(spec, spec.inputs[0], spec.outputs[0]));
  const std::int64_t stride = p.axes[2].stride, columns = elementCount(spec.inputs[0].dims) / p.channels;
  return makeBodyKernel("rows of blocks", [=](const KernelCall& call) -> Status {
    const auto add = stride == 1 ? addRow<1> : stride == 2 ? addRow<2> : addRow<0>;
    parallelRows(p.channels, columns, p.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        const float* from = input(call, 0) + c * columns;
        float* to = output(call, 0) + c * p.inSize();
        std::fill_n(to, p.inSize(), 0.0F);
        forEachTapRow(p, [&](std::int64_t tap, std::int64_t o, std::int64_t i, std::int64_t n) {
          add(from + tap * p.outSize() + o, to + i, stride, n);
        });
      }
    });
    return {};
  });
}

// dy, shape of x, block shape → dx
Result<std::unique_ptr<Kernel>> makeCol2ImGrad(const KernelSpec& spec) {
  SS_ASSIGN(const Pool p, blocksOf(spec, spec.outputs[0], spec.inputs[0]));
  const std::int64_t stride = p.axes[2].stride, columns = elementCount(spec.outputs[0].dims) / p.channels;
  return makeBodyKernel("rows of blocks", [=](const KernelCall& call) -> Status {
    const auto take = stride == 1 ? takeRow<1> : stride == 2 ? takeRow<2> : takeRow<0>;
    parallelRows(p.channels, columns, p.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        const float* from = input(call, 0) + c * p.inSize();
        float* to = output(call, 0) + c * columns;
        std::fill_n(to, columns, 0.0F);
        forEachTapRow(p, [&](std::int64_t tap, std::int64_t o, std::int64_t i, std::int64_t n) {
          take(from + i, stride, to + tap * p.outSize() + o, n);
        });
      }
    });
    return {};
  });
}

}  // namespace stepscope::cpu
