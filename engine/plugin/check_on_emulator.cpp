#include "engine/plugin/check_on_emulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/profile/compare_tensors.h"
#include "kernels/emulated_device.h"
#include "kernels/library_code.h"

namespace stepscope {
namespace {

constexpr int kOrders = 3;

bool hasBit(std::uint32_t mask, std::size_t i) { return i < 32 && (mask >> i & 1u) != 0; }

class OnEmulator {
 public:
  OnEmulator(const KernelRegistry& kernels, const KernelSpec& spec, std::span<const Tensor> inputs, std::uint32_t hostInputs,
             const RandomKey& random)
      : kernels_(kernels), spec_(spec), inputs_(inputs), hostInputs_(hostInputs), random_(random) {}

  // `over`: the input whose memory output 0 takes; -1: none.
  Result<std::vector<Tensor>> run(int seed, int over) {
    // Every run has its own: a fault ends a device.
    SS_ASSIGN(const auto device, makeEmulatedDevice(fmt::format("emulated:streams=eager,seed={}", seed)));
    SS_ASSIGN(const auto kernel, kernels_.make(device->facts().kernels, spec_));
    said_ = kernel->determinism();
    std::vector<Tensor> there;
    std::vector<TensorView> inputs, outputs;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      Tensor& copy = there.emplace_back();
      if (inputs_[i].valid() && hasBit(hostInputs_, i)) copy = inputs_[i];
      if (inputs_[i].valid() && !hasBit(hostInputs_, i)) {
        SS_ASSIGN(copy, makeTensor(*device, inputs_[i].dtype(), inputs_[i].dims()));
        SS_TRY(writeTensor(*device, copy.view(), inputs_[i].view()));
      }
      inputs.push_back(copy.view());
    }
    std::vector<Tensor> made;
    for (std::size_t o = 0; o < spec_.outputs.size(); ++o) {
      if (o == 0 && over >= 0) {
        made.push_back(there[static_cast<std::size_t>(over)]);
      } else {
        SS_ASSIGN(made.emplace_back(), makeTensor(*device, spec_.outputs[o].dtype, spec_.outputs[o].dims));
      }
      outputs.push_back(made.back().view());
    }
    SS_ASSIGN(const DeviceMemory workspace, device->allocate(static_cast<std::int64_t>(kernel->workspaceBytes())));
    const std::span<std::byte> scratch(workspace.data(), kernel->workspaceBytes());
    SS_TRY(device->launch(*kernel, {inputs, outputs, scratch, random_, 0, {}}));
    SS_TRY(device->synchronise());
    std::vector<Tensor> results;
    for (const Tensor& one : made) {
      SS_ASSIGN(const Tensor read, readTensor(*device, one.view()));
      results.push_back(read.clone());
    }
    return results;
  }
  const Determinism& said() const { return said_; }

 private:
  const KernelRegistry& kernels_;
  const KernelSpec& spec_;
  std::span<const Tensor> inputs_;
  std::uint32_t hostInputs_;
  RandomKey random_;
  Determinism said_;
};

tl::unexpected<Error> wrong(std::string text) { return fail(ErrorCode::kCorrupt, std::move(text)); }

double largestOf(const Tensor& tensor) {
  double largest = 1e-30;
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    if (const double value = std::fabs(elementAsDouble(tensor.view(), i)); std::isfinite(value))
      largest = std::max(largest, value);
  return largest;
}

bool sameBits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

}  // namespace

Result<std::string> checkOnEmulator(const KernelRegistry& kernels, const KernelSpec& spec, std::span<const Tensor> inputs,
                                    std::span<const Tensor> expected, std::uint32_t hostInputs, std::uint32_t inPlace,
                                    const RandomKey& random) {
  SS_ASSIGN(const auto emulator, makeEmulatedDevice("emulated"));
  const auto whyNot = whyNotByLibrary(kernels, *emulator, spec);
  if (!whyNot || !whyNot->empty()) return "left to the CPU: " + whyNot.value_or("no kernel for 'cuda'");
  OnEmulator runs(kernels, spec, inputs, hostInputs, random);
  std::vector<Tensor> first;
  double worst = 0;
  for (int seed = 1; seed <= kOrders; ++seed) {
    SS_ASSIGN(std::vector<Tensor> made, runs.run(seed, -1));
    for (std::size_t o = 0; o < made.size(); ++o) {
      if (!expected[o].valid()) continue;
      const bool wide = expected[o].dtype() == DType::kF64;
      const auto compared = compareTensors("", made[o].view(), expected[o].view());
      const double distance = compared.max_abs() / largestOf(expected[o]), tolerance = !isFloating(expected[o].dtype()) ? 0.0
                                                                                       : wide ? 1e-10
                                                                                              : 1e-4;
      if (!(distance <= tolerance))
        return wrong(fmt::format("output {} has {:.6g} at {}; expected {:.6g}, as on the CPU", o, compared.a(),
                                 dimsText(Dims(compared.worst_index().begin(), compared.worst_index().end())),
                                 compared.b()));
      worst = std::max(worst, distance);
      if (seed > 1 && runs.said().order != Determinism::Order::kUnordered && !sameBits(made[o], first[o]))
        return wrong(fmt::format("output {} has other bits in another order of threads; expected the same, as it says: {}",
                                 o, runs.said().reason));
    }
    if (seed == 1) first = std::move(made);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!hasBit(inPlace, i) || !inputs[i].valid() || inputs[i].dtype() != spec.outputs[0].dtype ||
        inputs[i].dims() != spec.outputs[0].dims)
      continue;
    SS_ASSIGN(const std::vector<Tensor> over, runs.run(1, static_cast<int>(i)));
    for (std::size_t o = 0; o < over.size(); ++o)
      if (!sameBits(over[o], first[o]))
        return wrong(fmt::format(
            "output {} has other bits when output 0 takes over the memory of input {}; expected the same", o, i));
  }
  return fmt::format("{} orders of threads, largest distance from the CPU {:.1e}", kOrders, worst);
}

}  // namespace stepscope
