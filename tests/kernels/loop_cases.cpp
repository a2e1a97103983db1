#include "tests/kernels/loop_cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/strided_view.h"

namespace stepscope {

void PrintTo(const LoopCase& test, std::ostream* out) { *out << test.domain << "." << test.op << " " << test.label; }

std::int64_t below(Random& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

Dims anyDims(Random& random, int round) {
  if (round % 8 == 7) return {1 + below(random, 3), 1 + below(random, 90), 300 + below(random, 80)};
  Dims dims;
  for (std::int64_t i = 0, rank = 1 + below(random, 4); i < rank; ++i) dims.push_back(1 + below(random, rank < 3 ? 90 : 12));
  return dims;
}

Dims wholeAround(Random& random, const Dims& dims, bool anyOrder, Dims& view) {
  const std::size_t rank = dims.size();
  Dims order(rank), back(rank);  // of axes in memory
  std::iota(order.begin(), order.end(), 0);
  if (rank > 1) std::shuffle(order.begin(), order.end() - (anyOrder ? 0 : 1), random);
  Dims whole;
  for (const std::int64_t axis : order) whole.push_back(dims[static_cast<std::size_t>(axis)] + below(random, 4));
  StridedView part = StridedView::whole(whole);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t extent = dims[static_cast<std::size_t>(order[i])];
    part = part.sliced(i, below(random, whole[i] - extent + 1), extent);
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  view = part.transposed(back).attribute();
  return whole;
}

Tensor floats(Random& random, Dims dims, float low, float high, bool specials) {
  Tensor tensor(DType::kF32, std::move(dims));
  std::uniform_real_distribution<float> value(low, high);
  for (float& x : tensor.as<float>()) {
    x = value(random);
    if (specials && random() % 16 == 0) {
      const float odd[] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1e-40F, -1e-40F, 3e38F};
      x = odd[random() % 8];
    }
  }
  return tensor;
}

Tensor valuesOf(Random& random, DType dtype, const Dims& dims, bool specials) {
  if (dtype == DType::kF32) return floats(random, dims, -3, 3, specials);
  if (dtype == DType::kBool) return integers<bool>(random, dims, 0, 1);
  if (dtype == DType::kI32) return integers<std::int32_t>(random, dims, -3, 3);
  return integers<std::int64_t>(random, dims, -3, 3);
}

Dims broadcastOf(Random& random, const Dims& dims) {
  Dims result = dims;
  for (std::int64_t& extent : result)
    if (random() % 3 == 0) extent = 1;
  const auto cut = static_cast<std::ptrdiff_t>(below(random, static_cast<std::int64_t>(dims.size()) + 1));
  if (random() % 2 == 0) result.erase(result.begin(), result.begin() + cut);
  return result;
}

std::int64_t setAxis(Random& random, const Dims& dims, Attributes& attrs, bool last) {
  const auto rank = static_cast<std::int64_t>(dims.size());
  const std::int64_t axis = last ? rank - 1 : below(random, rank);
  attrs.set("axis", random() % 2 ? axis : axis - rank);
  return axis;
}

}  // namespace stepscope
