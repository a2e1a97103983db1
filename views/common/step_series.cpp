// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/step_series.h"

#include <algorithm>
#include <limits>

#include "engine/snapshot/gradient_norm.h"

namespace stepscope {

void StepSeries::add(const snapshot::StepRecord& r) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto place = static_cast<std::size_t>(std::lower_bound(step_.begin(), step_.end(), r.step()) - step_.begin());
  const bool known = place < step_.size() && step_[place] == r.step();
  const auto set = [&](auto& column, auto value) {
    if (known)
      column[place] = value;
    else
      column.insert(column.begin() + static_cast<std::ptrdiff_t>(place), value);
  };
  // While gradients of a round of micro steps add up, theirs are not those of any update.
  const double taken = r.updated() || r.skipped() ? gradientNorm(r.statistics()) : -1;
  set(step_, r.step());
  set(loss_, r.has_loss() ? r.loss() : kNone);
  set(rate_, r.learning_rate());
  set(norm_, r.has_gradient_norm() ? r.gradient_norm() : taken < 0 ? kNone : taken);
  set(ns_, r.ns());
  set(cpuNs_, r.cpu_ns());
}

void StepSeries::dropFrom(std::int64_t step) {
  const auto keep = static_cast<std::size_t>(std::lower_bound(step_.begin(), step_.end(), step) - step_.begin());
  for (auto* column : {&loss_, &rate_, &norm_}) column->resize(keep);
  for (auto* column : {&step_, &ns_, &cpuNs_}) column->resize(keep);
}

std::size_t StepSeries::nearest(double step) const {
  const auto after = static_cast<std::size_t>(
      std::lower_bound(step_.begin(), step_.end(), step,
                       [](std::int64_t s, double wanted) { return static_cast<double>(s) < wanted; }) -
      step_.begin());
  if (after == step_.size()) return after - 1;
  if (after == 0) return 0;
  return static_cast<double>(step_[after]) - step < step - static_cast<double>(step_[after - 1]) ? after : after - 1;
}

}  // namespace stepscope
