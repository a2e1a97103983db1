#include "engine/lab/noise_bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/profile/step_times.h"

namespace stepscope {

void NoiseBounds::add(const std::string& what, double error) {
  // A run that is not finite says nothing of rounding.
  if (std::isfinite(error)) noise_[what] = std::max(noise_[what], error);
}

double NoiseBounds::boundOf(const std::string& what) const {
  const auto found = noise_.find(what);
  const double least = what.starts_with("new value") ? kLeastBoundOfUpdates : tolerance_ > 0 ? tolerance_ : kLeastBound;
  return std::max(least, found == noise_.end() ? 0 : kNoiseFactor * found->second);
}

double NoiseBounds::medianNoise(const std::string& prefix) const {
  std::vector<double> some;
  for (const auto& [what, error] : noise_)
    if (what.starts_with(prefix)) some.push_back(error);
  return some.empty() ? 0 : medianOf(std::move(some));
}

}  // namespace stepscope
