#include "engine/recompute/stashes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <unordered_set>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

constexpr std::size_t kLongestChain = 32;  // nodes that one stash may take to make again

bool readsForLater(const Node& node) { return node.phase == Phase::kBackward || node.phase == Phase::kRecompute; }

// "encoder.layer.3" of "encoder.layer.3.attention.self": up to the first part that is a number; empty when there is none.
std::string blockOf(std::string_view modulePath) {
  std::size_t begin = 0;
  while (begin < modulePath.size()) {
    const std::size_t end = std::min(modulePath.find('.', begin), modulePath.size());
    if (end > begin && begin > 0 &&
        std::all_of(modulePath.begin() + static_cast<std::ptrdiff_t>(begin),
                    modulePath.begin() + static_cast<std::ptrdiff_t>(end), [](unsigned char c) { return std::isdigit(c); }))
      return std::string(modulePath.substr(0, end));
    begin = end + 1;
  }
  return {};
}

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<ValueId>& kept, const OpRegistry& ops)
      : graph_(graph), ops_(ops), uses_(graph.uses()), held_(graph.valueCapacity(), false) {
    for (const ValueId id : kept) hold(id);
    for (const ValueId id : graph.outputs()) hold(id);
    for (const StateUpdate& update : graph.stateUpdates) hold(update.next);
    position_.assign(graph.nodeCapacity(), 0);
    for (std::size_t i = 0; i < graph.order().size(); ++i) position_[at(graph.order()[i])] = i;
  }

  StashReport find() {
    StashReport report;
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.phase != Phase::kForward || isView(node)) continue;
      addStash(node, report);
    }
    addBlocks(report);
    return report;
  }

 private:
  void hold(ValueId id) {
    if (id) held_[at(id)] = true;
  }

  bool isView(const Node& node) const {
    const OpDef* op = ops_.find(node);
    return op && op->view;
  }

  std::optional<std::int64_t> bytesOf(ValueId id) const {
    const ValueType& type = graph_.value(id).type;
    if (type.kind != ValueKind::kTensor || !type.shape) return std::nullopt;
    const auto dims = knownDims(*type.shape);
    if (!dims) return std::nullopt;
    return elementCount(*dims) * static_cast<std::int64_t>(dtypeSize(type.dtype));
  }

  // The values that are the memory of `id` seen with other extents, `id` first.
  std::vector<ValueId> family(ValueId id) const {
    std::vector<ValueId> all{id};
    for (std::size_t i = 0; i < all.size(); ++i)
      for (const Use& use : uses_[at(all[i])]) {
        const Node& reader = graph_.node(use.node);
        if (use.input == 0 && isView(reader) && reader.phase == Phase::kForward && reader.output(0))
          all.push_back(reader.output(0));
      }
    return all;
  }

  bool readLater(ValueId id) const {
    return std::any_of(uses_[at(id)].begin(), uses_[at(id)].end(),
                       [&](const Use& use) { return readsForLater(graph_.node(use.node)); });
  }

  // Whether the backward phase finds the value's memory as the forward phase left it, although nothing is recomputed.
  bool available(ValueId id) const {
    for (;;) {  // to the value whose memory it is; chains of views may be as long as the graph
      const Value& value = graph_.value(id);
      if (value.role != ValueRole::kNodeOutput || held_[at(id)]) return true;
      const Node& producer = graph_.node(value.producer);
      if (!isView(producer) || !producer.input(0)) break;
      id = producer.input(0);
    }
    const auto members = family(id);
    return std::any_of(members.begin(), members.end(), [&](ValueId m) { return held_[at(m)] || readLater(m); });
  }

  // Why the node cannot run again; empty when it can.
  std::string refusal(const Node& node, bool costly) const {
    const OpDef* op = ops_.find(node);
    if (!op) return fmt::format("{} is not known", node.op);
    if (op->recompute == Recompute::kNever) return fmt::format("{} writes a state", node.op);
    if (!costly && op->recompute == Recompute::kCostly) return fmt::format("needs {} again, which is costly", node.label());
    if (!node.predicates.empty()) return fmt::format("needs {} again, which runs under a condition of If", node.label());
    if (!node.subgraphs.empty()) return fmt::format("needs {} again, which has a body", node.label());
    for (const ValueId out : node.outputs)
      if (out && !bytesOf(out)) return fmt::format("needs {} again, whose extents depend on data", node.label());
    return {};
  }

  // Collects the nodes that make `id` from available values. `again` = values that are not kept any more.
  // `costly`: the one node that may be costly.
  std::string collect(ValueId id, const std::unordered_set<std::int32_t>& again, std::vector<NodeId>& nodes,
                      NodeId costly = {}) const {
    const NodeId producer = graph_.value(id).producer;
    if (std::find(nodes.begin(), nodes.end(), producer) != nodes.end()) return {};
    const Node& node = graph_.node(producer);
    if (std::string reason = refusal(node, producer == costly); !reason.empty()) return reason;
    if (nodes.size() >= kLongestChain) return fmt::format("more than {} nodes would run again", kLongestChain);
    nodes.push_back(producer);
    for (const ValueId in : node.inputs) {
      if (!in || (!again.contains(in.index) && available(in))) continue;
      if (graph_.value(in).role != ValueRole::kNodeOutput) continue;
      if (std::string reason = collect(in, again, nodes, costly); !reason.empty()) return reason;
    }
    return {};
  }

  void price(RecomputeCandidate& candidate) const {
    std::sort(candidate.repeated.begin(), candidate.repeated.end(),
              [&](NodeId a, NodeId b) { return position_[at(a)] < position_[at(b)]; });
    for (const NodeId id : candidate.repeated) {
      const Node& node = graph_.node(id);
      const OpDef* op = ops_.find(node);
      if (op->view) continue;
      std::vector<Dims> dims;
      std::vector<std::span<const std::int64_t>> inputs, outputs;
      dims.reserve(node.inputs.size() + node.outputs.size());
      const auto add = [&](ValueId value, auto& list) {
        dims.push_back(value && graph_.value(value).type.shape ? knownDims(*graph_.value(value).type.shape).value_or(Dims{})
                                                               : Dims{});
        list.emplace_back(dims.back());
        if (value) candidate.traffic += bytesOf(value).value_or(0);
      };
      for (const ValueId in : node.inputs) add(in, inputs);
      for (const ValueId out : node.outputs) add(out, outputs);
      candidate.flops += op->flops         ? op->flops({inputs, outputs, &node.attrs})
                         : outputs.empty() ? 0
                                           : static_cast<double>(elementCount(outputs[0]));
    }
  }

  // One candidate per node: its outputs that the backward phase reads are dropped together, because the node makes them
  // together.
  void addStash(const Node& node, StashReport& report) {
    RecomputeCandidate candidate;
    candidate.module = blockOf(node.provenance.modulePath);
    std::int64_t held = 0;
    for (const ValueId out : node.outputs) {
      if (!out) continue;
      const std::vector<ValueId> members = family(out);
      if (std::none_of(members.begin(), members.end(), [&](ValueId m) { return readLater(m); })) continue;
      if (std::any_of(members.begin(), members.end(), [&](ValueId m) { return held_[at(m)]; })) {
        held += bytesOf(out).value_or(0);
        continue;
      }
      candidate.bytes += bytesOf(out).value_or(0);
      candidate.dropped.insert(candidate.dropped.end(), members.begin(), members.end());
    }
    if (held >= kSmallStash)
      report.refused.push_back({node.id, held, "fetched, pinned or an output: kept to the end of the step"});
    if (candidate.bytes < kSmallStash) return;
    std::unordered_set<std::int32_t> again;
    for (const ValueId m : candidate.dropped) again.insert(m.index);
    for (const ValueId m : candidate.dropped)
      if (readLater(m))
        if (std::string reason = collect(m, again, candidate.repeated); !reason.empty()) {
          report.refused.push_back({node.id, candidate.bytes, std::move(reason)});
          addCostly(node, again, std::move(candidate), report);
          return;
        }
    name(candidate);
    report.stashes.push_back(std::move(candidate));
  }

  void name(RecomputeCandidate& candidate) const {
    price(candidate);
    for (const NodeId id : candidate.repeated)
      if (!isView(graph_.node(id))) candidate.pattern += graph_.node(id).op + "+";
  }

  // A product or a convolution whose operands are kept anyway.
  void addCostly(const Node& node, const std::unordered_set<std::int32_t>& again, RecomputeCandidate candidate,
                 StashReport& report) const {
    const OpDef* op = ops_.find(node);
    if (!op || op->recompute != Recompute::kCostly) return;
    candidate.repeated.clear();
    for (const ValueId m : candidate.dropped)
      if (readLater(m) && !collect(m, again, candidate.repeated, node.id).empty()) return;
    if (std::count_if(candidate.repeated.begin(), candidate.repeated.end(),
                      [&](NodeId id) { return !isView(graph_.node(id)); }) != 1)
      return;
    name(candidate);
    report.costly.push_back(std::move(candidate));
  }

  void addBlocks(StashReport& report) {
    std::map<std::string, std::vector<NodeId>> members;
    std::vector<std::string> paths;  // in forward order
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.phase != Phase::kForward) continue;
      const std::string path = blockOf(node.provenance.modulePath);
      if (path.empty()) continue;
      auto& nodes = members[path];
      if (nodes.empty()) paths.push_back(path);
      nodes.push_back(id);
    }
    if (paths.size() < 2) return;
    for (const std::string& path : paths) {
      RecomputeCandidate candidate;
      candidate.pattern = "block";
      candidate.module = path;
      std::unordered_set<std::int32_t> inside;
      for (const NodeId id : members[path]) inside.insert(id.index);
      bool whole = true;
      for (const NodeId id : members[path]) {
        const Node& node = graph_.node(id);
        if (isView(node)) continue;
        for (const ValueId out : node.outputs)
          if (out) whole = whole && addToBlock(out, inside, candidate);
      }
      if (!whole || candidate.dropped.empty() || !complete(inside, candidate)) continue;
      price(candidate);
      report.blocks.push_back(std::move(candidate));
    }
  }

  // Drops what the backward phase reads of a value inside a block and its views, unless it leaves the block.
  bool addToBlock(ValueId id, const std::unordered_set<std::int32_t>& inside, RecomputeCandidate& candidate) const {
    const std::vector<ValueId> all = family(id);
    bool later = false, leaves = false;
    for (const ValueId m : all) {
      later = later || readLater(m);
      leaves = leaves || held_[at(m)] || !inside.contains(graph_.value(m).producer.index);
      for (const Use& use : uses_[at(m)])
        leaves = leaves || (graph_.node(use.node).phase == Phase::kForward && !inside.contains(use.node.index));
    }
    if (!later || leaves) return true;
    const auto bytes = bytesOf(id);
    if (!bytes) return false;
    candidate.bytes += *bytes;
    candidate.dropped.insert(candidate.dropped.end(), all.begin(), all.end());
    return true;
  }

  // All nodes of the block that a dropped value needs; false when one of them cannot run again.
  bool complete(const std::unordered_set<std::int32_t>& inside, RecomputeCandidate& candidate) const {
    std::unordered_set<std::int32_t> dropped, seen;
    for (const ValueId id : candidate.dropped) dropped.insert(id.index);
    std::vector<ValueId> open;
    for (const ValueId id : candidate.dropped)
      if (readLater(id)) open.push_back(id);
    while (!open.empty()) {
      const NodeId producer = graph_.value(open.back()).producer;
      open.pop_back();
      if (!seen.insert(producer.index).second) continue;
      const Node& node = graph_.node(producer);
      if (!refusal(node, true).empty()) return false;
      candidate.repeated.push_back(producer);
      for (const ValueId in : node.inputs)
        if (in && graph_.value(in).role == ValueRole::kNodeOutput && inside.contains(graph_.value(in).producer.index) &&
            (dropped.contains(in.index) || !available(in)))
          open.push_back(in);
    }
    return true;
  }

  const Graph& graph_;
  const OpRegistry& ops_;
  UseTable uses_;
  std::vector<bool> held_;             // by value: kept to the end of the step
  std::vector<std::size_t> position_;  // by node, in order()
};

}  // namespace

StashReport findStashes(const Graph& graph, const std::vector<ValueId>& kept, const OpRegistry& ops) {
  return Finder(graph, kept, ops).find();
}

}  // namespace stepscope
