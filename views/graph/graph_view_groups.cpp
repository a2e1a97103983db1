// SPDX-License-Identifier: GPL-3.0-or-later
// Groups of the graph: opened and closed, by keys, clicks and the menu.
#include <algorithm>

#include "views/graph/graph_view.h"

namespace stepscope {

void GraphView::openOne(int group, int folded) {
  const GraphModel& model = *canvas_->scene()->model;
  int which = group;
  if (folded > 1) {
    // Of a run the last one: it is nearest to the loss, where a gradient begins.
    const int wanted = model.groups()[static_cast<std::size_t>(group)].number + folded - 1;
    for (const int sibling :
         model.groups()[static_cast<std::size_t>(model.groups()[static_cast<std::size_t>(group)].parent)].children) {
      if (model.groups()[static_cast<std::size_t>(sibling)].number == wanted) which = sibling;
    }
  }
  open_.insert(model.groups()[static_cast<std::size_t>(which)].path);
  anchorGroup_ = QString::fromStdString(model.groups()[static_cast<std::size_t>(group)].path);
  opened_ = model.groups()[static_cast<std::size_t>(which)].path;
  relayout(shown_, -1);
}

void GraphView::closeOne(int group) {
  const std::string path = canvas_->scene()->model->groups()[static_cast<std::size_t>(group)].path;
  open_.erase(path);
  std::erase(revealed_, path);
  anchorGroup_ = QString::fromStdString(path);
  relayout(shown_, -1);
}

void GraphView::enterGroup() {
  if (!canvas_->scene()) return;
  const GraphScene& scene = *canvas_->scene();
  int box = canvas_->hovered();
  if (box < 0 || scene.boxes[static_cast<std::size_t>(box)].kind != BoxKind::kClosedGroup)
    box = canvas_->selected() < 0 ? -1 : scene.boxOfNode[static_cast<std::size_t>(canvas_->selected())];
  if (box < 0) return;
  const SceneBox& b = scene.boxes[static_cast<std::size_t>(box)];
  if (b.kind == BoxKind::kClosedGroup) {
    if (b.folded > 1 && canvas_->selected() >= 0 && scene.boxOfNode[static_cast<std::size_t>(canvas_->selected())] == box) {
      for (const std::string& path : groupsAround(*scene.model, canvas_->selected())) open_.insert(path);
      focusNext_ = true;
      relayout(shown_, -1);
    } else {
      openOne(b.group, b.folded);
    }
  }
}

void GraphView::leaveGroup() {
  if (!canvas_->scene()) return;
  const GraphScene& scene = *canvas_->scene();
  const int hovered = canvas_->hovered();
  int group = -1;
  if (hovered >= 0 && scene.boxes[static_cast<std::size_t>(hovered)].kind == BoxKind::kOpenGroup) {
    group = scene.boxes[static_cast<std::size_t>(hovered)].group;
  } else if (canvas_->selected() >= 0) {
    const std::vector<ModelGroup>& groups = scene.model->groups();
    for (int g = scene.model->nodes()[static_cast<std::size_t>(canvas_->selected())].group; g > 0;
         g = groups[static_cast<std::size_t>(g)].parent) {
      const std::string& path = groups[static_cast<std::size_t>(g)].path;
      if (open_.contains(path) || std::find(revealed_.begin(), revealed_.end(), path) != revealed_.end()) {
        group = g;
        break;
      }
    }
  }
  if (group > 0) closeOne(group);
}

}  // namespace stepscope
