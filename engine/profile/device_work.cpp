#include "engine/profile/device_work.h"

namespace stepscope {

ActivityRung rungCalled(std::string_view name) {
  return name == "host"       ? ActivityRung::kHost
         : name == "events"   ? ActivityRung::kEvents
         : name == "counters" ? ActivityRung::kCounters
                              : ActivityRung::kActivity;
}

snapshot::DeviceWork workOf(const Activity& activity, const ActivitySource::Rung& rung) {
  snapshot::DeviceWork work;
  work.set_rung(rung.name);
  work.set_rung_reason(rung.reason);
  work.set_lost(activity.lost);
  work.set_counted(activity.counted);
  work.set_uncounted(activity.uncounted);
  for (const ActivityKernel& kernel : activity.kernels) {
    auto& out = *work.add_kernels();
    out.set_name(kernel.name);
    out.set_blocks(kernel.blocks);
    out.set_threads(kernel.threads);
    out.set_registers(kernel.registers);
    out.set_shared_bytes(kernel.sharedBytes);
    out.set_occupancy(kernel.occupancy);
  }
  const auto add = [&](const ActivityRecord& record) {
    if (record.id == 0 && isWork(record.kind)) return;
    auto& out = *work.add_records();
    out.set_kind(static_cast<snapshot::DeviceRecord::Kind>(record.kind));
    out.set_instruction(static_cast<std::int32_t>(record.id) - 1);
    out.set_stream(static_cast<std::int32_t>(record.stream));
    out.set_kernel(record.kernel);
    out.set_called_ns(record.called);
    out.set_returned_ns(record.returned);
    out.set_begin_ns(record.begin);
    out.set_end_ns(record.end);
    out.set_bytes(record.bytes);
    out.set_what(record.what);
    if (record.counters < 0) return;
    const KernelCounters& counted = activity.counters[static_cast<std::size_t>(record.counters)];
    snapshot::DeviceCounters& counters = *out.mutable_counters();
    counters.set_read_bytes(counted.readBytes);
    counters.set_written_bytes(counted.writtenBytes);
    if (counted.occupancy >= 0) counters.set_occupancy(counted.occupancy);
    if (counted.tensor >= 0) counters.set_tensor(counted.tensor);
  };
  // A step may be several recordings.
  for (const bool called : {true, false})
    for (const ActivityRecord& record : activity.records)
      if ((record.correlation != 0) == called) add(record);
  return work;
}

}  // namespace stepscope
