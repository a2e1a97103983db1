// What every buffer of a plan really takes of the memory that it was planned to take.
//
// A step runs beside the session. Before the first instruction that touches a buffer, the whole pages inside it are given
// back to the system, which hands out a page again when somebody writes or reads it; after the last instruction those that
// are there are counted. So a workspace that a kernel asked for and does not use shows, and so does a buffer for extents
// that a step did not reach. Pages at both ends are shared with neighbours and count as touched.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/lab/side_step.h"

namespace stepscope {

// Bytes by buffer of the side step's plan; -1: not in an arena that the host can reach, or memory of another buffer.
// Errors: those of running the step.
Result<std::vector<std::int64_t>> bufferBytes(SideStep& side, const Batch& batch);

}  // namespace stepscope
