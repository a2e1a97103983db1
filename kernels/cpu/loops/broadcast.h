// How up to three operands walk along one result: ONNX multidirectional broadcasting as runs of memory.
#pragma once

#include <array>
#include <initializer_list>

#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {

// Axes that all operands walk alike are merged; the innermost is a run in which an operand moves by 0 or 1.
class Broadcast {
 public:
  static constexpr std::size_t kOperands = 3, kAxes = 8;
  struct Run {
    std::int64_t out, count;
    std::array<std::int64_t, kOperands> at;  // the operands' first elements
  };
  // Error kUnsupported: operands that do not broadcast to `out`, or too many axes.
  static Result<Broadcast> of(const KernelSpec& spec, const Dims& out, std::initializer_list<const Dims*> operands);

  std::int64_t elements() const { return elements_; }
  std::int64_t step(std::size_t operand) const { return strides_[operand][0]; }
  // Calls visit(run) for the elements [begin, end) of the result.
  template <typename Visit>
  void runs(std::int64_t begin, std::int64_t end, Visit&& visit) const {
    for (std::int64_t i = begin; i < end;) {
      Run run{i, 0, {}};
      std::int64_t rest = i;
      for (std::size_t axis = 0; axis < rank_; ++axis) {
        const std::int64_t index = rest % extents_[axis];
        rest /= extents_[axis];
        for (std::size_t o = 0; o < kOperands; ++o) run.at[o] += index * strides_[o][axis];
        if (axis == 0) run.count = std::min(extents_[0] - index, end - i);
      }
      visit(run);
      i += run.count;
    }
  }

 private:
  std::int64_t elements_ = 1;
  std::size_t rank_ = 0;  // innermost first
  std::array<std::int64_t, kAxes> extents_{};
  std::array<std::array<std::int64_t, kAxes>, kOperands> strides_{};
};

// A loop of two operands: y[i] = f(a[i * stepA], b[i * stepB]), steps 0 or 1; y may lie over either.
using PairLoop = void (*)(const void* a, std::int64_t stepA, const void* b, std::int64_t stepB, void* y, std::int64_t count);

// The kernel that runs `loop` over inputs 0 and 1 of the spec, whose types have been checked.
Result<std::unique_ptr<Kernel>> makePairKernel(const KernelSpec& spec, PairLoop loop);

}  // namespace stepscope::cpu
