// Sliding windows: the attributes that convolution and pooling nodes share, checked, and the geometry that follows.
//
// Axis i of the window covers input positions o*stride - padBegin + t*dilation for t in [0, kernel). Used by the shape
// rules (extents), the reference kernels and the fast kernels, so the three agree by construction.
// Source     ONNX Conv-11, ConvTranspose-11, MaxPool-12, AveragePool-19, LpPool-18.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/shape.h"

namespace stepscope {

enum class AutoPad : std::uint8_t { kExplicit, kSameUpper, kSameLower, kValid };

struct WindowAxis {
  std::int64_t kernel = 1, stride = 1, dilation = 1, padBegin = 0, padEnd = 0;
  // Input positions from the first to the last tap.
  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

struct Window {
  std::vector<WindowAxis> axes;
  AutoPad autoPad = AutoPad::kExplicit;
  bool ceilMode = false;
};

// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode for `rank` spatial axes. `kernel` holds the spatial
// extents of a weight, which kernel_shape must then repeat; pass none for pooling, where kernel_shape is required.
// Errors: wrong counts, values below 1 (pads below 0) or above 2^31, an unknown auto_pad.
Result<Window> parseWindow(const Attributes& attrs, std::size_t rank, std::span<const std::int64_t> kernel = {});

// Output extent of one axis for an input extent. Error: the window is larger than the padded input.
Result<std::int64_t> windowOutput(const Window& window, std::size_t axis, std::int64_t in);

// Pads of the axes where auto_pad chose them, from the extents on both sides; afterwards autoPad is kExplicit.
void resolvePads(Window& window, std::span<const std::int64_t> in, std::span<const std::int64_t> out);

// A convolution y = x * w. A transposed convolution is the same with the roles of x and y exchanged.
struct ConvGeometry {
  std::int64_t batch = 0, groups = 1, inChannels = 0, outChannels = 0;
  Dims in, out;   // spatial extents of x and y
  Window window;  // pads resolved
  std::int64_t inSize() const { return elementCount(in); }
  std::int64_t outSize() const { return elementCount(out); }
  std::int64_t kernelSize() const;
};

// Shapes     x: [N, C, …], w: [M, C/group, k…], y: [N, M, …].
// Errors     ranks, channels or extents that disagree with each other or with the attributes.
Result<ConvGeometry> convGeometry(const Attributes& attrs, const Dims& x, const Dims& w, const Dims& y);
// Shapes     x: [N, C, …], w: [C, M/group, k…], y: [N, M, …] of ConvTranspose; in the result `in` and inChannels are those
// of y.
Result<ConvGeometry> convTransposeGeometry(const Attributes& attrs, const Dims& x, const Dims& w, const Dims& y);

// Extent of ConvTranspose along one axis without output_shape; `outputPadding` >= 0.
std::int64_t transposedOutput(const Window& window, std::size_t axis, std::int64_t in, std::int64_t outputPadding);

}  // namespace stepscope
