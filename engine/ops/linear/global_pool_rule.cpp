#include "engine/ops/linear/global_pool_rule.h"

namespace stepscope::ops {

Status inferGlobalPool(ShapeContext& c) {
  SS_TRY(requireRank(c, 0, 2));
  std::optional<Shape> y = c.inputShape(0);
  if (y)
    for (std::size_t i = 2; i < y->size(); ++i) (*y)[i] = 1;
  c.setOutput(0, c.inputDType(0), y);
  return {};
}

}  // namespace stepscope::ops
