// What tests of the CUDA kernels share: the devices that they run on, specs made of operands, and the comparison with the
// reference kernel. The tests are compiled once and linked three times, with one tested_*.cpp each: for the emulated device,
// where several seeds, that is orders of threads and blocks, give the same bits; for the device `cuda` on the fake GPU; and
// for a real one, where every test says why it is skipped if there is none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kernels/emulated_device.h"
#include "tests/kernels/loop_cases.h"
#include "tests/kernels/on_device.h"

namespace stepscope {

// In tested_emulated.cpp, tested_fake_gpu.cpp or tested_gpu.cpp.
struct TestedDevices {
  std::vector<std::string> names;
  std::string lacking;  // why the first is not there; empty: it is
  bool mayLack;         // then tests are skipped; else they fail
};
const TestedDevices& testedDevices();

#define SS_NEEDS_DEVICE()                                                                                   \
  if (testedDevices().mayLack && !testedDevices().lacking.empty()) GTEST_SKIP() << testedDevices().lacking; \
  ASSERT_EQ(testedDevices().lacking, "")

// Inputs that the op reads on the host (OpDef::hostInputs).
inline std::set<std::size_t> hostInputs(const std::string& op) {
  static const std::map<std::string, std::set<std::size_t>> kInputs{{"AveragePoolGrad", {1}},
                                                                    {"BiasDropout", {3, 4}},
                                                                    {"CumSum", {1}},
                                                                    {"Dropout", {1, 2}},
                                                                    {"DropoutPart", {2, 3, 4}},
                                                                    {"Expand", {1}},
                                                                    {"Gate", {0, 2}},
                                                                    {"GatherElementsGrad", {2}},
                                                                    {"GatherGrad", {2}},
                                                                    {"GatherNDGrad", {2}},
                                                                    {"MaxPoolGrad", {2}},
                                                                    {"Pad", {1, 3}},
                                                                    {"PadGrad", {1, 2, 3}},
                                                                    {"Resize", {1, 2, 3}},
                                                                    {"ResizeGrad", {1, 2, 3, 4}},
                                                                    {"Select", {0}},
                                                                    {"Slice", {1, 2, 3, 4}},
                                                                    {"SliceGrad", {1, 2, 3, 4, 5}},
                                                                    {"SoftmaxCrossEntropyLossGrad", {4}},
                                                                    {"SoftmaxCrossEntropyLossInternal", {3}},
                                                                    {"Split", {1}},
                                                                    {"SplitTraining", {1}},
                                                                    {"Tile", {1}},
                                                                    {"TileGrad", {1}},
                                                                    {"TopK", {1}},
                                                                    {"Trilu", {1}}};
  if (op.starts_with("Reduce")) return {1};
  const auto found = kInputs.find(op);
  return found == kInputs.end() ? std::set<std::size_t>{} : found->second;
}

inline KernelSpec specOf(const std::string& domain, const std::string& op, const Attributes& attrs,
                         const Operands& operands) {
  KernelSpec spec;
  spec.domain = domain;
  spec.op = op;
  spec.attrs = attrs;
  const auto onHost = hostInputs(op);
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    const Tensor& x = operands.inputs[i];
    spec.inputs.push_back(x.valid() ? OperandSpec{x.dtype(), x.dims(), false, onHost.contains(i) ? x : Tensor()}
                                    : OperandSpec{});
    spec.inputs.back().space = onHost.contains(i) ? Space::kHost : Space::kDevice;
  }
  for (const auto& [dtype, dims] : operands.outputs) spec.outputs.push_back({dtype, dims});
  return spec;
}

inline std::vector<Tensor> reference(const KernelSpec& spec, const Operands& operands) {
  std::vector<TensorView> in, out;
  std::vector<Tensor> results;
  for (const Tensor& x : operands.inputs) in.push_back(x.valid() ? x.view() : TensorView{});
  for (const auto& [dtype, dims] : operands.outputs) out.push_back(results.emplace_back(dtype, dims).view());
  const auto kernel = makeKernel(Backend::kReference, spec);
  EXPECT_TRUE(kernel.has_value());
  if (kernel) {
    const Tensor room(DType::kU8, {static_cast<std::int64_t>((*kernel)->workspaceBytes())});
    const Status status = (*kernel)->run({in, out, {static_cast<std::byte*>(room.data()), room.bytes()}, {7, 3, 11}, 0, {}});
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
  return results;
}

inline void expectNear(const std::vector<Tensor>& found, const std::vector<Tensor>& expected, double tolerance,
                       const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t o = 0; o < found.size(); ++o)
    for (std::int64_t i = 0; i < found[o].elements(); ++i) {
      const double a = elementAsDouble(found[o].view(), i), b = elementAsDouble(expected[o].view(), i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      ASSERT_LE(std::abs(a - b), tolerance * std::max(1.0, std::abs(b)))
          << what << ", output " << o << " element " << i << " expected " << b;
    }
}

// The results of the kernel, which are those of the reference kernel, and the same bits in every order of threads. None: the
// test has failed.
inline std::vector<Tensor> agreeing(const KernelSpec& spec, const Operands& operands) {
  std::string what = spec.op;
  for (const Tensor& x : operands.inputs) what += x.valid() ? " " + dimsText(x.dims()) : " -";
  EXPECT_TRUE(deviceNamed(testedDevices().names[0]).takes(spec)) << what;
  const auto kernel = builtInKernels().make("cuda", spec);
  if (!kernel) {
    ADD_FAILURE() << what << kernel.error().message;
    return {};
  }
  std::vector<Tensor> first;
  for (const std::string& name : testedDevices().names) {
    const auto found = runOn(deviceNamed(name), **kernel, spec, operands.inputs);
    if (!found) {
      ADD_FAILURE() << what << ": " << found.error().message;
      return {};
    }
    if (first.empty()) {
      expectNear(*found, reference(spec, operands), 1e-5, what);
      first = *found;
    }
    for (std::size_t o = 0; o < first.size(); ++o)
      EXPECT_EQ(std::memcmp(first[o].data(), (*found)[o].data(), first[o].bytes()), 0) << what << " on " << name;
  }
  return first;
}

}  // namespace stepscope
