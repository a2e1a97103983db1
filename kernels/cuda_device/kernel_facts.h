// What a kernel takes of a multiprocessor, as the driver says it, for the records of what ran (kernels/activity.h). Asked
// for once per kernel and shape of its blocks.
#pragma once

#include <map>

#include "kernels/activity.h"
#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

class KernelFacts {
 public:
  KernelFacts(const Driver& driver, int threadsOfMultiprocessor) : driver_(driver), threads_(threadsOfMultiprocessor) {}
  // Good until the next call. What the driver does not tell is 0.
  const ActivityKernel& of(CuFunction function, const char* name, std::int64_t blocks, int threads);

 private:
  const Driver& driver_;
  const int threads_;
  std::map<std::pair<CuFunction, int>, ActivityKernel> known_;
};

}  // namespace stepscope::cuda
