#include "engine/ir/key_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <unordered_map>

#include "engine/ir/lineage.h"

namespace stepscope {
namespace {

// Which of several keys speaks for a node or value: what the file says before what the build made of it, and what every plan
// has before what this one has.
enum class Rank : std::uint8_t {
  kOwnName,
  kOtherName,
  kParameterGradient,
  kGradient,
  kNext,
  kAgain,
  kOwn,
  kOther,
  kOwnByPass,
  kOtherByPass,
};

template <typename Key>
struct Owned {
  std::int32_t id;  // of the node or value that has the key
  Rank rank;
  std::int32_t from;  // id of what the key is about; decides between equal ranks
  Key key;
};

// The keys of all nodes, or all values; each one's in the order of their ranks.
template <typename Key>
class Table {
 public:
  void add(std::int32_t id, Rank rank, std::int32_t from, const Key& key) { added_.push_back({id, rank, from, key}); }

  // Afterwards of() may be asked for ids below `capacity`.
  void finish(std::size_t capacity) {
    first_.assign(capacity + 1, 0);
    for (const Owned<Key>& row : added_) ++first_[static_cast<std::size_t>(row.id) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    rows_.resize(added_.size());
    std::vector<std::uint32_t> next = first_;
    for (const Owned<Key>& row : added_) rows_[next[static_cast<std::size_t>(row.id)]++] = row;
    added_ = {};
    for (std::size_t i = 0; i < capacity; ++i)
      if (first_[i + 1] - first_[i] > 1)
        std::sort(rows_.begin() + first_[i], rows_.begin() + first_[i + 1], [](const Owned<Key>& a, const Owned<Key>& b) {
          return std::tie(a.rank, a.from) < std::tie(b.rank, b.from);
        });
  }

  std::span<const Owned<Key>> of(std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return {rows_.data() + first_[i], rows_.data() + first_[i + 1]};
  }
  Key first(std::int32_t id) const {
    const auto rows = of(id);
    return rows.empty() ? Key{} : rows.front().key;
  }

 private:
  std::vector<Owned<Key>> added_, rows_;
  std::vector<std::uint32_t> first_;  // by id, and one more
};

}  // namespace

struct KeyIndex::Impl {
  explicit Impl(const Graph& g) : graph(g), lineage(g), nodeKey(g.nodeCapacity()), valueKey(g.valueCapacity()) {
    for (std::size_t i = 0; i < g.nodeCapacity(); ++i) {
      const Node& node = g.node({static_cast<std::int32_t>(i)});
      if (node.origin.kind == Origin::Kind::kRecomputed) copies.push_back(node.id);
      nameNode(node);
      for (const ValueId out : lineage.outputsOf(node.id)) nameResult(out);
    }
    for (std::size_t i = 0; i < g.valueCapacity(); ++i) nameState(g.value({static_cast<std::int32_t>(i)}));
    for (const ValueGradient& gradient : g.gradients) {
      const ValueKey& of = valueKey[at(gradient.value)];
      if (!of) continue;
      const std::string_view merged = lineage.mergedBy(gradient.value);
      gradients.emplace(NodeKey::valueGradient(of, merged), gradient.gradient);
      values.emplace(ValueKey::gradient(of, merged), gradient.gradient);
    }
    collect();
    // Copies are named after what the originals are called, which the other keys decide.
    for (const NodeId copy : copies) {
      const NodeId original = g.node(copy).origin.node;
      if (const NodeKey key = nodeTable.first(original.index)) setNode(copy, NodeKey::recomputed(key));
      for (const ValueId out : lineage.outputsOf(copy)) {
        const ValueId from = g.node(original).output(static_cast<std::size_t>(g.value(out).madeAs));
        if (const ValueKey key = from ? valueTable.first(from.index) : ValueKey{}) setValue(out, ValueKey::recomputed(key));
      }
    }
    if (copies.empty()) return;
    nodeTable = {};
    valueTable = {};
    collect();
  }

  void setNode(NodeId id, NodeKey key) {
    // Equal origins are numbered, in the order of the nodes.
    while (!nodes.emplace(key, id).second) {
      if (key.role == NodeRole::kRoot || key.role == NodeRole::kPass)
        ++key.ordinal;
      else
        key = NodeKey::madeByPass(key, graph.node(id).provenance.pass, 0);
    }
    nodeKey[at(id)] = key;
  }

  void setValue(ValueId id, const ValueKey& key) {
    if (values.emplace(key, id).second) valueKey[at(id)] = key;
  }

  void nameNode(const Node& node) {
    const Origin& origin = node.origin;
    switch (origin.kind) {
      case Origin::Kind::kRoot: return setNode(node.id, NodeKey::root(origin.detail.view()));
      case Origin::Kind::kUpdate:
        return setNode(node.id, NodeKey::update(graph.value(origin.value).name, origin.detail.view()));
      case Origin::Kind::kGradient: {
        std::string changed(origin.detail.view());
        for (const ValueId out : lineage.outputsOf(origin.node))
          if (const std::string_view pass = lineage.mergedBy(out); !pass.empty() && changed.find(pass) == std::string::npos)
            changed += fmt::format("{}{}", changed.empty() ? "" : ",", pass);
        return setNode(node.id, NodeKey::gradient(nodeKey[at(origin.node)], origin.input, origin.ordinal, changed));
      }
      case Origin::Kind::kSum:         // has the key of the gradient that it makes
      case Origin::Kind::kRecomputed:  // later
        return;
      case Origin::Kind::kNone: break;
    }
    if (lineage.imported(node.id)) return setNode(node.id, NodeKey::forward(node.name));
    if (at(node.id) < graph.births().importedNodes) return;
    NodeKey beside;
    for (const NodeId source : node.provenance.sources)
      if (!beside) beside = nodeKey[at(source)];
    setNode(node.id, NodeKey::madeByPass(beside ? beside : NodeKey::root(node.name), lineage.addedBy(node.id), 0));
  }

  void nameResult(ValueId id) {
    const Value& value = graph.value(id);
    if (lineage.imported(id))
      setValue(id, ValueKey::named(value.name));
    else if (const NodeKey& maker = nodeKey[at(value.madeBy)])
      setValue(id, ValueKey::of(maker, value.madeAs));
  }

  void nameState(const Value& value) {
    if (value.role == ValueRole::kNodeOutput) return;
    if (lineage.imported(value.id) || (graph.alive(value.id) && value.role != ValueRole::kConstant))
      setValue(value.id, ValueKey::named(value.name));
  }

  void collect() {
    const auto parameter = [&](ValueId id) { return graph.value(id).role == ValueRole::kInitializer; };
    for (std::size_t i = 0; i < nodeKey.size(); ++i) {
      const NodeId id{static_cast<std::int32_t>(i)};
      const NodeKey& key = nodeKey[i];
      const NodeId home = key ? lineage.home(id) : NodeId{};
      if (!home) continue;
      const bool own = home == id;
      const Rank rank = key.role == NodeRole::kPass         ? own ? Rank::kOwnByPass : Rank::kOtherByPass
                        : key.role == NodeRole::kGradient   ? own ? Rank::kOwn : Rank::kOther
                        : key.role == NodeRole::kRecomputed ? Rank::kAgain
                        : own                               ? Rank::kOwnName
                                                            : Rank::kOtherName;
      nodeTable.add(home.index, rank, id.index, key);
    }
    for (std::size_t i = 0; i < valueKey.size(); ++i) {
      const ValueKey& key = valueKey[i];
      if (!key) continue;
      const ValueId id{static_cast<std::int32_t>(i)}, now = lineage.now(id);
      const bool own = now == id;
      const Rank rank = key.kind == ValueKeyKind::kNamed        ? own ? Rank::kOwnName : Rank::kOtherName
                        : key.kind == ValueKeyKind::kRecomputed ? Rank::kAgain
                        : own                                   ? Rank::kOwn
                                                                : Rank::kOther;
      valueTable.add(now.index, rank, id.index, key);
    }
    for (const ValueGradient& gradient : graph.gradients) {
      const ValueKey& of = valueKey[at(gradient.value)];
      if (!of) continue;
      const Rank rank = parameter(gradient.value) ? Rank::kParameterGradient : Rank::kGradient;
      const std::string_view merged = lineage.mergedBy(gradient.value);
      const ValueId now = lineage.now(gradient.gradient);
      valueTable.add(now.index, rank, gradient.value.index, ValueKey::gradient(of, merged));
      if (const NodeId maker = graph.value(now).producer)
        nodeTable.add(maker.index, rank, gradient.value.index, NodeKey::valueGradient(of, merged));
    }
    for (const StateUpdate& update : graph.stateUpdates)
      if (const ValueKey& state = valueKey[at(update.state)]) {
        values.emplace(ValueKey::next(state), update.next);
        valueTable.add(update.next.index, Rank::kNext, update.state.index, ValueKey::next(state));
      }
    nodeTable.finish(nodeKey.size());
    valueTable.finish(valueKey.size());
  }

  NodeId live(NodeId id) const { return id && graph.alive(id) ? id : NodeId{}; }

  // The node that was made to compute the key, whatever became of it.
  NodeId made(const NodeKey& key) const {
    if (const auto it = nodes.find(key); it != nodes.end()) return it->second;
    if (const auto it = gradients.find(key); it != gradients.end()) return graph.value(it->second).madeBy;
    return {};
  }

  // The value that was made for the key, whatever became of it.
  ValueId made(const ValueKey& key) const {
    if (const auto it = values.find(key); it != values.end()) return it->second;
    if (key.kind != ValueKeyKind::kOutput) return {};
    const auto node = NodeKey::parse(key.subject.view());
    const NodeId maker = node ? made(*node) : NodeId{};
    if (maker)
      for (const ValueId out : lineage.outputsOf(maker))
        if (graph.value(out).madeAs == key.output) return out;
    return {};
  }

  std::string whyNot(NodeId node) const {
    for (const ValueId out : lineage.outputsOf(node)) {
      const Value& now = graph.value(lineage.now(out));
      if (!graph.alive(now.id) || now.role == ValueRole::kNodeOutput) continue;
      return now.role == ValueRole::kConstant
                 ? fmt::format("constant '{}' since {}", now.name, lineage.replacedBy(out))
                 : fmt::format("the same as '{}', left out by {}", now.name, lineage.replacedBy(out));
    }
    if (const auto carrier = lineage.carrier(node); carrier.node)
      return fmt::format("fused into {} by {}", graph.node(carrier.node).label(), carrier.pass);
    NodeId gone = lineage.home(node);
    if (!gone || graph.alive(gone)) gone = node;
    const std::string_view pass = lineage.removedBy(gone);
    if (pass == "attach loss") return "not needed for the loss: removed by attach loss";
    return fmt::format("removed by {}: nothing that is left reads it", pass);
  }

  const Graph& graph;
  Lineage lineage;
  std::vector<NodeKey> nodeKey;    // by node: what it was made for
  std::vector<ValueKey> valueKey;  // by value: what it was made as
  std::unordered_map<NodeKey, NodeId> nodes;
  std::unordered_map<NodeKey, ValueId> gradients;
  std::unordered_map<ValueKey, ValueId> values;
  Table<NodeKey> nodeTable;    // by node, dead ones too
  Table<ValueKey> valueTable;  // by value, dead ones too
  std::vector<NodeId> copies;
};

KeyIndex::KeyIndex(const Graph& graph) : impl_(std::make_unique<Impl>(graph)) {}
KeyIndex::~KeyIndex() = default;
KeyIndex::KeyIndex(KeyIndex&&) noexcept = default;
KeyIndex& KeyIndex::operator=(KeyIndex&&) noexcept = default;

const Graph& KeyIndex::graph() const { return impl_->graph; }

NodeId KeyIndex::find(const NodeKey& key) const {
  if (const auto it = impl_->nodes.find(key); it != impl_->nodes.end()) return impl_->live(impl_->lineage.home(it->second));
  if (const auto it = impl_->gradients.find(key); it != impl_->gradients.end())
    return impl_->live(impl_->graph.value(impl_->lineage.now(it->second)).producer);
  return {};
}

ValueId KeyIndex::find(const ValueKey& key) const {
  const ValueId made = impl_->made(key);
  if (!made) return {};
  const ValueId now = impl_->lineage.now(made);
  return impl_->graph.alive(now) ? now : ValueId{};
}

NodeKey KeyIndex::keyOf(NodeId node) const { return impl_->live(node) ? impl_->nodeTable.first(node.index) : NodeKey{}; }

ValueKey KeyIndex::keyOf(ValueId value) const {
  return value && impl_->graph.alive(value) ? impl_->valueTable.first(value.index) : ValueKey{};
}

std::vector<NodeKey> KeyIndex::keysOf(NodeId node) const {
  std::vector<NodeKey> keys;
  if (impl_->live(node))
    for (const auto& row : impl_->nodeTable.of(node.index)) keys.push_back(row.key);
  return keys;
}

std::vector<ValueKey> KeyIndex::keysOf(ValueId value) const {
  std::vector<ValueKey> keys;
  if (value && impl_->graph.alive(value))
    for (const auto& row : impl_->valueTable.of(value.index)) keys.push_back(row.key);
  return keys;
}

NodeId KeyIndex::carrier(const NodeKey& key) const {
  if (const NodeId found = find(key)) return found;
  const NodeId made = impl_->made(key);
  return made ? impl_->lineage.carrier(made).node : NodeId{};
}

NodeId KeyIndex::carrier(const ValueKey& key) const {
  if (const ValueId found = find(key)) return impl_->graph.value(found).producer;
  const ValueId made = impl_->made(key);
  const NodeId maker = made ? impl_->graph.value(made).madeBy : NodeId{};
  return maker ? impl_->lineage.carrier(maker).node : NodeId{};
}

std::string KeyIndex::absence(const NodeKey& key) const {
  if (!key || find(key)) return {};
  if (const NodeId made = impl_->made(key)) return impl_->whyNot(made);
  const auto because = [&](const auto& of) {
    const std::string reason = of ? absence(*of) : std::string();
    return reason.empty() ? reason : fmt::format("; {}: {}", of->text(), reason);
  };
  switch (key.role) {
    case NodeRole::kNone: return {};
    case NodeRole::kForward: return "no node of this name in the imported model";
    case NodeRole::kRoot: return "the phases of this plan made no such node";
    case NodeRole::kGradient:
      return "the gradient of this plan has no such node" + because(NodeKey::parse(key.subject.view()));
    case NodeRole::kValueGradient:
      return absence(ValueKey::gradient(*ValueKey::parse(key.subject.view()), key.detail.view()));
    case NodeRole::kRecomputed: return "this plan does not compute it again" + because(NodeKey::parse(key.subject.view()));
    case NodeRole::kUpdate: return "the optimizer of this plan has no such node";
    case NodeRole::kPass: return fmt::format("pass {} made no such node here", key.detail.view());
  }
  return {};
}

std::string KeyIndex::absence(const ValueKey& key) const {
  if (!key || find(key)) return {};
  if (const ValueId made = impl_->made(key)) {
    const NodeId maker = impl_->graph.value(made).madeBy;
    if (!maker) return "nothing reads it any more";
    const NodeId here = impl_->live(impl_->lineage.home(maker));
    return here ? fmt::format("computed within {} since {}", impl_->graph.node(here).label(),
                              impl_->graph.node(here).provenance.pass.view())
                : impl_->whyNot(maker);
  }
  const auto because = [&](const auto& of) {
    const std::string reason = of ? absence(*of) : std::string();
    return reason.empty() ? reason : fmt::format("; {}: {}", of->text(), reason);
  };
  switch (key.kind) {
    case ValueKeyKind::kNone: return {};
    case ValueKeyKind::kNamed: return "no value of this name in the imported model, nor a state of this plan";
    case ValueKeyKind::kGradient:
      return "this plan computes no such gradient" + because(ValueKey::parse(key.subject.view()));
    case ValueKeyKind::kNext: return "no step of this plan changes that state";
    case ValueKeyKind::kRecomputed:
      return "this plan does not compute it again" + because(ValueKey::parse(key.subject.view()));
    case ValueKeyKind::kOutput: return "this plan has no such result" + because(NodeKey::parse(key.subject.view()));
  }
  return {};
}

}  // namespace stepscope
