// Work that was put on the streams of a device once, and is put there again as a whole: what CUDA calls a graph. Addresses,
// sizes and parameters are those of the recording; what changes from step to step is read from memory of the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/device.h"

namespace stepscope {

// It must go before its device does.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual std::int64_t operations() const = 0;  // kernels, copies and fills in it
};

class GraphSource {
 public:
  virtual ~GraphSource() = default;
  // From here to endGraph(), which must follow, what this thread puts on streams is recorded and does not run; other threads
  // wait. Meanwhile nothing can be allocated, waited for by the host, or copied from or to the host, and a stream can wait
  // only for events of the recording: these calls, and then endGraph(), answer an error. `key`: where memory of the device
  // holds seed and step, two words of 64 bits, for kernels that draw random numbers.
  virtual Status beginGraph(const std::byte* key) = 0;
  virtual Result<std::unique_ptr<DeviceGraph>> endGraph() = 0;
  // Puts the work there behind all that is on the streams, and before all that is put there later. Errors of its kernels are
  // those of the kernels alone.
  virtual Status replay(DeviceGraph& graph) = 0;
};

// The device as one; null: it has no graphs.
inline GraphSource* graphsOf(Device& device) { return dynamic_cast<GraphSource*>(&device); }

namespace gpu {

// Seed and step in memory of the device, while this thread records a graph; null: kernels take them from their call.
inline constinit thread_local const std::byte* recordedKey = nullptr;

}  // namespace gpu
}  // namespace stepscope
