// What kernels of elementwise chains share (elementwise.cu, pointwise_sum.cu): the steps, and how operands lie beside the
// result.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/chain_source.h"
#include "kernels/cuda/elementwise_step.h"
#include "kernels/cuda/support.h"
#include "kernels/cuda/walk.h"
#include "kernels/generated_kernel.h"
#include "kernels/strided_view.h"

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
  ChainType result = ChainType::kFloat;
  float p = 0, q = 0;  // attributes of the op
  ChainStep steps[kMostSteps];
};

// How an input lies beside the result.
enum class InputForm : std::uint8_t { kWhole, kScalar, kWalked };

// Steps compute in float32: masks are 0 and 1, low types are widened. Only chains of kMostInputs read low types.
template <int kInputs>
struct ChainInputs {
  Global<const float> values[kInputs];
  Global<const std::uint8_t> masks[kInputs];                               // of inputs that are bool
  Global<const std::uint16_t> lows[kInputs == kMostInputs ? kInputs : 1];  // bits of inputs of a low type
  InputForm forms[kInputs] = {};
  ChainType types[kInputs] = {};
  std::int64_t starts[kInputs] = {};  // of walked inputs: the first element that is seen
  bool walked = false;                // some input is
  Walk<kInputs> walk;
};

// A number of a low type by its bits.
SS_DEVICE float widenedBits(std::uint16_t bits, ChainType type) {
  if (type == ChainType::kBFloat16) {
    gpu::BFloat low;
    memcpy(static_cast<void*>(&low), &bits, sizeof(bits));
    return static_cast<float>(low);
  }
  gpu::Half low;
  memcpy(static_cast<void*>(&low), &bits, sizeof(bits));
  return static_cast<float>(low);
}
// The way back, rounded.
SS_DEVICE std::uint16_t roundedBits(float value, ChainType type) {
  std::uint16_t bits = 0;
  if (type == ChainType::kBFloat16) {
    const auto low = static_cast<gpu::BFloat>(value);
    memcpy(&bits, &low, sizeof(bits));
  } else {
    const auto low = static_cast<gpu::Half>(value);
    memcpy(&bits, &low, sizeof(bits));
  }
  return bits;
}

// Element `at` of input i, behind the first that is seen.
template <int kInputs>
SS_DEVICE float inputAt(const ChainInputs<kInputs>& in, int i, std::int64_t at) {
  at += in.starts[i];
  if (in.types[i] == ChainType::kBool) return static_cast<std::uint8_t>(in.masks[i][at]) != 0 ? 1.0F : 0.0F;
  if constexpr (kInputs == kMostInputs)
    if (in.types[i] != ChainType::kFloat) return widenedBits(in.lows[i][at], in.types[i]);
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

// The type of an operand that chains read and write; nothing for others, and for operands that are not there as kernels of
// this folder take them.
inline std::optional<ChainType> chainTypeOf(const OperandSpec& operand) {
  for (const auto& [dtype, type] :
       {std::pair(DType::kF32, ChainType::kFloat), std::pair(DType::kBool, ChainType::kBool),
        std::pair(DType::kF16, ChainType::kFloat16), std::pair(DType::kBF16, ChainType::kBFloat16)})
    if (takes(operand, dtype)) return type;
  return std::nullopt;
}
inline std::vector<bool> masksOf(const std::vector<ChainType>& types) {
  std::vector<bool> masks;
  for (const ChainType type : types) masks.push_back(type == ChainType::kBool);
  return masks;
}

// How inputs of these numbers, or what is seen of them, lie beside a result of extents y. Errors: kUnsupported for some that
// do not broadcast, or too many axes; those of seenOperand.
template <int kInputs>
Result<ChainInputs<kInputs>> inputsBeside(const KernelSpec& spec, const Dims& y, std::span<const std::size_t> inputs,
                                          const std::vector<ChainType>& types) {
  ChainInputs<kInputs> in;
  const std::int64_t total = elementCount(y);
  std::array<Dims, kInputs> strides;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    SS_ASSIGN(const StridedView seen, seenOperand(spec.domain, spec.op, inputs[i], spec.inputs[inputs[i]].dims, spec.attrs));
    const Dims& dims = seen.dims;
    if (dims.size() > y.size()) return notTaken(spec, "an operand of higher rank than the result");
    const std::int64_t count = elementCount(dims);
    const bool viewed = seesView(spec.domain, spec.op, inputs[i], spec.attrs);
    in.forms[i] = viewed           ? InputForm::kWalked
                  : count == total ? InputForm::kWhole
                  : count == 1     ? InputForm::kScalar
                                   : InputForm::kWalked;
    in.types[i] = types[i];
    in.starts[i] = seen.offset;
    in.walked = in.walked || in.forms[i] == InputForm::kWalked;
    const std::size_t lead = y.size() - dims.size();
    strides[i].assign(y.size(), 0);
    for (std::size_t a = 0; a < dims.size(); ++a) {
      if (dims[a] != 1 && dims[a] != y[lead + a]) return notTaken(spec, "operands that do not broadcast");
      if (dims[a] != 1) strides[i][lead + a] = seen.strides[a];
    }
  }
  if (in.walked)
    for (std::size_t a = 0; a < y.size(); ++a) {
      std::int64_t stride[kInputs] = {};
      for (std::size_t i = 0; i < inputs.size(); ++i) stride[i] = strides[i][a];
      if (!in.walk.add(y[a], stride)) return notTaken(spec, "more than eight axes");
    }
  return in;
}

// The operands of a call, of which `inputs` are those of the spec.
template <int kInputs>
ChainInputs<kInputs> inputsOf(Launcher& gpu, ChainInputs<kInputs> in, const std::vector<std::size_t>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (in.types[i] == ChainType::kBool)
      in.masks[i] = gpu.in<std::uint8_t>(inputs[i]);
    else if (in.types[i] == ChainType::kFloat)
      in.values[i] = gpu.in<float>(inputs[i]);
    else if constexpr (kInputs == kMostInputs)
      in.lows[i] = gpu.in<std::uint16_t>(inputs[i]);
  }
  return in;
}

// The chain over these inputs as the source of a kernel has it.
template <int kInputs>
ChainForm formOf(const Chain& chain, const ChainInputs<kInputs>& shape, std::int64_t total) {
  ChainForm form;
  form.p = chain.p, form.q = chain.q;
  form.total = total;
  form.result = chain.result;
  form.extents.assign(shape.walk.extents, shape.walk.extents + shape.walk.rank);
  for (int i = 0; i < chain.inputs; ++i) {
    using Lies = ChainForm::Lies;
    ChainForm::Input& input = form.inputs.emplace_back();
    input.lies = shape.forms[i] == InputForm::kWhole    ? Lies::kAsResult
                 : shape.forms[i] == InputForm::kScalar ? Lies::kScalar
                                                        : Lies::kWalked;
    input.type = shape.types[i];
    input.start = shape.starts[i];
    input.strides.assign(shape.walk.strides[i], shape.walk.strides[i] + shape.walk.rank);
  }
  for (int s = 0; s < chain.count; ++s) {
    const ChainStep& step = chain.steps[s];
    form.steps.push_back({step.step, {step.operands[0], step.operands[1], step.operands[2]}});
  }
  return form;
}

// Whether the device has compiled and launched the source, whose parameters are the operands `inputs` and `result`.
inline Result<bool> runGenerated(const std::string& source, const char* name, const KernelCall& call,
                                 const std::vector<std::size_t>& inputs, void* result, std::int64_t blocks, int threads) {
  gpu::GeneratedKernels* const compiler = gpu::generatedKernels;
  if (!compiler) return false;
  std::array<void*, kMostInputs + 1> addresses{}, parameters{};
  std::size_t count = 0;
  for (const std::size_t i : inputs) addresses[count++] = call.inputs[i].data;
  addresses[count++] = result;
  for (std::size_t k = 0; k < count; ++k) parameters[k] = &addresses[k];
  return compiler->launch({chainPrelude(), source, name, blocks, threads, std::span(parameters).first(count), call.stream});
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
