#include "kernels/resize_shape.h"

#include <algorithm>
#include <cmath>

namespace stepscope {

Result<ResizeShape> resizeShape(const Attributes& attrs, const Dims& x, const std::vector<double>& scales,
                                const std::vector<std::int64_t>& sizes) {
  ResizeShape shape;
  const auto rank = static_cast<std::int64_t>(x.size());
  if (attrs.has("axes")) {
    for (const std::int64_t axis : attrs.integers("axes")) {
      const auto normal = normalizeAxis(axis, rank);
      if (!normal || std::find(shape.axes.begin(), shape.axes.end(), static_cast<std::size_t>(*normal)) != shape.axes.end())
        return invalid("Resize: axis " + std::to_string(axis) + " out of range or repeated for shape " + dimsText(x));
      shape.axes.push_back(static_cast<std::size_t>(*normal));
    }
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) shape.axes.push_back(i);
  }
  shape.scales.assign(x.size(), 1.0);
  shape.y = x;
  const bool bySizes = !sizes.empty();
  if (bySizes == !scales.empty() && !shape.axes.empty()) return invalid("Resize: expected either scales or sizes");
  const std::size_t count = bySizes ? sizes.size() : scales.size();
  if (count != shape.axes.size())
    return invalid("Resize: " + std::to_string(count) + " scales or sizes; expected " + std::to_string(shape.axes.size()));
  constexpr double kMost = 9e15;
  const std::string policy = attrs.text("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  if (bySizes && policy != "stretch") {
    if (policy != "not_larger" && policy != "not_smaller")
      return invalid("Resize: keep_aspect_ratio_policy '" + policy + "'; expected stretch, not_larger or not_smaller");
    for (std::size_t i = 0; i < count; ++i) {
      const double ratio = static_cast<double>(sizes[i]) / static_cast<double>(std::max<std::int64_t>(1, x[shape.axes[i]]));
      common = i == 0 ? ratio : policy == "not_larger" ? std::min(common, ratio) : std::max(common, ratio);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t axis = shape.axes[i];
    const auto in = static_cast<double>(x[axis]);
    if (bySizes) {
      if (sizes[i] < 0 || (sizes[i] > 0 && x[axis] == 0))
        return invalid("Resize: size " + std::to_string(sizes[i]) + " for extent " + std::to_string(x[axis]));
      shape.scales[axis] = common > 0 ? common : x[axis] == 0 ? 1.0 : static_cast<double>(sizes[i]) / in;
      const double extent = common > 0 ? std::floor(common * in + 0.5) : static_cast<double>(sizes[i]);
      if (extent > kMost) return invalid("Resize: size " + std::to_string(sizes[i]) + "; expected below 9e15");
      shape.y[axis] = static_cast<std::int64_t>(extent);
    } else {
      if (!(scales[i] > 0) || !std::isfinite(scales[i]) || scales[i] * in > kMost)
        return invalid("Resize: scale " + std::to_string(scales[i]) + "; expected a positive number");
      shape.scales[axis] = scales[i];
      shape.y[axis] = static_cast<std::int64_t>(std::floor(scales[i] * in));
    }
  }
  return shape;
}

}  // namespace stepscope
