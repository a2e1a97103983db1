#include "engine/passes/fuse_pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>

#include "engine/ops/op_registry.h"
#include "engine/passes/closing_sum.h"
#include "engine/passes/pointwise_steps.h"
#include "engine/passes/rewrite_walk.h"
#include "kernels/layout.h"

namespace stepscope {
namespace {

// Whether the operand is repeated along axes of the result.
bool broadcasts(const Dims& operand, const Dims& result) {
  if (operand.size() > result.size() || elementCount(operand) > elementCount(result)) return false;
  const std::size_t lead = result.size() - operand.size();
  for (std::size_t i = 0; i < operand.size(); ++i)
    if (operand[i] != 1 && operand[i] != result[lead + i]) return false;
  return true;
}

// The step that rounds to a low type.
std::optional<PointwiseOp> roundingTo(DType dtype) {
  if (dtype == DType::kBF16) return PointwiseOp::kToBFloat16;
  return dtype == DType::kF16 ? std::optional(PointwiseOp::kToFloat16) : std::nullopt;
}

class Fuser : RewriteWalk {
 public:
  Fuser(Graph& graph, PassContext& context)
      : RewriteWalk(graph, context), grouped_(graph.nodeCapacity(), false), missed_(graph.nodeCapacity(), false) {}

  Status run() {
    const std::vector<NodeId> order = graph_.order();
    convolves_ = std::ranges::any_of(order, [&](NodeId id) {
      const OpDef* op = context_.inference.ops().find(graph_.node(id));
      return op && op->layout.gains;
    });
    for (std::size_t i = order.size(); i-- > 0;) {
      SS_TRY(context_.cancel.check("fuse_pointwise"));
      const Node& sink = graph_.node(order[i]);
      if (grouped_[at(sink.id)]) continue;
      if (auto group = summed(sink)) {
        grow(*group);
        if (stepsFor(*group) > 0) write(*group);
        continue;
      }
      const auto steps = fusable(sink);
      if (!steps || typeOf(sink.output(0)) == DType::kBool) continue;
      Group group{sink.id, sink.id, dimsOf(sink.output(0)), {{sink.id, *steps}}, {}};
      if (!fits(sink, group)) continue;
      grow(group);
      if (group.members.size() > 1 && stepsFor(group) > 0) write(group);  // casts to one type alone compute nothing
    }
    graph_.removeNodes(gone_);
    return {};
  }

 private:
  struct Member {
    NodeId id;
    NodeSteps steps;
  };
  struct Group {
    NodeId sink;  // becomes the fused node
    NodeId last;  // of the chain: the sink, or what it sums
    Dims dims;
    std::vector<Member> members;
    std::optional<ClosingSum> sum;

    bool has(NodeId id) const {
      return std::ranges::any_of(members, [&](const Member& member) { return member.id == id; });
    }
  };

  DType typeOf(ValueId id) const { return graph_.value(id).type.dtype; }
  Dims dimsOf(ValueId id) const {
    const auto& shape = graph_.value(id).type.shape;
    return (shape ? knownDims(*shape) : std::nullopt).value_or(Dims{-1});
  }

  std::optional<NodeSteps> fusable(const Node& node) const {
    if (node.phase == Phase::kOptimizer || node.outputs.size() != 1 || dimsOf(node.output(0)) == Dims{-1})
      return std::nullopt;
    return stepsOf(graph_, node);
  }

  // The chain whose end `sum` adds up, so that nobody reads its elements.
  std::optional<Group> summed(const Node& sum) {
    auto closing = closingSumOf(graph_, context_.inference, sum);
    const NodeId made = closing ? graph_.value(sum.input(0)).producer : NodeId{};
    if (!made || sum.phase == Phase::kOptimizer || grouped_[at(made)]) return std::nullopt;
    const Node& last = graph_.node(made);
    const auto steps = fusable(last);
    const ValueId elements = sum.input(0);
    if (!steps || typeOf(elements) == DType::kBool) return std::nullopt;
    Group group{sum.id, made, dimsOf(elements), {{made, *steps}}, std::move(closing)};
    if (!fits(last, group) || last.phase != sum.phase || last.predicates != sum.predicates) return std::nullopt;
    std::string why = group.sum->refusal;
    if (why.empty() && !readers_.single(elements))
      why = fmt::format("'{}' is read elsewhere too and written in any case", graph_.value(elements).name);
    if (why.empty() && convolves_ && layoutRefusal(typeOf(elements), group.dims).empty())
      why = "beside convolutions the operands of its chain may lie in another layout";
    if (why.empty()) return group;
    miss(sum.id, std::move(why));
    return std::nullopt;
  }

  bool fits(const Node& node, const Group& group) const {
    return std::ranges::all_of(node.inputs, [&](ValueId in) {
      const Dims dims = in ? dimsOf(in) : Dims{};
      return dims != Dims{-1} && broadcasts(dims, group.dims);
    });
  }

  // Of values that are read from memory, and constants.
  std::vector<ValueId> inputsOf(const Group& group) const {
    std::vector<ValueId> inputs;
    for (const Member& member : group.members)
      for (const ValueId in : graph_.node(member.id).inputs) {
        const NodeId producer = in ? graph_.value(in).producer : NodeId{};
        if (!in || (producer && group.has(producer))) continue;
        if (std::ranges::find(inputs, in) == inputs.end()) inputs.push_back(in);
      }
    return inputs;
  }
  std::size_t constantsOf(const Group& group) const {
    std::vector<float> constants;
    for (const Member& member : group.members)
      for (const float constant : member.steps.constants)
        if (std::ranges::find(constants, constant) == constants.end()) constants.push_back(constant);
    return constants.size();
  }

  // With the rounding of a result of a low type.
  std::size_t stepsFor(const Group& group) const {
    std::size_t steps = 0;
    for (const Member& member : group.members)
      steps += member.steps.steps.size() + (member.id != group.sink && isLow(typeOf(graph_.node(member.id).output(0))));
    return steps;
  }

  void grow(Group& group) {
    for (bool grown = true; grown;) {
      grown = false;
      for (std::size_t n = 0; n < group.members.size(); ++n) {
        const std::vector<ValueId> inputs = graph_.node(group.members[n].id).inputs;
        for (const ValueId in : inputs)
          if (in && graph_.value(in).producer && take(group, in)) grown = true;
      }
    }
  }

  // The node that makes `in`, if all its readers are in the group.
  bool take(Group& group, ValueId in) {
    const Node &node = graph_.node(graph_.value(in).producer), &sink = graph_.node(group.sink);
    if (grouped_[at(node.id)] || group.has(node.id) || node.phase != sink.phase || node.predicates != sink.predicates ||
        readers_.isKept(in) || dimsOf(in) != group.dims)
      return false;
    const auto steps = fusable(node);
    if (!steps || !fits(node, group)) return false;
    const bool own =
        std::ranges::all_of(readers_.of(in), [&](const Use& use) { return use.input != SIZE_MAX && group.has(use.node); });
    if (!own) return false;
    if (convolves_ && !oneType(node, graph_.node(group.last)))
      return miss(node.id, "values of two types; beside convolutions those of a chain lie in one layout");
    Group larger = group;
    larger.members.push_back({node.id, *steps});
    if (stepsFor(larger) > kMostPointwiseSteps || inputsOf(larger).size() + constantsOf(larger) > kMostPointwiseInputs)
      return miss(node.id, fmt::format("the chain has {} steps already", stepsFor(group)));
    group = std::move(larger);
    return true;
  }

  bool oneType(const Node& node, const Node& last) const {
    const DType type = typeOf(last.output(0));
    const auto fits = [&](ValueId id) { return !id || typeOf(id) == type || typeOf(id) == DType::kBool; };
    return fits(node.output(0)) && std::ranges::all_of(node.inputs, fits) && std::ranges::all_of(last.inputs, fits);
  }

  bool miss(NodeId node, std::string condition) {
    if (!missed_[at(node)]) context_.miss(node, std::move(condition));  // once, however often it is met
    missed_[at(node)] = true;
    return false;
  }

  void write(Group& group) {
    std::ranges::sort(group.members, {}, [&](const Member& member) { return place(member.id); });
    std::vector<ValueId> inputs = inputsOf(group);
    std::vector<std::pair<float, std::size_t>> constants;  // and their inputs
    for (const Member& member : group.members)
      for (const float constant : member.steps.constants) {
        if (std::ranges::any_of(constants, [&](const auto& known) { return known.first == constant; })) continue;
        constants.emplace_back(constant, inputs.size());
        inputs.push_back(constantOf(constant));
      }
    PointwiseProgram program{inputs.size(), {}};
    std::vector<std::pair<ValueId, std::size_t>> results;
    const auto placeOf = [&](ValueId id) {
      for (const auto& [value, index] : results)
        if (value == id) return index;
      return static_cast<std::size_t>(std::ranges::find(inputs, id) - inputs.begin());
    };
    std::vector<NodeId> sources;
    for (const Member& member : group.members) {
      const Node& node = graph_.node(member.id);
      const std::size_t first = inputs.size() + program.steps.size();
      const auto operand = [&](std::size_t of) {
        if (of >= NodeSteps::kResults) return first + of - NodeSteps::kResults;
        if (of < NodeSteps::kConstants) return placeOf(node.input(of));
        const float wanted = member.steps.constants[of - NodeSteps::kConstants];
        return std::ranges::find(constants, wanted, &std::pair<float, std::size_t>::first)->second;
      };
      for (PointwiseStep step : member.steps.steps) {
        for (std::size_t k = 0; k < infoOf(step.op).arity; ++k) step.operands[k] = operand(step.operands[k]);
        program.steps.push_back(step);
      }
      std::size_t result = member.steps.steps.empty() ? operand(0) : inputs.size() + program.steps.size() - 1;
      const auto rounding = roundingTo(typeOf(node.output(0)));
      if (rounding && member.id != group.sink) {
        program.steps.push_back({*rounding, {result, 0, 0}});
        result = inputs.size() + program.steps.size() - 1;
      }
      results.emplace_back(node.output(0), result);
      grouped_[at(member.id)] = true;
      if (member.id == group.sink) continue;
      sources.push_back(member.id);
      gone_.push_back(member.id);
    }
    Attributes attributes{{"steps", program.text()}};
    setChainType(graph_, inputs, typeOf(graph_.node(group.sink).output(0)), attributes);
    if (group.sum) {
      attributes.set("axes", group.sum->axes);
      attributes.set("shape", dimsOf(graph_.node(group.sink).output(0)));
      if (group.sum->mean) attributes.set("mean", std::int64_t{1});
    }
    attributes.shareEqual();
    Node& sink = graph_.mutableNode(group.sink);
    sink.domain = kInternalDomain;
    sink.op = group.sum ? "PointwiseSum" : "Pointwise";
    sink.inputs = inputs;
    sink.attrs = std::move(attributes);
    sink.provenance.sources.insert(sink.provenance.sources.end(), sources.begin(), sources.end());
    sink.provenance.pass = graph_.pass();
    graph_.logChange(group.sink);
    context_.match();
  }

  // One for all chains.
  ValueId constantOf(float number) {
    ValueId& made = constants_[std::bit_cast<std::uint32_t>(number)];
    if (!made) made = graph_.addConstant("step", Tensor::scalar(DType::kF32, static_cast<double>(number)));
    return made;
  }

  std::vector<bool> grouped_, missed_;
  std::unordered_map<std::uint32_t, ValueId> constants_;  // by their bits
  std::vector<NodeId> gone_;
  bool convolves_ = false;
};

}  // namespace

Status fusePointwise(Graph& graph, PassContext& context) { return Fuser(graph, context).run(); }

}  // namespace stepscope
