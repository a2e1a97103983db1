// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/open_groups.h"

namespace stepscope {

OpenGroups allGroups(const GraphModel& model) {
  OpenGroups open;
  for (const ModelGroup& group : model.groups()) {
    if (!group.transparent) open.insert(group.path);
  }
  return open;
}

OpenGroups defaultOpen(const GraphModel& model, int nodes) {
  return model.size() <= nodes ? allGroups(model) : OpenGroups();
}

OpenGroups groupsAround(const GraphModel& model, int modelNode) {
  OpenGroups open;
  for (int g = model.nodes()[static_cast<std::size_t>(modelNode)].group; g > 0;
       g = model.groups()[static_cast<std::size_t>(g)].parent) {
    if (!model.groups()[static_cast<std::size_t>(g)].transparent)
      open.insert(model.groups()[static_cast<std::size_t>(g)].path);
  }
  return open;
}

}  // namespace stepscope
