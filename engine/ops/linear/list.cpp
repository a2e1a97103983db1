#include "engine/ops/linear/ops.h"
#include "engine/ops/op_list.h"

namespace stepscope::ops {

std::span<const OpDef* const> linearOps() {
  static constexpr const OpDef* kOps[] = {
#define SS_OP(definition, file) &definition,
#include "engine/ops/linear/ops.inc"
#undef SS_OP
  };
  return kOps;
}

}  // namespace stepscope::ops
