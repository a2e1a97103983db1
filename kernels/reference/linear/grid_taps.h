// Which elements along one axis a coordinate of GridSample reads, with which weight and slope.
//
// Coordinates -1..1 span the centres of the outer elements (align_corners) or their outer edges. Out of range: `zeros`
// leaves taps out, `border` clamps, `reflection` mirrors; linear and nearest mend the coordinate, cubic each tap, as PyTorch
// does.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/attributes.h"
#include "kernels/status.h"

namespace stepscope::reference {

struct GridRule {
  enum class Mode : std::uint8_t { kNearest, kLinear, kCubic } mode = Mode::kLinear;
  enum class Padding : std::uint8_t { kZeros, kBorder, kReflection } padding = Padding::kZeros;
  bool alignCorners = false;
  // Errors: a mode or padding_mode that ONNX does not have.
  static Result<GridRule> parse(const Attributes& attrs);
};

struct GridTaps {
  int count = 0;
  std::array<std::int64_t, 4> position{};
  std::array<double, 4> weight{};
  std::array<double, 4> slope{};  // d weight / d coordinate, before scaling to -1..1 included
};

GridTaps gridTaps(const GridRule& rule, double coordinate, std::int64_t extent);

}  // namespace stepscope::reference
