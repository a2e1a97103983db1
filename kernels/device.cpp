#include "kernels/device.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <new>

#include "kernels/cuda_device.h"
#include "kernels/emulated_device.h"

namespace stepscope {

Status runKernel(Kernel& kernel, const KernelCall& call) {
  try {
    return kernel.run(call);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, kernel.implementation() + ": the system refused memory");
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInternal, kernel.implementation() + ": " + error.what());
  }
}

Result<Tensor> makeTensor(Device& device, DType dtype, const Dims& dims) {
  SS_ASSIGN(const std::int64_t count, checkedElementCount(dims));
  if (device.onHost() || dtype == DType::kString) return Tensor(dtype, dims);
  SS_ASSIGN(DeviceMemory memory, device.allocate(count * static_cast<std::int64_t>(dtypeSize(dtype))));
  auto owner = std::make_shared<DeviceMemory>(std::move(memory));
  std::byte* const data = owner->data();
  return Tensor(dtype, dims, std::move(owner), data);
}

Result<Tensor> readTensor(Device& device, const TensorView& view) {
  if (device.onHost() || view.dtype == DType::kString) return Tensor(view.dtype, view.dims, nullptr, view.data);
  SS_TRY(checkedElementCount(view.dims));
  Tensor tensor(view.dtype, view.dims);
  SS_TRY(device.synchronise());
  SS_TRY(device.copy(tensor.data(), view.data, static_cast<std::int64_t>(view.bytes()), 0));
  SS_TRY(device.synchronise());
  return tensor;
}

Status writeTensor(Device& device, const TensorView& target, const TensorView& contents) {
  if (target.bytes() != contents.bytes())
    return invalid(
        fmt::format("copy to device '{}': {} bytes; expected {}", device.facts().name, contents.bytes(), target.bytes()));
  SS_TRY(device.synchronise());
  SS_TRY(device.copy(target.data, contents.data, static_cast<std::int64_t>(target.bytes()), 0));
  return device.synchronise();
}

Result<Device*> findDevice(const std::string& name) {
  if (name == "cpu") return &cpuDevice();
  if (name == "auto") {
    auto gpu = findDevice("cuda");
    return gpu ? gpu : &cpuDevice();
  }
  const std::string kind = name.substr(0, name.find(':'));
  if (kind != "cuda" && kind != "mirror" && kind != "emulated")
    return invalid(fmt::format("device '{}': unknown; expected auto, cpu, cuda, emulated or mirror", name));
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Device>> devices;
  const std::lock_guard lock(mutex);
  if (const auto found = devices.find(name); found != devices.end()) return found->second.get();
  std::unique_ptr<Device> made;
  if (kind == "mirror") {
    made = makeMirrorDevice(name);
  } else if (kind == "cuda") {
    SS_ASSIGN(made, makeCudaDevice(name));
  } else {
    SS_ASSIGN(made, makeEmulatedDevice(name));
  }
  return (devices[name] = std::move(made)).get();
}

}  // namespace stepscope
