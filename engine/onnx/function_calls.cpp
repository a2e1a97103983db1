#include "engine/onnx/function_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/data/limits.h"
#include "engine/onnx/problem.h"

namespace stepscope {
namespace {

constexpr std::int64_t kUncounted = std::int64_t{1} << 60;  // so many that nobody counts them

struct Calls {
  std::int64_t ownNodes = 0;
  std::map<std::size_t, std::int64_t> callees;  // function → number of calls
};

void collect(const Graph& graph, const std::map<FunctionKey, std::size_t>& indices, Calls& calls) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const auto it = indices.find(keyOf(node));
    if (it != indices.end())
      ++calls.callees[it->second];
    else
      ++calls.ownNodes;
    for (const auto& entry : node.subgraphs) collect(*entry.second, indices, calls);
  }
}

std::string shown(const Function& function) { return "'" + shownName(function.name) + "'"; }

// As they stand in the file.
std::int64_t writtenNodes(const Calls& calls) {
  std::int64_t total = calls.ownNodes;
  for (const auto& [callee, count] : calls.callees) total += count;
  return total;
}

// Nodes after inlining; saturates, so fan-out cannot overflow.
std::int64_t inlinedNodes(const Calls& calls, const std::vector<std::int64_t>& nodes) {
  std::int64_t total = calls.ownNodes;
  for (const auto& [callee, count] : calls.callees) {
    std::int64_t added = 0;
    if (__builtin_mul_overflow(nodes[callee], count, &added) || __builtin_add_overflow(total, added, &total))
      return kUncounted;
  }
  return std::min(total, kUncounted);
}

}  // namespace

FunctionKey keyOf(const Function& function) { return {function.domain, function.name, function.overload}; }

FunctionKey keyOf(const Node& node) { return {node.domain, node.op, node.attrs.text(kOverloadAttribute, "")}; }

Result<FunctionPlan> planFunctions(const Graph& graph, const std::vector<Function>& functions) {
  FunctionPlan plan;
  for (std::size_t i = 0; i < functions.size(); ++i)
    if (!plan.indices.emplace(keyOf(functions[i]), i).second)
      return invalid(fmt::format("function {}: defined twice; expected one definition", shown(functions[i])));
  std::vector<Calls> calls(functions.size());
  for (std::size_t i = 0; i < functions.size(); ++i) collect(functions[i].body, plan.indices, calls[i]);

  // Kahn's algorithm over "calls": callees first.
  std::vector<std::size_t> waiting(functions.size());
  std::vector<std::vector<std::size_t>> callers(functions.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    waiting[i] = calls[i].callees.size();
    for (const auto& entry : calls[i].callees) callers[entry.first].push_back(i);
    if (waiting[i] == 0) ready.push_back(i);
  }
  std::vector<int> depth(functions.size(), 1);
  plan.nodes.resize(functions.size());
  while (!ready.empty()) {
    const std::size_t done = ready.back();
    ready.pop_back();
    plan.order.push_back(done);
    plan.nodes[done] = inlinedNodes(calls[done], plan.nodes);
    for (const std::size_t caller : callers[done]) {
      depth[caller] = std::max(depth[caller], depth[done] + 1);
      if (--waiting[caller] == 0) ready.push_back(caller);
    }
  }
  if (plan.order.size() < functions.size()) {
    std::string names;
    for (std::size_t i = 0, listed = 0; i < functions.size() && listed < 5; ++i)
      if (waiting[i] > 0) {
        names += (names.empty() ? "" : ", ") + shown(functions[i]);
        ++listed;
      }
    return invalid("function " + names +
                   ": recursion; expected functions that do not call themselves, directly or through others");
  }
  for (std::size_t i = 0; i < functions.size(); ++i)
    if (depth[i] > limits::kCallDepth)
      return fail(ErrorCode::kLimitExceeded, fmt::format("function {}: calls nested {} deep; at most {} levels are inlined",
                                                         shown(functions[i]), depth[i], limits::kCallDepth));
  Calls main;
  collect(graph, plan.indices, main);
  plan.graphNodes = inlinedNodes(main, plan.nodes);
  std::int64_t written = writtenNodes(main);
  for (const Calls& of : calls) written += writtenNodes(of);
  const std::int64_t most = std::max(written, limits::kNodesAfterInlining);
  if (plan.graphNodes > most)
    return fail(
        ErrorCode::kLimitExceeded,
        fmt::format("graph '{}': {} nodes after inlining its functions; expected at most {}, for a file of {} nodes",
                    shownName(graph.name),
                    plan.graphNodes == kUncounted ? "uncountably many" : fmt::format("{}", plan.graphNodes), most, written));
  return plan;
}

}  // namespace stepscope
