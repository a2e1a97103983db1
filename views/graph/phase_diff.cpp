// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/phase_diff.h"

#include <algorithm>

namespace stepscope {
namespace {

bool sameNode(const snapshot::Node& a, const snapshot::Node& b) {
  if (a.op() != b.op() || a.domain() != b.domain() || a.attributes_size() != b.attributes_size()) return false;
  if (!std::equal(a.inputs().begin(), a.inputs().end(), b.inputs().begin(), b.inputs().end())) return false;
  if (!std::equal(a.outputs().begin(), a.outputs().end(), b.outputs().begin(), b.outputs().end())) return false;
  for (int i = 0; i < a.attributes_size(); ++i) {
    if (a.attributes(i).name() != b.attributes(i).name() || a.attributes(i).text() != b.attributes(i).text()) return false;
  }
  return true;
}

}  // namespace

PhaseDiff PhaseDiff::make(const GraphSnapshot& before, const GraphSnapshot& after) {
  PhaseDiff diff;
  snapshot::Graph united = after.graph();
  united.clear_nodes();
  std::unordered_map<int, std::vector<int>> removedBefore;  // node id that lives on → positions in `before`; -1: at the end
  std::vector<int> pending;
  for (int i = 0; i < before.nodeCount(); ++i) {
    const snapshot::Node& node = before.graph().nodes(i);
    if (after.nodePosition(node.id()) < 0) {
      pending.push_back(i);
    } else if (!pending.empty()) {
      removedBefore[node.id()] = std::move(pending);
      pending.clear();
    }
  }
  removedBefore[-1] = std::move(pending);
  const auto take = [&](int survivor) {
    const auto found = removedBefore.find(survivor);
    if (found == removedBefore.end()) return;
    for (const int i : found->second) {
      *united.add_nodes() = before.graph().nodes(i);
      diff.byNode[before.graph().nodes(i).id()] = Difference::kRemoved;
      ++diff.removed;
    }
  };
  for (const snapshot::Node& node : after.graph().nodes()) {
    if (node.id() >= 0) take(node.id());
    *united.add_nodes() = node;
    const snapshot::Node* old = before.node(node.id());
    if (old == nullptr) {
      diff.byNode[node.id()] = Difference::kAdded;
      ++diff.added;
    } else if (!sameNode(*old, node)) {
      diff.byNode[node.id()] = Difference::kChanged;
      ++diff.changed;
    }
  }
  take(-1);
  for (const snapshot::Value& value : before.graph().values()) {
    if (after.valuePosition(value.id()) < 0) *united.add_values() = value;
  }
  diff.united = GraphSnapshot::make(std::move(united));
  return diff;
}

}  // namespace stepscope
