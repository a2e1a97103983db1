#include "storage/report/trace_device.h"

#include <algorithm>
#include <utility>

namespace stepscope::storage {
namespace {

constexpr int kHostThread = 1, kFirstStream = 2, kWaits = 1001, kOverhead = 1002;  // rows of the trace
constexpr int kWarp = 32, kMostWarps = 64;  // of a multiprocessor, as Kineto counts them

const char* callOf(const snapshot::DeviceRecord& record) {
  switch (record.kind()) {
    case snapshot::DeviceRecord::KERNEL: return "cudaLaunchKernel";
    case snapshot::DeviceRecord::FILL: return "cudaMemsetAsync";
    default: return "cudaMemcpyAsync";
  }
}

const char* copyOf(const snapshot::DeviceRecord& record) {
  switch (record.kind()) {
    case snapshot::DeviceRecord::COPY_IN: return "Memcpy HtoD";
    case snapshot::DeviceRecord::COPY_OUT: return "Memcpy DtoH";
    case snapshot::DeviceRecord::FILL: return "Memset (Device)";
    default: return "Memcpy DtoD";
  }
}

bool isWork(const snapshot::DeviceRecord& record) { return record.kind() < snapshot::DeviceRecord::STREAM_WAIT; }

// As Kineto calls it.
std::string waitOf(const snapshot::DeviceRecord& record) {
  if (record.kind() == snapshot::DeviceRecord::STREAM_WAIT) return "Stream Wait Event";
  if (record.what() == "an event") return "Event Sync";
  return record.what() == "a stream" ? "Stream Sync" : "Context Sync";
}

std::int64_t duration(std::int64_t begin, std::int64_t end) { return end > begin ? end - begin : 0; }

}  // namespace

DeviceTracer::DeviceTracer(const snapshot::DeviceWork& work, std::int64_t& correlation, TraceWriter& trace)
    : work_(work), correlation_(correlation), trace_(trace) {
  for (const snapshot::DeviceRecord& record : work.records())
    if (isWork(record)) byInstruction_[record.instruction()].push_back(&record);
}

void DeviceTracer::writeBeside() const {
  for (const snapshot::DeviceRecord& record : work_.records()) {
    if (isWork(record)) continue;
    const bool overhead = record.kind() == snapshot::DeviceRecord::OVERHEAD;
    std::string arguments = fmt::format(R"("what": {})", jsonText(record.what()));
    if (record.instruction() >= 0) arguments += fmt::format(R"(, "instruction": {})", record.instruction());
    if (record.stream() >= 0) arguments += fmt::format(R"(, "of stream": {})", record.stream());
    trace_.complete(overhead ? "overhead" : "cuda_sync", overhead ? record.what() : waitOf(record),
                    overhead ? kOverhead : kWaits, record.begin_ns(), duration(record.begin_ns(), record.end_ns()),
                    arguments);
  }
}

void DeviceTracer::nameRows(TraceWriter& trace) {
  for (const auto& [row, name] : {std::pair(kWaits, "waits"), std::pair(kOverhead, "overhead")}) {
    trace.metadata("thread_name", row, fmt::format(R"("name": "{}")", name));
    trace.metadata("thread_sort_index", row, fmt::format(R"("sort_index": {})", row));
  }
}

std::pair<std::int64_t, std::int64_t> DeviceTracer::calls(int instruction) const {
  std::int64_t first = 0, last = 0;
  for (const snapshot::DeviceRecord* record : byInstruction_.at(instruction)) {
    if (record->called_ns() <= 0) continue;
    first = first == 0 ? record->called_ns() : std::min(first, record->called_ns());
    last = std::max({last, first, record->returned_ns()});
  }
  return {first, last};
}

void DeviceTracer::write(int instruction, const std::string& op, std::int64_t externalId) const {
  for (const snapshot::DeviceRecord* record : byInstruction_.at(instruction)) {
    ++correlation_;
    const int row = std::clamp(record->stream(), 0, 996) + kFirstStream;
    if (record->called_ns() > 0) {
      trace_.complete(
          "cuda_runtime", callOf(*record), kHostThread, record->called_ns(),
          duration(record->called_ns(), record->returned_ns()),
          fmt::format(R"("External id": {}, "correlation": {}, "instruction": {})", externalId, correlation_, instruction));
      trace_.flow('s', "ac2g", correlation_, kHostThread, record->called_ns());
      trace_.flow('f', "ac2g", correlation_, row, record->begin_ns());
    }
    writeWork(*record, op, externalId);
  }
}

void DeviceTracer::writeWork(const snapshot::DeviceRecord& record, const std::string& op, std::int64_t externalId) const {
  std::string arguments =
      fmt::format(R"("External id": {}, "device": 0, "context": 1, "stream": {}, "correlation": {}, "instruction": {})",
                  externalId, record.stream(), correlation_, record.instruction());
  if (record.returned_ns() > 0)
    arguments += fmt::format(R"(, "queue delay ns": {})", duration(record.returned_ns(), record.begin_ns()));
  const std::int64_t ns = duration(record.begin_ns(), record.end_ns());
  const int row = std::clamp(record.stream(), 0, 996) + kFirstStream;
  if (record.kind() != snapshot::DeviceRecord::KERNEL) {
    arguments += fmt::format(R"x(, "bytes": {}, "memory bandwidth (GB/s)": {})x", record.bytes(),
                             ns > 0 ? static_cast<double>(record.bytes()) / static_cast<double>(ns) : 0.0);
    const bool fill = record.kind() == snapshot::DeviceRecord::FILL;
    trace_.complete(fill ? "gpu_memset" : "gpu_memcpy", copyOf(record), row, record.begin_ns(), ns, arguments);
    return;
  }
  std::string name = op;
  if (record.kernel() >= 0 && record.kernel() < work_.kernels_size()) {
    const snapshot::DeviceKernel& kernel = work_.kernels(record.kernel());
    const double occupancy = std::isfinite(kernel.occupancy()) ? kernel.occupancy() : 0.0;
    const double warps = occupancy * kMostWarps;
    arguments += fmt::format(
        R"(, "registers per thread": {}, "shared memory": {}, "blocks per SM": {}, "warps per SM": {}, "grid": [{}, 1, 1], "block": [{}, 1, 1], "est. achieved occupancy %": {})",
        kernel.registers(), kernel.shared_bytes(),
        kernel.threads() > 0 ? warps * kWarp / std::max(kWarp, kernel.threads()) : 0.0, warps, kernel.blocks(),
        kernel.threads(), static_cast<int>(std::lround(100 * std::clamp(occupancy, 0.0, 1.0))));
    name = fmt::format("{}: {}", op, kernel.name());
  }
  if (record.has_counters()) {
    const snapshot::DeviceCounters& counters = record.counters();
    arguments += fmt::format(R"(, "counted": {}, "read bytes": {}, "written bytes": {})", jsonText(work_.counted()),
                             counters.read_bytes(), counters.written_bytes());
    const auto share = [&](const char* what, bool has, double value) {
      if (has && std::isfinite(value)) arguments += fmt::format(R"(, "{}": {})", what, value);
    };
    share("achieved occupancy", counters.has_occupancy(), counters.occupancy());
    share("tensor cores busy", counters.has_tensor(), counters.tensor());
  }
  trace_.complete("kernel", name, row, record.begin_ns(), ns, arguments);
}

}  // namespace stepscope::storage
