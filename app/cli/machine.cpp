#include "app/cli/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <oneapi/dnnl/dnnl.hpp>
#include <thread>

#include "kernels/cuda_device.h"

namespace stepscope::cli {

snapshot::MachineInfo machineInfo() {
  snapshot::MachineInfo info;
  std::ifstream cpu("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpu, line)) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name") && info.cpu().empty()) info.set_cpu(line.substr(colon + 2));
    if (line.starts_with("flags") && info.cpu_features_size() == 0) {
      // The instruction sets that decide which kernels are picked.
      for (const char* feature :
           {"avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8"})
        if ((line.substr(colon + 2) + " ").find(fmt::format("{} ", feature)) != std::string::npos)
          info.add_cpu_features(feature);
    }
  }
  info.set_cores(static_cast<int>(std::thread::hardware_concurrency()));
  info.set_memory_bytes(static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  if (const auto gpu = describeGpu(); gpu)
    info.set_gpu(*gpu);
  else
    info.set_gpu_note(gpu.error().message);
  info.set_version(SS_VERSION);
  const dnnl_version_t* dnnl = dnnl_version();
  info.add_libraries(fmt::format("oneDNN {}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch));
  return info;
}

std::string commandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text;
  for (std::string word; std::getline(file, word, '\0');) {
    const bool plain = !word.empty() &&
                       word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%") ==
                           std::string::npos;
    if (!text.empty()) text += ' ';
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace stepscope::cli
