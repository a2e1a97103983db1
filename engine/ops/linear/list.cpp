#include "engine/ops/op_list.h"

namespace stepscope::ops {

std::span<const OpDef* const> linearOps() {
  return {};
}

}  // namespace stepscope::ops
