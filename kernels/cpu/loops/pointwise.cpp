// stepscope.Pointwise in blocks that stay in the first cache: every step runs over a block before the next block is read.
#include <algorithm>
#include <optional>

#include "kernels/cpu/loops/lanes_last.h"
#include "kernels/cpu/loops/loops.h"
#include "kernels/cpu/loops/low_operands.h"
#include "kernels/cpu/loops/pow.h"
#include "kernels/cpu/loops/vector_math.h"
#include "kernels/pointwise_program.h"
#include "kernels/threads.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;  // floats

// y may be any of the operands. One-operand steps get their operand three times.
using StepLoop = void (*)(const float* a, const float* b, const float* c, float* y, std::int64_t n);

#define SS_STEP(NAME, EXPRESSION)                                                                                        \
  SS_CLONES void NAME([[maybe_unused]] const float* a, [[maybe_unused]] const float* b, [[maybe_unused]] const float* c, \
                      float* y, std::int64_t n) {                                                                        \
    _Pragma("GCC ivdep") for (std::int64_t i = 0; i < n; ++i) y[i] = EXPRESSION;                                         \
  }
SS_STEP(absolute, std::fabs(a[i]))
SS_STEP(sum, a[i] + b[i])
SS_STEP(quotient, a[i] / b[i])
SS_STEP(errorFunction, erfOf(a[i]))
SS_STEP(exponential, expOf(a[i]))
SS_STEP(greater, a[i] > b[i] ? 1.0F : 0.0F)
SS_STEP(greaterOrEqual, a[i] >= b[i] ? 1.0F : 0.0F)
SS_STEP(less, a[i] < b[i] ? 1.0F : 0.0F)
SS_STEP(lessOrEqual, a[i] <= b[i] ? 1.0F : 0.0F)
SS_STEP(logarithm, logOf(a[i]))
SS_STEP(maximum, a[i] > b[i] || a[i] != a[i] ? a[i] : b[i])
SS_STEP(minimum, a[i] < b[i] || a[i] != a[i] ? a[i] : b[i])
SS_STEP(product, a[i] * b[i])
SS_STEP(negative, -a[i])
SS_STEP(inverted, 1.0F - a[i])
SS_STEP(reciprocal, 1.0F / a[i])
SS_STEP(rectified, a[i] < 0 ? 0.0F : a[i])
SS_STEP(sigmoid, sigmoidOf(a[i]))
SS_STEP(squareRoot, std::sqrt(a[i]))
SS_STEP(difference, a[i] - b[i])
SS_STEP(hyperbolicTangent, tanhOf(a[i]))
SS_STEP(chosen, a[i] != 0 ? b[i] : c[i])
SS_STEP(ceiling, std::ceil(a[i]))
SS_STEP(equal, a[i] == b[i] ? 1.0F : 0.0F)
SS_STEP(floorOf, std::floor(a[i]))
SS_STEP(same, a[i])
SS_STEP(geluErf, geluErfOf(a[i]))
SS_STEP(geluErfGradient, a[i] * geluErfSlopeOf(b[i]))
SS_STEP(geluTanh, geluTanhOf(a[i]))
SS_STEP(geluTanhGradient, a[i] * geluTanhSlopeOf(b[i]))
SS_STEP(notANumber, a[i] != a[i] ? 1.0F : 0.0F)
SS_STEP(reluGradient, b[i] <= 0 ? 0.0F : a[i])
SS_STEP(nearest, std::rint(a[i]))
SS_STEP(sign, a[i] > 0 ? 1.0F : a[i] < 0 ? -1.0F : a[i])
SS_STEP(softplus, softplusOf(a[i]))
SS_STEP(softsign, a[i] / (1.0F + std::fabs(a[i])))
SS_STEP(mish, a[i] * tanhOf(softplusOf(a[i])))
SS_STEP(hardSwish, a[i] * (a[i] / 6 + 0.5F < 0 ? 0.0F : a[i] / 6 + 0.5F > 1 ? 1.0F : a[i] / 6 + 0.5F))
#undef SS_STEP

SS_CLONES bool allEqual(const float* x, std::int64_t n) {
  int equal = 1;
#pragma omp simd reduction(& : equal)
  for (std::int64_t i = 0; i < n; ++i) equal &= static_cast<int>(x[i] == x[0]);
  return equal != 0;
}

// Exponents are one scalar as a rule: its block then holds one number.
void power(const float* a, const float* b, const float*, float* y, std::int64_t n) {
  const SimplePower simple = allEqual(b, n) ? simplePowerOf(*b) : nullptr;
  if (simple != nullptr)
    simple(a, y, n);
  else
    powRun(a, 1, b, 1, y, n);
}

template <DType kLow>
void rounded(const float* a, const float*, const float*, float* y, std::int64_t n) {
  std::array<std::uint16_t, kBlock> low;
  convertLoop(DType::kF32, kLow)(a, low.data(), n);
  convertLoop(kLow, DType::kF32)(low.data(), y, n);
}

StepLoop loopOf(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::kAbs: return absolute;
    case PointwiseOp::kAdd: return sum;
    case PointwiseOp::kDiv: return quotient;
    case PointwiseOp::kErf: return errorFunction;
    case PointwiseOp::kExp: return exponential;
    case PointwiseOp::kGreater: return greater;
    case PointwiseOp::kGreaterOrEqual: return greaterOrEqual;
    case PointwiseOp::kLess: return less;
    case PointwiseOp::kLessOrEqual: return lessOrEqual;
    case PointwiseOp::kLog: return logarithm;
    case PointwiseOp::kMax: return maximum;
    case PointwiseOp::kMin: return minimum;
    case PointwiseOp::kMul: return product;
    case PointwiseOp::kNeg: return negative;
    case PointwiseOp::kNot: return inverted;
    case PointwiseOp::kPow: return power;
    case PointwiseOp::kReciprocal: return reciprocal;
    case PointwiseOp::kRelu: return rectified;
    case PointwiseOp::kSigmoid: return sigmoid;
    case PointwiseOp::kSqrt: return squareRoot;
    case PointwiseOp::kSub: return difference;
    case PointwiseOp::kTanh: return hyperbolicTangent;
    case PointwiseOp::kWhere: return chosen;
    case PointwiseOp::kAnd: return minimum;
    case PointwiseOp::kCeil: return ceiling;
    case PointwiseOp::kEqual: return equal;
    case PointwiseOp::kFloor: return floorOf;
    case PointwiseOp::kFromMask: return same;
    case PointwiseOp::kGelu: return geluErf;
    case PointwiseOp::kGeluGrad: return geluErfGradient;
    case PointwiseOp::kGeluTanh: return geluTanh;
    case PointwiseOp::kGeluTanhGrad: return geluTanhGradient;
    case PointwiseOp::kHardSwish: return hardSwish;
    case PointwiseOp::kIsNaN: return notANumber;
    case PointwiseOp::kMish: return mish;
    case PointwiseOp::kOr: return maximum;
    case PointwiseOp::kReluGrad: return reluGradient;
    case PointwiseOp::kRound: return nearest;
    case PointwiseOp::kSign: return sign;
    case PointwiseOp::kSoftplus: return softplus;
    case PointwiseOp::kSoftsign: return softsign;
    case PointwiseOp::kToBFloat16: return rounded<DType::kBF16>;
    case PointwiseOp::kToFloat16: return rounded<DType::kF16>;
  }
  return nullptr;
}

// How an input is brought beside a block of the result.
// kLanes: sixteen elements of each row, over and over (one per channel of a block in nChw16c).
// kWalked: along any axes.
enum class Form { kWhole, kRow, kColumn, kScalar, kLanes, kWalked };

// Where the elements of a broadcast operand lie: axes of the result that go on alike are one. Along the last one the operand
// lies in a row, or is one element.
struct Walk {
  Dims extents, strides;  // strides are 0 where it is repeated

  // run(from, count, step, to): `count` elements from `from` on, for those of the block from `to` on; step is 0 or 1.
  template <typename Run>
  void each(std::int64_t first, std::int64_t n, Run&& run) const {
    const std::int64_t last = extents.back();
    for (std::int64_t to = 0; to < n;) {
      std::int64_t rest = first + to, from = 0;
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

struct Input {
  Form form;
  bool mask = false;      // bool in memory, 0 and 1 in the block
  std::size_t slot = 0;   // block of the thread's scratch, where it is not read in place
  std::int64_t rows = 1;  // kLanes: rows after which it begins anew
  Walk walk = {};         // kWalked
};

struct Step {
  StepLoop loop;
  std::array<std::size_t, 3> operands;  // inputs, then results of steps
  std::size_t slot = 0;                 // block that it writes; the last step writes the result
};

class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const PointwiseProgram& program, std::vector<Input> inputs, std::int64_t outer, std::int64_t inner,
                  int threads)
      : inputs_(std::move(inputs)),
        outer_(outer),
        inner_(inner),
        threads_(threadsForElements(outer * inner * static_cast<std::int64_t>(program.steps.size()), threads)) {
    for (Input& input : inputs_)
      if (!readInPlace(input)) input.slot = slots_++;
    placeSteps(program);
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(threads_) * slots_ * kBlock * sizeof(float);
  }

  Status run(const KernelCall& call) override {
    const std::int64_t perRow = (inner_ + kBlock - 1) / kBlock, blocks = outer_ * perRow;
    auto* scratch = reinterpret_cast<float*>(call.workspace.data());
#pragma omp parallel num_threads(threads_) if (threads_ > 1)
    {
      float* own = scratch + static_cast<std::size_t>(omp_get_thread_num()) * slots_ * kBlock;
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (inputs_[i].form == Form::kScalar) std::fill_n(own + inputs_[i].slot * kBlock, kBlock, element(call, i, 0));
#pragma omp for schedule(static)
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t row = block / perRow, column = block % perRow * kBlock;
        runBlock(call, own, row, column, std::min(kBlock, inner_ - column));
      }
    }
    return {};
  }
  bool mayFail() const override { return false; }
  std::string implementation() const override { return "vector loop, " + std::to_string(steps_.size()) + " steps"; }
  Determinism determinism() const override { return Determinism::fixed(); }

 private:
  static bool readInPlace(const Input& input) {
    return !input.mask && (input.form == Form::kWhole || input.form == Form::kRow);
  }

  // Blocks of dead results are written again.
  void placeSteps(const PointwiseProgram& program) {
    const std::size_t count = program.steps.size();
    std::vector<std::size_t> lastUse(count, 0), free;
    for (std::size_t s = 0; s < count; ++s)
      for (std::size_t i = 0; i < infoOf(program.steps[s].op).arity; ++i)
        if (program.steps[s].operands[i] >= program.inputs) lastUse[program.steps[s].operands[i] - program.inputs] = s;
    for (std::size_t s = 0; s < count; ++s) {
      Step step{loopOf(program.steps[s].op), program.steps[s].operands, 0};
      for (std::size_t i = infoOf(program.steps[s].op).arity; i < 3; ++i) step.operands[i] = step.operands[0];
      for (std::size_t earlier = 0; earlier < s; ++earlier)
        if (lastUse[earlier] == s) free.push_back(steps_[earlier].slot);
      if (s + 1 < count) {
        if (free.empty()) {
          step.slot = slots_++;
        } else {
          step.slot = free.back();
          free.pop_back();
        }
      }
      steps_.push_back(step);
    }
  }

  float element(const KernelCall& call, std::size_t i, std::int64_t index) const {
    if (inputs_[i].mask) return static_cast<const std::uint8_t*>(call.inputs[i].data)[index] != 0 ? 1.0F : 0.0F;
    return static_cast<const float*>(call.inputs[i].data)[index];
  }

  void runBlock(const KernelCall& call, float* own, std::int64_t row, std::int64_t column, std::int64_t n) const {
    std::array<const float*, kMostPointwiseInputs + kMostPointwiseSteps> values;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Input& input = inputs_[i];
      const std::int64_t at = input.form == Form::kRow ? column : row * inner_ + column;
      float* block = own + input.slot * kBlock;
      if (readInPlace(input)) {
        values[i] = static_cast<const float*>(call.inputs[i].data) + at;
        continue;
      }
      values[i] = block;
      if (input.form == Form::kLanes) {
        const float* lanes = static_cast<const float*>(call.inputs[i].data) + row % input.rows * kLayoutLanes;
        for (std::int64_t k = 0; k < n; k += kLayoutLanes) std::copy_n(lanes, kLayoutLanes, block + k);
      } else if (input.form == Form::kColumn) {
        std::fill_n(block, n, element(call, i, row));
      } else if (input.form == Form::kWalked) {
        input.walk.each(at, n, [&](std::int64_t from, std::int64_t count, std::int64_t step, std::int64_t to) {
          if (step == 0)
            std::fill_n(block + to, count, element(call, i, from));
          else
            for (std::int64_t k = 0; k < count; ++k) block[to + k] = element(call, i, from + k);
        });
      } else if (input.form != Form::kScalar) {
        const auto* flags = static_cast<const std::uint8_t*>(call.inputs[i].data) + at;
        for (std::int64_t k = 0; k < n; ++k) block[k] = flags[k] != 0 ? 1.0F : 0.0F;
      }
    }
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const Step& step = steps_[s];
      float* y = s + 1 == steps_.size() ? static_cast<float*>(call.outputs[0].data) + row * inner_ + column
                                        : own + step.slot * kBlock;
      step.loop(values[step.operands[0]], values[step.operands[1]], values[step.operands[2]], y, n);
      values[inputs_.size() + s] = y;
    }
  }

  std::vector<Input> inputs_;
  std::vector<Step> steps_;
  std::size_t slots_ = 0;
  std::int64_t outer_, inner_;
  int threads_;
};

// Whether the operand is a run of whole trailing axes of the result (a row) or of leading ones (a column), and the row's
// length.
std::optional<std::pair<Form, std::int64_t>> formOf(const Dims& operand, const Dims& result) {
  const std::int64_t total = elementCount(result), count = elementCount(operand);
  if (count == total) return std::pair{Form::kWhole, std::int64_t{0}};
  if (count == 1) return std::pair{Form::kScalar, std::int64_t{0}};
  Dims padded(result.size() - operand.size(), 1);
  padded.insert(padded.end(), operand.begin(), operand.end());
  const Dims strides = rowMajorStrides(padded), whole = rowMajorStrides(result);
  bool row = true, column = true;
  const std::int64_t inner = total / count;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 1) continue;
    const std::int64_t step = padded[i] == 1 ? 0 : strides[i];
    row = row && step == (whole[i] < count ? whole[i] : 0);
    column = column && step * inner == (whole[i] >= inner ? whole[i] : 0);
  }
  if (row) return std::pair{Form::kRow, count};
  if (column) return std::pair{Form::kColumn, inner};
  return std::nullopt;
}

Walk walkOf(const Dims& operand, const Dims& result) {
  Dims padded(result.size() - operand.size(), 1);
  padded.insert(padded.end(), operand.begin(), operand.end());
  const Dims own = rowMajorStrides(padded);
  Walk walk;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 1) continue;
    const std::int64_t stride = padded[i] == 1 ? 0 : own[i];
    if (!walk.extents.empty() && walk.strides.back() == stride * result[i]) {
      walk.extents.back() *= result[i];
      walk.strides.back() = stride;
    } else {
      walk.extents.push_back(result[i]);
      walk.strides.push_back(stride);
    }
  }
  return walk;
}

bool broadcasts(const Dims& operand, const Dims& result) {
  if (operand.size() > result.size()) return false;
  const std::size_t lead = result.size() - operand.size();
  for (std::size_t i = 0; i < operand.size(); ++i)
    if (operand[i] != 1 && operand[i] != result[lead + i]) return false;
  return true;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makePointwise(const KernelSpec& spec) {
  const auto refuse = [](const char* what) {
    return unsupported(std::string("Pointwise: ") + what + "; falls back to the reference kernel");
  };
  const Dims& y = spec.outputs[0].dims;
  const std::int64_t total = elementCount(y);
  if (spec.outputs[0].dtype != DType::kF32 || total == 0) return refuse("a result that is empty or no float32");
  std::vector<bool> masks;
  std::vector<Input> inputs;
  std::int64_t inner = 0;
  const bool blocked = anyBlocked(spec);
  if (blocked && !isBlocked(spec.outputs[0])) return refuse("operands in several layouts");
  // Rows of nChw16c: one block of channels of one image.
  if (blocked) inner = total / (y[0] * y[1] / kLayoutLanes);
  for (const OperandSpec& operand : spec.inputs) {
    masks.push_back(operand.dtype == DType::kBool);
    if (!masks.back() && operand.dtype != DType::kF32) return refuse("an operand that is no float32");
    const std::int64_t count = elementCount(operand.dims);
    if (blocked && count != 1 && !isBlocked(operand)) {
      if (masks.back() || !isChannelVector(operand.dims, y))
        return refuse("operands that are neither whole nor one element per channel");
      inputs.push_back({Form::kLanes, false, 0, count / kLayoutLanes, {}});
      continue;
    }
    if (blocked && count != 1 && operand.dims != y) return refuse("operands of several extents");
    if (!broadcasts(operand.dims, y)) return refuse("operands that do not broadcast to the result");
    const auto form = formOf(operand.dims, y);
    if (!form || (form->second != 0 && inner != 0 && form->second != inner)) {
      inputs.push_back({Form::kWalked, masks.back(), 0, 1, walkOf(operand.dims, y)});
      continue;
    }
    if (form->second != 0) inner = form->second;
    inputs.push_back({form->first, masks.back(), 0, 1, {}});
  }
  SS_ASSIGN(const PointwiseProgram program, PointwiseProgram::of(spec.attrs, masks));
  if (inner == 0) inner = total;
  return std::make_unique<PointwiseKernel>(program, std::move(inputs), total / inner, inner, spec.threads);
}

}  // namespace stepscope::cpu
