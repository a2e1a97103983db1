// A GPU as the driver describes it, before anything is allocated on it.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

struct Gpu {
  const Driver* driver = nullptr;
  CuDevice device = 0;
  std::string model;
  int driverVersion = 0;  // 1000 * major + 10 * minor of CUDA
  int major = 0, minor = 0, multiprocessors = 0, clockKhz = 0, memoryClockKhz = 0, busBits = 0;
  std::int64_t memoryBytes = 0;

  // One of the attributes of driver.h; 0: the driver does not say.
  int attribute(int which) const;
  // float32 additions and multiplications per second; 0 where the cores of a multiprocessor are not known.
  double flopsPerSecond() const;
  double bytesPerSecond() const;
};

// Number `index` of those that the driver counts. Errors: kUnsupported, for people.
Result<Gpu> findGpu(int index);

}  // namespace stepscope::cuda
