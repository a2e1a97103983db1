#include "engine/lab/golden_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/data/element_index.h"
#include "engine/snapshot/number_rule.h"

namespace stepscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinite = std::numeric_limits<double>::infinity();

// Whether every row of a matrix is parallel to the other's, and not all by one factor.
bool rowsScaled(const TensorView& found, const TensorView& golden) {
  if (golden.dims.size() != 2) return false;
  double least = kInfinite, most = -kInfinite;
  const std::int64_t width = golden.dims[1];
  for (std::int64_t r = 0; r < golden.dims[0]; ++r) {
    double product = 0, ours = 0, theirs = 0;
    for (std::int64_t i = r * width; i < (r + 1) * width; ++i) {
      const double a = elementAsDouble(found, i), b = elementAsDouble(golden, i);
      product += a * b;
      ours += a * a;
      theirs += b * b;
    }
    if (ours == 0 && theirs == 0) continue;
    if (!(std::abs(product) >= 0.9999 * std::sqrt(ours) * std::sqrt(theirs)) || theirs == 0) return false;
    least = std::min(least, product / theirs);
    most = std::max(most, product / theirs);
  }
  return most > 1.001 * least && width > 1;
}

}  // namespace

double largestMagnitude(const TensorView& view) {
  double largest = 0;
  for (std::int64_t i = 0; i < view.elements(); ++i)
    if (const double x = std::abs(elementAsDouble(view, i)); std::isfinite(x)) largest = std::max(largest, x);
  return largest;
}

std::string_view kindName(GoldenRow::Kind kind) {
  switch (kind) {
    case GoldenRow::Kind::kLoss: return "loss";
    case GoldenRow::Kind::kGradient: return "gradient";
    case GoldenRow::Kind::kStatistic: return "statistic";
    case GoldenRow::Kind::kOutput: return "output";
    case GoldenRow::Kind::kDraws: return "draws";
    case GoldenRow::Kind::kParameter: return "parameter";
  }
  return "";
}

std::string_view verdictName(GoldenVerdict verdict) {
  switch (verdict) {
    case GoldenVerdict::kAgrees: return "agrees";
    case GoldenVerdict::kDiffers: return "differs";
    case GoldenVerdict::kSkipped: return "skipped";
  }
  return "";
}

std::int64_t GoldenReport::count(GoldenVerdict verdict) const {
  return std::count_if(rows.begin(), rows.end(), [&](const GoldenRow& row) { return row.verdict == verdict; });
}

const GoldenRow* GoldenReport::worst() const {
  const GoldenRow* worst = nullptr;
  // Words alone (a parameter that is missing) are worse than any number.
  const auto excess = [](const GoldenRow& row) {
    return std::isnan(row.cosine) || row.tolerance <= 0 ? kInfinite : row.maxAbs / row.tolerance;
  };
  for (const GoldenRow& row : rows)
    if (row.verdict == GoldenVerdict::kDiffers &&
        (worst == nullptr || row.kind < worst->kind || (row.kind == worst->kind && excess(row) > excess(*worst))))
      worst = &row;
  return worst;
}

GoldenRow compareTensor(GoldenRow::Kind kind, const std::string& name, const TensorView& found, const TensorView& golden,
                        std::optional<double> tolerance, double largest) {
  SS_CHECK(found.dims == golden.dims);
  GoldenRow row;
  row.kind = kind;
  row.name = name;
  row.dims = golden.dims;
  row.elements = golden.elements();
  row.largest = largestMagnitude(golden);
  row.tolerance = tolerance.value_or(kShareOfLargest * row.largest + kShareOfModel * largest);
  double product = 0, ours = 0, theirs = 0, difference = 0;
  std::int64_t worst = -1;
  bool finite = true;
  for (std::int64_t i = 0; i < row.elements; ++i) {
    const double a = elementAsDouble(found, i), b = elementAsDouble(golden, i), distance = numberDistance(a, b);
    if (distance > row.maxAbs) {
      row.maxAbs = distance;
      worst = i;
    }
    finite = finite && (sameNumber(a, b) || (std::isfinite(a) && std::isfinite(b)));
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    row.zeroHere += a == 0 && b != 0;
    row.zeroThere += b == 0 && a != 0;
    product += a * b;
    ours += a * a;
    theirs += b * b;
    difference += (a - b) * (a - b);
  }
  if (worst >= 0) {
    row.index = indexOf(worst, golden.dims);
    row.found = elementAsDouble(found, worst);
    row.expected = elementAsDouble(golden, worst);
  }
  row.maxRel = row.maxAbs == 0 ? 0 : row.largest > 0 ? row.maxAbs / row.largest : kInfinite;
  row.cosine = !finite                    ? kNaN
               : difference == 0          ? 1
               : ours == 0 || theirs == 0 ? 0
                                          : std::clamp(product / std::sqrt(ours) / std::sqrt(theirs), -1.0, 1.0);
  row.factor = theirs > 0 ? product / theirs : kInfinite;
  row.verdict = finite && row.maxAbs <= row.tolerance ? GoldenVerdict::kAgrees : GoldenVerdict::kDiffers;
  if (row.verdict == GoldenVerdict::kDiffers && finite) row.rowsScaled = rowsScaled(found, golden);
  return row;
}

}  // namespace stepscope
