#include "kernels/cuda_device/gpu.h"

#include <fmt/format.h>

#include "kernels/cuda_device.h"
#include "kernels/cuda_device/gpu_code.h"

namespace stepscope {
namespace cuda {
namespace {

constexpr int kOldestDriver = 12000;  // 1000 * major + 10 * minor of CUDA
constexpr int kOldestCapability = 8;

std::string cudaVersion(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

int Gpu::attribute(int which) const {
  int value = 0;
  return driver->deviceAttribute(&value, which, device) == kCuSuccess ? value : 0;
}

double Gpu::flopsPerSecond() const {
  const int cores = major == 8 && minor == 0 ? 64 : major == 8 || major == 9 || major >= 10 ? 128 : 0;
  return 2.0 * cores * multiprocessors * 1e3 * clockKhz;
}

double Gpu::bytesPerSecond() const { return 2.0 * 1e3 * memoryClockKhz * busBits / 8; }

Result<Gpu> findGpu(int index) {
  SS_ASSIGN(const Driver* const driver, Driver::load());
  Gpu gpu;
  gpu.driver = driver;
  const CuResult started = driver->init(0);
  if (started == kCuNoDevice) return unsupported("no GPU was found");
  if (started == kCuSystemDriverMismatch)
    return unsupported(fmt::format("the parts of the NVIDIA driver do not fit each other: {}", driver->describe(started)));
  if (started != kCuSuccess)
    return unsupported(fmt::format("the NVIDIA driver does not start: {}", driver->describe(started)));
  if (driver->driverVersion(&gpu.driverVersion) != kCuSuccess || gpu.driverVersion < kOldestDriver)
    return unsupported(fmt::format("the driver knows CUDA {}; expected {} or newer", cudaVersion(gpu.driverVersion),
                                   cudaVersion(kOldestDriver)));
  int count = 0;
  if (driver->deviceCount(&count) != kCuSuccess || count == 0) return unsupported("no GPU was found");
  if (index >= count)
    return unsupported(count == 1 ? "there is one GPU; expected cuda:0"
                                  : fmt::format("there are {} GPUs; expected cuda:0 to cuda:{}", count, count - 1));
  char model[256] = {};
  std::size_t bytes = 0;
  if (driver->deviceGet(&gpu.device, index) != kCuSuccess ||
      driver->deviceName(model, sizeof(model), gpu.device) != kCuSuccess ||
      driver->deviceMemory(&bytes, gpu.device) != kCuSuccess)
    return unsupported(fmt::format("GPU {} does not answer", index));
  gpu.model = model;
  gpu.memoryBytes = static_cast<std::int64_t>(bytes);
  gpu.major = gpu.attribute(kCuCapabilityMajor);
  gpu.minor = gpu.attribute(kCuCapabilityMinor);
  gpu.multiprocessors = gpu.attribute(kCuMultiprocessors);
  gpu.clockKhz = gpu.attribute(kCuClockKhz);
  gpu.memoryClockKhz = gpu.attribute(kCuMemoryClockKhz);
  gpu.busBits = gpu.attribute(kCuMemoryBusBits);
  if (gpu.major < kOldestCapability)
    return unsupported(fmt::format("{} has compute capability {}.{}; expected {}.0 or newer", gpu.model, gpu.major,
                                   gpu.minor, kOldestCapability));
  return gpu;
}

}  // namespace cuda

Result<std::string> describeGpu() {
  const auto code = cuda::gpuCode();
  const auto gpu = cuda::findGpu(0);
  if (!code) return unsupported(code.error().message + (gpu ? "" : "; " + gpu.error().message));
  if (!gpu) return tl::make_unexpected(gpu.error());
  return fmt::format("{}, compute capability {}.{}, {:.1f} GiB, driver for CUDA {}", gpu->model, gpu->major, gpu->minor,
                     static_cast<double>(gpu->memoryBytes) / (1 << 30), cuda::cudaVersion(gpu->driverVersion));
}

}  // namespace stepscope
