// What the loops that predicate_loops wrote out keep of their iterations, before anything is planned or allocated.
//
// Kept is a value that an iteration makes and that the backward phase reads, or that is collected into a result of the loop.
// What the next iteration alone reads is not. Loops in loops count for the outer one too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/passes/infer.h"

namespace stepscope {

struct LoopMemory {
  std::string loop;             // its label: "Loop 'decoder/while'"
  std::int64_t iterations = 0;  // that run, or may run where the data decide
  std::int64_t bytes = 0;       // kept by all of them
  bool partly = false;          // an extent is only known inside the step and counts as 1
};

// By order of the file. `graph` has the extents of a batch in its types, `facts` what follows from them: iterations that do
// not run are not counted. O(nodes).
std::vector<LoopMemory> loopMemory(const Graph& graph, const Inference& facts);

}  // namespace stepscope
