// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/snapshots.h"

#include <algorithm>

#include "views/common/sharing.h"

namespace stepscope {
namespace {
const std::vector<int> kNone;
}

int GraphSnapshot::find(const std::unordered_map<int, int>& map, int key) {
  const auto it = map.find(key);
  return it == map.end() ? -1 : it->second;
}

std::shared_ptr<const GraphSnapshot> GraphSnapshot::make(snapshot::Graph graph) {
  auto made = std::make_shared<GraphSnapshot>();
  made->graph_ = std::move(graph);
  const snapshot::Graph& g = made->graph_;
  made->nodePosition_.reserve(static_cast<std::size_t>(g.nodes_size()));
  made->valuePosition_.reserve(static_cast<std::size_t>(g.values_size()));
  for (int i = 0; i < g.values_size(); ++i) made->valuePosition_.emplace(g.values(i).id(), i);
  for (int i = 0; i < g.nodes_size(); ++i) made->nodePosition_.emplace(g.nodes(i).id(), i);
  for (const snapshot::Node& node : g.nodes()) {
    for (const int value : node.outputs()) {
      if (value >= 0) made->producer_.emplace(value, node.id());
    }
    for (const int value : node.inputs()) {
      if (value < 0) continue;
      auto& users = made->consumers_[value];
      if (users.empty() || users.back() != node.id()) users.push_back(node.id());
    }
    const int forward = node.provenance().forward();
    if (forward >= 0 && forward != node.id() && node.phase() != snapshot::FORWARD) {
      made->mirrored_[forward].push_back(node.id());
    }
  }
  return made;
}

const snapshot::Node* GraphSnapshot::node(int nodeId) const {
  const int i = nodePosition(nodeId);
  return i < 0 ? nullptr : &graph_.nodes(i);
}

const snapshot::Value* GraphSnapshot::value(int valueId) const {
  const int i = valuePosition(valueId);
  return i < 0 ? nullptr : &graph_.values(i);
}

const std::vector<int>& GraphSnapshot::consumers(int valueId) const {
  const auto it = consumers_.find(valueId);
  return it == consumers_.end() ? kNone : it->second;
}

const std::vector<int>& GraphSnapshot::mirrored(int forwardNodeId) const {
  const auto it = mirrored_.find(forwardNodeId);
  return it == mirrored_.end() ? kNone : it->second;
}

int GraphSnapshot::forwardOf(int nodeId) const {
  const snapshot::Node* n = node(nodeId);
  if (!n || n->phase() == snapshot::FORWARD) return -1;
  const int forward = n->provenance().forward();
  return nodePosition(forward) < 0 || forward == nodeId ? -1 : forward;
}

int PlanSnapshot::find(const std::unordered_map<int, int>& map, int key) {
  const auto it = map.find(key);
  return it == map.end() ? -1 : it->second;
}

std::shared_ptr<const PlanSnapshot> PlanSnapshot::make(snapshot::Plan plan) {
  auto made = std::make_shared<PlanSnapshot>();
  made->plan_ = std::move(plan);
  snapshot::Plan& p = made->plan_;
  const int instructions = p.instructions_size(), buffers = p.buffers_size();
  made->users_.resize(static_cast<std::size_t>(buffers));
  const auto check = [&](snapshot::Operand* operand, int index) {
    if (operand->buffer() < 0 || operand->buffer() >= buffers) {
      operand->set_buffer(-1);
      return;
    }
    auto& users = made->users_[static_cast<std::size_t>(operand->buffer())];
    if (users.empty() || users.back() != index) users.push_back(index);
  };
  for (int i = 0; i < instructions; ++i) {
    snapshot::Instruction* instruction = p.mutable_instructions(i);
    instruction->set_index(i);
    made->ofNode_.emplace(instruction->node(), i);
    for (auto& operand : *instruction->mutable_inputs()) check(&operand, i);
    for (auto& operand : *instruction->mutable_outputs()) {
      check(&operand, i);
      if (operand.value() >= 0) made->producer_.emplace(operand.value(), i);
    }
    const int workspace = instruction->workspace_buffer();
    if (workspace < 0 || workspace >= buffers) {
      instruction->set_workspace_buffer(-1);
    } else if (auto& users = made->users_[static_cast<std::size_t>(workspace)]; users.empty() || users.back() != i) {
      users.push_back(i);
    }
  }
  for (int i = 0; i < buffers; ++i) {
    snapshot::Buffer* buffer = p.mutable_buffers(i);
    buffer->set_index(i);
    if (buffer->shares() >= buffers || buffer->shares() == i) buffer->set_shares(-1);
    buffer->set_first(std::clamp(buffer->first(), -1, instructions));
    buffer->set_last(std::clamp(buffer->last(), buffer->first(), instructions));
    buffer->set_bytes(std::max<std::int64_t>(0, buffer->bytes()));
    buffer->set_offset(std::max<std::int64_t>(0, buffer->offset()));
    if (buffer->value() >= 0) made->ofValue_.emplace(buffer->value(), i);
  }
  p.set_first_backward(std::clamp(p.first_backward(), 0, instructions));
  p.set_first_optimizer(std::clamp(p.first_optimizer(), 0, instructions));
  return made;
}

const snapshot::Instruction* PlanSnapshot::instruction(int index) const {
  return index < 0 || index >= plan_.instructions_size() ? nullptr : &plan_.instructions(index);
}

const snapshot::Buffer* PlanSnapshot::buffer(int index) const {
  return index < 0 || index >= plan_.buffers_size() ? nullptr : &plan_.buffers(index);
}

const std::vector<int>& PlanSnapshot::users(int bufferIndex) const {
  return bufferIndex < 0 || bufferIndex >= static_cast<int>(users_.size()) ? kNone
                                                                           : users_[static_cast<std::size_t>(bufferIndex)];
}

int PlanSnapshot::root(int bufferIndex) const {
  // A hostile plan may hold a cycle; no honest chain is longer than the list.
  for (int steps = 0; steps <= plan_.buffers_size(); ++steps) {
    const snapshot::Buffer* b = buffer(bufferIndex);
    if (!b || b->shares() < 0) return bufferIndex;
    bufferIndex = b->shares();
  }
  return -1;
}

int PlanSnapshot::overwrittenBy(int bufferIndex) const {
  const snapshot::Buffer* mine = buffer(bufferIndex);
  if (!mine || !mine->in_arena()) return -1;
  int first = -1;
  for (const snapshot::Buffer& other : plan_.buffers()) {
    if (other.index() == bufferIndex || !other.in_arena()) continue;
    if (root(other.index()) == root(bufferIndex)) {
      // In its place, while the memory lives on. A view holds the same bytes.
      if (other.first() <= mine->first() || isView(*this, other)) continue;
    } else if (other.first() < mine->last() || other.offset() >= mine->offset() + mine->bytes() ||
               mine->offset() >= other.offset() + other.bytes()) {
      continue;
    }
    if (first < 0 || other.first() < first) first = other.first();
  }
  return first;
}

std::pair<int, int> PlanSnapshot::phaseRange(int index) const {
  const snapshot::Instruction* at = instruction(index);
  if (!at) return {0, 0};
  const auto stretch = [this](int i) {
    const snapshot::Phase phase = plan_.instructions(i).phase();
    return phase == snapshot::RECOMPUTE ? snapshot::BACKWARD : phase;
  };
  int begin = index, end = index + 1;
  while (begin > 0 && stretch(begin - 1) == stretch(index)) --begin;
  while (end < plan_.instructions_size() && stretch(end) == stretch(index)) ++end;
  return {begin, end};
}

}  // namespace stepscope
