// What a device did in a step, as Kineto writes it: each call that put work on a stream (cuda_runtime), the work in the row
// of its stream (kernel, gpu_memcpy, gpu_memset) with registers, shared memory, occupancy and its delay in the queue, and an
// arrow (ac2g) from the call to the work. A call and its work have one correlation, unique in the trace. Waits (cuda_sync)
// and overhead have rows of their own, and no argument "stream", by which readers of traces know what runs on a GPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "storage/report/trace_writer.h"

namespace stepscope::storage {

class DeviceTracer {
 public:
  // `correlation`: the last one that was used; outlives the tracer, as `work` and `trace` do.
  DeviceTracer(const snapshot::DeviceWork& work, std::int64_t& correlation, TraceWriter& trace);

  // Whether there are records of work of the instruction.
  bool has(int instruction) const { return byInstruction_.contains(instruction); }
  // From the first call for it to the end of the last one; 0 and 0 where calls are not known.
  std::pair<std::int64_t, std::int64_t> calls(int instruction) const;
  // Its calls, work and arrows. `op` names its kernels; `externalId`: that of its cpu_op.
  void write(int instruction, const std::string& op, std::int64_t externalId) const;
  // Waits and overhead.
  void writeBeside() const;
  // The names of their rows.
  static void nameRows(TraceWriter& trace);

 private:
  void writeWork(const snapshot::DeviceRecord& record, const std::string& op, std::int64_t externalId) const;

  const snapshot::DeviceWork& work_;
  std::int64_t& correlation_;
  TraceWriter& trace_;
  std::map<int, std::vector<const snapshot::DeviceRecord*>> byInstruction_;
};

}  // namespace stepscope::storage
