// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/pytorch_times.h"

namespace stepscope {

PyTorchTimes& PyTorchTimes::of(ProjectFacts& project) {
  return *project.findChild<PyTorchTimes*>(QString(), Qt::FindDirectChildrenOnly);
}

const PyTorchTimes& PyTorchTimes::of(const ProjectFacts& project) {
  return *project.findChild<PyTorchTimes*>(QString(), Qt::FindDirectChildrenOnly);
}

}  // namespace stepscope
