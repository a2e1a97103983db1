// The table of vectorised loops: one line is one kernel, which loops_table_test compares with its reference kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"

namespace stepscope {

using Random = std::mt19937;

/// One call: inputs (an invalid tensor is an absent one), and type and extents of the outputs.
struct Operands {
  std::vector<Tensor> inputs;
  std::vector<std::pair<DType, Dims>> outputs;
};

struct LoopCase {
  std::string domain, op;
  std::function<Operands(Random&, int round, Attributes&)> make;
  double tolerance = 1e-6;  // relative to max(1, |expected|)
  int inPlace = -1;         // the input that output 0 may lie over
  std::string label;        // where an op stands twice
};
void PrintTo(const LoopCase& test, std::ostream* out);

std::vector<LoopCase> elementwiseLoops();
std::vector<LoopCase> movementLoops();
std::vector<LoopCase> reductionLoops();

// --- what makes operands

/// An integer of 0 … n - 1.
std::int64_t below(Random& random, std::int64_t n);

/// Extents up to those that run in several threads; rank 1 … 4.
Dims anyDims(Random& random, int round);

/// Values of [low, high]; `specials`: zeros of both signs, infinities, NaN, denormal and huge ones among them.
Tensor floats(Random& random, Dims dims, float low, float high, bool specials = false);

/// Values of [low, high].
template <typename T>
Tensor integers(Random& random, Dims dims, std::int64_t low, std::int64_t high) {
  Tensor tensor(DTypeOf<T>::value, std::move(dims));
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    storeElement(tensor.view(), i, static_cast<double>(low + below(random, high - low + 1)));
  return tensor;
}

/// Values of [-3, 3], or of a bool.
Tensor valuesOf(Random& random, DType dtype, const Dims& dims, bool specials);

/// `dims` with some axes set to 1 or, in front, left out.
Dims broadcastOf(Random& random, const Dims& dims);

/// Extents of a tensor that has a part of extents `dims`, and the numbers of the view that the part is
/// (kernels/strided_view.h). `anyOrder`: elements along its last axis need not be neighbours.
Dims wholeAround(Random& random, const Dims& dims, bool anyOrder, Dims& view);

/// Sets the attribute `axis`, counted from the front or from the back; returns it counted from the front.
std::int64_t setAxis(Random& random, const Dims& dims, Attributes& attrs, bool last);

}  // namespace stepscope
