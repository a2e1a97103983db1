#include <algorithm>
#include <array>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/roi_axis.h"

namespace stepscope::reference {
namespace {

Status unsupportedType(const KernelSpec& spec) {
  return unsupported(spec.op + ": dtype " + std::string(dtypeName(spec.inputs[0].dtype)) + " is not taken");
}

struct Point {
  std::array<std::int64_t, 4> place{};
  std::array<double, 4> weight{};
};

Point between(const RoiTap& y, const RoiTap& x, std::int64_t width) {
  return {{y.low * width + x.low, y.low * width + x.high, y.high * width + x.low, y.high * width + x.high},
          {y.lowWeight * x.lowWeight, y.lowWeight * x.highWeight, y.highWeight * x.lowWeight, y.highWeight * x.highWeight}};
}

// body(region, image, bin, its points) for every bin of every region; x [N, C, H, W].
template <typename Body>
Status forEachBin(const KernelSpec& spec, const Dims& x, const Dims& y, const TensorView& rois, const TensorView& batches,
                  Body&& body) {
  if (x.size() != 4 || y.size() != 4 || rois.dims.size() != 2 || rois.dims[1] != 4 || y[0] != rois.dims[0] ||
      batches.elements() != y[0] || y[1] != x[1])
    return invalid(spec.op + ": x " + dimsText(x) + ", rois " + dimsText(rois.dims) + ", y " + dimsText(y) +
                   "; expected [N, C, H, W], [R, 4], [R, C, h, w]");
  const std::int64_t height = y[2], width = y[3];
  const RoiRule rule = RoiRule::of(spec.attrs);
  std::vector<Point> points;
  for (std::int64_t r = 0; r < y[0]; ++r) {
    const auto image = static_cast<std::int64_t>(elementAsDouble(batches, r));
    if (image < 0 || image >= x[0])
      return invalid(spec.op + ": batch index " + std::to_string(image) + "; expected 0.." + std::to_string(x[0] - 1));
    std::array<double, 4> box{};
    for (std::int64_t k = 0; k < 4; ++k) box[static_cast<std::size_t>(k)] = elementAsDouble(rois, r * 4 + k);
    const RoiAxis rows(rule, box[1], box[3], height, x[2]), columns(rule, box[0], box[2], width, x[3]);
    for (std::int64_t bin = 0; bin < height * width; ++bin) {
      points.clear();
      for (std::int64_t i = 0; i < rows.samples(); ++i)
        for (std::int64_t j = 0; j < columns.samples(); ++j)
          points.push_back(between(rows.tap(bin / width, i), columns.tap(bin % width, j), x[3]));
      body(r, image, bin, points);
    }
  }
  return {};
}

}  // namespace

Status roiAlign(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const bool mean = spec.attrs.text("mode", "avg") == "avg";
  Status status;
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const std::int64_t channels = x.dims[1], plane = x.dims[2] * x.dims[3], bins = y.dims[2] * y.dims[3];
    status = forEachBin(spec, x.dims, y.dims, call.inputs[1], call.inputs[2],
                        [&](std::int64_t r, std::int64_t image, std::int64_t bin, const std::vector<Point>& points) {
                          for (std::int64_t c = 0; c < channels; ++c) {
                            const T* values = static_cast<const T*>(x.data) + (image * channels + c) * plane;
                            double result = 0;
                            for (std::size_t i = 0; i < points.size(); ++i)
                              for (std::size_t k = 0; k < 4; ++k) {
                                const double value = points[i].weight[k] * static_cast<double>(values[points[i].place[k]]);
                                // ONNX takes the largest weighted neighbour, not the largest interpolated value.
                                result = mean ? result + value : i == 0 && k == 0 ? value : std::max(result, value);
                              }
                            if (mean) result /= static_cast<double>(std::max<std::size_t>(points.size(), 1));
                            static_cast<T*>(y.data)[(r * channels + c) * bins + bin] = static_cast<T>(result);
                          }
                        });
  });
  return known ? status : unsupportedType(spec);
}

Status roiAlignGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &dx = call.outputs[0];
  Status status;
  const bool known = dispatchFloat(dy.dtype, [&](auto tag) {
    using T = decltype(tag);
    const std::int64_t channels = dx.dims[1], plane = dx.dims[2] * dx.dims[3], bins = dy.dims[2] * dy.dims[3];
    std::vector<double> sums(static_cast<std::size_t>(dx.elements()), 0.0);
    status = forEachBin(spec, dx.dims, dy.dims, call.inputs[1], call.inputs[2],
                        [&](std::int64_t r, std::int64_t image, std::int64_t bin, const std::vector<Point>& points) {
                          for (std::int64_t c = 0; c < channels; ++c) {
                            const double arriving =
                                static_cast<double>(static_cast<const T*>(dy.data)[(r * channels + c) * bins + bin]) /
                                static_cast<double>(std::max<std::size_t>(points.size(), 1));
                            for (const Point& point : points)
                              for (std::size_t k = 0; k < 4; ++k)
                                sums[static_cast<std::size_t>((image * channels + c) * plane + point.place[k])] +=
                                    arriving * point.weight[k];
                          }
                        });
    for (std::size_t i = 0; i < sums.size(); ++i) static_cast<T*>(dx.data)[i] = static_cast<T>(sums[i]);
  });
  return known ? status : unsupportedType(spec);
}

}  // namespace stepscope::reference
