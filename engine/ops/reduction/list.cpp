#include "engine/ops/op_list.h"

namespace stepscope::ops {

std::span<const OpDef* const> reductionOps() {
  return {};
}

}  // namespace stepscope::ops
