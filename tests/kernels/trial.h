// One run of a kernel and of its reference kernel in f64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/fixed_parts.h"
#include "kernels/kernel.h"

namespace stepscope {

using Ints = std::vector<std::int64_t>;

// One run of a kernel over given inputs.
struct Trial {
  std::string domain, op;
  Attributes attrs;
  std::vector<Tensor> inputs;  // float32 and int64; an invalid tensor is an absent input
  std::vector<Dims> outputs;
  std::vector<DType> outputTypes = {DType::kF32};
};

inline Tensor random(std::mt19937_64& engine, Dims dims) {
  Tensor tensor(DType::kF32, std::move(dims));
  std::uniform_real_distribution<float> draw(-1, 1);
  for (float& value : tensor.as<float>()) value = draw(engine);
  return tensor;
}

struct Outcome {
  std::vector<Tensor> outputs;
  std::string implementation;
  Determinism determinism;
};

// `twice`: in f64. `shift`: bytes before the workspace.
inline Result<Outcome> execute(Backend backend, const Trial& trial, bool twice, std::size_t shift = 0, int threads = 2) {
  const auto typed = [&](DType dtype) { return twice && dtype == DType::kF32 ? DType::kF64 : dtype; };
  KernelSpec spec{trial.domain, trial.op, trial.attrs, {}, {}, threads};
  std::vector<Tensor> inputs;
  std::vector<TensorView> views, results;
  for (const Tensor& input : trial.inputs) {
    const bool shape = input.valid() && input.dtype() == DType::kI64;
    inputs.push_back(input.valid() ? convertTensor(input.view(), typed(input.dtype())) : Tensor());
    spec.inputs.push_back({inputs.back().dtype(), inputs.back().dims(), false, shape ? inputs.back() : Tensor()});
    views.push_back(inputs.back().view());
  }
  Outcome outcome;
  for (std::size_t i = 0; i < trial.outputs.size(); ++i) {
    outcome.outputs.emplace_back(typed(trial.outputTypes[i]), trial.outputs[i]);
    spec.outputs.push_back({outcome.outputs.back().dtype(), trial.outputs[i]});
    results.push_back(outcome.outputs.back().view());
    // Kernels write every element: what was there before must not show.
    std::memset(results.back().data, 0xff, results.back().bytes());
  }
  SS_ASSIGN(const auto kernel, makeKernel(backend, spec));
  outcome.implementation = kernel->implementation();
  outcome.determinism = kernel->determinism();
  Tensor workspace(DType::kU8, {static_cast<std::int64_t>(kernel->workspaceBytes() + shift)});
  std::memset(workspace.data(), 0xff, workspace.bytes());
  KernelCall call;
  call.inputs = views;
  call.outputs = results;
  call.workspace = {static_cast<std::byte*>(workspace.data()) + shift, kernel->workspaceBytes()};
  SS_TRY(kernel->run(call));
  return outcome;
}

// What the kernel says of its bits, held to it with one and three threads beside the two of `two`. One that says that the
// number of threads matters is asked again for sums cut by size alone.
inline void expectBitsAsItSays(const Trial& trial, const Outcome& two) {
  EXPECT_FALSE(two.determinism.reason.empty()) << trial.op;
  if (two.determinism.order == Determinism::Order::kThreadCount) {
    if (FixedParts::here()) return;  // it cannot; a session gives it one thread
    const FixedParts scope(true);
    const auto fixed = execute(Backend::kCpu, trial, false);
    ASSERT_TRUE(fixed.has_value());
    return expectBitsAsItSays(trial, *fixed);
  }
  for (const int threads : {1, 3}) {
    const auto other = execute(Backend::kCpu, trial, false, 0, threads);
    ASSERT_TRUE(other.has_value());
    for (std::size_t o = 0; o < two.outputs.size(); ++o)
      if (two.outputs[o].bytes() > 0)
        EXPECT_EQ(std::memcmp(two.outputs[o].data(), other->outputs[o].data(), two.outputs[o].bytes()), 0)
            << trial.op << ", threads " << threads << ": " << two.determinism.reason;
  }
}

// `expectFast`: the fast kernel takes the trial; else the reference may serve.
inline void compare(const Trial& trial, bool expectFast = true, double tolerance = 3e-5) {
  std::string text = trial.op;
  for (const Tensor& input : trial.inputs) text += input.valid() ? " " + dimsText(input.dims()) : " -";
  SCOPED_TRACE(text);
  const auto fast = execute(Backend::kCpu, trial, false), exact = execute(Backend::kReference, trial, true);
  ASSERT_TRUE(fast.has_value()) << fast.error().message;
  ASSERT_TRUE(exact.has_value()) << exact.error().message;
  if (expectFast) EXPECT_NE(fast->implementation, "reference");
  expectBitsAsItSays(trial, *fast);
  const auto again = execute(Backend::kCpu, trial, false, 64);
  ASSERT_TRUE(again.has_value());
  for (std::size_t o = 0; o < fast->outputs.size(); ++o) {
    const Tensor &a = fast->outputs[o], &b = exact->outputs[o];
    if (a.bytes() > 0)
      EXPECT_EQ(std::memcmp(a.data(), again->outputs[o].data(), a.bytes()), 0) << "not the same bits at other addresses";
    double scale = 1;
    for (std::int64_t k = 0; k < b.elements(); ++k) scale = std::max(scale, std::abs(elementAsDouble(b.view(), k)));
    for (std::int64_t k = 0; k < b.elements(); ++k)
      ASSERT_NEAR(elementAsDouble(a.view(), k), elementAsDouble(b.view(), k), tolerance * scale)
          << fast->implementation << ", output " << o << ", element " << k;
  }
}

// Has the fast kernel, with the same bits for one, two and three threads.
inline void expectSameBitsForAnyThreads(const Trial& trial) {
  const auto two = execute(Backend::kCpu, trial, false);
  ASSERT_TRUE(two.has_value()) << two.error().message;
  EXPECT_NE(two->implementation, "reference") << trial.op;
  for (const int threads : {1, 3}) {
    const auto other = execute(Backend::kCpu, trial, false, 0, threads);
    ASSERT_TRUE(other.has_value());
    for (std::size_t o = 0; o < two->outputs.size(); ++o)
      EXPECT_EQ(std::memcmp(two->outputs[o].data(), other->outputs[o].data(), two->outputs[o].bytes()), 0)
          << trial.op << ", threads " << threads;
  }
}

class CpuKernels : public ::testing::Test {
 protected:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  Tensor random(Dims dims) { return stepscope::random(engine_, std::move(dims)); }
  std::mt19937_64 engine_{42};
};

}  // namespace stepscope
