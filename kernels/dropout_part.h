// Dropout of some places of an axis, with the mask that the whole value would have had: DropoutPart. Implemented by
// kernels/reference/elementwise/random.cpp, kernels/cpu/loops/dropout_part.cpp and kernels/cuda/dropout.cu.
//
//   y[o, k, i] = keep(o, k, i) ? x[o, k, i] / (1 - ratio) : 0
//   keep(o, k, i) = uniform01(key, (o * extent + places[k]) * inner + i) >= ratio
//
// Inputs     x [outer, K, inner] in any number of axes, places int64 [K] or [outer, K] (negative ones count from the end),
//            extent int64 [1] of the axis in the whole value, ratio? and training? as Dropout has them.
// Outputs    y as x; mask? bool as x. y may alias x.
// Errors     InvalidArgument if places do not fit the axis, or one is outside -extent … extent - 1 (the CUDA kernel reads
//            places on the device and takes them as they are).
#pragma once

#include <cstdint>

#include "kernels/attributes.h"
#include "kernels/shape.h"
#include "kernels/status.h"

namespace stepscope {

struct DropoutPart {
  std::int64_t outer = 1, places = 1, inner = 1;
  bool byOuter = false;  // places are [outer, K]

  // Where the place of element i of x stands.
  std::int64_t placeOf(std::int64_t i) const { return (byOuter ? i / (places * inner) * places : 0) + i / inner % places; }
  // The element of the whole value that element i of x is.
  std::uint64_t element(std::int64_t i, std::int64_t place, std::int64_t extent) const {
    const std::int64_t whole = place < 0 ? place + extent : place;
    return static_cast<std::uint64_t>((i / (places * inner) * extent + whole) * inner + i % inner);
  }
};

// From attribute `axis` and the extents of x and places.
inline Result<DropoutPart> dropoutPart(const Attributes& attrs, const Dims& x, const Dims& places) {
  const auto rank = static_cast<std::int64_t>(x.size());
  std::int64_t axis = attrs.integer("axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank)
    return invalid("DropoutPart: axis " + std::to_string(attrs.integer("axis", 0)) + " for shape " + dimsText(x));
  DropoutPart part;
  for (std::int64_t i = 0; i < axis; ++i) part.outer *= x[static_cast<std::size_t>(i)];
  part.places = x[static_cast<std::size_t>(axis)];
  for (std::int64_t i = axis + 1; i < rank; ++i) part.inner *= x[static_cast<std::size_t>(i)];
  part.byOuter = places.size() == 2;
  const bool fits = places.size() == 1 ? places[0] == part.places
                                       : places.size() == 2 && places[0] == part.outer && places[1] == part.places;
  if (!fits) return invalid("DropoutPart: places " + dimsText(places) + " for shape " + dimsText(x) + "; [K] or [outer, K]");
  return part;
}

}  // namespace stepscope
