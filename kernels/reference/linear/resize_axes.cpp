#include "kernels/reference/linear/resize_axes.h"

#include <algorithm>
#include <cmath>

#include "kernels/resize_shape.h"

namespace stepscope::reference {
namespace {

struct Mapping {
  std::string transform, nearestMode, mode;
  double cubic = -0.75;
  bool antialias = false, excludeOutside = false;
};

// Input coordinate of output position `o`.
double coordinate(const Mapping& m, std::int64_t o, std::int64_t in, std::int64_t out, double scale, double roiBegin,
                  double roiEnd) {
  const auto x = static_cast<double>(o), width = static_cast<double>(in), resized = scale * width;
  if (m.transform == "align_corners") return resized == 1 ? 0 : x * (width - 1) / (resized - 1);
  if (m.transform == "asymmetric") return x / scale;
  if (m.transform == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (m.transform == "tf_crop_and_resize") {
    const double start = roiBegin * (width - 1), length = (roiEnd - roiBegin) * (width - 1);
    return start + (resized == 1 ? length / 2 : x * length / (resized - 1));
  }
  if (m.transform == "pytorch_half_pixel" && resized == 1) return -0.5;
  const double half = (x + 0.5) / scale - 0.5;
  if (m.transform == "half_pixel_symmetric") return half + width / 2 * (1 - static_cast<double>(out) / resized);
  return half;
}

double cubicWeight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Weights of positions first, first + 1 … relative to the position left of the coordinate; `ratio` in (0, 1].
std::vector<double> weights(const Mapping& m, double ratio, double scale, std::int64_t& first) {
  std::vector<double> w;
  if (m.mode == "nearest") {
    bool right = ratio > 0.5;
    if (ratio == 1)
      right = true;
    else if (m.nearestMode == "round_prefer_ceil")
      right = ratio >= 0.5;
    else if (m.nearestMode == "floor")
      right = false;
    else if (m.nearestMode == "ceil")
      right = true;
    first = right ? 1 : 0;
    return {1};
  }
  const double shrink = m.antialias ? std::min(scale, 1.0) : 1.0;
  const double reach = m.mode == "cubic" ? 2 : 1;
  first = static_cast<std::int64_t>(std::floor(-reach / shrink)) + 1;
  const std::int64_t end = 2 - first;
  for (std::int64_t i = first; i < end; ++i) {
    const double distance = (static_cast<double>(i) - ratio) * shrink;
    w.push_back(m.mode == "cubic" ? cubicWeight(distance, m.cubic) : std::clamp(1 - std::fabs(distance), 0.0, 1.0));
  }
  if (m.antialias) {
    double sum = 0;
    for (const double value : w) sum += value;
    for (double& value : w) value /= sum;
  }
  return w;
}

void fill(ResizeAxis& axis, const Mapping& m, double scale, double roiBegin, double roiEnd) {
  axis.start.push_back(0);
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const double x = coordinate(m, o, axis.in, axis.out, scale, roiBegin, roiEnd);
    const bool outside = m.transform == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axis.in - 1));
    axis.outside.push_back(outside);
    const double limited = std::clamp(x, -static_cast<double>(axis.in) - 8, 2 * static_cast<double>(axis.in) + 8);
    const double left = std::ceil(limited) - 1;  // so that the ratio is in (0, 1]
    std::int64_t first = 0;
    std::vector<double> w = weights(m, limited - left, scale, first);
    const std::int64_t base = static_cast<std::int64_t>(left) + first;
    if (m.excludeOutside && m.mode != "nearest") {
      double sum = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        const std::int64_t position = base + static_cast<std::int64_t>(i);
        if (position < 0 || position >= axis.in) w[i] = 0;
        sum += w[i];
      }
      if (sum != 0)
        for (double& value : w) value /= sum;
    }
    for (std::size_t i = 0; i < w.size(); ++i) {
      axis.position.push_back(std::clamp<std::int64_t>(base + static_cast<std::int64_t>(i), 0, axis.in - 1));
      axis.weight.push_back(w[i]);
    }
    axis.start.push_back(axis.position.size());
  }
}

void fillIdentity(ResizeAxis& axis) {
  axis.outside.assign(static_cast<std::size_t>(axis.out), false);
  for (std::int64_t o = 0; o <= axis.out; ++o) axis.start.push_back(static_cast<std::size_t>(o));
  for (std::int64_t o = 0; o < axis.out; ++o) {
    axis.position.push_back(o);
    axis.weight.push_back(1);
  }
}

bool oneOf(const std::string& text, std::initializer_list<std::string_view> allowed) {
  return std::find(allowed.begin(), allowed.end(), text) != allowed.end();
}

}  // namespace

Result<ResizeAxes> resizeAxes(const Attributes& attrs, const KernelCall& call, std::size_t roi, const Dims& x,
                              const Dims& y) {
  Mapping m{attrs.text("coordinate_transformation_mode", "half_pixel"),
            attrs.text("nearest_mode", "round_prefer_floor"),
            attrs.text("mode", "nearest"),
            attrs.real("cubic_coeff_a", -0.75f),
            attrs.integer("antialias", 0) != 0,
            attrs.integer("exclude_outside", 0) != 0};
  if (!oneOf(m.mode, {"nearest", "linear", "cubic"}))
    return invalid("Resize: mode '" + m.mode + "'; expected nearest, linear or cubic");
  if (!oneOf(m.transform, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                           "tf_crop_and_resize", "tf_half_pixel_for_nn"}))
    return invalid("Resize: coordinate_transformation_mode '" + m.transform + "' is unknown");
  if (!oneOf(m.nearestMode, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}))
    return invalid("Resize: nearest_mode '" + m.nearestMode + "' is unknown");
  std::vector<double> scales;
  std::vector<std::int64_t> sizes;
  if (call.inputPresent(roi + 1))
    for (std::int64_t i = 0; i < call.inputs[roi + 1].elements(); ++i)
      scales.push_back(elementAsDouble(call.inputs[roi + 1], i));
  if (call.inputPresent(roi + 2)) sizes = intElements(call.inputs[roi + 2]);
  SS_ASSIGN(const ResizeShape shape, resizeShape(attrs, x, scales, sizes));
  if (shape.y != y || y.size() != x.size())
    return invalid("Resize: output " + dimsText(y) + "; expected " + dimsText(shape.y));
  const std::size_t count = shape.axes.size();
  std::vector<double> region(2 * count, 0.0);
  std::fill(region.begin() + static_cast<std::ptrdiff_t>(count), region.end(), 1.0);
  if (m.transform == "tf_crop_and_resize") {
    if (!call.inputPresent(roi) || call.inputs[roi].elements() != static_cast<std::int64_t>(2 * count))
      return invalid("Resize: tf_crop_and_resize needs roi with " + std::to_string(2 * count) + " values");
    for (std::size_t i = 0; i < 2 * count; ++i) region[i] = elementAsDouble(call.inputs[roi], static_cast<std::int64_t>(i));
  }
  ResizeAxes result;
  result.nearest = m.mode == "nearest";
  result.extrapolation = attrs.real("extrapolation_value", 0.0f);
  for (std::size_t axis = 0; axis < x.size(); ++axis) {
    ResizeAxis table{x[axis], y[axis], {}, {}, {}, {}};
    const auto it = std::find(shape.axes.begin(), shape.axes.end(), axis);
    const auto k = static_cast<std::size_t>(it - shape.axes.begin());
    if (table.in == 0 || table.out == 0)
      table.start.assign(static_cast<std::size_t>(table.out) + 1, 0);
    else if (it == shape.axes.end() || (shape.scales[axis] == 1 && m.transform != "tf_crop_and_resize"))
      fillIdentity(table);
    else
      fill(table, m, shape.scales[axis], region[k], region[count + k]);
    result.axes.push_back(std::move(table));
  }
  return result;
}

}  // namespace stepscope::reference
