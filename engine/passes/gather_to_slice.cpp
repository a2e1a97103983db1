#include "engine/passes/gather_to_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "engine/passes/beside.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

// begin … end in steps; `limit` instead of end where that is no number.
struct Run {
  std::int64_t begin = 0, end = 0, step = 1;
  ValueId limit;
};

// Places of an axis of `extent` elements, where that is known, as a Slice says them. `why` where they are no run.
std::optional<Run> runOf(const std::vector<std::int64_t>& places, std::optional<std::int64_t> extent, std::string& why) {
  std::vector<std::int64_t> from = places;
  for (std::int64_t& place : from) {
    if (place < 0 && !extent) return why = "a place counts from the end of an unknown extent", std::nullopt;
    if (place < 0) place += *extent;
    if (place < 0 || (extent && place >= *extent)) return why = "a place is outside of the axis", std::nullopt;
  }
  const std::int64_t step = from.size() > 1 ? from[1] - from[0] : 1;
  if (step == 0) return why = "a place is picked twice", std::nullopt;
  for (std::size_t i = 1; i < from.size(); ++i)
    if (from[i] - from[i - 1] != step) return why = "its places have no one distance", std::nullopt;
  const std::int64_t end = from.back() + (step > 0 ? 1 : -1);
  return Run{from.front(), end < 0 ? std::numeric_limits<std::int64_t>::min() : end, step, {}};
}

std::optional<Run> rangeOf(const Inference& inference, const Node& range, std::string& why) {
  const auto one = [&](ValueId id) -> std::optional<std::int64_t> {
    const auto numbers = inference.integers(id);
    return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
  };
  const auto begin = one(range.input(0)), step = one(range.input(2));
  if (!begin || !step || *begin < 0 || *step < 1)
    return why = "where the Range begins and its step are no numbers", std::nullopt;
  // Below zero a limit would count from the end; an extent never is.
  const auto limit = inference.contents(range.input(1));
  if (!limit || limit->size() != 1 || !(limit->front().asSymbol() || limit->front().asKnown().value_or(-1) >= 0))
    return why = "the limit of the Range is no extent", std::nullopt;
  return Run{*begin, 0, *step, range.input(1)};
}

}  // namespace

Status gatherToSlice(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  std::vector<NodeId> order;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node node = graph.node(id);
    const auto& data = node.input(0) ? graph.value(node.input(0)).type.shape : std::nullopt;
    const auto& places = node.input(1) ? graph.value(node.input(1)).type.shape : std::nullopt;
    order.push_back(id);
    if (!isOp(node, "Gather") || !data || data->empty() || !places || places->size() != 1 ||
        inference.contents(node.output(0)))
      continue;
    const std::int64_t axis = node.attrs.integer("axis", 0);
    const Dim& extent = (*data)[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(data->size()) : axis)];
    std::string why;
    std::optional<Run> run;
    if (const auto numbers = inference.integers(node.input(1)))
      run = numbers->empty() ? (why = "it picks nothing", std::nullopt) : runOf(*numbers, extent.asKnown(), why);
    else if (const Node* range = producerOf(graph, node.input(1), "Range"))
      run = rangeOf(inference, *range, why);
    else
      continue;
    if (!run) {
      context.miss(id, why);
      continue;
    }
    const auto number = [&](std::int64_t value) { return graph.addConstant("number", Tensor::ints({&value, 1})); };
    ValueId end = run->limit;
    if (!end) {
      end = number(run->end);
    } else {
      const ValueId shape = number(1);
      end = emitBeside(graph, id, "Reshape", {end, shape});
      order.insert(order.end() - 1, graph.value(end).producer);
      SS_TRY(inference.inferNode(graph.value(end).producer));
      if (graph.value(end).type.dtype != DType::kI64) {
        end = emitBeside(graph, id, "Cast", {end}, {{"to", static_cast<std::int64_t>(DType::kI64)}});
        order.insert(order.end() - 1, graph.value(end).producer);
        SS_TRY(inference.inferNode(graph.value(end).producer));
      }
    }
    const std::vector<ValueId> inputs{node.input(0), number(run->begin), end, number(axis), number(run->step)};
    Node& slice = graph.mutableNode(id);
    slice.op = "Slice";
    slice.inputs = inputs;
    slice.attrs = {};
    slice.provenance.pass = graph.pass();
    graph.logChange(id);
    context.match();
  }
  if (context.result.matches > 0) graph.setOrder(std::move(order));
  return {};
}

}  // namespace stepscope
