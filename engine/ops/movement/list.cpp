#include "engine/ops/op_list.h"

namespace stepscope::ops {

std::span<const OpDef* const> movementOps() {
  return {};
}

}  // namespace stepscope::ops
