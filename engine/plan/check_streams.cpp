// The rules of order_streams.h written down once more, as a graph of moments: an instruction is issued, then it runs.
#include <fmt/format.h>

#include <algorithm>

#include "engine/plan/order_streams.h"
#include "kernels/index.h"

namespace stepscope {
namespace {

// Instructions that have run before a moment, one bit each.
class Done {
 public:
  explicit Done(std::size_t count) : words_((count + 63) / 64) {}
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  bool has(std::size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void join(const Done& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }

 private:
  std::vector<std::uint64_t> words_;
};

struct Moments {
  std::vector<Done> issued, runs;  // what has run when an instruction is issued, and when it begins to run
};

Moments momentsOf(const ExecutionPlan& plan) {
  const std::size_t count = plan.instructions.size();
  Moments moments{std::vector<Done>(count, Done(count)), std::vector<Done>(count, Done(count))};
  std::vector<int> tail(at(plan.streams), -1);
  const auto joinRun = [&](Done& done, int other) {
    done.join(moments.runs[at(other)]);
    done.set(at(other));
  };
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (i > 0) {
      moments.issued[i].join(moments.issued[i - 1]);
      if (plan.instructions[i - 1].onHost) joinRun(moments.issued[i], static_cast<int>(i) - 1);
    }
    for (const Wait& wait : instruction.waits)
      if (wait.host) joinRun(moments.issued[i], wait.instruction);
    moments.runs[i].join(moments.issued[i]);
    for (const Wait& wait : instruction.waits)
      if (!wait.host) joinRun(moments.runs[i], wait.instruction);
    if (instruction.onHost) continue;
    int& last = tail[at(instruction.stream)];
    if (last >= 0) joinRun(moments.runs[i], last);
    last = static_cast<int>(i);
  }
  return moments;
}

struct Access {
  int instruction = 0, buffer = 0;
  bool writes = false, whenIssued = false;
};

std::vector<Access> accessesOf(const ExecutionPlan& plan) {
  std::vector<Access> accesses;
  for (int i = 0; i < static_cast<int>(plan.instructions.size()); ++i) {
    const Instruction& instruction = plan.instructions[at(i)];
    if (instruction.view) continue;
    for (const auto& [buffer, expected] : instruction.predicates) accesses.push_back({i, buffer, false, true});
    for (const int b : instruction.inputs)
      if (b >= 0) accesses.push_back({i, b, false, false});
    for (const int b : instruction.outputs)
      if (b >= 0) accesses.push_back({i, b, true, false});
    if (const int workspace = plan.workspaceOf(i); workspace >= 0) accesses.push_back({i, workspace, true, false});
  }
  return accesses;
}

bool sameBytes(const ExecutionPlan& plan, int a, int b) {
  const Buffer &x = plan.buffers[at(a)], &y = plan.buffers[at(b)];
  if (plan.root(a) == plan.root(b)) return true;
  return x.home == Home::kArena && y.home == Home::kArena && x.space == y.space &&
         plan.offsets[at(a)] < plan.offsets[at(b)] + y.bytes && plan.offsets[at(b)] < plan.offsets[at(a)] + x.bytes;
}

// Of the instruction, and of whoever made what it reads: Select does not read the branch that did not run.
std::vector<Predicate> conditionsOf(const ExecutionPlan& plan, const Graph& graph, const Access& access) {
  std::vector<Predicate> conditions;
  for (const auto& [buffer, expected] : plan.instructions[at(access.instruction)].predicates)
    conditions.push_back({plan.buffers[at(buffer)].value, expected});
  const ValueId value = plan.buffers[at(access.buffer)].value;
  if (const NodeId producer = value ? graph.value(value).producer : NodeId{}) {
    const auto& made = graph.node(producer).predicates;
    conditions.insert(conditions.end(), made.begin(), made.end());
  }
  return conditions;
}

bool neverBoth(const std::vector<Predicate>& a, const std::vector<Predicate>& b) {
  for (const Predicate& p : a)
    for (const Predicate& q : b)
      if (p.condition == q.condition && p.expected != q.expected) return true;
  return false;
}

}  // namespace

std::vector<std::string> checkStreams(const ExecutionPlan& plan, const Graph& graph) {
  const Moments moments = momentsOf(plan);
  const std::vector<Access> accesses = accessesOf(plan);
  std::vector<std::string> problems;
  for (std::size_t k = 0; k < accesses.size(); ++k)
    for (std::size_t earlier = 0; earlier < k; ++earlier) {
      const Access &a = accesses[earlier], &b = accesses[k];
      if (a.instruction == b.instruction || (!a.writes && !b.writes) || a.whenIssued || !sameBytes(plan, a.buffer, b.buffer))
        continue;
      const Done& done = (b.whenIssued ? moments.issued : moments.runs)[at(b.instruction)];
      if (done.has(at(a.instruction)) || neverBoth(conditionsOf(plan, graph, a), conditionsOf(plan, graph, b))) continue;
      problems.push_back(
          fmt::format("instruction {} ({}) {} '{}' and instruction {} ({}) {} '{}' in the same bytes; expected an event "
                      "that orders them",
                      a.instruction, instructionLabel(plan, graph, a.instruction), a.writes ? "writes" : "reads",
                      plan.buffers[at(a.buffer)].name, b.instruction, instructionLabel(plan, graph, b.instruction),
                      b.writes ? "writes" : "reads", plan.buffers[at(b.buffer)].name));
    }
  return problems;
}

}  // namespace stepscope
