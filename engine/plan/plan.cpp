#include "engine/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/ir/low_copy.h"
#include "engine/ops/op_def.h"
#include "engine/plan/early_collectives.h"
#include "engine/plan/order_streams.h"
#include "engine/plan/place_operands.h"
#include "engine/plan/spec_table.h"

namespace stepscope {
namespace {

std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }
std::size_t at(int i) { return static_cast<std::size_t>(i); }

class Planner {
 public:
  Planner(const Graph& graph, const Inference& inference, const PlanOptions& options)
      : graph_(graph), inference_(inference), options_(options) {}

  Result<ExecutionPlan> make() {
    plan_.anyThreads = options_.anyThreads;
    plan_.bufferOfValue.assign(graph_.valueCapacity(), -1);
    orderInstructions();
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i) SS_TRY(addBuffers(i));
    for (Instruction& instruction : plan_.instructions.edit()) specify(instruction);
    if (options_.device && !options_.device->onHost())
      placeOperands(plan_, graph_, inference_.ops(), *options_.device, options_.referenceKernels, specs_);
    findPhases();
    collectUses();
    rootLast_.resize(plan_.buffers.size());
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) rootLast_[b] = plan_.buffers[b].last;
    stateOfNext_.assign(graph_.valueCapacity(), {});
    for (const StateUpdate& update : graph_.stateUpdates)
      if (!stateOfNext_[at(update.next)]) stateOfNext_[at(update.next)] = update.state;
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i) share(i);
    SS_TRY(addCommits());
    beginCollectivesEarly(plan_, graph_, inference_.ops(), options_.overlap, options_.prefetch);
    orderStreams(plan_, options_.streams);
    describedAt_.assign(plan_.buffers.size(), -1);
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i) describe(i);
    finishLifetimes();
    classify();
    plan_.instructions.edit().shrink_to_fit();
    plan_.buffers.shrink_to_fit();
    return std::move(plan_);
  }

 private:
  // Sums of gradients over micro steps, which are written over the sums before.
  static bool accumulates(const Node& node) { return node.domain == kInternalDomain && node.op == "Accumulate"; }

  // Forward, backward and recompute in graph order, then what joins the accumulated gradients, so that state is written at
  // the end only and a step can be thrown away until there; then the optimizer.
  void orderInstructions() {
    const auto stageOf = [](const Node& node) { return node.phase == Phase::kOptimizer ? 2 : accumulates(node) ? 1 : 0; };
    std::vector<Instruction> instructions;
    instructions.reserve(graph_.order().size());
    for (const int stage : {0, 1, 2}) {
      std::vector<NodeId> nodes;
      for (const NodeId id : graph_.order())
        if (stageOf(graph_.node(id)) == stage) nodes.push_back(id);
      if (stage == 0) nodes = withEarlyCollectives(nodes);
      if (options_.overlap && stage != 1) nodes = delayCollectives(graph_, inference_.ops(), nodes, stage == 0);
      for (const NodeId id : nodes) {
        Instruction instruction;
        instruction.node = id;
        instruction.phase = graph_.node(id).phase;
        instruction.updateEntry = stage == 2;
        instructions.push_back(std::move(instruction));
      }
    }
    plan_.instructions = std::move(instructions);
    plan_.instructionOfNode.assign(graph_.nodeCapacity(), -1);
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i)
      plan_.instructionOfNode[static_cast<std::size_t>(plan_.instructions[i].node.index)] = static_cast<int>(i);
  }

  // Collectives of the backward phase as soon as what they send is there, so that it need not be kept; those that send state
  // stay in front of their first reader, so that what they bring need not be. One after another in graph order, which is the
  // same on all ranks, while the order of the nodes around them may differ.
  std::vector<NodeId> withEarlyCollectives(const std::vector<NodeId>& nodes) const {
    std::vector<NodeId> collectives, order;
    for (const NodeId id : nodes) {
      const OpDef* op = inference_.ops().find(graph_.node(id));
      if (!op || op->sideEffect != SideEffect::kCollective || graph_.node(id).phase != Phase::kBackward) continue;
      collectives.push_back(id);
    }
    if (collectives.empty()) return nodes;
    std::set<NodeId> apart(collectives.begin(), collectives.end()), missing;
    for (const NodeId id : nodes) missing.insert(id);
    std::size_t next = 0;
    const auto ready = [&](NodeId id) {
      const auto producer = [&](ValueId input) { return input ? graph_.value(input).producer : NodeId{}; };
      const std::vector<ValueId>& inputs = graph_.node(id).inputs;
      return std::ranges::any_of(inputs, [&](ValueId input) { return producer(input).valid(); }) &&
             std::ranges::none_of(inputs, [&](ValueId input) { return missing.contains(producer(input)); });
    };
    const auto put = [&](NodeId id) {
      order.push_back(id);
      missing.erase(id);
    };
    for (const NodeId id : nodes) {
      if (apart.contains(id)) {
        // Its own place: what comes behind may read it.
        while (missing.contains(id)) put(collectives[next++]);
        continue;
      }
      put(id);
      while (next < collectives.size() && ready(collectives[next])) put(collectives[next++]);
    }
    return order;
  }

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
    int& index = plan_.bufferOfValue[at(id)];
    if (index >= 0) return index;
    const Value& value = graph_.value(id);
    Buffer buffer;
    buffer.value = id;
    buffer.editText().name = value.name;
    if (value.type.kind != ValueKind::kTensor)
      return unsupported(fmt::format("value '{}': {}; expected a tensor; hint: only sequences of fixed length are planned",
                                     value.name, value.type.text()));
    const auto dims = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
    if (value.data && value.role != ValueRole::kNodeOutput) {
      buffer.bytes = static_cast<std::int64_t>(value.data->bytes());
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
      Buffer& b = plan_.buffers[at(buffer)];
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
        Buffer& b = plan_.buffers[at(plan_.bufferOfValue[at(id)])];
        b.last = end;
        if (b.first < 0) b.first = 0;
      }
    };
    for (const ValueId out : graph_.outputs()) keep(out);
    for (const ValueId id : options_.pinned) keep(id);
    for (const StateUpdate& update : graph_.stateUpdates) keep(update.next);
  }

  // Decides whose memory the outputs of instruction i are.
  void share(std::size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    const Node& node = graph_.node(instruction.node);
    const OpDef* op = inference_.ops().find(node);
    if (!op || instruction.dynamic || instruction.kind != InstructionKind::kKernel) return;
    if (op->view && instruction.outputs[0] >= 0 && instruction.inputs[0] >= 0) {
      makeShared(instruction.outputs[0], instruction.inputs[0],
                 fmt::format("view of '{}'", plan_.buffers[at(instruction.inputs[0])].name()));
      plan_.instructions.edit()[i].view = true;
      return;
    }
    if ((node.phase == Phase::kOptimizer || accumulates(node)) && updateInPlace(i)) return;
    if (instruction.outputs.empty() || instruction.outputs[0] < 0) return;
    Buffer& out = plan_.buffers[at(instruction.outputs[0])];
    if (out.home != Home::kArena) return;
    bool candidate = false;
    for (std::size_t k = 0; k < instruction.inputs.size(); ++k) {
      if (instruction.inputs[k] < 0 || !maskHas(op->inPlaceInputs, k)) continue;
      candidate = true;
      const std::string refusal = options_.inPlace ? refuse(i, k) : "option memory.inplace is off";
      if (!refusal.empty()) {
        out.editText().refusals.push_back(
            fmt::format("input {} '{}': {}", k, plan_.buffers[at(instruction.inputs[k])].name(), refusal));
        continue;
      }
      makeShared(instruction.outputs[0], instruction.inputs[k],
                 fmt::format("in place of '{}'", plan_.buffers[at(instruction.inputs[k])].name()));
      return;
    }
    if (!candidate) out.editText().refusals.push_back(fmt::format("{} reads inputs after it has begun to write", node.op));
  }

  // Why output 0 of instruction i cannot take over the memory of input k; empty when it can.
  std::string refuse(std::size_t i, std::size_t k) const {
    const Instruction& instruction = plan_.instructions[i];
    const int input = instruction.inputs[k], root = plan_.root(input);
    const Buffer& out = plan_.buffers[at(instruction.outputs[0])];
    const Buffer& in = plan_.buffers[at(root)];
    if (in.space != out.space) return "it is in the memory of the " + std::string(spaceName(in.space));
    if (in.home != Home::kArena) return "its memory outlives the instruction (parameter, constant or batch)";
    if (plan_.buffers[at(input)].bytes != out.bytes || in.bytes != out.bytes)
      return fmt::format("{} bytes; expected {}", in.bytes, out.bytes);
    const int last = rootLast_[at(root)];
    if (last > static_cast<int>(i)) {
      if (last >= static_cast<int>(plan_.instructions.size())) return "kept until the end of the step";
      return fmt::format("read again by instruction {} ({})", last, graph_.node(plan_.instructions[at(last)].node).label());
    }
    for (std::size_t other = 0; other < instruction.inputs.size(); ++other)
      if (other != k && instruction.inputs[other] >= 0 && instruction.inputs[other] != input &&
          plan_.root(instruction.inputs[other]) == root)
        return fmt::format("input {} is the same memory seen with other extents", other);
    // The memory of a value of one branch of If must not be handed to a node that runs under other conditions.
    const NodeId producer = graph_.value(in.value).producer;
    if (producer && graph_.node(producer).predicates != graph_.node(instruction.node).predicates)
      return "made under another condition of If";
    return {};
  }

  // Parameters, optimizer state and accumulated gradients: output o is the next version of an input and is written over it.
  bool updateInPlace(std::size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    bool any = false;
    readBy_.resize(plan_.buffers.size(), -1);
    for (const int in : instruction.inputs)
      if (in >= 0) readBy_[at(in)] = static_cast<int>(i);
    for (const int out : instruction.outputs) {
      if (out < 0) continue;
      const ValueId updated = stateOfNext_[at(plan_.buffers[at(out)].value)];
      if (!updated) continue;
      const int state = plan_.bufferOfValue[at(updated)];
      if (state < 0) continue;
      // The copy of a parameter in a low type is written beside it, not read.
      const bool beside = graph_.value(updated).role == ValueRole::kState &&
                          !sourceOfLowCopy(graph_.value(updated).name).empty() &&
                          plan_.buffers[at(out)].space == plan_.buffers[at(state)].space;
      if (readBy_[at(state)] != static_cast<int>(i) && !beside) continue;
      const int last = rootLast_[at(state)];
      if (last > static_cast<int>(i)) {
        plan_.buffers[at(out)].editText().refusals.push_back(
            fmt::format("'{}' is read again by instruction {}", plan_.buffers[at(state)].name(), last));
        continue;
      }
      makeShared(out, state, fmt::format("written over '{}'", plan_.buffers[at(state)].name()));
      plan_.firstStateWrite = std::min(plan_.firstStateWrite, static_cast<int>(i));
      any = true;
    }
    return any;
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
      Buffer& written = plan_.buffers[at(state)];
      written.space = plan_.space;
      written.last = index;
      if (written.first < 0) written.first = index;
      plan_.instructions.edit().push_back(std::move(commit));
    }
    if (static_cast<int>(plan_.instructions.size()) == end) return {};
    plan_.firstOptimizer = std::min(plan_.firstOptimizer, end);
    plan_.firstBackward = std::min(plan_.firstBackward, plan_.firstOptimizer);
    plan_.firstStateWrite = std::min(plan_.firstStateWrite, end);
    for (Buffer& buffer : plan_.buffers)  // what is kept is kept until after the commits
      if (buffer.last == end && buffer.home != Home::kState) buffer.last = static_cast<int>(plan_.instructions.size());
    return {};
  }

  void makeShared(int buffer, int with, std::string decision) {
    const int root = plan_.root(with);
    Buffer& b = plan_.buffers[at(buffer)];
    rootLast_[at(root)] = std::max(rootLast_[at(root)], b.last);
    b.shares = with;
    b.owner = root;
    b.home = plan_.buffers[at(root)].home;
    b.editText().decision = std::move(decision);
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
    instruction.kernel = specs_.share(std::move(spec));
  }

  // What it costs. Bytes depend on whose memory its outputs are.
  void describe(std::size_t i) {
    Instruction& instruction = plan_.instructions.edit()[i];
    if (instruction.kind != InstructionKind::kKernel) {
      instruction.bytesRead = instruction.bytesWritten = plan_.buffers[at(instruction.outputs[0])].bytes;
      return;
    }
    if (instruction.view || instruction.dynamic) return;
    for (std::size_t k = 0; k < instruction.inputs.size(); ++k) {
      const int in = instruction.inputs[k];
      if (in < 0 || describedAt_[at(in)] == static_cast<int>(i)) continue;  // an operand that comes twice is read once
      describedAt_[at(in)] = static_cast<int>(i);
      instruction.bytesRead += bytesOfOperand(plan_, instruction, k);
    }
    for (std::size_t k = 0; k < instruction.outputs.size(); ++k)
      instruction.bytesWritten += bytesWrittenOf(plan_, instruction, k);
    const Node& node = graph_.node(instruction.node);
    const OpDef* op = inference_.ops().find(node);
    std::vector<std::span<const std::int64_t>> inputDims, outputDims;
    for (const OperandSpec& o : instruction.spec().inputs) inputDims.emplace_back(o.dims);
    for (const OperandSpec& o : instruction.spec().outputs) outputDims.emplace_back(o.dims);
    if (op && op->flops)
      instruction.flops = op->flops({inputDims, outputDims, &node.attrs});
    else if (!outputDims.empty() && !(op && op->traffic.moves))
      instruction.flops = static_cast<double>(elementCount(outputDims[0]));
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
      Buffer& root = plan_.buffers[at(plan_.root(static_cast<int>(b)))];
      root.first = std::min(root.first, member.first);
      root.last = std::max(root.last, member.last);
    }
    for (Buffer& buffer : plan_.buffers) {
      if (buffer.shares >= 0 || !buffer.decision().empty()) continue;
      switch (buffer.home) {
        case Home::kArena:
          buffer.editText().decision = buffer.space == plan_.space ? "own memory" : "own memory on the host";
          break;
        case Home::kState: buffer.editText().decision = "persistent state"; break;
        case Home::kConstant: buffer.editText().decision = "constant of the graph"; break;
        case Home::kInput: buffer.editText().decision = "copied from the batch"; break;
        case Home::kDynamic:
          buffer.editText().decision = "allocated when its producer has run: extents depend on data";
          break;
      }
      if (buffer.home != Home::kArena) plan_.persistentBytes += buffer.bytes;
    }
    for (Buffer& buffer : plan_.buffers)
      if (buffer.layout != Layout::kPlain)
        buffer.editText().decision += fmt::format("; laid out as {}", layoutName(buffer.layout));
  }

  void classify() {
    std::vector<bool> trained(graph_.valueCapacity(), false), gradient(graph_.valueCapacity(), false),
        update(graph_.valueCapacity(), false);
    for (const ValueId id : options_.trained) trained[at(id)] = true;
    for (const Instruction& instruction : plan_.instructions) {
      const Node& node = graph_.node(instruction.node);
      const OpDef* op = inference_.ops().find(node);
      for (std::size_t i = 0; op && i < node.inputs.size(); ++i)
        if (node.inputs[i] && op->gradients.has(i)) gradient[at(node.inputs[i])] = true;
    }
    for (const StateUpdate& u : graph_.stateUpdates) update[at(u.next)] = true;
    for (Buffer& buffer : plan_.buffers) {
      if (!buffer.value) continue;
      const Value& value = graph_.value(buffer.value);
      switch (value.role) {
        case ValueRole::kInput: buffer.bufferClass = BufferClass::kInputData; continue;
        case ValueRole::kInitializer:
          buffer.bufferClass = trained[at(buffer.value)] ? BufferClass::kParameter : BufferClass::kFrozen;
          continue;
        case ValueRole::kState:
          buffer.bufferClass = sourceOfLowCopy(value.name).empty() ? BufferClass::kOptimizerState : BufferClass::kParameter;
          continue;
        case ValueRole::kConstant: buffer.bufferClass = BufferClass::kConstantData; continue;
        case ValueRole::kNodeOutput: break;
      }
      const Phase phase = graph_.node(value.producer).phase;
      if (update[at(buffer.value)])
        buffer.bufferClass = BufferClass::kUpdate;
      else if (gradient[at(buffer.value)])
        buffer.bufferClass = BufferClass::kGradient;
      else if (phase == Phase::kForward)
        buffer.bufferClass =
            buffer.last >= plan_.firstBackward && plan_.firstBackward < static_cast<int>(plan_.instructions.size())
                ? BufferClass::kStash
                : BufferClass::kActivation;
      else
        buffer.bufferClass = BufferClass::kBackward;
    }
  }

  const Graph& graph_;
  const Inference& inference_;
  const PlanOptions& options_;
  ExecutionPlan plan_;
  SpecTable specs_;
  std::vector<int> rootLast_;         // by buffer that owns its memory: last use of it, by whatever name
  std::vector<ValueId> stateOfNext_;  // by value: the state whose next version it is
  std::vector<int> readBy_;           // by buffer: the last instruction that was found to read it
  std::vector<int> describedAt_;      // by buffer: the last instruction whose reads counted it
};

}  // namespace

Result<ExecutionPlan> makePlan(const Graph& graph, const Inference& inference, const PlanOptions& options) {
  return Planner(graph, inference, options).make();
}

}  // namespace stepscope
