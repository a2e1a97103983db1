#include "kernels/cuda_device/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>

namespace stepscope::cuda {

Result<const Driver*> Driver::load() {
  static std::mutex mutex;
  static Driver loaded;
  static bool found = false;
  const std::lock_guard lock(mutex);
  if (found) return &loaded;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return unsupported("no NVIDIA driver on this machine (libcuda.so.1)");
#define SS_DRIVER_FIND(member, symbol, parameters)                                   \
  loaded.member = reinterpret_cast<CuResult(*) parameters>(dlsym(library, #symbol)); \
  if (!loaded.member) return unsupported("the NVIDIA driver has no " #symbol "; expected one for CUDA 12.0 or newer");
  SS_DRIVER_FUNCTIONS(SS_DRIVER_FIND)
#undef SS_DRIVER_FIND
  found = true;
  return &loaded;
}

std::string Driver::describe(CuResult error) const {
  const char *name = nullptr, *text = nullptr;
  if (errorName(error, &name) != kCuSuccess || !name) return fmt::format("CUDA error {}", error);
  if (errorText(error, &text) != kCuSuccess || !text) return name;
  return fmt::format("{} ({})", name, text);
}

bool isLoss(CuResult error) {
  switch (error) {
    case kCuDeinitialized:
    case kCuDeviceUnavailable:
    case kCuEccUncorrectable:
    case kCuNvlinkUncorrectable:
    case kCuContained:
    case kCuContextDestroyed:
    case kCuMpsRpcFailure:
    case kCuMpsClientTerminated:
    case kCuExternalDevice: return true;
    default: return false;
  }
}

bool isSticky(CuResult error) {
  switch (error) {
    case kCuIllegalAddress:
    case kCuLaunchTimeout:
    case kCuAssert:
    case kCuHardwareStackError:
    case kCuIllegalInstruction:
    case kCuMisalignedAddress:
    case kCuInvalidAddressSpace:
    case kCuInvalidProgramCounter:
    case kCuLaunchFailed:
    case kCuTensorMemoryLeak:
    case kCuUnknown: return true;
    default: return isLoss(error);
  }
}

}  // namespace stepscope::cuda
