#include "kernels/window.h"

#include <algorithm>

namespace stepscope {
namespace {

constexpr std::int64_t kMaxValue = std::int64_t{1} << 31;

Status readList(const Attributes& attrs, const char* name, std::size_t count, std::int64_t least,
                std::vector<std::int64_t>& values, std::int64_t fallback) {
  values = attrs.integers(name);
  if (values.empty()) values.assign(count, fallback);
  if (values.size() != count)
    return invalid("attribute '" + std::string(name) + "': " + std::to_string(values.size()) + " values; expected " +
                   std::to_string(count));
  for (const std::int64_t value : values)
    if (value < least || value > kMaxValue)
      return invalid("attribute '" + std::string(name) + "': " + std::to_string(value) + "; expected " +
                     std::to_string(least) + "..2147483648");
  return {};
}

Result<AutoPad> readAutoPad(const Attributes& attrs) {
  const std::string text = attrs.text("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::kExplicit;
  if (text == "SAME_UPPER") return AutoPad::kSameUpper;
  if (text == "SAME_LOWER") return AutoPad::kSameLower;
  if (text == "VALID") return AutoPad::kValid;
  return invalid("attribute 'auto_pad': '" + text + "'; expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
}

Dims spatial(const Dims& dims) { return {dims.begin() + 2, dims.end()}; }

Status checkRanks(const Dims& x, const Dims& w, const Dims& y) {
  if (x.size() < 2 || w.size() != x.size() || y.size() != x.size())
    return invalid("convolution shapes " + dimsText(x) + ", " + dimsText(w) + ", " + dimsText(y) +
                   "; expected equal ranks of at least 2");
  return {};
}

}  // namespace

Result<Window> parseWindow(const Attributes& attrs, std::size_t rank, std::span<const std::int64_t> kernel) {
  std::vector<std::int64_t> shape(kernel.begin(), kernel.end()), given, strides, dilations, pads;
  const bool hasWeight = !kernel.empty() || rank == 0;
  if (!hasWeight || attrs.has("kernel_shape")) {
    given = attrs.integers("kernel_shape");
    if (given.size() != rank)
      return invalid("attribute 'kernel_shape': " + std::to_string(given.size()) + " values; expected " +
                     std::to_string(rank));
    if (hasWeight && given != shape)
      return invalid("attribute 'kernel_shape': " + dimsText(given) + "; the weight has " + dimsText(shape));
    shape = given;
  }
  for (const std::int64_t extent : shape)
    if (extent < 1 || extent > kMaxValue)
      return invalid("window extent " + std::to_string(extent) + "; expected 1..2147483648");
  SS_TRY(readList(attrs, "strides", rank, 1, strides, 1));
  SS_TRY(readList(attrs, "dilations", rank, 1, dilations, 1));
  Window window;
  SS_ASSIGN(window.autoPad, readAutoPad(attrs));
  window.ceilMode = attrs.integer("ceil_mode", 0) != 0;
  if (window.autoPad == AutoPad::kExplicit)
    SS_TRY(readList(attrs, "pads", 2 * rank, 0, pads, 0));
  else
    pads.assign(2 * rank, 0);
  for (std::size_t i = 0; i < rank; ++i)
    window.axes.push_back({shape[i], strides[i], dilations[i], pads[i], pads[rank + i]});
  return window;
}

Result<std::int64_t> windowOutput(const Window& window, std::size_t axis, std::int64_t in) {
  const WindowAxis& a = window.axes[axis];
  if (window.autoPad == AutoPad::kSameUpper || window.autoPad == AutoPad::kSameLower) return (in + a.stride - 1) / a.stride;
  const std::int64_t room = in + a.padBegin + a.padEnd - a.extent();
  if (room < 0)
    return invalid("window of extent " + std::to_string(a.extent()) + " on axis " + std::to_string(axis + 2) +
                   " does not fit the padded input of " + std::to_string(in + a.padBegin + a.padEnd));
  std::int64_t out = (window.ceilMode ? (room + a.stride - 1) / a.stride : room / a.stride) + 1;
  // A window that would start in the padding at the end sees no element and is left out.
  if (window.ceilMode && (out - 1) * a.stride >= in + a.padBegin) --out;
  return out;
}

void resolvePads(Window& window, std::span<const std::int64_t> in, std::span<const std::int64_t> out) {
  if (window.autoPad == AutoPad::kSameUpper || window.autoPad == AutoPad::kSameLower) {
    for (std::size_t i = 0; i < window.axes.size(); ++i) {
      WindowAxis& a = window.axes[i];
      const std::int64_t total = std::max<std::int64_t>(0, (out[i] - 1) * a.stride + a.extent() - in[i]);
      a.padBegin = window.autoPad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
      a.padEnd = total - a.padBegin;
    }
  }
  window.autoPad = AutoPad::kExplicit;
}

std::int64_t ConvGeometry::kernelSize() const {
  std::int64_t size = 1;
  for (const WindowAxis& axis : window.axes) size *= axis.kernel;
  return size;
}

Result<ConvGeometry> convGeometry(const Attributes& attrs, const Dims& x, const Dims& w, const Dims& y) {
  SS_TRY(checkRanks(x, w, y));
  ConvGeometry g;
  g.groups = attrs.integer("group", 1);
  g.batch = x[0];
  g.inChannels = x[1];
  g.outChannels = w[0];
  g.in = spatial(x);
  g.out = spatial(y);
  if (g.groups < 1 || g.outChannels % g.groups != 0 || w[1] > INT64_MAX / g.groups || w[1] * g.groups != x[1] ||
      y[1] != w[0] || y[0] != x[0])
    return invalid("convolution of " + dimsText(x) + " with " + dimsText(w) + " in " + std::to_string(g.groups) +
                   " groups into " + dimsText(y) + "; expected [N, C, …], [M, C/group, …], [N, M, …]");
  SS_ASSIGN(g.window, parseWindow(attrs, g.in.size(), spatial(w)));
  for (std::size_t i = 0; i < g.in.size(); ++i) {
    SS_ASSIGN(const std::int64_t out, windowOutput(g.window, i, g.in[i]));
    if (out != g.out[i])
      return invalid("convolution output extent " + std::to_string(g.out[i]) + " on axis " + std::to_string(i + 2) +
                     "; expected " + std::to_string(out));
  }
  resolvePads(g.window, g.in, g.out);
  return g;
}

std::int64_t transposedOutput(const Window& window, std::size_t axis, std::int64_t in, std::int64_t outputPadding) {
  const WindowAxis& a = window.axes[axis];
  if (window.autoPad == AutoPad::kSameUpper || window.autoPad == AutoPad::kSameLower) return in * a.stride;
  return (in - 1) * a.stride + outputPadding + a.extent() - a.padBegin - a.padEnd;
}

Result<ConvGeometry> convTransposeGeometry(const Attributes& attrs, const Dims& x, const Dims& w, const Dims& y) {
  SS_TRY(checkRanks(x, w, y));
  ConvGeometry g;
  g.groups = attrs.integer("group", 1);
  g.batch = x[0];
  g.inChannels = y[1];
  g.outChannels = x[1];
  g.in = spatial(y);
  g.out = spatial(x);
  if (g.groups < 1 || g.outChannels % g.groups != 0 || w[0] != x[1] || w[1] > INT64_MAX / g.groups ||
      w[1] * g.groups != y[1] || y[0] != x[0])
    return invalid("transposed convolution of " + dimsText(x) + " with " + dimsText(w) + " in " + std::to_string(g.groups) +
                   " groups into " + dimsText(y) + "; expected [N, C, …], [C, M/group, …], [N, M, …]");
  SS_ASSIGN(g.window, parseWindow(attrs, g.in.size(), spatial(w)));
  std::vector<std::int64_t> padding;
  SS_TRY(readList(attrs, "output_padding", g.in.size(), 0, padding, 0));
  const bool chosen = !attrs.integers("output_shape").empty() || g.window.autoPad == AutoPad::kSameUpper ||
                      g.window.autoPad == AutoPad::kSameLower;
  for (std::size_t i = 0; i < g.in.size(); ++i) {
    WindowAxis& a = g.window.axes[i];
    if (chosen) {
      const std::int64_t total = std::max<std::int64_t>(0, (g.out[i] - 1) * a.stride + padding[i] + a.extent() - g.in[i]);
      a.padBegin = g.window.autoPad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
      a.padEnd = total - a.padBegin;
    } else if (const std::int64_t expected = transposedOutput(g.window, i, g.out[i], padding[i]); expected != g.in[i]) {
      return invalid("transposed convolution output extent " + std::to_string(g.in[i]) + " on axis " +
                     std::to_string(i + 2) + "; expected " + std::to_string(expected));
    }
  }
  g.window.autoPad = AutoPad::kExplicit;
  return g;
}

}  // namespace stepscope
