// The recorded graphs of a plan, and how the newest step was put on the device. Belongs to the executor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/exec/graph_pieces.h"
#include "kernels/device_graph.h"

namespace stepscope {

// How the instructions of a step came to the device. Counts are of the newest step that began at its first instruction.
struct StepIssue {
  int graphs = 0;               // replayed
  std::int64_t operations = 0;  // kernels, copies and fills in them
  int alone = 0;                // instructions beside them
  std::string reason;           // why these were issued one by one; for people
};

struct StepGraphs {
  struct Recording {
    std::unique_ptr<DeviceGraph> graph;  // null: not recorded yet
    bool warm = false;                   // its instructions have run, so that libraries are loaded and memory is there
    bool saves = false;                  // it keeps the state that it writes over (RunOptions::restoreState)
    std::vector<const void*> written;    // which
  };
  bool known = false;  // pieces and recordings are there
  std::vector<GraphPiece> pieces;
  std::vector<Recording> recordings;  // by piece
  DeviceMemory key;                   // seed and step, which kernels of graphs read
  std::array<std::uint64_t, 2> seedAndStep{};
  std::string refused;  // why nothing is recorded any more; empty: it may be
};

}  // namespace stepscope
