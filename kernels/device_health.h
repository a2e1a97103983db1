// A device that may stop working for good: after an error that its memory does not survive, every further call answers with
// that error, and only a new process has a device again.
#pragma once

#include <optional>

#include "kernels/device.h"

namespace stepscope {

class DeviceHealth {
 public:
  virtual ~DeviceHealth() = default;
  // The error that stays; none while the device works.
  virtual std::optional<Error> lost() const = 0;
};

// The same of any device.
inline std::optional<Error> lostDevice(const Device& device) {
  const auto* const health = dynamic_cast<const DeviceHealth*>(&device);
  return health ? health->lost() : std::nullopt;
}

}  // namespace stepscope
