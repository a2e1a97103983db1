#include "engine/passes/fuse_pointwise.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/passes/pattern.h"
#include "kernels/pointwise_program.h"

namespace stepscope {
namespace {

std::size_t at(NodeId id) { return static_cast<std::size_t>(id.index); }

// How an operand lies beside a result [outer, inner]: whole, one row, one column, one element.
struct Walk {
  std::int64_t inner = 0;  // elements of a row; 0 where the operand does not care
};

std::optional<Walk> walkOf(const Dims& operand, const Dims& result) {
  const std::int64_t count = elementCount(operand);
  if (count == elementCount(result) || count == 1) return Walk{0};
  if (operand.size() > result.size()) return std::nullopt;
  Dims own, whole;  // axes that are one element long in the result say nothing
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 1) continue;
    const std::size_t lead = result.size() - operand.size();
    own.push_back(i < lead ? 1 : operand[i - lead]);
    whole.push_back(result[i]);
  }
  // A run of ones and a run of whole extents, in either order.
  const bool row = own.front() == 1;
  std::size_t split = 0;
  while (split < own.size() && (row ? own[split] == 1 : own[split] == whole[split])) ++split;
  std::int64_t inner = 1;
  for (std::size_t i = split; i < own.size(); ++i) {
    if (own[i] != (row ? whole[i] : 1)) return std::nullopt;
    inner *= whole[i];
  }
  return Walk{inner};
}

class Fuser {
 public:
  Fuser(Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        readers_(graph),
        position_(graph.nodeCapacity(), -1),
        grouped_(graph.nodeCapacity(), false) {
    for (std::size_t i = 0; i < graph.order().size(); ++i) position_[at(graph.order()[i])] = static_cast<int>(i);
  }

  Status run() {
    const std::vector<NodeId> order = graph_.order();
    for (std::size_t i = order.size(); i-- > 0;) {
      const Node& sink = graph_.node(order[i]);
      if (grouped_[at(sink.id)] || !fusable(sink) || isMask(sink.output(0))) continue;
      Group group{sink.id, dimsOf(sink.output(0)), 0, {sink.id}};
      if (!fits(sink, group)) continue;
      grow(group);
      if (group.nodes.size() > 1) write(group);
    }
    graph_.removeNodes(gone_);
    return {};
  }

 private:
  struct Group {
    NodeId sink;
    Dims dims;
    std::int64_t inner = 0;
    std::vector<NodeId> nodes;
  };

  bool isMask(ValueId id) const { return graph_.value(id).type.dtype == DType::kBool; }
  Dims dimsOf(ValueId id) const {
    const auto& shape = graph_.value(id).type.shape;
    return (shape ? knownDims(*shape) : std::nullopt).value_or(Dims{-1});
  }

  bool fusable(const Node& node) const {
    if (!node.domain.empty() || !node.subgraphs.empty() || node.outputs.size() != 1 || node.phase == Phase::kOptimizer)
      return false;
    const bool sum = node.op == "Sum" || ((node.op == "Max" || node.op == "Min") && node.inputs.size() > 2);
    const auto op = pointwiseOp(sum ? "Add" : node.op);
    if (!op || (sum ? node.op != "Sum" || node.inputs.size() < 2 : node.inputs.size() != infoOf(*op).arity)) return false;
    const PointwiseOpInfo& info = infoOf(*op);
    if (graph_.value(node.output(0)).type.dtype != (info.mask ? DType::kBool : DType::kF32) ||
        dimsOf(node.output(0)) == Dims{-1})
      return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i] || dimsOf(node.inputs[i]) == Dims{-1}) return false;
      if (graph_.value(node.inputs[i]).type.dtype != (info.readsMask && i == 0 ? DType::kBool : DType::kF32)) return false;
    }
    return true;
  }

  // Whether the node's operands can be walked in rows of the group's length; settles that length.
  bool fits(const Node& node, Group& group) const {
    std::int64_t inner = group.inner;
    for (const ValueId in : node.inputs) {
      const auto walk = walkOf(dimsOf(in), group.dims);
      if (!walk || (walk->inner != 0 && inner != 0 && walk->inner != inner)) return false;
      if (walk->inner != 0) inner = walk->inner;
    }
    group.inner = inner;
    return true;
  }

  std::vector<ValueId> inputsOf(const std::vector<NodeId>& nodes) const {
    std::vector<ValueId> inputs;
    for (const NodeId id : nodes)
      for (const ValueId in : graph_.node(id).inputs) {
        const NodeId producer = graph_.value(in).producer;
        if (producer && std::find(nodes.begin(), nodes.end(), producer) != nodes.end()) continue;
        if (std::find(inputs.begin(), inputs.end(), in) == inputs.end()) inputs.push_back(in);
      }
    return inputs;
  }

  static std::size_t stepsOf(const Node& node) { return node.op == "Sum" ? node.inputs.size() - 1 : 1; }

  void grow(Group& group) {
    const Node& sink = graph_.node(group.sink);
    std::size_t steps = stepsOf(sink);
    for (bool grown = true; grown;) {
      grown = false;
      for (std::size_t n = 0; n < group.nodes.size(); ++n) {
        for (const ValueId in : graph_.node(group.nodes[n]).inputs) {
          const NodeId id = graph_.value(in).producer;
          if (!id || grouped_[at(id)] || std::find(group.nodes.begin(), group.nodes.end(), id) != group.nodes.end())
            continue;
          const Node& node = graph_.node(id);
          if (!fusable(node) || node.phase != sink.phase || node.predicates != sink.predicates || readers_.isKept(in) ||
              dimsOf(in) != group.dims)
            continue;
          const bool own = std::all_of(readers_.of(in).begin(), readers_.of(in).end(), [&](const Use& use) {
            return use.input != SIZE_MAX && std::find(group.nodes.begin(), group.nodes.end(), use.node) != group.nodes.end();
          });
          if (!own) continue;
          if (!fits(node, group)) {
            miss(id, "its operands broadcast otherwise than those of the chain");
            continue;
          }
          std::vector<NodeId> larger = group.nodes;
          larger.push_back(id);
          if (steps + stepsOf(node) > kMostPointwiseSteps || inputsOf(larger).size() > kMostPointwiseInputs) {
            miss(id, fmt::format("the chain has {} steps already", steps));
            continue;
          }
          steps += stepsOf(node);
          group.nodes = std::move(larger);
          grown = true;
        }
      }
    }
  }

  void miss(NodeId node, std::string condition) { context_.miss(node, std::move(condition)); }

  void write(Group& group) {
    std::sort(group.nodes.begin(), group.nodes.end(),
              [&](NodeId a, NodeId b) { return position_[at(a)] < position_[at(b)]; });
    const std::vector<ValueId> inputs = inputsOf(group.nodes);
    PointwiseProgram program{inputs.size(), {}};
    std::vector<std::pair<ValueId, std::size_t>> results;
    const auto operand = [&](ValueId id) {
      for (const auto& [value, index] : results)
        if (value == id) return index;
      return static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), id) - inputs.begin());
    };
    std::vector<NodeId> sources;
    for (const NodeId id : group.nodes) {
      const Node& node = graph_.node(id);
      if (node.op == "Sum") {
        for (std::size_t i = 1; i < node.inputs.size(); ++i)
          program.steps.push_back(
              {PointwiseOp::kAdd,
               {i == 1 ? operand(node.inputs[0]) : inputs.size() + program.steps.size() - 1, operand(node.inputs[i])}});
      } else {
        PointwiseStep step{*pointwiseOp(node.op), {}};
        for (std::size_t i = 0; i < node.inputs.size(); ++i) step.operands[i] = operand(node.inputs[i]);
        program.steps.push_back(step);
      }
      results.emplace_back(node.output(0), inputs.size() + program.steps.size() - 1);
      grouped_[at(id)] = true;
      if (id == group.sink) continue;
      sources.push_back(id);
      gone_.push_back(id);
    }
    Node& sink = graph_.mutableNode(group.sink);
    sink.domain = kInternalDomain;
    sink.op = "Pointwise";
    sink.inputs = inputs;
    sink.attrs = {{"steps", program.text()}};
    sink.provenance.sources.insert(sink.provenance.sources.end(), sources.begin(), sources.end());
    sink.provenance.pass = graph_.pass();
    graph_.logChange(group.sink);
    context_.match();
  }

  Graph& graph_;
  PassContext& context_;
  Readers readers_;
  std::vector<int> position_;
  std::vector<bool> grouped_;
  std::vector<NodeId> gone_;
};

}  // namespace

Status fusePointwise(Graph& graph, PassContext& context) { return Fuser(graph, context).run(); }

}  // namespace stepscope
