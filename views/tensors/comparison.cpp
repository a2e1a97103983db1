// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/comparison.h"

#include <cmath>
#include <limits>

#include "views/common/format.h"

namespace stepscope {

snapshot::ComparisonResult compareTensors(const TensorValues& a, const TensorValues& b, QString* why) {
  snapshot::ComparisonResult r;
  why->clear();
  if (a.extent() != b.extent() || a.count() != b.count()) {
    *why = QStringLiteral("shapes differ: %1 and %2; expected the same slice of both").arg(format::shape(a.extent()), format::shape(b.extent()));
    return r;
  }
  std::int64_t worst = -1;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    r.set_differing(r.differing() + 1);
    double difference = std::abs(x - y);
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    const double scale = std::max(std::abs(x), std::abs(y));
    if (scale > 0 && std::isfinite(scale)) r.set_max_rel(std::max(r.max_rel(), difference / scale));
    if (worst < 0 || difference > r.max_abs()) {
      worst = i;
      r.set_max_abs(difference);
      r.set_a(x);
      r.set_b(y);
    }
  }
  r.set_equal_bits(r.differing() == 0);
  if (worst >= 0) {
    std::vector<std::int64_t> at(a.extent().size());
    for (auto k = at.size(); k-- > 0;) {
      at[k] = worst % a.extent()[k];
      worst /= a.extent()[k];
    }
    for (const auto i : at) r.add_worst_index(i);
  }
  return r;
}

}  // namespace stepscope
