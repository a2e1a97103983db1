#include "engine/ops/op_list.h"

namespace stepscope::ops {

#define SS_OP(definition, file) extern const OpDef definition;
#include "engine/ops/elementwise/ops.inc"
#undef SS_OP

std::span<const OpDef* const> elementwiseOps() {
  static constexpr const OpDef* kOps[] = {
#define SS_OP(definition, file) &definition,
#include "engine/ops/elementwise/ops.inc"
#undef SS_OP
  };
  return kOps;
}

}  // namespace stepscope::ops
