#include <fmt/format.h>

#include <charconv>

#include "kernels/cuda_device.h"
#include "kernels/cuda_device/cuda_device.h"
#include "kernels/cuda_device/gpu_code.h"

namespace stepscope {

Result<std::unique_ptr<Device>> makeCudaDevice(const std::string& name) {
  int index = 0;
  if (const std::size_t colon = name.find(':'); colon != std::string::npos) {
    const char *begin = name.data() + colon + 1, *end = name.data() + name.size();
    const auto [at, error] = std::from_chars(begin, end, index);
    if (error != std::errc() || at != end || index < 0)
      return invalid(fmt::format("device '{}': found '{}'; expected the number of a GPU, as in cuda:0", name, begin));
  }
  const auto lacking = [&](const Error& error) {
    return fail(error.code,
                fmt::format("device '{}': {}; expected a GPU, or --device cpu or emulated", name, error.message));
  };
  const auto code = cuda::gpuCode();
  const auto gpu = cuda::findGpu(index);
  if (!code) {
    const std::string more = gpu ? "" : "; " + gpu.error().message;
    return lacking({code.error().code, code.error().message + more});
  }
  if (!gpu) return lacking(gpu.error());
  cuda::CuContext context = nullptr;
  if (const cuda::CuResult result = gpu->driver->contextRetain(&context, gpu->device); result != cuda::kCuSuccess)
    return fail(result == cuda::kCuOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kInternal,
                fmt::format("device '{}': its context: {}", name, gpu->driver->describe(result)));
  auto device = std::make_unique<cuda::CudaDevice>(name, *gpu, context);
  SS_TRY(device->prepare(*code));
  return device;
}

}  // namespace stepscope
