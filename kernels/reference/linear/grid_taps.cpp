#include "kernels/reference/linear/grid_taps.h"

#include <algorithm>
#include <cmath>

namespace stepscope::reference {
namespace {

struct Mended {
  double at, slope;
};

Mended clamp(Mended m, std::int64_t extent) {
  const auto last = static_cast<double>(extent - 1);
  if (!(m.at > 0)) return {0, 0};
  if (m.at >= last) return {last, 0};
  return m;
}

Mended reflect(Mended m, std::int64_t extent, bool alignCorners) {
  const double low = alignCorners ? 0 : -0.5,
               span = alignCorners ? static_cast<double>(extent - 1) : static_cast<double>(extent);
  if (span <= 0) return {0, 0};
  const double from = m.at - low, distance = std::fabs(from), extra = std::fmod(distance, span);
  const double sign = from < 0 ? -1 : 1;
  const bool odd = std::fmod(std::floor(distance / span), 2) != 0;
  const Mended mirrored{odd ? span - extra + low : extra + low, m.slope * (odd ? -sign : sign)};
  return clamp(mirrored, extent);
}

Mended mend(const GridRule& rule, Mended m, std::int64_t extent) {
  if (rule.padding == GridRule::Padding::kBorder) return clamp(m, extent);
  if (rule.padding == GridRule::Padding::kReflection) return reflect(m, extent, rule.alignCorners);
  return m;
}

void add(GridTaps& taps, double position, double weight, double slope, std::int64_t extent) {
  if (!(position >= 0 && position < static_cast<double>(extent))) return;
  const auto i = static_cast<std::size_t>(taps.count++);
  taps.position[i] = static_cast<std::int64_t>(position);
  taps.weight[i] = weight;
  taps.slope[i] = slope;
}

// Keys' cubic with a = -0.75: value and derivative at distance d of the tap.
struct Cubic {
  double value, derivative;
};

Cubic cubic(double d) {
  constexpr double a = -0.75;
  const double sign = d < 0 ? -1 : 1;
  d = std::fabs(d);
  if (d <= 1) return {((a + 2) * d - (a + 3)) * d * d + 1, sign * (3 * (a + 2) * d - 2 * (a + 3)) * d};
  return {((a * d - 5 * a) * d + 8 * a) * d - 4 * a, sign * ((3 * a * d - 10 * a) * d + 8 * a)};
}

}  // namespace

Result<GridRule> GridRule::parse(const Attributes& attrs) {
  GridRule rule;
  const std::string mode = attrs.text("mode", "linear"), padding = attrs.text("padding_mode", "zeros");
  if (mode == "nearest")
    rule.mode = Mode::kNearest;
  else if (mode == "cubic")
    rule.mode = Mode::kCubic;
  else if (mode != "linear")
    return invalid("GridSample: mode '" + mode + "'; expected linear, nearest or cubic");
  if (padding == "border")
    rule.padding = Padding::kBorder;
  else if (padding == "reflection")
    rule.padding = Padding::kReflection;
  else if (padding != "zeros")
    return invalid("GridSample: padding_mode '" + padding + "'; expected zeros, border or reflection");
  rule.alignCorners = attrs.integer("align_corners", 0) != 0;
  return rule;
}

GridTaps gridTaps(const GridRule& rule, double coordinate, std::int64_t extent) {
  GridTaps taps;
  const auto size = static_cast<double>(extent);
  const double scale = rule.alignCorners ? (size - 1) / 2 : size / 2;
  Mended m{rule.alignCorners ? (coordinate + 1) * scale : ((coordinate + 1) * size - 1) / 2, scale};
  // Not a number, or so far out that no integer holds it: as PyTorch, a place left of everything.
  if (!(std::fabs(m.at) < 1e9)) m = {-100, 0};
  if (rule.mode == GridRule::Mode::kCubic) {
    const double base = std::floor(m.at);
    for (int k = -1; k <= 2; ++k) {
      const Cubic c = cubic(m.at - base - k);
      add(taps, mend(rule, {base + k, 0}, extent).at, c.value, c.derivative * m.slope, extent);
    }
    return taps;
  }
  m = mend(rule, m, extent);
  if (rule.mode == GridRule::Mode::kNearest) {
    add(taps, std::nearbyint(m.at), 1, 0, extent);
    return taps;
  }
  const double base = std::floor(m.at), t = m.at - base;
  add(taps, base, 1 - t, -m.slope, extent);
  add(taps, base + 1, t, m.slope, extent);
  return taps;
}

}  // namespace stepscope::reference
