#include "engine/ops/op_list.h"

namespace stepscope::ops {

std::span<const OpDef* const> elementwiseOps() {
  return {};
}

}  // namespace stepscope::ops
