#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"

namespace stepscope::reference {
namespace {

Status unsupportedType(const KernelSpec& spec) {
  return unsupported(spec.op + ": dtype " + std::string(dtypeName(spec.inputs[0].dtype)) + " is not taken");
}

constexpr std::int64_t kMostPoints = 1 << 12;  // per bin and axis: regions come with the data

struct Point {
  std::array<std::int64_t, 4> place{};
  std::array<double, 4> weight{};
};

// The four neighbours of (y, x); all weights 0 more than one element outside.
Point neighbours(double y, double x, std::int64_t height, std::int64_t width) {
  Point p;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return p;
  const auto split = [](double at, std::int64_t extent, std::int64_t& low, std::int64_t& high) {
    at = std::max(at, 0.0);
    low = static_cast<std::int64_t>(at);
    if (low >= extent - 1) {
      low = high = extent - 1;
      return 0.0;
    }
    high = low + 1;
    return at - static_cast<double>(low);
  };
  std::int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0;
  const double ty = split(y, height, y0, y1), tx = split(x, width, x0, x1);
  p.place = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
  p.weight = {(1 - ty) * (1 - tx), (1 - ty) * tx, ty * (1 - tx), ty * tx};
  return p;
}

// body(region, image, bin, its points) for every bin of every region; x [N, C, H, W].
template <typename Body>
Status forEachBin(const KernelSpec& spec, const Dims& x, const Dims& y, const TensorView& rois, const TensorView& batches,
                  Body&& body) {
  if (x.size() != 4 || y.size() != 4 || rois.dims.size() != 2 || rois.dims[1] != 4 || y[0] != rois.dims[0] ||
      batches.elements() != y[0] || y[1] != x[1])
    return invalid(spec.op + ": x " + dimsText(x) + ", rois " + dimsText(rois.dims) + ", y " + dimsText(y) +
                   "; expected [N, C, H, W], [R, 4], [R, C, h, w]");
  const bool halfPixel = spec.attrs.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const double scale = static_cast<double>(spec.attrs.real("spatial_scale", 1.0f)), offset = halfPixel ? 0.5 : 0;
  const std::int64_t ratio = spec.attrs.integer("sampling_ratio", 0), height = y[2], width = y[3];
  std::vector<Point> points;
  for (std::int64_t r = 0; r < y[0]; ++r) {
    const auto image = static_cast<std::int64_t>(elementAsDouble(batches, r));
    if (image < 0 || image >= x[0])
      return invalid(spec.op + ": batch index " + std::to_string(image) + "; expected 0.." + std::to_string(x[0] - 1));
    std::array<double, 4> box{};
    for (std::int64_t k = 0; k < 4; ++k)
      box[static_cast<std::size_t>(k)] = elementAsDouble(rois, r * 4 + k) * scale - offset;
    double roiWidth = box[2] - box[0], roiHeight = box[3] - box[1];
    if (!halfPixel) {
      roiWidth = std::max(roiWidth, 1.0);
      roiHeight = std::max(roiHeight, 1.0);
    }
    const double binHeight = roiHeight / static_cast<double>(height), binWidth = roiWidth / static_cast<double>(width);
    const auto samples = [&](double bin) {
      if (ratio > 0) return std::min(ratio, kMostPoints);
      const double wished = std::ceil(bin);
      return wished > 0 ? static_cast<std::int64_t>(std::min(wished, static_cast<double>(kMostPoints))) : std::int64_t{0};
    };
    const std::int64_t rows = samples(binHeight), columns = samples(binWidth);
    for (std::int64_t bin = 0; bin < height * width; ++bin) {
      points.clear();
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          const double at = box[1] + static_cast<double>(bin / width) * binHeight +
                            (static_cast<double>(i) + 0.5) * binHeight / static_cast<double>(rows);
          const double along = box[0] + static_cast<double>(bin % width) * binWidth +
                               (static_cast<double>(j) + 0.5) * binWidth / static_cast<double>(columns);
          points.push_back(neighbours(at, along, x[2], x[3]));
        }
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
