#include "engine/ir/lineage.h"

#include <algorithm>
#include <unordered_set>

namespace stepscope {
namespace {

// Chains of replacements and of fused nodes are as long as there are passes; a limit keeps a broken log from hanging.
constexpr int kLongestChain = 1000;

}  // namespace

Lineage::Lineage(const Graph& graph)
    : graph_(graph),
      firstOutput_(graph.nodeCapacity() + 1, 0),
      instead_(graph.valueCapacity()),
      insteadBy_(graph.valueCapacity()),
      added_(graph.nodeCapacity()),
      gone_(graph.nodeCapacity()) {
  const auto each = [&](const auto& take) {
    for (std::size_t i = 0; i < graph.valueCapacity(); ++i)
      if (const Value& value = graph.value({static_cast<std::int32_t>(i)}); value.madeBy) take(value);
  };
  each([&](const Value& value) { ++firstOutput_[at(value.madeBy) + 1]; });
  for (std::size_t i = 1; i < firstOutput_.size(); ++i) firstOutput_[i] += firstOutput_[i - 1];
  outputs_.resize(firstOutput_.back());
  std::vector<std::uint32_t> next = firstOutput_;
  each([&](const Value& value) { outputs_[next[at(value.madeBy)]++] = value.id; });
  for (std::size_t i = 0; i < graph.nodeCapacity(); ++i)
    std::stable_sort(outputs_.begin() + firstOutput_[i], outputs_.begin() + firstOutput_[i + 1],
                     [&](ValueId a, ValueId b) { return graph.value(a).madeAs < graph.value(b).madeAs; });
  readLog();
}

void Lineage::readLog() {
  const auto& edits = graph_.edits();
  const std::size_t begin = graph_.births().importedEdits;
  bool beforeGradient = true;
  std::vector<std::pair<ValueId, std::string_view>> early;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const Edit& edit = edits[i];
    switch (edit.kind) {
      case Edit::Kind::kAddNode: {
        added_[at(edit.node)] = edit.pass.view();
        const Origin::Kind kind = graph_.node(edit.node).origin.kind;
        beforeGradient = beforeGradient && kind != Origin::Kind::kGradient && kind != Origin::Kind::kSum;
        break;
      }
      case Edit::Kind::kRemoveNode: gone_[at(edit.node)] = edit.pass.view(); break;
      case Edit::Kind::kReplaceUses:
        if (i < begin || edit.from == edit.to) break;
        instead_[at(edit.from)] = edit.to;
        insteadBy_[at(edit.from)] = edit.pass.view();
        if (beforeGradient) early.emplace_back(edit.from, edit.pass.view());
        break;
      case Edit::Kind::kChangeNode: break;
    }
  }
  for (const auto& [from, pass] : early) {
    const ValueId to = last(from);
    if (graph_.value(to).role == ValueRole::kNodeOutput && !handsOn(from, to)) merged_.emplace(to, pass);
  }
}

// Whether what made `from` read `to`, and `from` was just another name of it.
bool Lineage::handsOn(ValueId from, ValueId to) const {
  const NodeId node = graph_.value(from).madeBy;
  const Births& births = graph_.births();
  if (!node || at(node) >= births.ops.size()) return false;
  for (std::uint32_t i = births.first[at(node)]; i < births.first[at(node) + 1]; ++i)
    if (births.inputs[i] && last(births.inputs[i]) == to) return true;
  return false;
}

bool Lineage::imported(NodeId node) const {
  const Births& births = graph_.births();
  return node && at(node) < births.importedNodes && !births.ops[at(node)].empty();
}

bool Lineage::imported(ValueId id) const {
  if (!id || at(id) >= graph_.births().importedValues) return false;
  const Value& value = graph_.value(id);
  return value.role == ValueRole::kNodeOutput ? value.madeBy.valid() : graph_.alive(id);
}

std::span<const ValueId> Lineage::outputsOf(NodeId node) const {
  return {outputs_.data() + firstOutput_[at(node)], outputs_.data() + firstOutput_[at(node) + 1]};
}

ValueId Lineage::now(ValueId value) const {
  for (int i = 0; i < kLongestChain && !graph_.alive(value) && instead_[at(value)]; ++i) value = instead_[at(value)];
  return value;
}

ValueId Lineage::last(ValueId value) const {
  for (int i = 0; i < kLongestChain && instead_[at(value)]; ++i) value = instead_[at(value)];
  return value;
}

std::string_view Lineage::replacedBy(ValueId value) const { return insteadBy_[at(value)]; }
std::string_view Lineage::addedBy(NodeId node) const { return added_[at(node)]; }
std::string_view Lineage::removedBy(NodeId node) const { return graph_.alive(node) ? std::string_view() : gone_[at(node)]; }

std::string_view Lineage::mergedBy(ValueId value) const {
  const auto it = merged_.find(value);
  return it == merged_.end() ? std::string_view() : it->second;
}

NodeId Lineage::home(NodeId node) const {
  const auto outputs = outputsOf(node);
  if (outputs.empty()) return node;
  for (const ValueId out : outputs)
    if (graph_.alive(node) && graph_.alive(out) && graph_.value(out).producer == node) return node;
  for (const ValueId out : outputs)
    if (const ValueId last = now(out); graph_.alive(last)) return graph_.value(last).producer;
  return graph_.value(now(outputs.front())).producer;
}

const Lineage::Readers& Lineage::readers() const {
  if (readers_) return *readers_;
  readers_ = std::make_unique<Readers>();
  const Births& births = graph_.births();
  // What reads a value that another one replaced reads that one.
  std::vector<ValueId> read(births.inputs.size());
  for (std::size_t i = 0; i < read.size(); ++i)
    if (births.inputs[i]) read[i] = last(births.inputs[i]);
  readers_->first.assign(graph_.valueCapacity() + 1, 0);
  for (const ValueId id : read)
    if (id) ++readers_->first[at(id) + 1];
  for (std::size_t i = 1; i < readers_->first.size(); ++i) readers_->first[i] += readers_->first[i - 1];
  readers_->nodes.resize(readers_->first.back());
  std::vector<std::uint32_t> next = readers_->first;
  for (std::size_t n = 0; n < births.ops.size(); ++n)
    for (std::uint32_t i = births.first[n]; i < births.first[n + 1]; ++i)
      if (read[i]) readers_->nodes[next[at(read[i])]++] = {static_cast<std::int32_t>(n)};
  for (std::size_t n = 0; n < graph_.nodeCapacity(); ++n) {
    const Node& node = graph_.node({static_cast<std::int32_t>(n)});
    for (const NodeId source : node.provenance.sources) readers_->sources.emplace_back(source, node.id);
  }
  std::sort(readers_->sources.begin(), readers_->sources.end());
  for (std::size_t i = births.importedEdits; i < graph_.edits().size(); ++i) {
    const Edit& edit = graph_.edits()[i];
    if (edit.kind == Edit::Kind::kAddNode || edit.kind == Edit::Kind::kChangeNode)
      readers_->touched.emplace_back(edit.node, edit.pass.view());
  }
  std::sort(readers_->touched.begin(), readers_->touched.end());
  return *readers_;
}

Lineage::Carrier Lineage::carrier(NodeId node) const { return carrier(node, 0); }

Lineage::Carrier Lineage::carrier(NodeId node, int depth) const {
  const NodeId here = home(node);
  if (!here || depth > kLongestChain) return {};
  if (graph_.alive(here)) return {here, graph_.node(here).provenance.pass.view()};
  if (graph_.alive(node)) return {node, graph_.node(node).provenance.pass.view()};
  if (here != node) return carrier(here, depth + 1);
  const std::string_view pass = removedBy(node);
  const Readers& readers = this->readers();
  const auto touched = [&](NodeId id) {
    return std::binary_search(readers.touched.begin(), readers.touched.end(), std::pair{id, pass});
  };
  const auto through = [&](NodeId id) -> Carrier {
    if (graph_.alive(id)) return {id, pass};
    return {carrier(id, depth + 1).node, pass};
  };
  // Along what read it, through nodes that the same pass removed, to one that the pass changed.
  std::unordered_set<NodeId> seen{node};
  for (std::vector<NodeId> open{node}; !open.empty();) {
    const NodeId from = open.back();
    open.pop_back();
    for (const ValueId out : outputsOf(from)) {
      if (instead_[at(out)]) continue;  // its readers read something else
      for (std::uint32_t i = readers.first[at(out)]; i < readers.first[at(out) + 1]; ++i) {
        const NodeId reader = readers.nodes[i];
        if (!seen.insert(reader).second) continue;
        if (touched(reader)) {
          if (const Carrier found = through(reader); found.node) return found;
        } else if (!graph_.alive(reader) && removedBy(reader) == pass) {
          open.push_back(reader);
        }
      }
    }
  }
  for (auto it = std::lower_bound(readers.sources.begin(), readers.sources.end(), std::pair{node, NodeId{}});
       it != readers.sources.end() && it->first == node; ++it)
    if (it->second != node && touched(it->second))
      if (const Carrier found = through(it->second); found.node) return found;
  return {};
}

}  // namespace stepscope
