#include "engine/ops/op_list.h"

#include <vector>

namespace stepscope {

std::span<const OpDef* const> allOps() {
  static const std::vector<const OpDef*> all = [] {
    std::vector<const OpDef*> ops;
    for (const auto list : {ops::elementwiseOps(), ops::reductionOps(), ops::movementOps(), ops::linearOps()})
      ops.insert(ops.end(), list.begin(), list.end());
    return ops;
  }();
  return all;
}

std::string_view categoryName(OpCategory category) {
  constexpr std::string_view names[] = {"",           "optimizer", "loss",      "convolution", "matmul",  "normalization",
                                        "activation", "movement",  "reduction", "random",      "control", "elementwise",
                                        "other"};
  return names[static_cast<std::size_t>(category)];
}

}  // namespace stepscope
