#include "engine/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_def.h"
#include "engine/plan/describe_plan.h"
#include "engine/plan/early_collectives.h"
#include "engine/plan/order_instructions.h"
#include "engine/plan/order_streams.h"
#include "engine/plan/place_operands.h"
#include "engine/plan/share_memory.h"
#include "engine/plan/spec_table.h"
#include "engine/plan/stream_partition.h"
#include "kernels/index.h"

namespace stepscope {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, const Inference& inference, const PlanOptions& options, const Cancel& cancel)
      : graph_(graph), inference_(inference), options_(options), cancel_(cancel) {}

  Result<ExecutionPlan> make() {
    plan_.anyThreads = options_.anyThreads;
    plan_.deviceRanks = options_.deviceRanks;
    plan_.bufferOfValue = std::vector<int>(graph_.valueCapacity(), -1);
    plan_.instructions = orderedInstructions(graph_, inference_.ops(), options_.overlap);
    plan_.instructionOfNode = std::vector<int>(graph_.nodeCapacity(), -1);
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i)
      plan_.instructionOfNode.edit()[static_cast<std::size_t>(plan_.instructions[i].node.index)] = static_cast<int>(i);
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i) SS_TRY(addBuffers(i));
    for (Instruction& instruction : plan_.instructions.edit()) {
      SS_TRY(wanted());
      specify(instruction);
    }
    if (options_.device && !options_.device->onHost())
      placeOperands(plan_, graph_, inference_.ops(), inference_.kernels(), *options_.device, options_.referenceKernels,
                    options_.deviceRanks, specs_);
    findPhases();
    collectUses();
    SS_TRY(wanted());
    shareMemory(plan_, graph_, inference_.ops(), options_.inPlace);
    SS_TRY(addCommits());
    SS_TRY(wanted());
    beginCollectivesEarly(plan_, graph_, inference_.ops(), options_.overlap, options_.prefetch);
    if (options_.partition)
      orderStreams(plan_, options_.streams, assignStreams(plan_, graph_, *options_.partition).streams);
    else
      orderStreams(plan_, options_.streams);
    SS_TRY(wanted());
    describeInstructions(plan_, graph_, inference_.ops());
    finishLifetimes();
    classifyBuffers(plan_, graph_, inference_.ops(), options_.trained);
    plan_.instructions.edit().shrink_to_fit();
    plan_.refusals.edit().shrink_to_fit();
    return std::move(plan_);
  }

 private:
  Status wanted() const { return cancel_.check("plan"); }

  void findPhases() {
    const int count = static_cast<int>(plan_.instructions.size());
    plan_.firstBackward = plan_.firstOptimizer = plan_.firstStateWrite = count;
    for (int i = count; i-- > 0;) {
      const Phase phase = plan_.instructions[at(i)].phase;
      if (phase == Phase::kBackward || phase == Phase::kRecompute) plan_.firstBackward = i;
      if (phase == Phase::kOptimizer) plan_.firstOptimizer = i;
    }
    plan_.firstBackward = std::min(plan_.firstBackward, plan_.firstOptimizer);
  }

  Result<int> bufferFor(ValueId id) {
    int& index = plan_.bufferOfValue.edit()[at(id)];
    if (index >= 0) return index;
    const Value& value = graph_.value(id);
    Buffer buffer;
    buffer.value = id;
    buffer.name = value.name;
    if (value.type.kind != ValueKind::kTensor)
      return unsupported(fmt::format("value '{}': {}; expected a tensor; hint: only sequences of fixed length are planned",
                                     value.name, value.type.text()));
    const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
    if (value.data && value.role != ValueRole::kNodeOutput) {
      buffer.bytes = static_cast<std::int64_t>(value.data.bytes());
    } else if (dims) {
      const auto count = checkedElementCount(*dims);
      std::int64_t bytes = 0;
      if (!count || __builtin_mul_overflow(*count, static_cast<std::int64_t>(dtypeSize(value.type.dtype)), &bytes) ||
          bytes > (std::int64_t{1} << 47))
        return fail(ErrorCode::kLimitExceeded,
                    fmt::format("value '{}': {} is larger than 2^47 bytes", value.name, value.type.text()));
      buffer.bytes = bytes;
    }
    switch (value.role) {
      case ValueRole::kNodeOutput: buffer.home = dims ? Home::kArena : Home::kDynamic; break;
      case ValueRole::kInput: buffer.home = Home::kInput; break;
      case ValueRole::kInitializer:
      case ValueRole::kState: buffer.home = Home::kState; break;
      case ValueRole::kConstant: buffer.home = Home::kConstant; break;
    }
    if (value.type.dtype == DType::kString && buffer.home == Home::kArena) buffer.home = Home::kDynamic;
    if (buffer.home == Home::kArena) buffer.layout = value.layout;
    index = static_cast<int>(plan_.buffers.size());
    plan_.buffers.push_back(std::move(buffer));
    return index;
  }

  Status addBuffers(std::size_t i) {
    Instruction& instruction = plan_.instructions.edit()[i];
    const Node& node = graph_.node(instruction.node);
    for (const ValueId in : node.inputs) {
      if (!in) {
        instruction.inputs.push_back(-1);
        continue;
      }
      SS_ASSIGN(const int buffer, bufferFor(in));
      instruction.inputs.push_back(buffer);
    }
    for (const Predicate& predicate : node.predicates) {
      SS_ASSIGN(const int buffer, bufferFor(predicate.condition));
      instruction.predicates.edit().emplace_back(buffer, predicate.expected);
    }
    for (const ValueId out : node.outputs) {
      if (!out) {
        instruction.outputs.push_back(-1);
        continue;
      }
      SS_ASSIGN(const int buffer, bufferFor(out));
      instruction.outputs.push_back(buffer);
    }
    const auto isDynamic = [&](int b) { return b >= 0 && plan_.buffers[at(b)].home == Home::kDynamic; };
    instruction.dynamic = std::any_of(instruction.inputs.begin(), instruction.inputs.end(), isDynamic) ||
                          std::any_of(instruction.outputs.begin(), instruction.outputs.end(), isDynamic);
    return {};
  }

  void collectUses() {
    const auto touch = [&](int buffer, int instruction) {
      if (buffer < 0) return;
      Buffer& b = plan_.buffers.edit(at(buffer));
      if (b.first < 0) b.first = instruction;
      b.last = std::max(b.last, instruction);
    };
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i) {
      const Instruction& instruction = plan_.instructions[i];
      for (const int b : instruction.inputs) touch(b, static_cast<int>(i));
      for (const auto& [b, expected] : instruction.predicates) touch(b, static_cast<int>(i));
      for (const int b : instruction.outputs) touch(b, static_cast<int>(i));
    }
    const int end = static_cast<int>(plan_.instructions.size());
    const auto keep = [&](ValueId id) {
      if (id && plan_.bufferOfValue[at(id)] >= 0) {
        Buffer& b = plan_.buffers.edit(at(plan_.bufferOfValue[at(id)]));
        b.last = end;
        if (b.first < 0) b.first = 0;
      }
    };
    for (const ValueId out : graph_.outputs()) keep(out);
    for (const ValueId id : options_.pinned) keep(id);
    for (const StateUpdate& update : graph_.stateUpdates) keep(update.next);
  }

  // Next versions of state that could not be written over it in place are copied at the end of the step, under the
  // conditions of If of the node that made them.
  Status addCommits() {
    const int end = static_cast<int>(plan_.instructions.size());
    plan_.firstCommit = end;
    for (const StateUpdate& update : graph_.stateUpdates) {
      const NodeId producer = graph_.value(update.next).producer;
      const int made = plan_.instructionOf(producer);
      if (made < 0)
        return invalid(fmt::format("state '{}': its next version '{}' is computed by no node of the step; expected one",
                                   graph_.value(update.state).name, graph_.value(update.next).name));
      SS_ASSIGN(const int next, bufferFor(update.next));
      SS_ASSIGN(const int state, bufferFor(update.state));
      if (plan_.root(next) == plan_.root(state)) continue;
      Instruction commit;
      commit.kind = InstructionKind::kCommit;
      commit.node = producer;
      commit.phase = Phase::kOptimizer;
      commit.updateEntry = plan_.instructions[at(made)].updateEntry;
      commit.predicates = plan_.instructions[at(made)].predicates;
      commit.inputs = {next};
      commit.outputs = {state};
      const int index = static_cast<int>(plan_.instructions.size());
      Buffer& written = plan_.buffers.edit(at(state));
      written.space = plan_.space;
      written.last = index;
      if (written.first < 0) written.first = index;
      plan_.instructions.edit().push_back(std::move(commit));
    }
    if (static_cast<int>(plan_.instructions.size()) == end) return {};
    plan_.firstOptimizer = std::min(plan_.firstOptimizer, end);
    plan_.firstBackward = std::min(plan_.firstBackward, plan_.firstOptimizer);
    plan_.firstStateWrite = std::min(plan_.firstStateWrite, end);
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b)  // what is kept is kept until after the commits
      if (plan_.buffers[b].last == end && plan_.buffers[b].home != Home::kState)
        plan_.buffers.edit(b).last = static_cast<int>(plan_.instructions.size());
    return {};
  }

  void specify(Instruction& instruction) {
    const Node& node = graph_.node(instruction.node);
    const OpDef* op = inference_.ops().find(node);
    KernelSpec spec;
    spec.domain = node.domain;
    spec.op = node.op;
    spec.attrs = node.attrs;
    spec.threads = options_.threads;
    if (options_.unordered) spec.attrs.set("unordered", std::int64_t{1});
    const auto operand = [&](int buffer, bool input) {
      OperandSpec result;
      if (buffer < 0) return result;
      const ValueId id = plan_.buffers[at(buffer)].value;
      const ValueType& type = graph_.value(id).type;
      result.dtype = type.dtype;
      const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
      result.dims = dims.value_or(Dims{});
      result.dynamic = !dims;
      result.layout = plan_.buffers[at(buffer)].layout;
      if (input)
        if (const auto constant = inference_.sharedConstant(id)) result.constant = *constant;
      return result;
    };
    spec.inputs.reserve(instruction.inputs.size());
    spec.outputs.reserve(instruction.outputs.size());
    for (const int b : instruction.inputs) spec.inputs.push_back(operand(b, true));
    for (const int b : instruction.outputs) spec.outputs.push_back(operand(b, false));
    if (options_.tf32 && op && op->category == OpCategory::kMatmul && !spec.inputs.empty() &&
        spec.inputs[0].dtype == DType::kF32)
      spec.attrs.set("tf32", std::int64_t{1});
    if (op && op->layout.elementwise) dropSharedLayout(spec);
    if (op) instruction.traffic = op->traffic;
    instruction.collective = op && op->sideEffect == SideEffect::kCollective;
    instruction.kernel = specs_.share(std::move(spec));
  }

  // Where all full-sized operands of an elementwise op lie alike, its kernel need not know how.
  static void dropSharedLayout(KernelSpec& spec) {
    const OperandSpec& y = spec.outputs[0];
    const auto alike = [&](const OperandSpec& o) {
      return !o.present() ||
             (o.dims == y.dims ? o.layout == y.layout : o.layout == Layout::kPlain && elementCount(o.dims) == 1);
    };
    if (!std::all_of(spec.inputs.begin(), spec.inputs.end(), alike) ||
        !std::all_of(spec.outputs.begin(), spec.outputs.end(), alike))
      return;
    for (auto* operands : {&spec.inputs, &spec.outputs})
      for (OperandSpec& operand : *operands) operand.layout = Layout::kPlain;
  }

  void finishLifetimes() {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].shares < 0) continue;
      const Buffer& member = plan_.buffers[b];
      Buffer& root = plan_.buffers.edit(at(plan_.root(static_cast<int>(b))));
      root.first = std::min(root.first, member.first);
      root.last = std::max(root.last, member.last);
    }
    for (const Buffer& buffer : plan_.buffers)
      if (buffer.sharing == Sharing::kNone && buffer.home != Home::kArena) plan_.persistentBytes += buffer.bytes;
  }

  const Graph& graph_;
  const Inference& inference_;
  const PlanOptions& options_;
  const Cancel cancel_;
  ExecutionPlan plan_;
  SpecTable specs_;
};

}  // namespace

Result<ExecutionPlan> makePlan(const Graph& graph, const Inference& inference, const PlanOptions& options,
                               const Cancel& cancel) {
  return Planner(graph, inference, options, cancel).make();
}

}  // namespace stepscope
