// The memory map of a plan as vectors: addresses of the arena over instructions, a box for each buffer that has memory of
// its own there.
#pragma once

#include "engine/snapshot/plan.pb.h"
#include "storage/report/document.h"

namespace stepscope::storage {

bool hasOwnMemory(const snapshot::Buffer& buffer);
doc::Colour bufferColour(snapshot::BufferClass value);
std::string bufferLabel(snapshot::BufferClass value);  // "optimizer state"

// Without shapes when the plan has no arena. The largest 6,000 buffers are drawn; `left` is how many are not.
doc::Drawing arenaMap(const snapshot::Plan& plan, std::size_t& left);

}  // namespace stepscope::storage
