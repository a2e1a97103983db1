#include "engine/ops/movement/ops.h"
#include "engine/ops/op_list.h"

namespace stepscope::ops {

std::span<const OpDef* const> movementOps() {
  static constexpr const OpDef* kOps[] = {
#define SS_OP(definition, file) &definition,
#include "engine/ops/movement/ops.inc"
#undef SS_OP
  };
  return kOps;
}

}  // namespace stepscope::ops
