#include "engine/build/snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/plan/explain_placement.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

std::string attributeText(const AttrValue& value) {
  std::string text = std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::int64_t>)
          return std::to_string(v);
        else if constexpr (std::is_same_v<T, float>)
          return fmt::format("{:g}", v);
        else if constexpr (std::is_same_v<T, std::string>)
          return v;
        else if constexpr (std::is_same_v<T, Tensor>)
          return fmt::format("{}{}", dtypeName(v.dtype()), dimsText(v.dims()));
        else if constexpr (std::is_same_v<T, std::vector<Tensor>>)
          return fmt::format("{} tensors", v.size());
        else {
          std::string list = "[";
          for (std::size_t i = 0; i < v.size() && i < 64; ++i) {
            if constexpr (std::is_same_v<T, std::vector<std::string>>)
              list += (i ? ", " : "") + v[i];
            else
              list += fmt::format("{}{:g}", i ? ", " : "", static_cast<double>(v[i]));
          }
          return list + "]";
        }
      },
      value);
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest) text.replace(kLongest, std::string::npos, "…");
  return text;
}

}  // namespace

std::string nodeCategory(const Node& node, const OpRegistry& ops) {
  if (node.phase == Phase::kOptimizer) return std::string(categoryName(OpCategory::kOptimizer));
  if (const OpDef* op = ops.find(node.domain, node.op)) return std::string(categoryName(op->category));
  // Ops that lowering takes apart have no definition.
  const bool control = node.domain.empty() && (node.op == "If" || node.op == "Loop");
  return std::string(categoryName(control ? OpCategory::kControl : OpCategory::kOther));
}

snapshot::Graph toSnapshot(const Graph& graph, const std::string& phase, const std::vector<ParameterChoice>& parameters,
                           ValueId loss, const OpRegistry& ops) {
  snapshot::Graph out;
  out.set_phase(phase);
  out.set_name(toUtf8(graph.name));
  out.set_loss(loss ? loss.index : -1);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    snapshot::Node& n = *out.add_nodes();
    n.set_id(id.index);
    n.set_name(toUtf8(node.name));
    n.set_domain(toUtf8(node.domain));
    n.set_op(toUtf8(node.op));
    for (const ValueId in : node.inputs) n.add_inputs(in.index);
    for (const ValueId o : node.outputs) n.add_outputs(o.index);
    for (const auto& [name, value] : node.attrs.entries()) {
      auto& attribute = *n.add_attributes();
      attribute.set_name(toUtf8(name));
      attribute.set_text(toUtf8(attributeText(value)));
    }
    n.set_phase(static_cast<snapshot::Phase>(node.phase));
    auto& provenance = *n.mutable_provenance();
    for (const NodeId source : node.provenance.sources) provenance.add_sources(source.index);
    provenance.set_pass(std::string(node.provenance.pass));
    provenance.set_imported(node.provenance.imported.index);
    provenance.set_forward(node.provenance.forward.index);
    provenance.set_module_path(toUtf8(std::string(node.provenance.modulePath)));
    provenance.set_module_path_inferred(node.provenance.modulePathInferred);
    provenance.set_source_file(toUtf8(std::string(node.provenance.sourceFile)));
    provenance.set_source_line(node.provenance.sourceLine);
    provenance.set_source_code(toUtf8(std::string(node.provenance.sourceCode)));
    for (const Predicate& p : node.predicates) {
      auto& predicate = *n.add_predicates();
      predicate.set_value(p.condition.index);
      predicate.set_expected(p.expected);
    }
    n.set_category(nodeCategory(node, ops));
    const OpDef* op = ops.find(node.domain, node.op);
    n.set_random(op && op->random);
  }
  std::map<std::int32_t, const ParameterChoice*> choices;
  for (const ParameterChoice& choice : parameters) choices[choice.value.index] = &choice;
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    const Value& value = graph.value({static_cast<std::int32_t>(i)});
    if (!graph.alive(value.id)) continue;
    snapshot::Value& v = *out.add_values();
    v.set_id(value.id.index);
    v.set_name(toUtf8(value.name));
    v.set_dtype(std::string(dtypeName(value.type.dtype)));
    v.set_rank_known(value.type.shape.has_value());
    std::int64_t bytes = static_cast<std::int64_t>(dtypeSize(value.type.dtype));
    if (value.type.shape)
      for (const Dim& dim : *value.type.shape) {
        v.add_dims(dim.text());
        if (!dim.known() || __builtin_mul_overflow(bytes, dim.value(), &bytes)) bytes = 0;
      }
    v.set_bytes(value.type.shape ? bytes : 0);
    v.set_role(static_cast<snapshot::ValueRole>(value.role));
    if (const auto it = choices.find(value.id.index); it != choices.end()) {
      v.set_trained(it->second->trained);
      v.set_trained_reason(toUtf8(it->second->reason));
    }
  }
  for (const ValueId in : graph.inputs()) out.add_inputs(in.index);
  for (const ValueId o : graph.outputs()) out.add_outputs(o.index);
  for (const Edit& edit : graph.edits()) {
    auto& e = *out.add_edits();
    e.set_kind(static_cast<snapshot::Edit::Kind>(edit.kind));
    e.set_node(edit.node.index);
    e.set_from(edit.from.index);
    e.set_to(edit.to.index);
    e.set_pass(std::string(edit.pass.view()));
  }
  for (const StateUpdate& update : graph.stateUpdates) {
    auto& u = *out.add_state_updates();
    u.set_state(update.state.index);
    u.set_next(update.next.index);
  }
  return out;
}

snapshot::Plan toSnapshot(const Executor& executor) {
  const ExecutionPlan& plan = executor.plan();
  const Graph& graph = executor.graph();
  snapshot::Plan out;
  const auto operand = [&](snapshot::Operand& o, int buffer) {
    o.set_buffer(buffer);
    o.set_value(buffer < 0 ? -1 : plan.buffers[static_cast<std::size_t>(buffer)].value.index);
    o.set_bytes(buffer < 0 ? 0 : plan.buffers[static_cast<std::size_t>(buffer)].bytes);
  };
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    const Node& node = graph.node(instruction.node);
    auto& o = *out.add_instructions();
    o.set_index(static_cast<int>(i));
    o.set_node(instruction.node.index);
    o.set_phase(static_cast<snapshot::Phase>(instruction.phase));
    o.set_op(toUtf8(node.op));
    o.set_label(toUtf8(instructionLabel(plan, graph, static_cast<int>(i))));
    for (const int b : instruction.inputs) operand(*o.add_inputs(), b);
    for (const int b : instruction.outputs) operand(*o.add_outputs(), b);
    o.set_bytes_read(instruction.bytesRead);
    o.set_bytes_written(instruction.bytesWritten);
    o.set_flops(instruction.flops);
    o.set_implementation(std::string(executor.implementation(static_cast<int>(i))));
    o.set_view(instruction.view);
    for (const auto& [buffer, expected] : instruction.predicates) {
      auto& predicate = *o.add_predicates();
      predicate.set_value(plan.buffers[static_cast<std::size_t>(buffer)].value.index);
      predicate.set_expected(expected);
    }
    o.set_kind(instruction.view                               ? snapshot::KIND_VIEW
               : instruction.kind == InstructionKind::kCopy   ? snapshot::KIND_COPY
               : instruction.kind == InstructionKind::kCommit ? snapshot::KIND_COMMIT
                                                              : snapshot::KIND_KERNEL);
    o.set_stream(instruction.stream);
    for (const Wait& wait : instruction.waits) o.add_waits(wait.instruction);
    o.set_on_host(toUtf8(instruction.onHostReason));
    o.set_workspace_buffer(plan.workspaceOf(i));
    o.set_update_entry(instruction.updateEntry);
  }
  std::map<std::string_view, std::int64_t> owners;
  std::int64_t workspace = 0;
  const std::vector<std::string> placements = explainPlacement(plan);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    auto& o = *out.add_buffers();
    o.set_index(static_cast<int>(b));
    o.set_value(buffer.value.index);
    o.set_name(toUtf8(buffer.name));
    o.set_buffer_class(static_cast<snapshot::BufferClass>(buffer.bufferClass));
    o.set_in_arena(buffer.home == Home::kArena && buffer.space == plan.space);
    o.set_on_host(plan.space == Space::kDevice && buffer.space == Space::kHost);
    o.set_offset(plan.offsets[b]);
    o.set_bytes(buffer.bytes);
    o.set_first(buffer.first);
    o.set_last(buffer.last);
    o.set_shares(buffer.shares);
    const std::string decision = decisionText(plan, static_cast<int>(b));
    o.set_decision(toUtf8(placements[b].empty() ? decision : decision + "; " + placements[b]));
    for (const std::string& refusal : refusalTexts(plan, graph, static_cast<int>(b))) o.add_refusals(toUtf8(refusal));
    const bool atPeak = buffer.first <= plan.peakInstruction && plan.peakInstruction <= buffer.last;
    if (buffer.shares >= 0 || buffer.space != plan.space || (buffer.home == Home::kArena && !atPeak)) continue;
    owners[bufferClassName(buffer.bufferClass)] += buffer.bytes;
    if (buffer.bufferClass == BufferClass::kWorkspace) workspace += buffer.bytes;
  }
  out.set_arena_bytes(plan.arenaBytes);
  out.set_lower_bound_bytes(plan.lowerBoundBytes);
  out.set_persistent_bytes(plan.persistentBytes);
  if (plan.arenaRoomBytes) out.set_arena_room_bytes(*plan.arenaRoomBytes);
  out.set_workspace_bytes(workspace);
  out.set_peak_instruction(plan.peakInstruction);
  for (const auto& [name, bytes] : owners) {
    auto& owner = *out.add_peak_owners();
    owner.set_owner(std::string(name));
    owner.set_bytes(bytes);
  }
  out.set_first_backward(plan.firstBackward);
  out.set_first_optimizer(plan.firstOptimizer);
  out.set_signature(plan.signature);
  out.set_reason(plan.reason);
  return out;
}

std::vector<snapshot::Determinism> determinismOf(const Executor& executor) {
  std::vector<snapshot::Determinism> verdicts;
  for (std::size_t i = 0; i < executor.plan().instructions.size(); ++i) {
    const Instruction& instruction = executor.plan().instructions[i];
    if (instruction.kind != InstructionKind::kKernel) continue;  // moves what a node made
    snapshot::Determinism& verdict = verdicts.emplace_back();
    verdict.set_node(instruction.node.index);
    const Determinism* const says = executor.determinism(static_cast<int>(i));
    if (!says) {
      verdict.set_verdict("not known yet");
      verdict.set_reason("extents depend on data: the kernel is chosen when it runs");
      continue;
    }
    switch (says->order) {
      case Determinism::Order::kFixed: verdict.set_verdict("deterministic"); break;
      case Determinism::Order::kKeyedRandom: verdict.set_verdict("deterministic, keyed random"); break;
      case Determinism::Order::kThreadCount: verdict.set_verdict("depends on thread count"); break;
      case Determinism::Order::kUnordered: verdict.set_verdict("differs from run to run"); break;
    }
    verdict.set_reason(says->reason);
  }
  return verdicts;
}

}  // namespace stepscope
