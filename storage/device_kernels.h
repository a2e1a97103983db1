// The kernels that a device ran in a run: the table device_kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

// A kernel at one shape of its launch, summed up over the recorded steps. What is not known is 0.
struct DeviceKernelRow {
  std::string name;
  std::int64_t blocks = 0, threads = 0, registers = 0, sharedBytes = 0;
  double occupancy = 0;  // that its launch allows, 0 to 1
  std::int64_t launches = 0, ns = 0, queueNs = 0;
  // What hardware counted (option record.rung) of so many launches.
  std::int64_t counted = 0, readBytes = 0, writtenBytes = 0;
  std::optional<double> achieved, tensor;  // occupancy; part of the time in which tensor cores worked

  // Bytes per nanosecond while it ran, as if all launches had moved what those moved that were counted.
  std::optional<double> bytesPerNs() const;
};

struct DeviceKernels {
  std::vector<DeviceKernelRow> rows;  // the longest first
  std::string rung, reason, counted;  // of the newest step that has them, as in device_work
};

// Of a run; without rows where no device recorded kernels.
Result<DeviceKernels> readDeviceKernels(const Project& project, std::int64_t run);

}  // namespace stepscope::storage
