// Since when weights explode.
#include <algorithm>
#include <cmath>

#include "engine/lab/first_cause.h"

namespace stepscope {
namespace {
constexpr double kExploded = 100;  // times the largest element at first
}  // namespace

void WeightWatch::look(const State& state, const std::vector<std::string>& trained, std::int64_t step) {
  double largest = 0;
  for (const std::string& name : trained) {
    if (!state.contains(name)) continue;
    const Tensor contents = state.read(name);
    if (!isFloating(contents.dtype())) continue;
    const TensorView& view = contents.view();
    if (view.dtype == DType::kF32) {
      float most = 0;
      for (const float x : view.as<const float>()) most = std::abs(x) <= most ? most : std::abs(x);  // NaN stays
      largest = std::abs(static_cast<double>(most)) <= largest ? largest : static_cast<double>(most);
    } else {
      for (std::int64_t i = 0; i < view.elements(); ++i)
        if (const double x = std::abs(elementAsDouble(view, i)); !(x <= largest)) largest = x;
    }
  }
  note(largest, step);
}

void WeightWatch::note(double largest, std::int64_t step) {
  if (!first_) {
    first_ = largest;
    return;
  }
  if (largest <= kExploded * std::max(*first_, 1e-30))
    since_.reset();
  else if (!since_)
    since_ = step;
}

}  // namespace stepscope
