// The CUDA C++ source of one chain of elementwise steps, with its shapes as numbers (kernels/generated_kernel.h). It gives
// the bits of the kernel that interprets the chain (elementwise.cu): the same functions of step_functions.h, and no
// multiplication joined with an addition of another step.
//
//   extern "C" void generated(x0, x1 …, y)    in blocks of kGeneratedThreads, four elements to a thread; x of bool are bytes
//   extern "C" void generated(x0, x1 …, sums) of a chain that is summed: in the blocks of pointwise_sum.cu
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope::cuda {

inline constexpr int kGeneratedThreads = 256, kGeneratedEach = 4;

// Of an operand. Steps compute in float32.
enum class ChainType : std::uint8_t { kFloat, kBool, kFloat16, kBFloat16 };
constexpr bool isLow(ChainType type) { return type == ChainType::kFloat16 || type == ChainType::kBFloat16; }

// How a chain is summed (pointwise_sum.cu): its extents seen as [rows, columns], cut into parts.
struct ChainSum {
  bool alongColumns = false;  // a block for each row and part; else a thread for each column and part
  int threads = 0;            // of a block
  std::int64_t rows = 1, columns = 1, parts = 1;
};

struct ChainForm {
  enum class Lies { kAsResult, kScalar, kWalked };
  struct Input {
    Lies lies = Lies::kAsResult;
    ChainType type = ChainType::kFloat;
    std::vector<std::int64_t> strides;  // of a walked one, by the axes of `extents`
    std::int64_t start = 0;             // of a walked one: its first element
  };
  struct Step {
    int step = 0;                   // of step_functions.h
    std::array<int, 3> operands{};  // below the number of inputs: an input; else the result of a step before
  };
  std::vector<Input> inputs;
  std::vector<std::int64_t> extents;  // of the result, where an input is walked
  std::vector<Step> steps;            // the last one gives the result
  float p = 0, q = 0;                 // attributes of the op
  std::int64_t total = 0;             // elements of the result
  ChainType result = ChainType::kFloat;
  std::optional<ChainSum> sum;  // the result of the steps is summed in double
};

// The kernel.
std::string chainSource(const ChainForm& chain);
// What stands before it: the language and step_functions.h.
std::string_view chainPrelude();

}  // namespace stepscope::cuda
