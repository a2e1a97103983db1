#include "engine/wire/machine_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "kernels/cuda_device.h"

namespace stepscope {

snapshot::MachineInfo machineFacts(const std::string& version) {
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
  info.set_version(version);
  return info;
}

}  // namespace stepscope
