#include "kernels/cuda_device/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "kernels/cuda_device/optional_library.h"
#include "kernels/device_ranks.h"

namespace stepscope {
namespace cuda {

Result<const Nccl*> Nccl::load() {
  static std::mutex mutex;
  static std::map<void*, Nccl> loaded;
  const std::lock_guard lock(mutex);
  auto opened = openLibrary("NCCL", "STEPSCOPE_NCCL", {"libnccl.so.2"});
  if (!opened)
    return unsupported(opened.error().message +
                       "; expected NCCL 2.10 or later; hint: the package libnccl2 of NVIDIA, or STEPSCOPE_NCCL=FILE");
  void* const library = *opened;
  if (const auto known = loaded.find(library); known != loaded.end()) return &known->second;
  Nccl found;
  const auto find = [&](const char* symbol) -> Result<void*> {
    if (void* const address = dlsym(library, symbol)) return address;
    return unsupported(fmt::format("NCCL has no {}; expected that of NCCL 2.10 or later", symbol));
  };
#define SS_NCCL_FIND(member, symbol, parameters)                        \
  {                                                                     \
    SS_ASSIGN(void* const address, find(#symbol));                      \
    found.member = reinterpret_cast<NcclResult(*) parameters>(address); \
  }
  SS_NCCL_FUNCTIONS(SS_NCCL_FIND)
#undef SS_NCCL_FIND
  SS_ASSIGN(void* const text, find("ncclGetErrorString"));
  found.errorText = reinterpret_cast<const char* (*)(NcclResult)>(text);
  found.lastError = reinterpret_cast<const char* (*)(NcclComm)>(dlsym(library, "ncclGetLastError"));
  int version = 0;
  if (found.version(&version) != kNcclSuccess || version < 21000)
    return unsupported(fmt::format("NCCL {}; expected 2.10 or later", found.versionText()));
  return &(loaded[library] = found);
}

// 21005 is 2.10.5; before 2.9 it was 2805 for 2.8.5.
std::string Nccl::versionText() const {
  int number = 0;
  if (version(&number) != kNcclSuccess) return "of unknown version";
  if (number < 10000) return fmt::format("{}.{}.{}", number / 1000, number / 100 % 10, number % 100);
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::string Nccl::describe(NcclResult error, NcclComm comm) const {
  const char* const text = errorText(error);
  const char* const last = lastError ? lastError(comm) : nullptr;
  std::string all = text ? text : fmt::format("error {}", error);
  if (last && *last) all += fmt::format(": {}", last);
  while (all.ends_with('\n') || all.ends_with(' ')) all.pop_back();
  return all;
}

}  // namespace cuda

Result<std::string> describeDeviceRanks() {
  SS_ASSIGN(const cuda::Nccl* const nccl, cuda::Nccl::load());
  return "NCCL " + nccl->versionText();
}

}  // namespace stepscope
