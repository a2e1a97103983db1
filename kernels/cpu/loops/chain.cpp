#include "kernels/cpu/loops/chain.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "kernels/cpu/loops/lanes_last.h"

namespace stepscope::cpu {
namespace {

bool broadcasts(const Dims& operand, const Dims& result) {
  if (operand.size() > result.size()) return false;
  const std::size_t lead = result.size() - operand.size();
  for (std::size_t i = 0; i < operand.size(); ++i)
    if (operand[i] != 1 && operand[i] != result[lead + i]) return false;
  return true;
}

Dims padded(const Dims& operand, const Dims& result) {
  Dims dims(result.size() - operand.size(), 1);
  dims.insert(dims.end(), operand.begin(), operand.end());
  return dims;
}

// Elements of the run of whole trailing axes of the result that the operand is (a row), or of the leading ones that it is (a
// column); the other one is 0.
struct Run {
  std::int64_t row = 0, column = 0;
};
Run runOf(const Dims& operand, const Dims& result) {
  const std::int64_t total = elementCount(result), count = elementCount(operand), inner = total / count;
  const Dims dims = padded(operand, result), strides = rowMajorStrides(dims), whole = rowMajorStrides(result);
  bool row = true, column = true;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 1) continue;
    const std::int64_t step = dims[i] == 1 ? 0 : strides[i];
    row = row && step == (whole[i] < count ? whole[i] : 0);
    column = column && step * inner == (whole[i] >= inner ? whole[i] : 0);
  }
  return {row ? count : 0, column && !row ? inner : 0};
}

ChainWalk walkOf(const StridedView& operand, const Dims& result) {
  const Dims dims = padded(operand.dims, result);
  Dims own(result.size() - operand.dims.size(), 0);
  own.insert(own.end(), operand.strides.begin(), operand.strides.end());
  ChainWalk walk;
  walk.begin = operand.offset;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 1) continue;
    const std::int64_t stride = dims[i] == 1 ? 0 : own[i];
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

}  // namespace

Result<Chain> Chain::of(const KernelSpec& spec, const OperandSpec& whole, std::int64_t inner) {
  Chain chain;
  chain.inner_ = inner;
  SS_TRY(chain.place(spec, whole));
  std::vector<bool> masks;
  for (const OperandSpec& operand : spec.inputs) masks.push_back(operand.dtype == DType::kBool);
  SS_ASSIGN(const PointwiseProgram program, PointwiseProgram::of(spec.attrs, masks));
  if (chain.inner_ == 0) chain.inner_ = elementCount(whole.dims);
  for (Input& input : chain.inputs_)
    if (!readInPlace(input)) input.slot = chain.slots_++;
  chain.placeSteps(program);
  return chain;
}

Status Chain::place(const KernelSpec& spec, const OperandSpec& whole) {
  const auto refuse = [&](std::string_view what) { return notTaken(spec, what); };
  const Dims& y = whole.dims;
  const std::int64_t total = elementCount(y);
  const bool blocked = anyBlocked(spec);
  if (blocked && !isBlocked(whole)) return refuse("operands in several layouts");
  // Rows of nChw16c: one block of channels of one image.
  if (blocked) inner_ = total / (y[0] * y[1] / kLayoutLanes);
  inputs_.reserve(spec.inputs.size());
  for (const OperandSpec& operand : spec.inputs) {
    const bool mask = operand.dtype == DType::kBool;
    if (!mask && !takesAnyFloat(operand, elementCount(operand.dims)))
      return refuse("an operand that is neither bool nor a float");
    Input input{.dtype = operand.dtype};
    if (isLow(operand.dtype)) input.widen = convertLoop(operand.dtype, DType::kF32);
    const std::size_t number = inputs_.size();
    if (seesView(spec.domain, spec.op, number, spec.attrs)) {
      if (blocked) return refuse("a view beside operands in a layout");
      SS_ASSIGN(const StridedView view, seenOperand(spec.domain, spec.op, number, operand.dims, spec.attrs));
      SS_TRY(placeView(spec, view, y, input));
      inputs_.push_back(std::move(input));
      continue;
    }
    const std::int64_t count = elementCount(operand.dims);
    if (count == 1) {
      input.form = Form::kScalar;
    } else if (blocked && !isBlocked(operand)) {
      if (operand.dtype != DType::kF32 || !isChannelVector(operand.dims, y))
        return refuse("operands that are neither whole nor one element per channel");
      input.form = Form::kLanes;
      input.rows = count / kLayoutLanes;
    } else if (blocked && operand.dims != y) {
      return refuse("operands of several extents");
    } else if (!broadcasts(operand.dims, y)) {
      return refuse("operands that do not broadcast to the result");
    } else if (count != total) {
      const Run run = runOf(operand.dims, y);
      const std::int64_t own = std::max(run.row, run.column);
      input.form = own == 0 || (inner_ != 0 && own != inner_) ? Form::kWalked : run.row != 0 ? Form::kRow : Form::kColumn;
      if (input.form == Form::kWalked)
        input.walk = std::make_unique<const ChainWalk>(walkOf(StridedView::whole(operand.dims), y));
      else
        inner_ = own;
    }
    inputs_.push_back(std::move(input));
  }
  return {};
}

Status Chain::placeView(const KernelSpec& spec, const StridedView& view, const Dims& y, Input& input) {
  if (elementCount(view.dims) == 0 || !broadcasts(view.dims, y))
    return notTaken(spec, "views that do not broadcast to the result");
  if (view.dims == y && view.dense()) {
    input.begin = view.offset;
    return {};
  }
  input.form = Form::kWalked;
  ChainWalk walk = walkOf(view, y);
  if (walk.extents.empty()) walk.extents = {1}, walk.strides = {0};
  input.walk = std::make_unique<const ChainWalk>(std::move(walk));
  return {};
}

// Blocks of dead results are written again.
void Chain::placeSteps(const PointwiseProgram& program) {
  const std::size_t count = program.steps.size();
  std::vector<std::size_t> lastUse(count, 0);
  std::vector<std::uint16_t> free;
  steps_.reserve(count);
  for (std::size_t s = 0; s < count; ++s)
    for (std::size_t i = 0; i < infoOf(program.steps[s].op).arity; ++i)
      if (program.steps[s].operands[i] >= program.inputs) lastUse[program.steps[s].operands[i] - program.inputs] = s;
  for (std::size_t s = 0; s < count; ++s) {
    Step step{.loop = stepLoopOf(program.steps[s].op)};
    for (std::size_t i = 0; i < 3; ++i)
      step.operands[i] =
          static_cast<std::uint16_t>(program.steps[s].operands[i < infoOf(program.steps[s].op).arity ? i : 0]);
    for (std::size_t earlier = 0; earlier < s; ++earlier)
      if (lastUse[earlier] == s) free.push_back(steps_[earlier].slot);
    if (s + 1 < count) {
      if (free.empty()) {
        step.slot = static_cast<std::uint16_t>(slots_++);
      } else {
        step.slot = free.back();
        free.pop_back();
      }
    }
    steps_.push_back(step);
  }
}

void Chain::read(const KernelCall& call, std::size_t i, std::int64_t at, std::int64_t n, float* to) const {
  const Input& input = inputs_[i];
  if (input.widen != nullptr) {
    input.widen(static_cast<const std::uint16_t*>(call.inputs[i].data) + at, to, n);
  } else if (input.dtype == DType::kBool) {
    const auto* flags = static_cast<const std::uint8_t*>(call.inputs[i].data) + at;
    for (std::int64_t k = 0; k < n; ++k) to[k] = flags[k] != 0 ? 1.0F : 0.0F;
  } else {
    std::copy_n(static_cast<const float*>(call.inputs[i].data) + at, n, to);
  }
}

void Chain::prepare(const KernelCall& call, float* own) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].form == Form::kScalar) std::fill_n(own + inputs_[i].slot * kChainBlock, kChainBlock, element(call, i, 0));
}

void Chain::run(const KernelCall& call, float* own, std::int64_t row, std::int64_t column, std::int64_t n, float* y) const {
  std::array<const float*, kMostPointwiseInputs + kMostPointwiseSteps> values;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    const std::int64_t at = input.form == Form::kRow ? column : row * inner_ + column;
    float* block = own + input.slot * kChainBlock;
    if (readInPlace(input)) {
      values[i] = static_cast<const float*>(call.inputs[i].data) + input.begin + at;
      continue;
    }
    if (input.form == Form::kWalked && input.dtype == DType::kF32)
      if (const std::int64_t first = input.walk->rowOf(at, n); first >= 0) {
        values[i] = static_cast<const float*>(call.inputs[i].data) + first;
        continue;
      }
    values[i] = block;
    if (input.form == Form::kLanes) {
      const float* lanes = static_cast<const float*>(call.inputs[i].data) + row % input.rows * kLayoutLanes;
      for (std::int64_t k = 0; k < n; k += kLayoutLanes) std::copy_n(lanes, kLayoutLanes, block + k);
    } else if (input.form == Form::kColumn) {
      std::fill_n(block, n, element(call, i, row));
    } else if (input.form == Form::kWalked) {
      input.walk->each(at, n, [&](std::int64_t from, std::int64_t count, std::int64_t step, std::int64_t to) {
        if (step == 0)
          std::fill_n(block + to, count, element(call, i, from));
        else if (step == 1)
          read(call, i, from, count, block + to);
        else
          for (std::int64_t k = 0; k < count; ++k) block[to + k] = element(call, i, from + k * step);
      });
    } else if (input.form != Form::kScalar) {
      read(call, i, input.begin + at, n, block);
    }
  }
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    float* to = s + 1 == steps_.size() ? y : own + step.slot * kChainBlock;
    step.loop(values[step.operands[0]], values[step.operands[1]], values[step.operands[2]], to, n);
    values[inputs_.size() + s] = to;
  }
}

}  // namespace stepscope::cpu
