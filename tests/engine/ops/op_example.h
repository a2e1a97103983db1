// Small instances of every op, from which the op tests are driven: shape rule against reference kernel, finite differences
// for every pair of the differentiability table, in place, CPU kernel against reference. One list per group of engine/ops.
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/tensor.h"

namespace stepscope::testing {

// How one input is made.
struct ExampleInput {
  DType dtype = DType::kF32;
  Dims dims;
  // Random contents in [low, high], from a fixed seed. Integers are drawn from the closed range.
  double low = -1, high = 1;
  // Explicit contents instead (constant: known to shape rules, like axes and shape operands).
  Tensor constant;
  bool absent = false;
  // Values closer than this to any of `avoid` are moved away: kinks at which finite differences lie.
  std::vector<double> avoid = {};

  static ExampleInput random(Dims dims, double low = -1, double high = 1, std::vector<double> avoid = {}) {
    return {DType::kF32, std::move(dims), low, high, {}, false, std::move(avoid)};
  }
  static ExampleInput integers(Dims dims, double low, double high, DType dtype = DType::kI64) {
    return {dtype, std::move(dims), low, high, {}, false, {}};
  }
  static ExampleInput of(Tensor tensor) { return {tensor.dtype(), tensor.dims(), 0, 0, tensor, false, {}}; }
  static ExampleInput ints(std::vector<std::int64_t> values) { return of(Tensor::ints(values)); }
  static ExampleInput scalarBool(bool value) { return of(Tensor::scalar(DType::kBool, value ? 1 : 0)); }
  static ExampleInput scalarInt(std::int64_t value) {
    return of(Tensor::of<std::int64_t>({}, std::span<const std::int64_t>(&value, 1)));
  }
  static ExampleInput none() { return {DType::kUndefined, {}, 0, 0, {}, true, {}}; }
};

struct OpExample {
  std::string name;  // unique: "Softmax_axis1"
  std::string domain;
  std::string op;
  std::vector<ExampleInput> inputs;
  std::size_t outputs = 1;
  Attributes attrs;
  double tolerance = 1e-6;    // relative, of gradients in f64 against central differences
  bool differentiate = true;  // false: the example exists for shapes and values only (say why in a comment)

  // GoogleTest prints the parameter of each of thousands of tests at every start.
  friend void PrintTo(const OpExample& example, std::ostream* os) { *os << example.name; }
};

std::span<const OpExample> elementwiseExamples();
std::span<const OpExample> reductionExamples();
std::span<const OpExample> movementExamples();
std::span<const OpExample> linearExamples();

}  // namespace stepscope::testing
