#include "engine/passes/loop_memory.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "engine/passes/predicate_loops.h"

namespace stepscope {
namespace {

class Counting {
 public:
  Counting(const Graph& graph, const Inference& facts) : graph_(graph), facts_(facts) {}

  std::vector<LoopMemory> run() {
    std::vector<bool> kept(graph_.valueCapacity(), false);
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (!mayRun(node)) continue;
      if (node.phase == Phase::kForward) countCopy(node);
      if (node.phase != Phase::kBackward && node.op != "ConcatTaken") continue;
      for (const ValueId in : node.inputs) {
        if (!in || kept[static_cast<std::size_t>(in.index)]) continue;
        kept[static_cast<std::size_t>(in.index)] = true;
        count(graph_.value(in));
      }
    }
    std::vector<LoopMemory> found;
    for (auto& [loop, memory] : loops_) {
      memory.loop = graph_.node(loop).label();
      for (const auto& [stem, copies] : copies_[loop]) memory.iterations = std::max(memory.iterations, copies);
      found.push_back(std::move(memory));
    }
    return found;
  }

 private:
  bool mayRun(const Node& node) const {
    return std::none_of(node.predicates.begin(), node.predicates.end(), [&](const Predicate& predicate) {
      const auto known = facts_.integers(predicate.condition);
      return known && known->size() == 1 && (known->front() != 0) != predicate.expected;
    });
  }

  bool isLoop(NodeId id) const { return graph_.node(id).op == "Loop" || graph_.node(id).op == "Scan"; }

  // The loops around a node, innermost first: passes that rewrote it name what they made it from.
  const std::vector<NodeId>& around(NodeId id) {
    if (const auto it = around_.find(id); it != around_.end()) return it->second;
    std::vector<NodeId> loops;
    const Provenance& from = graph_.node(id).provenance;
    for (const NodeId source : from.sources) {
      if (source == id) continue;
      if (isLoop(source) && from.pass == kPredicateLoopsPass) loops.push_back(source);
      for (const NodeId loop : around(source))
        if (std::find(loops.begin(), loops.end(), loop) == loops.end()) loops.push_back(loop);
    }
    return around_[id] = std::move(loops);
  }

  // A copy of a node of the body is called "<node>.<iteration>".
  void countCopy(const Node& node) {
    const Provenance& from = node.provenance;
    if (from.sources.size() != 1 || from.pass != kPredicateLoopsPass || !isLoop(from.sources.front())) return;
    const std::size_t dot = node.name.rfind('.');
    if (dot == std::string::npos || node.name.view().find_first_not_of("0123456789", dot + 1) != std::string::npos) return;
    ++copies_[from.sources.front()][std::string_view(node.name).substr(0, dot)];
  }

  void count(const Value& value) {
    if (!value.producer || graph_.node(value.producer).phase != Phase::kForward || !mayRun(graph_.node(value.producer)))
      return;
    if (facts_.integers(value.id)) return;  // folded away
    std::int64_t bytes = static_cast<std::int64_t>(dtypeSize(value.type.dtype));
    bool partly = !value.type.shape;
    for (const Dim& extent : value.type.shape.get().value_or(Shape{})) {
      partly |= !extent.known();
      if (extent.known() && __builtin_mul_overflow(bytes, extent.value(), &bytes)) bytes = INT64_MAX;
    }
    for (const NodeId loop : around(value.producer)) {
      LoopMemory& memory = loops_[loop];
      if (__builtin_add_overflow(memory.bytes, bytes, &memory.bytes)) memory.bytes = INT64_MAX;
      memory.partly |= partly;
    }
  }

  const Graph& graph_;
  const Inference& facts_;
  std::map<NodeId, LoopMemory> loops_;
  std::map<NodeId, std::map<std::string_view, std::int64_t>> copies_;
  std::unordered_map<NodeId, std::vector<NodeId>> around_;
};

}  // namespace

std::vector<LoopMemory> loopMemory(const Graph& graph, const Inference& facts) { return Counting(graph, facts).run(); }

}  // namespace stepscope
