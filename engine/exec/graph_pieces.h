// Which parts of a plan can be put on a device as recorded graphs (kernels/device_graph.h): those between two places where
// the host takes part in the step.
#pragma once

#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace stepscope {

struct GraphPiece {
  int begin = 0, end = 0;  // instructions
  bool recordable = false;
  int first = -1;              // the first instruction that runs something; -1: none
  std::vector<int> eventsOut;  // instructions of the piece that later ones, outside of it, wait for
  std::string reason;          // why it is issued instruction by instruction; empty where it is recordable
};

// All instructions, in order. A recordable piece has kernels and copies of the device alone; all of it runs under the same
// conditions, or none; the host waits for nothing within it; what its kernels read on the host are constants; it is worth a
// graph (kFewestOperations). Pieces end where the optimizer and the commits begin, because steps are looked at there.
std::vector<GraphPiece> graphPieces(const ExecutionPlan& plan);

inline constexpr int kFewestOperations = 3;  // a graph of fewer saves nothing

}  // namespace stepscope
