// Col2Im: columns of blocks added into images; Col2ImGrad: the blocks of an image as columns.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

// Calls f(offset in the columns, offset in the image) for every block element that lies inside the image.
// columns [N, C * block elements, blocks], image [N, C, extents...].
template <typename F>
Status walkBlocks(const KernelSpec& spec, const Dims& columns, const Dims& image, const TensorView& blockView, F&& f) {
  SS_TRY(checkRank(spec, image.size()));
  const std::size_t axes = image.size() < 2 ? 0 : image.size() - 2;
  bool fits = columns.size() == 3 && axes > 0 && blockView.elements() == static_cast<std::int64_t>(axes);
  Extents block{}, stride{}, dilation{}, begin{}, count{};
  std::int64_t blockElements = 1, blocks = 1;
  // Attributes are copied once per run; their lists are short.
  const std::vector<std::int64_t> strides = spec.attrs.integers("strides"), dilations = spec.attrs.integers("dilations"),
                                  pads = spec.attrs.integers("pads");
  fits = fits && (strides.empty() || strides.size() == axes) && (dilations.empty() || dilations.size() == axes) &&
         (pads.empty() || pads.size() == 2 * axes);
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  for (std::size_t a = 0; fits && a < axes; ++a) {
    block[a] = elementAsInt(blockView, static_cast<std::int64_t>(a));
    stride[a] = strides.empty() ? 1 : strides[a];
    dilation[a] = dilations.empty() ? 1 : dilations[a];
    begin[a] = pads.empty() ? 0 : pads[a];
    const std::int64_t end = pads.empty() ? 0 : pads[axes + a];
    for (const std::int64_t number : {block[a], stride[a], dilation[a]}) fits = fits && number >= 1 && number < kMost;
    fits = fits && begin[a] >= 0 && begin[a] < kMost && end >= 0 && end < kMost && image[a + 2] < kMost;
    if (!fits) break;
    const std::int64_t room = image[a + 2] + begin[a] + end - dilation[a] * (block[a] - 1) - 1;
    count[a] = room < 0 ? 0 : room / stride[a] + 1;
    fits = !__builtin_mul_overflow(blockElements, block[a], &blockElements) &&
           !__builtin_mul_overflow(blocks, count[a], &blocks);
  }
  std::int64_t rows = 0;
  fits = fits && columns[0] == image[0] && !__builtin_mul_overflow(blockElements, image[1], &rows) && columns[1] == rows &&
         columns[2] == blocks;
  if (!fits)
    return kernelError(spec, "columns " + dimsText(columns) + " and image " + dimsText(image) +
                                 " do not fit the block, strides, dilations and pads");
  const std::int64_t planes = image[0] * image[1], plane = product(image, 2, image.size());
  const Extents imageStrides = stridesOf(image);
  for (std::int64_t p = 0; p < planes; ++p)
    for (std::int64_t e = 0; e < blockElements; ++e)
      for (std::int64_t k = 0; k < blocks; ++k) {
        std::int64_t element = e, number = k, place = p * plane;
        bool inside = true;
        for (std::size_t a = axes; inside && a-- > 0;) {
          const std::int64_t at = number % count[a] * stride[a] + element % block[a] * dilation[a] - begin[a];
          number /= count[a];
          element /= block[a];
          inside = at >= 0 && at < image[a + 2];
          place += at * imageStrides[a + 2];
        }
        if (inside) f((p * blockElements + e) * blocks + k, place);
      }
  return {};
}

}  // namespace

Status col2ImKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  return accumulate(spec, call, 0, [&](auto* sums, const auto* values) -> Status {
    using A = std::remove_pointer_t<decltype(sums)>;
    return walkBlocks(spec, x.dims, y.dims, call.inputs[2],
                      [&](std::int64_t from, std::int64_t place) { sums[place] = A(sums[place] + A(values[from])); });
  });
}

Status col2ImGradKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  Status status;
  dispatchBySize(dx.dtype, [&](auto tag) {
    using T = decltype(tag);
    T* to = static_cast<T*>(dx.data);
    std::fill_n(to, dx.elements(), T{});
    status = walkBlocks(spec, dx.dims, dy.dims, call.inputs[2],
                        [&](std::int64_t at, std::int64_t place) { to[at] = static_cast<const T*>(dy.data)[place]; });
  });
  return status;
}

}  // namespace stepscope::reference
