// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/selection.h"

#include <algorithm>

namespace stepscope {
namespace {
constexpr std::size_t kHistoryLimit = 500;
}

std::shared_ptr<const NodeGroup> NodeGroup::make(QString name, std::vector<int> nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (nodes.size() < 2) return nullptr;
  auto group = std::make_shared<NodeGroup>();
  group->name_ = std::move(name);
  group->nodes_ = std::move(nodes);
  return group;
}

bool NodeGroup::contains(int node) const { return std::binary_search(nodes_.begin(), nodes_.end(), node); }

bool Selection::operator==(const Selection& o) const {
  return node == o.node && value == o.value && instruction == o.instruction && buffer == o.buffer && file == o.file &&
         line == o.line && (group == o.group || (group && o.group && *group == *o.group));
}

SelectionModel::SelectionModel(QObject* parent) : QObject(parent) {}

void SelectionModel::select(const Selection& wanted) {
  const Selection selection = completer_ ? completer_(wanted) : wanted;
  if (selection == selection_) return;
  if (!selection.empty()) {
    history_.resize(static_cast<std::size_t>(place_ + 1));
    history_.push_back(selection);
    if (history_.size() > kHistoryLimit) history_.erase(history_.begin());
    place_ = static_cast<int>(history_.size()) - 1;
    emit historyChanged();
  }
  apply(selection);
}

void SelectionModel::apply(const Selection& selection) {
  selection_ = selection;
  emit selectionChanged(selection_);
}

void SelectionModel::setCurrentInstruction(int index) {
  if (index == current_) return;
  current_ = index;
  emit currentInstructionChanged(index);
}

void SelectionModel::setRange(std::int64_t beginNs, std::int64_t endNs) {
  if (beginNs > endNs) std::swap(beginNs, endNs);
  if (beginNs == rangeBegin_ && endNs == rangeEnd_) return;
  rangeBegin_ = beginNs;
  rangeEnd_ = endNs;
  emit rangeChanged(beginNs, endNs);
}

void SelectionModel::goBack() {
  if (!canGoBack()) return;
  apply(history_[static_cast<std::size_t>(--place_)]);
  emit historyChanged();
}

void SelectionModel::goForward() {
  if (!canGoForward()) return;
  apply(history_[static_cast<std::size_t>(++place_)]);
  emit historyChanged();
}

void SelectionModel::reset() {
  history_.clear();
  place_ = -1;
  emit historyChanged();
  apply({});
}

}  // namespace stepscope
