// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/layout_items.h"

namespace stepscope {

LayoutItems::LayoutItems(const GraphModel& model, const OpenGroups& open) : model_(model) {
  const std::vector<ModelGroup>& groups = model.groups();
  const std::size_t count = groups.size();
  members.resize(count);
  ofGroup.assign(count, -1);
  ofNode.assign(static_cast<std::size_t>(model.size()), -1);
  box_.assign(count, 0);
  std::vector<int> hidden(count, -1), head(count, -1), run(count, 1);
  for (std::size_t g = 1; g < count; ++g) {
    const auto parent = static_cast<std::size_t>(groups[g].parent);
    box_[g] = groups[g].transparent ? box_[parent] : static_cast<int>(g);
    hidden[g] = hidden[parent] >= 0                                      ? hidden[parent]
                : groups[g].transparent || open.contains(groups[g].path) ? -1
                                                                         : static_cast<int>(g);
    head[g] = static_cast<int>(g);
  }
  for (std::size_t p = 0; p < count; ++p) {
    if (hidden[p] >= 0) continue;
    int previous = -1;
    for (const int child : groups[p].children) {
      const auto c = static_cast<std::size_t>(child);
      if (hidden[c] != child) {
        previous = -1;
        continue;
      }
      if (previous >= 0) {
        const ModelGroup &a = groups[static_cast<std::size_t>(previous)], &b = groups[c];
        if (a.number >= 0 && b.number == a.number + 1 && a.structure == b.structure) {
          head[c] = head[static_cast<std::size_t>(previous)];
          ++run[static_cast<std::size_t>(head[c])];
        }
      }
      previous = child;
    }
  }

  const auto place = [&](int i) {
    const ModelNode& node = model.nodes()[static_cast<std::size_t>(i)];
    const auto g = static_cast<std::size_t>(node.group);
    int& item = ofNode[static_cast<std::size_t>(i)];
    if (hidden[g] >= 0) {
      const auto h = static_cast<std::size_t>(head[static_cast<std::size_t>(hidden[g])]);
      if (ofGroup[h] < 0) {
        LayoutItem closed;
        closed.kind = ItemKind::kClosed;
        closed.group = static_cast<int>(h);
        closed.folded = run[h];
        closed.container = box_[static_cast<std::size_t>(groups[h].parent)];
        ofGroup[h] = add(std::move(closed));
      }
      item = ofGroup[h];
      return;
    }
    const int container = box_[g];
    if (node.lane == Lane::kForward) {
      LayoutItem leaf;
      leaf.node = i;
      leaf.container = container;
      item = add(std::move(leaf));
      return;
    }
    if (node.anchor >= 0) {
      item = ofNode[static_cast<std::size_t>(node.anchor)];
    } else {
      for (const int m : members[static_cast<std::size_t>(container)]) {
        if (items[static_cast<std::size_t>(m)].kind == ItemKind::kLoose) item = m;
      }
      if (item < 0) {
        LayoutItem loose;
        loose.kind = ItemKind::kLoose;
        loose.container = container;
        item = add(std::move(loose));
      }
    }
    items[static_cast<std::size_t>(item)].stack[static_cast<std::size_t>(node.lane)].push_back(i);
  };
  for (int i = 0; i < model.size(); ++i) {
    if (model.nodes()[static_cast<std::size_t>(i)].lane == Lane::kForward) place(i);
  }
  for (int i = 0; i < model.size(); ++i) {
    if (model.nodes()[static_cast<std::size_t>(i)].lane != Lane::kForward) place(i);
  }
}

int LayoutItems::openItem(int group) {
  const auto g = static_cast<std::size_t>(group);
  if (ofGroup[g] >= 0) return ofGroup[g];
  LayoutItem item;
  item.kind = ItemKind::kOpen;
  item.group = group;
  item.container = box_[static_cast<std::size_t>(model_.groups()[g].parent)];
  ofGroup[g] = add(std::move(item));
  return ofGroup[g];
}

int LayoutItems::add(LayoutItem item) {
  if (item.container != 0) item.depth = items[static_cast<std::size_t>(openItem(item.container))].depth + 1;
  std::vector<int>& list = members[static_cast<std::size_t>(item.container)];
  item.local = static_cast<int>(list.size());
  list.push_back(static_cast<int>(items.size()));
  items.push_back(std::move(item));
  return static_cast<int>(items.size()) - 1;
}

std::pair<int, int> LayoutItems::common(int nodeA, int nodeB) const {
  int a = ofNode[static_cast<std::size_t>(nodeA)], b = ofNode[static_cast<std::size_t>(nodeB)];
  const auto at = [&](int i) -> const LayoutItem& { return items[static_cast<std::size_t>(i)]; };
  const auto up = [&](int i) { return ofGroup[static_cast<std::size_t>(at(i).container)]; };
  while (at(a).container != at(b).container) {
    if (at(a).depth >= at(b).depth) {
      a = up(a);
    } else {
      b = up(b);
    }
  }
  return {a, b};
}

}  // namespace stepscope
