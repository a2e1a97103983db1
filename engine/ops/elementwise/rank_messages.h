// What the ops share that move values between the ranks of a run (engine/comm): whole values, of extents that all ranks
// know, whatever they hold.
#pragma once

#include <cstdint>

#include "engine/ops/shape_context.h"

namespace stepscope::ops {

// The ends of a message and its number among those between the two: attributes `from`, `to` and `tag`.
struct MessageEnds {
  std::int64_t from = -1, to = -1, tag = 0;
};
// Errors: an end that is absent or below 0.
Result<MessageEnds> messageEnds(const ShapeContext& c);
// Errors: attribute `root` below 0.
Status checkRoot(const ShapeContext& c);
// Output 0 like input 0. Errors: strings, which have no bytes to send.
Status movedLikeInput0(ShapeContext& c);

}  // namespace stepscope::ops
