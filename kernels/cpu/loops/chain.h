// A chain of elementwise steps over one block at a time: what Pointwise and PointwiseSum share. Every step runs over a block
// that stays in the first cache before the next block is read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/cpu/loops/chain_steps.h"
#include "kernels/cpu/loops/low_operands.h"
#include "kernels/strided_view.h"

namespace stepscope::cpu {

// Where the elements of an operand lie that is broadcast, or a view of a larger tensor: axes of the result that go on alike
// are one.
struct ChainWalk {
  Dims extents, strides;  // strides are 0 where it is repeated
  std::int64_t begin = 0;

  // Where elements [first, first + n) of the result's order begin, if they lie in a row; else -1.
  std::int64_t rowOf(std::int64_t first, std::int64_t n) const {
    const std::int64_t last = extents.back();
    if (strides.back() != 1 || first % last + n > last) return -1;
    std::int64_t at = -1;
    each(first, n, [&](std::int64_t from, std::int64_t, std::int64_t, std::int64_t) { at = from; });
    return at;
  }

  // run(from, count, step, to): `count` elements from `from` on, for those of the block from `to` on.
  template <typename Run>
  void each(std::int64_t first, std::int64_t n, Run&& run) const {
    const std::int64_t last = extents.back();
    for (std::int64_t to = 0; to < n;) {
      std::int64_t rest = first + to, from = begin;
      const std::int64_t along = rest % last, count = std::min(last - along, n - to);
      rest /= last;
      for (std::size_t axis = extents.size() - 1; axis-- > 0;) {
        from += rest % extents[axis] * strides[axis];
        rest /= extents[axis];
      }
      run(from + along * strides.back(), count, strides.back(), to);
      to += count;
    }
  }
};

class Chain {
 public:
  // The chain of attribute `steps` over what `spec` sees of its inputs, which are float32, float16, bfloat16 or bool and
  // broadcast to `y`; `whole` is how an operand with those extents lies (isBlocked).
  // `inner`: elements of a row of y, within which blocks lie; 0: whatever suits the operands. Errors: kUnsupported for
  // operands that it does not take; those of PointwiseProgram::of.
  static Result<Chain> of(const KernelSpec& spec, const OperandSpec& whole, std::int64_t inner);

  std::size_t steps() const { return steps_.size(); }
  std::int64_t inner() const { return inner_; }
  // Of a thread: blocks of kChainBlock floats.
  std::size_t slots() const { return slots_; }

  // What every block of a call has in common, into the blocks of a thread.
  void prepare(const KernelCall& call, float* own) const;
  // Elements [column, column + n) of a row, n <= kChainBlock, into y, which may be where an operand has them.
  void run(const KernelCall& call, float* own, std::int64_t row, std::int64_t column, std::int64_t n, float* y) const;

 private:
  // How an input is brought beside a block of the result.
  // kLanes: sixteen elements of each row, over and over (one per channel of a block in nChw16c).
  // kWalked: along any axes.
  enum class Form : std::uint8_t { kWhole, kRow, kColumn, kScalar, kLanes, kWalked };
  struct Input {
    Form form = Form::kWhole;
    DType dtype = DType::kF32;                   // bool: 0 and 1 in the block
    std::uint32_t slot = 0;                      // block of the thread, where it is not read in place
    ConvertLoop widen = nullptr;                 // of a low type
    std::int64_t rows = 1;                       // kLanes: rows after which it begins anew
    std::int64_t begin = 0;                      // kWhole: the first element that it sees
    std::unique_ptr<const ChainWalk> walk = {};  // kWalked
  };
  struct Step {
    StepLoop loop = nullptr;
    std::array<std::uint16_t, 3> operands{};  // inputs, then results of steps
    std::uint16_t slot = 0;                   // block that it writes; the last step writes the result
  };
  static_assert(kMostPointwiseInputs + kMostPointwiseSteps <= UINT16_MAX);

  static bool readInPlace(const Input& input) {
    return input.dtype == DType::kF32 && (input.form == Form::kWhole || input.form == Form::kRow);
  }
  Status place(const KernelSpec& spec, const OperandSpec& whole);
  // An input that is a view.
  static Status placeView(const KernelSpec& spec, const StridedView& view, const Dims& y, Input& input);
  void placeSteps(const PointwiseProgram& program);
  // Neighbours, as floats.
  void read(const KernelCall& call, std::size_t i, std::int64_t at, std::int64_t n, float* to) const;
  float element(const KernelCall& call, std::size_t i, std::int64_t at) const {
    float value = 0;
    read(call, i, at, 1, &value);
    return value;
  }

  std::vector<Input> inputs_;
  std::vector<Step> steps_;
  std::uint32_t slots_ = 0;
  std::int64_t inner_ = 0;
};

}  // namespace stepscope::cpu
