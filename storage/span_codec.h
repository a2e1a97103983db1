// The packed spans of one step: LEB128 numbers, five per span: instruction, node, begin_ns (zigzag of the difference to the
// span before; the first begin to the step's begin), duration in nanoseconds, thread. About six bytes per span before zstd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "storage/error.h"

namespace stepscope::storage {

struct Span {
  std::int32_t instruction = 0;
  std::int32_t node = -1;
  std::int64_t beginNs = 0;
  std::int64_t ns = 0;  // duration
  std::int32_t thread = 0;
};

// The spans of a step, packed as the head of this file says.
std::string encodeSpans(const snapshot::StepRecord& step);

// Errors: kCorrupt when the numbers end early, leave their range, or there are more than `limit`.
Result<std::vector<Span>> decodeSpans(std::string_view bytes, std::int64_t stepBeginNs, std::size_t limit = 1'000'000);

}  // namespace stepscope::storage
