// Walks the wire bytes of a ModelProto without allocating for what it finds, and refuses what would cost too much to parse.
//
// Counts messages, strings and unknown fields, estimates the heap that the protobuf classes would take, and checks nesting,
// port counts, name and text lengths against limits.h. Linear in the number of fields; payloads are skipped.
// Errors: kCorrupt with the byte offset for bytes that do not parse; kLimitExceeded with found and allowed number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/status.h"

namespace stepscope {

struct PrescanReport {
  std::int64_t messages = 0;   // messages + strings + unknown fields
  std::int64_t heapBytes = 0;  // estimate of the parsed classes, payloads included
  std::int64_t nodes = 0;      // in all graphs and functions
  std::int64_t functions = 0;
};

// Walks the bytes of a model file. Error: the first count or length above its limit.
Result<PrescanReport> prescanModel(std::span<const std::byte> bytes);

}  // namespace stepscope
