// Walks the wire bytes of a ModelProto without allocating for what it finds, and refuses what would cost too much to parse.
//
// Counts messages, strings and unknown fields, estimates the heap that the protobuf classes would take, and checks nesting,
// port counts, name and text lengths against limits.h. Linear in the number of fields; payloads are skipped, and the places
// of the large ones are kept.
// Errors: kCorrupt with the byte offset for bytes that do not parse; kLimitExceeded with found and allowed number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/status.h"

namespace stepscope {

// Raw contents of an initializer from this size on are not parsed: they go from the file's bytes straight into a tensor.
inline constexpr std::int64_t kPayloadBytes = 4096;

// Raw contents of a large initializer of the main graph, and where the lengths that count them are written.
struct RawPayload {
  std::size_t tensor = 0;  // position among the initializers of the main graph
  std::size_t begin = 0, bytes = 0;
  std::array<std::size_t, 3> lengths{};  // first byte of the length of raw_data, of its tensor, of the graph
};

struct PrescanReport {
  std::int64_t messages = 0;   // messages + strings + unknown fields
  std::int64_t heapBytes = 0;  // estimate of the parsed classes, payloads included
  std::int64_t nodes = 0;      // in all graphs and functions
  std::int64_t functions = 0;
  std::vector<RawPayload> payloads;  // of at least kPayloadBytes, in the order of the file
};

// Walks the bytes of a model file. Error: the first count or length above its limit.
Result<PrescanReport> prescanModel(std::span<const std::byte> bytes);

}  // namespace stepscope
