#include "storage/device_records_table.h"

#include <memory>
#include <string>

#include "engine/snapshot/run.pb.h"
#include "storage/blob.h"
#include "storage/packed_table.h"

namespace stepscope::storage {
namespace {

const char* kindOf(const snapshot::DeviceRecord& record) {
  switch (record.kind()) {
    case snapshot::DeviceRecord::KERNEL: return "kernel";
    case snapshot::DeviceRecord::COPY_IN: return "copy in";
    case snapshot::DeviceRecord::COPY_OUT: return "copy out";
    case snapshot::DeviceRecord::COPY_WITHIN: return "copy within";
    case snapshot::DeviceRecord::FILL: return "fill";
    case snapshot::DeviceRecord::STREAM_WAIT: return "stream wait";
    case snapshot::DeviceRecord::HOST_WAIT: return "host wait";
    case snapshot::DeviceRecord::OVERHEAD: return "overhead";
    default: return "";
  }
}

struct DeviceRows final : PackedRows {
  std::size_t size() const override { return static_cast<std::size_t>(work.records_size()); }
  void column(std::size_t row, int index, sqlite3_context* result) const override {
    const snapshot::DeviceRecord& record = work.records(static_cast<int>(row));
    const auto integer = [&](std::int64_t value, bool known = true) {
      known ? sqlite3_result_int64(result, value) : sqlite3_result_null(result);
    };
    const auto real = [&](double value, bool known) {
      known ? sqlite3_result_double(result, value) : sqlite3_result_null(result);
    };
    const auto text = [&](const std::string& value) {
      sqlite3_result_text(result, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
    };
    const bool kernel = record.kernel() >= 0 && record.kernel() < work.kernels_size();
    switch (index) {
      case 0: return integer(stepId);
      case 1: return text(kindOf(record));
      case 2: return text(kernel ? work.kernels(record.kernel()).name() : record.what());
      case 3: return integer(record.instruction(), record.instruction() >= 0);
      case 4: return integer(record.stream(), record.stream() >= 0);
      case 5: return integer(record.called_ns(), record.called_ns() != 0);
      case 6: return integer(record.returned_ns(), record.called_ns() != 0);
      case 7: return integer(record.begin_ns());
      case 8: return integer(record.end_ns() > record.begin_ns() ? record.end_ns() - record.begin_ns() : 0);
      case 9: return integer(record.bytes());
      case 10: return integer(record.counters().read_bytes(), record.has_counters());
      case 11: return integer(record.counters().written_bytes(), record.has_counters());
      case 12: return real(record.counters().occupancy(), record.counters().has_occupancy());
      case 13: return real(record.counters().tensor(), record.counters().has_tensor());
      default: break;
    }
  }

  std::int64_t stepId = 0;
  snapshot::DeviceWork work;
};

std::unique_ptr<PackedRows> unpackRecords(sqlite3_stmt* blob) {
  auto rows = std::make_unique<DeviceRows>();
  rows->stepId = sqlite3_column_int64(blob, 0);
  const auto* data = static_cast<const char*>(sqlite3_column_blob(blob, 1));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(blob, 1));
  if (!unpackMessage(std::string_view(data ? data : "", data ? size : 0), rows->work)) return nullptr;
  return rows;
}

constexpr PackedTable kDeviceRecords{
    "device_records",
    "CREATE TABLE device_records (step_id INTEGER, kind TEXT, what TEXT, instruction INTEGER, stream INTEGER, called_ns "
    "INTEGER, returned_ns INTEGER, begin_ns INTEGER, ns INTEGER, bytes INTEGER, read_bytes INTEGER, written_bytes INTEGER, "
    "achieved_occupancy REAL, tensor REAL)",
    "SELECT step_id, data FROM device_work WHERE step_id = ?1", "SELECT step_id, data FROM device_work ORDER BY step_id",
    unpackRecords};

}  // namespace

Status registerDeviceRecordsTable(const Connection& connection) { return registerPackedTable(connection, kDeviceRecords); }

}  // namespace stepscope::storage
