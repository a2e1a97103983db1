#include "engine/passes/assign_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/ops/op_def.h"
#include "kernels/channel_vector.h"
#include "kernels/strided_view.h"

namespace stepscope {
namespace {

struct Group {
  std::string refusal;        // why its values stay plain whatever is gained
  double gain = 0, cost = 0;  // bytes that convolutions would reorder, and that Reorder nodes would
  int convolutions = 0, reorders = 0;
  bool bfloat16 = true;  // all its values
  NodeId first;          // a node that gains
  std::string costly;    // a node that reads or writes plain memory
};

class LayoutAssigner {
 public:
  LayoutAssigner(Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        inference_(context.inference),
        parent_(graph.valueCapacity()),
        refusal_(graph.valueCapacity()) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  Status run() {
    // Without a convolution there is nothing to gain.
    if (std::none_of(graph_.order().begin(), graph_.order().end(), [&](NodeId id) { return gains(graph_.node(id)); }))
      return {};
    collectRefusals();
    for (const NodeId id : graph_.order()) join(graph_.node(id));
    for (const NodeId id : graph_.order()) count(graph_.node(id));
    for (auto& [root, group] : groups_) decide(group);
    for (std::size_t i = 0; i < graph_.valueCapacity(); ++i) {
      const Value& value = graph_.value({static_cast<std::int32_t>(i)});
      const auto group = graph_.alive(value.id) && refusal_[i].empty() ? groups_.find(root(i)) : groups_.end();
      if (group != groups_.end()) group->second.bfloat16 &= value.type.dtype == DType::kBF16;
    }
    for (std::size_t i = 0; i < graph_.valueCapacity(); ++i) {
      const Value& value = graph_.value({static_cast<std::int32_t>(i)});
      if (!graph_.alive(value.id) || !refusal_[i].empty()) continue;
      const auto group = groups_.find(root(i));
      if (group == groups_.end() || !group->second.refusal.empty()) continue;
      graph_.mutableValue(value.id).layout = group->second.bfloat16 ? Layout::kChannelsLast : Layout::kChannels16;
      context_.match();
    }
    if (context_.result.matches > 0) insertReorders();
    return {};
  }

 private:
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  std::optional<Dims> dimsOf(ValueId id) const {
    const auto& shape = graph_.value(id).type.shape;
    return shape ? knownDims(*shape) : std::nullopt;
  }

  // Why a value cannot leave the plain layout, for every value.
  void collectRefusals() {
    std::vector<bool> next(graph_.valueCapacity(), false);
    for (const StateUpdate& update : graph_.stateUpdates) next[at(update.next)] = true;
    for (std::size_t i = 0; i < graph_.valueCapacity(); ++i) {
      const Value& value = graph_.value({static_cast<std::int32_t>(i)});
      if (!graph_.alive(value.id)) continue;
      const auto dims = dimsOf(value.id);
      if (value.role != ValueRole::kNodeOutput)
        refusal_[i] = "not computed by the step: an input, a constant or state";
      else if (next[i])
        refusal_[i] = "the next version of state";
      else if (value.type.kind != ValueKind::kTensor || !dims)
        refusal_[i] = "extents that depend on data";
      else
        refusal_[i] = layoutRefusal(value.type.dtype, *dims);
      // Squeeze-excite networks compute much on such values; as rows of a matrix.
      if (refusal_[i].empty() && dims && isChannelVector(*dims, *dims))
        refusal_[i] = "one position per channel: both layouts are one";
      if (refusal_[i].empty() && !graph_.node(value.producer).predicates.empty()) refusal_[i] = "made in a branch of If";
    }
  }

  // Whether a convolution has a primitive for nChw16c.
  bool gains(const Node& node) const {
    const OpDef* op = inference_.ops().find(node);
    return op && op->layout.gains && groupsFit(node);
  }
  // Groups of a multiple of 16 channels, or of one.
  bool groupsFit(const Node& node) const {
    const std::int64_t groups = node.attrs.integer("group", 1);
    if (groups == 1) return true;
    for (const ValueId id : {node.input(0), node.input(1), node.output(0)}) {
      const auto dims = id ? dimsOf(id) : std::nullopt;
      if (!dims || dims->size() < 3) continue;
      if (refusal_[at(id)] == "" && (*dims)[1] != groups && (*dims)[1] / groups % kLayoutLanes != 0) return false;
    }
    return true;
  }

  bool flexible(const Node& node, const OpDef& op, bool input, std::size_t i) const {
    if (!maskHas(input ? op.layout.inputs : op.layout.outputs, i) || seesViews(node)) return false;
    if (!op.layout.elementwise) return op.layout.gains ? groupsFit(node) : keepsChannels(node, op);
    const auto out = dimsOf(node.output(0)), mine = dimsOf(input ? node.inputs[i] : node.outputs[i]);
    if (!out || !mine || *mine != *out) return false;
    // Every other operand is as large, a scalar or one element per channel, so that memory order is all that matters.
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const auto dims = id ? dimsOf(id) : out;
      return dims && (*dims == *out || elementCount(*dims) == 1 || (takesVectors(op, id) && isChannelVector(*dims, *out)));
    });
  }
  // Strides of views are those of plain memory.
  static bool seesViews(const Node& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (seesView(node.domain, node.op, i, node.attrs)) return true;
    return false;
  }
  // Whether the fast kernel reads one element per channel next to nChw16c.
  bool takesVectors(const OpDef& op, ValueId operand) const {
    return op.layout.vectors && graph_.value(operand).type.dtype == DType::kF32;
  }

  // Whether the channels of the node's operands stay sixteen neighbours: what it does along its axes decides, not only which
  // op it is.
  bool keepsChannels(const Node& node, const OpDef& op) const {
    const auto x = node.input(0) ? dimsOf(node.input(0)) : std::nullopt,
               y = node.output(0) ? dimsOf(node.output(0)) : std::nullopt;
    if (!x || !y) return false;
    switch (op.layout.channels) {
      case ChannelRule::kAny: return true;
      case ChannelRule::kParts: return partsFit(node, op);
      case ChannelRule::kSampled:
        return x->size() <= 4 && x->size() == y->size() && x->size() > 2 && (*x)[0] == (*y)[0] && (*x)[1] == (*y)[1];
      case ChannelRule::kFromVector: return isChannelVector(*x, *y);
      case ChannelRule::kReducedAway: return reducesSpace(node, *x);
      case ChannelRule::kSummedBack:
        return x->size() < 3 || isChannelVector(*y, *x) || y->size() + 1 < x->size() ||
               (y->size() < x->size() ? (*y)[0] == 1 : (*y)[1] == 1);
    }
    return true;
  }
  // A part that cannot follow would keep all others plain.
  bool partsFit(const Node& node, const OpDef& op) const {
    const auto fit = [&](const std::vector<ValueId>& operands, std::uint32_t mask) {
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i] && maskHas(mask, i) && !refusal_[at(operands[i])].empty()) return false;
      return true;
    };
    return fit(node.inputs, op.layout.inputs) && fit(node.outputs, op.layout.outputs);
  }
  bool reducesSpace(const Node& node, const Dims& x) const {
    const Tensor* axes = node.input(1) ? inference_.constant(node.input(1)) : nullptr;
    if (node.input(1) && !axes) return false;
    std::vector<bool> reduced(x.size(), !axes || axes->elements() == 0);
    for (std::int64_t i = 0; axes && i < axes->elements(); ++i) {
      const auto axis = normalizeAxis(elementAsInt(axes->view(), i), static_cast<std::int64_t>(x.size()));
      if (!axis) return false;
      reduced[static_cast<std::size_t>(*axis)] = true;
    }
    return x.size() > 2 && (reduced[1] || std::all_of(reduced.begin() + 2, reduced.end(), [](bool gone) { return gone; }));
  }

  // body(value, flexible) for every operand that is there.
  template <typename Body>
  void forEachOperand(const Node& node, Body&& body) {
    const OpDef* op = inference_.ops().find(node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i]) body(node.inputs[i], op && flexible(node, *op, true, i));
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o]) body(node.outputs[o], op && flexible(node, *op, false, o));
  }

  void join(const Node& node) {
    const OpDef* op = inference_.ops().find(node);
    if (!op || !op->layout.together) return;
    ValueId first;
    forEachOperand(node, [&](ValueId id, bool fits) {
      if (!fits) return;
      if (first)
        parent_[root(at(id))] = root(at(first));
      else
        first = id;
    });
  }

  double bytesOf(ValueId id) const {
    const auto dims = dimsOf(id);
    return dims ? static_cast<double>(elementCount(*dims)) * static_cast<double>(dtypeSize(graph_.value(id).type.dtype)) : 0;
  }

  void count(const Node& node) {
    const OpDef* op = inference_.ops().find(node);
    const bool gaining = gains(node);
    if (op && op->layout.gains && !gaining)
      context_.miss(node.id, fmt::format("{} groups; expected one, one per channel, or groups of a multiple of 16 channels",
                                         node.attrs.integer("group", 1)));
    forEachOperand(node, [&](ValueId id, bool fits) {
      Group& group = groups_[root(at(id))];
      if (!refusal_[at(id)].empty()) {
        // A convolution takes such a value as it is; whoever wants all operands alike keeps the others plain.
        const bool computed = graph_.value(id).role == ValueRole::kNodeOutput;
        if (fits && group.refusal.empty() && (op->layout.together || computed))
          group.refusal = fmt::format("'{}': {}", graph_.value(id).name, refusal_[at(id)]);
        if (fits && gaining && computed) {
          ++group.convolutions;
          if (!group.first) group.first = node.id;
        }
        return;
      }
      if (fits && gaining) {
        group.gain += bytesOf(id);
        ++group.convolutions;
        if (!group.first) group.first = node.id;
      } else if (!fits) {
        group.cost += bytesOf(id);
        ++group.reorders;
        if (group.costly.empty()) group.costly = node.label();
      }
    });
  }

  void decide(Group& group) {
    if (group.convolutions == 0) {
      if (group.refusal.empty()) group.refusal = "no convolution reads or writes it";
      return;
    }
    if (group.refusal.empty() && group.gain <= group.cost)
      group.refusal =
          fmt::format("{} convolutions would gain {:.0f} bytes of reorders, {} other uses would cost {:.0f}, the first {}",
                      group.convolutions, group.gain, group.reorders, group.cost, group.costly);
    if (!group.refusal.empty()) context_.miss(group.first, group.refusal);
  }

  // Operands that cannot be read or written in the layout of their value get a Reorder beside the node.
  void insertReorders() {
    std::vector<NodeId> order;
    std::map<std::int32_t, ValueId> plainCopy;
    const UseTable uses = graph_.uses();
    const std::vector<NodeId> before = graph_.order();
    for (const NodeId id : before) {
      const OpDef* op = inference_.ops().find(graph_.node(id));
      for (std::size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
        const ValueId in = graph_.node(id).inputs[i];
        if (!in || graph_.value(in).layout == Layout::kPlain || (op && flexible(graph_.node(id), *op, true, i))) continue;
        auto [copy, fresh] = plainCopy.try_emplace(in.index);
        if (fresh) {
          const NodeId reorder = addReorder(in, id, Layout::kPlain);
          copy->second = graph_.node(reorder).outputs[0];
          order.push_back(reorder);
        }
        graph_.setInput(id, i, copy->second);
      }
      order.push_back(id);
      for (std::size_t o = 0; o < graph_.node(id).outputs.size(); ++o) {
        const ValueId out = graph_.node(id).outputs[o];
        if (!out || graph_.value(out).layout == Layout::kPlain || (op && flexible(graph_.node(id), *op, false, o))) continue;
        // The producer writes `out` plain; whoever is after the reordered one reads that.
        const Layout layout = graph_.value(out).layout;
        graph_.mutableValue(out).layout = Layout::kPlain;
        const NodeId reorder = addReorder(out, id, layout);
        const ValueId blocked = graph_.node(reorder).outputs[0];
        for (const Use& use : uses.of(out)) {
          if (use.input == SIZE_MAX) continue;
          const Node& reader = graph_.node(use.node);
          const OpDef* readerOp = inference_.ops().find(reader);
          if (reader.inputs[use.input] == out && readerOp && flexible(reader, *readerOp, true, use.input))
            graph_.setInput(use.node, use.input, blocked);
        }
        order.push_back(reorder);
      }
    }
    graph_.setOrder(std::move(order));
  }

  NodeId addReorder(ValueId value, NodeId beside, Layout to) {
    const std::string name = graph_.value(value).name;
    const NodeId id = graph_.addNode(graph_.node(beside).name + "/Reorder", std::string(kInternalDomain), "Reorder", {value},
                                     {fmt::format("{}/{}", name, layoutName(to))});
    Node& node = graph_.mutableNode(id);
    const Node& neighbour = graph_.node(beside);
    // Others may read the copy before the optimizer runs.
    node.phase = neighbour.phase == Phase::kOptimizer ? graph_.node(graph_.value(value).producer).phase : neighbour.phase;
    node.provenance = neighbour.provenance;
    node.provenance.sources = {beside};
    node.provenance.pass = graph_.pass();
    Value& out = graph_.mutableValue(node.outputs[0]);
    out.type = graph_.value(value).type;
    out.layout = to;
    refusal_.resize(graph_.valueCapacity());  // decided like what it copies
    context_.note(fmt::format("{}: '{}' is reordered to {}", neighbour.label(), name, layoutName(to)));
    return id;
  }

  Graph& graph_;
  PassContext& context_;
  const Inference& inference_;
  std::vector<std::size_t> parent_;   // union-find over values
  std::vector<std::string> refusal_;  // by value; empty = may lie in nChw16c or nhwc
  std::map<std::size_t, Group> groups_;
};

}  // namespace

Status assignLayouts(Graph& graph, PassContext& context) {
  if (context.target.device != "cpu") {
    context.note(fmt::format("the kernels for '{}' take plain memory", context.target.device));
    return {};
  }
  return LayoutAssigner(graph, context).run();
}

}  // namespace stepscope
