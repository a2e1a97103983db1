// Random networks: a list of units, each an operator of the registry (through its example) or a handful of nodes, that read
// values made before. A value of any shape fits any place: it is flattened, filled up with a parameter, cut and squashed
// into the range of the place. So every sublist of the units is a network too, and a failing one can be shrunk.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "tests/engine/ops/op_example.h"

namespace stepscope::testing {

struct Unit {
  std::size_t kind = 0;              // an index of usableExamples(), or above them one of the shapes in random_networks.cpp
  std::uint64_t seed = 0;            // of everything it decides
  std::vector<std::size_t> sources;  // values that it reads, modulo those that are there
};

struct Network {
  std::uint64_t seed = 0;
  bool ties = false;  // parameters are multiples of a half
  std::vector<Unit> units;
};

Network randomNetwork(std::uint64_t seed);
// The model in float32 or float64: initializers "p0" … are its parameters, the output "loss" a scalar. `draw`: which numbers
// the parameters hold.
onnx::ModelProto modelOf(const Network& network, DType type, std::uint64_t draw);
std::vector<std::string> parametersOf(const Network& network);

// The smallest network, found by leaving out units one after the other, that still fails.
Network shrunk(Network network, const std::function<bool(const Network&)>& fails);

// Examples of public operators that are the same whenever they run and have finite results.
const std::vector<OpExample>& usableExamples();

}  // namespace stepscope::testing
