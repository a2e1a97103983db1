// What kernels of elementwise chains share (elementwise.cu, pointwise_sum.cu): the steps, and how operands lie beside the
// result.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "kernels/cuda/elementwise_step.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"

namespace stepscope::cuda {

inline constexpr int kMostInputs = static_cast<int>(kMostPointwiseInputs),
                     kMostSteps = static_cast<int>(kMostPointwiseSteps);

// Operands: below the number of inputs an input, else the result of a step before.
struct ChainStep {
  std::uint8_t step = 0, operands[3] = {};
};

// The steps in their order.
struct Chain {
  int count = 0, inputs = 0;
  float p = 0, q = 0;  // attributes of the op
  ChainStep steps[kMostSteps];
};

// How an input lies beside the result.
enum class InputForm : std::uint8_t { kWhole, kScalar, kWalked };

// float32, or bool: masks are 0 and 1.
template <int kInputs>
struct ChainInputs {
  Global<const float> values[kInputs];
  Global<const std::uint8_t> masks[kInputs];  // of inputs that are bool
  InputForm forms[kInputs] = {};
  bool isMask[kInputs] = {};
  bool walked = false;  // some input is
  Walk<kInputs> walk;
};

// Element `at` of input i.
template <int kInputs>
SS_DEVICE float inputAt(const ChainInputs<kInputs>& in, int i, std::int64_t at) {
  if (in.isMask[i]) return static_cast<std::uint8_t>(in.masks[i][at]) != 0 ? 1.0F : 0.0F;
  return in.values[i][at];
}

// values: the inputs of one element, then room for a result of each step. Returns the last one.
SS_DEVICE float runSteps(const Chain& chain, float* values) {
  for (int s = 0; s < chain.count; ++s) {
    const ChainStep step = chain.steps[s];
    values[chain.inputs + s] = stepOf(static_cast<Step>(step.step), values[step.operands[0]], values[step.operands[1]],
                                      values[step.operands[2]], chain.p, chain.q);
  }
  return values[chain.inputs + chain.count - 1];
}

// --- host

// How inputs of these extents lie beside a result of extents y. Errors: kUnsupported for some that do not broadcast, or too
// many axes.
template <int kInputs>
Result<ChainInputs<kInputs>> inputsBeside(const KernelSpec& spec, const Dims& y, std::span<const Dims> dims,
                                          const std::vector<bool>& masks) {
  ChainInputs<kInputs> in;
  const std::int64_t total = elementCount(y);
  std::array<Dims, kInputs> strides;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].size() > y.size()) return notTaken(spec, "an operand of higher rank than the result");
    const std::int64_t count = elementCount(dims[i]);
    in.forms[i] = count == total ? InputForm::kWhole : count == 1 ? InputForm::kScalar : InputForm::kWalked;
    in.isMask[i] = masks[i];
    in.walked = in.walked || in.forms[i] == InputForm::kWalked;
    const std::size_t lead = y.size() - dims[i].size();
    const Dims own = rowMajorStrides(dims[i]);
    strides[i].assign(y.size(), 0);
    for (std::size_t a = 0; a < dims[i].size(); ++a) {
      if (dims[i][a] != 1 && dims[i][a] != y[lead + a]) return notTaken(spec, "operands that do not broadcast");
      if (dims[i][a] != 1) strides[i][lead + a] = own[a];
    }
  }
  if (in.walked)
    for (std::size_t a = 0; a < y.size(); ++a) {
      std::int64_t stride[kInputs] = {};
      for (std::size_t i = 0; i < dims.size(); ++i) stride[i] = strides[i][a];
      if (!in.walk.add(y[a], stride)) return notTaken(spec, "more than eight axes");
    }
  return in;
}

// The operands of a call, of which `inputs` are those of the spec.
template <int kInputs>
ChainInputs<kInputs> inputsOf(Launcher& gpu, ChainInputs<kInputs> in, const std::vector<std::size_t>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (in.isMask[i])
      in.masks[i] = gpu.in<std::uint8_t>(inputs[i]);
    else
      in.values[i] = gpu.in<float>(inputs[i]);
  }
  return in;
}

// Adds a step; operands that it has not are those that it has.
inline void appendStep(Chain& chain, Step step, std::size_t a, std::size_t b, std::size_t c) {
  chain.steps[chain.count++] = {static_cast<std::uint8_t>(step),
                                {static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), static_cast<std::uint8_t>(c)}};
}

// Adds the steps of attribute `steps` to a chain of masks.size() inputs. False: they are no program.
inline bool appendProgram(Chain& chain, const Attributes& attrs, const std::vector<bool>& masks) {
  const auto program = PointwiseProgram::of(attrs, masks);
  if (!program) return false;
  for (const PointwiseStep& step : program->steps) {
    std::array<std::size_t, 3> operands = step.operands;
    for (std::size_t k = infoOf(step.op).arity; k < 3; ++k) operands[k] = operands[0];
    appendStep(chain, static_cast<Step>(step.op), operands[0], operands[1], operands[2]);
  }
  return true;
}

}  // namespace stepscope::cuda
