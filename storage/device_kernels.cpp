#include "storage/device_kernels.h"

#include <algorithm>
#include <cmath>

#include "storage/bounded.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 9;   // of the schema, that has the table
constexpr int kWithCounters = 15;  // that has columns for what hardware counted

}  // namespace

std::optional<double> DeviceKernelRow::bytesPerNs() const {
  if (counted <= 0 || ns <= 0 || launches <= 0) return {};
  return static_cast<double>(readBytes + writtenBytes) / static_cast<double>(counted) * static_cast<double>(launches) /
         static_cast<double>(ns);
}

Result<DeviceKernels> readDeviceKernels(const Project& project, std::int64_t run) {
  DeviceKernels out;
  if (project.schemaVersion() < kFirstVersion) return out;
  const bool counts = project.schemaVersion() >= kWithCounters;
  SS_STORE_ASSIGN(
      Statement rows,
      project.connection().prepare(
          std::string("SELECT name, blocks, threads, registers, shared_bytes, occupancy, launches, ns, queue_ns, ") +
          (counts ? "counted, read_bytes, written_bytes, achieved_occupancy, tensor" : "0, 0, 0, NULL, NULL") +
          " FROM device_kernels WHERE run = ? ORDER BY ns DESC, name, blocks"));
  rows.bind(run);
  constexpr std::int64_t kMost = std::int64_t{1} << 61;  // sums of two stay whole numbers
  const auto size = [&](int column) { return std::min(kMost, boundedSize(rows.integer(column))); };
  while (rows.next()) {
    DeviceKernelRow row;
    row.name = rows.text(0);
    row.blocks = size(1);
    row.threads = size(2);
    row.registers = size(3);
    row.sharedBytes = size(4);
    row.occupancy = std::isfinite(rows.real(5)) ? std::clamp(rows.real(5), 0.0, 1.0) : 0;
    row.launches = size(6);
    row.ns = size(7);
    row.queueNs = size(8);
    row.counted = size(9);
    row.readBytes = size(10);
    row.writtenBytes = size(11);
    row.achieved = rows.optionalReal(12);
    row.tensor = rows.optionalReal(13);
    out.rows.push_back(std::move(row));
  }
  SS_STORE_TRY(rows.status());
  SS_STORE_ASSIGN(Statement newest,
                  project.connection().prepare(std::string("SELECT rung, rung_reason, ") + (counts ? "counted" : "''") +
                                               " FROM device_work WHERE run = ? ORDER BY step_id DESC LIMIT 1"));
  newest.bind(run);
  if (newest.next()) {
    out.rung = newest.text(0);
    out.reason = newest.text(1);
    out.counted = newest.text(2);
  }
  SS_STORE_TRY(newest.status());
  return out;
}

}  // namespace stepscope::storage
