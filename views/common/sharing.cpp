// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/sharing.h"

namespace stepscope {

bool isView(const PlanSnapshot& plan, const snapshot::Buffer& buffer) {
  if (buffer.shares() < 0) return false;
  const snapshot::Instruction* maker = plan.instruction(plan.producerOfValue(buffer.value()));
  return maker && maker->view();
}

bool isInPlace(const PlanSnapshot& plan, const snapshot::Buffer& buffer) {
  return buffer.shares() >= 0 && buffer.in_arena() && !isView(plan, buffer);
}

}  // namespace stepscope
