// The CUDA C++ source of one chain of elementwise steps, with its shapes as numbers (kernels/generated_kernel.h). It gives
// the bits of the kernel that interprets the chain (elementwise.cu): the same functions of step_functions.h, and no
// multiplication joined with an addition of another step.
//
//   extern "C" void generated(x0, x1 …, y)    in blocks of kGeneratedThreads, four elements to a thread; x of bool are bytes
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope::cuda {

inline constexpr int kGeneratedThreads = 256, kGeneratedEach = 4;

struct ChainForm {
  enum class Lies { kAsResult, kScalar, kWalked };
  struct Input {
    Lies lies = Lies::kAsResult;
    bool mask = false;
    std::vector<std::int64_t> strides;  // of a walked one, by the axes of `extents`
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
  bool maskResult = false;
};

// The kernel.
std::string chainSource(const ChainForm& chain);
// What stands before it: the language and step_functions.h.
std::string_view chainPrelude();

}  // namespace stepscope::cuda
