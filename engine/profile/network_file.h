// A network between the ranks of a run that is described in a file, for predictions about machines that are not here.
//
//   {"name": "racks of eight", "message_ns": 500,
//    "levels": [{"name": "machine", "ranks": 8, "latency_ns": 2000, "bytes_per_second": 2e10},
//               {"name": "network", "latency_ns": 20000, "bytes_per_second": 3e9}]}
//
// Levels are nearest first. `ranks`: how many are within one group of the level, rank 0 and those behind it first; a
// multiple of the level before. The last level has none: all ranks are within it. `latency_ns`: from the first byte sent to
// the first one received. `bytes_per_second`: what one rank sends there while all of them do. `message_ns`: of the processor
// for each message; 0 where it is left out, as `name` may be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/status.h"

namespace stepscope {

struct NetworkLevel {
  std::string name;
  std::int64_t ranks = 0;  // within one group; 0: all
  double latencyNs = 0, bytesPerSecond = 0;
};

struct NetworkFile {
  std::string name;
  double messageNs = 0;
  std::vector<NetworkLevel> levels;
};

// `text`: JSON. `what` names it in errors, which say which member is wrong, what was found and what was expected.
Result<NetworkFile> parseNetwork(std::string_view text, const std::string& what);

}  // namespace stepscope
