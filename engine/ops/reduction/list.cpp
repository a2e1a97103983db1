#include "engine/ops/op_list.h"

namespace stepscope::ops {

#define SS_OP(definition, file) extern const OpDef definition;
#include "engine/ops/reduction/ops.inc"
#undef SS_OP

std::span<const OpDef* const> reductionOps() {
  static constexpr const OpDef* kOps[] = {
#define SS_OP(definition, file) &definition,
#include "engine/ops/reduction/ops.inc"
#undef SS_OP
  };
  return kOps;
}

}  // namespace stepscope::ops
