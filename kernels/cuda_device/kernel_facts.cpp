#include "kernels/cuda_device/kernel_facts.h"

namespace stepscope::cuda {

const ActivityKernel& KernelFacts::of(CuFunction function, const char* name, std::int64_t blocks, int threads) {
  const auto [place, fresh] = known_.try_emplace({function, threads});
  ActivityKernel& kernel = place->second;
  kernel.blocks = blocks;
  if (!fresh) return kernel;
  kernel.name = name;
  kernel.threads = threads;
  int shared = 0, resident = 0;
  if (driver_.functionAttribute(&kernel.registers, kCuRegisters, function) != kCuSuccess) kernel.registers = 0;
  if (driver_.functionAttribute(&shared, kCuSharedBytes, function) == kCuSuccess) kernel.sharedBytes = shared;
  if (threads_ > 0 && driver_.blocksOnOne(&resident, function, threads, 0) == kCuSuccess)
    kernel.occupancy = static_cast<double>(resident) * threads / threads_;
  return kernel;
}

}  // namespace stepscope::cuda
