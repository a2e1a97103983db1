// Kernels of kernels/cuda run on an emulated device: operands there and back.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/kernel_registry.h"

namespace stepscope {

inline Device& deviceNamed(const std::string& name) {
  const auto device = findDevice(name);
  if (!device) ADD_FAILURE() << device.error().message;
  return device ? **device : cpuDevice();
}

// Runs `kernel` once over copies of the inputs in the memory of the device. Outputs hold 0xFF at first; output 0 is the
// memory of input `over` where that is 0 or more.
inline Result<std::vector<Tensor>> runOn(Device& device, Kernel& kernel, const KernelSpec& spec,
                                         const std::vector<Tensor>& inputs, int over = -1) {
  std::vector<Tensor> held;
  std::vector<TensorView> in, out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].valid()) {
      in.emplace_back();
    } else if (spec.inputs[i].space == Space::kHost) {
      in.push_back(inputs[i].view());
    } else {
      SS_ASSIGN(Tensor there, makeTensor(device, inputs[i].dtype(), inputs[i].dims()));
      SS_TRY(writeTensor(device, there.view(), inputs[i].view()));
      in.push_back(there.view());
      held.push_back(std::move(there));
    }
  }
  for (std::size_t o = 0; o < spec.outputs.size(); ++o) {
    const OperandSpec& output = spec.outputs[o];
    if (o == 0 && over >= 0) {
      out.push_back(in[static_cast<std::size_t>(over)]);
      out.back().dims = output.dims;
      continue;
    }
    SS_ASSIGN(Tensor there, makeTensor(device, output.dtype, output.dims));
    SS_TRY(device.fill(there.data(), 0xFF, static_cast<std::int64_t>(there.bytes()), 0));
    out.push_back(there.view());
    held.push_back(std::move(there));
  }
  SS_ASSIGN(const Tensor room, makeTensor(device, DType::kU8, {static_cast<std::int64_t>(kernel.workspaceBytes())}));
  SS_TRY(device.launch(kernel, {in, out, {static_cast<std::byte*>(room.data()), room.bytes()}, {7, 3, 11}, 0, {}}));
  SS_TRY(device.synchronise());
  std::vector<Tensor> results;
  for (const TensorView& view : out) {
    SS_ASSIGN(const Tensor result, readTensor(device, view));
    results.push_back(result);
  }
  return results;
}

}  // namespace stepscope
