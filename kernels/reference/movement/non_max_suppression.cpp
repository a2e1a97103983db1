// NonMaxSuppression: greedy by score within each batch entry and class. Allocates, as its result is sized by the data.
// Source: ONNX NonMaxSuppression-11.
#include <numeric>
#include <vector>

#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

struct Box {
  double y0 = 0, x0 = 0, y1 = 0, x1 = 0;
  double area() const { return (y1 - y0) * (x1 - x0); }
};

// `at` counts boxes; corners may come in any order, centers as [x, y, width, height].
Box boxAt(const TensorView& boxes, std::int64_t at, bool center) {
  const auto v = [&](std::int64_t k) { return elementAsDouble(boxes, at * 4 + k); };
  if (center) return {v(1) - v(3) / 2, v(0) - v(2) / 2, v(1) + v(3) / 2, v(0) + v(2) / 2};
  return {std::min(v(0), v(2)), std::min(v(1), v(3)), std::max(v(0), v(2)), std::max(v(1), v(3))};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0), width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (height <= 0 || width <= 0) return 0;
  const double both = height * width, either = a.area() + b.area() - both;
  return either > 0 ? both / either : 0;
}

}  // namespace

Status nonMaxSuppressionKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &boxes = call.inputs[0], &scores = call.inputs[1];
  if (boxes.dims.size() != 3 || boxes.dims[2] != 4 || scores.dims.size() != 3 || scores.dims[0] != boxes.dims[0] ||
      scores.dims[2] != boxes.dims[1])
    return kernelError(spec, "boxes " + dimsText(boxes.dims) + " and scores " + dimsText(scores.dims) +
                                 "; expected [N, B, 4] and [N, C, B]");
  for (std::size_t i = 2; i < 5; ++i)
    if (call.inputPresent(i) && call.inputs[i].elements() != 1)
      return kernelError(spec, "limits and thresholds must be single numbers");
  const std::int64_t most = call.inputPresent(2) ? elementAsInt(call.inputs[2], 0) : 0;
  const double iou = call.inputPresent(3) ? elementAsDouble(call.inputs[3], 0) : 0;
  if (!(iou >= 0 && iou <= 1)) return kernelError(spec, "iou_threshold " + std::to_string(iou) + "; expected 0..1");
  const bool limited = call.inputPresent(4), center = spec.attrs.integer("center_point_box", 0) != 0;
  const double lowest = limited ? elementAsDouble(call.inputs[4], 0) : 0;
  const std::int64_t count = boxes.dims[1], classes = scores.dims[1];
  std::vector<std::int64_t> kept;
  for (std::int64_t n = 0; n < boxes.dims[0]; ++n)
    for (std::int64_t c = 0; c < classes; ++c) {
      const auto score = [&](std::int64_t b) { return elementAsDouble(scores, (n * classes + c) * count + b); };
      std::vector<std::int64_t> order;
      for (std::int64_t b = 0; b < count; ++b)
        if (!limited || score(b) > lowest) order.push_back(b);
      // A NaN score has no place in the order; it is left out.
      std::erase_if(order, [&](std::int64_t b) { return score(b) != score(b); });
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return score(a) > score(b); });
      std::vector<Box> chosen;
      for (const std::int64_t b : order) {
        if (static_cast<std::int64_t>(chosen.size()) >= most) break;
        const Box box = boxAt(boxes, n * count + b, center);
        if (std::any_of(chosen.begin(), chosen.end(), [&](const Box& other) { return overlap(box, other) > iou; })) continue;
        chosen.push_back(box);
        kept.insert(kept.end(), {n, c, b});
      }
    }
  SS_TRY(prepareOutput(spec, call, 0, {static_cast<std::int64_t>(kept.size()) / 3, 3}));
  std::copy(kept.begin(), kept.end(), static_cast<std::int64_t*>(call.outputs[0].data));
  return {};
}

}  // namespace stepscope::reference
