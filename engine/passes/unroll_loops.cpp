#include "engine/passes/unroll_loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/passes/loop_writer.h"
#include "engine/passes/predicate_loops.h"

namespace stepscope {
namespace {

class Unroller : LoopWriter {
 public:
  Unroller(Graph& graph, PassContext& context) : LoopWriter(graph, context) {}

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node& node = graph_.node(id);
      if (node.domain.empty() && (node.op == "Loop" || node.op == "Scan"))
        SS_TRY(node.op == "Loop" ? loop(id) : scan(id));
      else if (node.domain.empty() && node.op == "SequenceMap")
        SS_TRY(sequenceMap(id));
      else
        order_.push_back(id);
      if (node.domain.empty() && node.op == "SequenceAt") settlePosition(id);
    }
    if (context_.result.matches > 0) graph_.setOrder(std::move(order_));
    return {};
  }

 private:
  // A value that one iteration hands out, put together along an axis at the end.
  struct Collected {
    std::vector<ValueId> parts;
    std::int64_t axis = 0;
    bool backwards = false;
  };

  // --- Loop: M?, condition?, carried… → carried…, scan outputs…; the body: number, condition, carried… → condition,
  // carried…, scan…

  Status loop(NodeId id) {
    loop_ = id;
    SS_ASSIGN(const LoopForm form, loopForm());
    const auto [inner, carried] = form;
    const std::optional<bool> begins = node().input(1) ? knownBool(node().input(1)) : true;
    if (!begins) return stay("the condition to begin is not known");
    const bool stays = conditionStays(*inner);
    std::optional<std::int64_t> limit;
    if (node().input(0)) {
      const auto known = context_.inference.integers(node().input(0));
      if (!known || known->size() != 1) return stay("the number of iterations is computed");
      limit = std::max<std::int64_t>(0, known->front());
      if (stays)
        if (auto problem = tooMany(*inner, *limit)) return stay(*problem);
    } else if (stays && *begins) {
      return stay("it never ends");
    }
    const bool runs = *begins && limit.value_or(1) > 0;
    for (std::size_t o = carried; o < node().outputs.size(); ++o)
      if (!runs && isUsed(node().outputs[o])) return stay("it never runs, and a value that it collects is read");

    base_.clear();
    const std::size_t before = order_.size();
    std::vector<ValueId> state;
    for (std::size_t k = 0; k < carried; ++k) state.push_back(node().input(k + 2));
    std::vector<Collected> collected(inner->outputs().size() - 1 - carried);
    const ValueId yes = runs ? graph_.addConstant(node().name + "/condition", Tensor::scalar(DType::kBool, 1)) : ValueId{};
    bool goesOn = runs;
    for (std::int64_t i = 0; goesOn && (!limit || i < *limit); ++i) {
      if (!stays)
        if (auto problem = tooMany(*inner, i + 1)) return takeBack(before, *problem);
      std::vector<ValueId> arguments{number(*inner, i), yes};
      arguments.insert(arguments.end(), state.begin(), state.end());
      const std::size_t first = order_.size();
      SS_ASSIGN(const std::vector<ValueId> results, copyBody(*inner, arguments, i));
      for (std::size_t k = 0; k < carried; ++k) state[k] = results[k + 1];
      for (std::size_t s = 0; s < collected.size(); ++s) collected[s].parts.push_back(results[s + 1 + carried]);
      if (stays) continue;
      for (std::size_t n = first; n < order_.size(); ++n) SS_TRY(context_.inference.inferNode(order_[n]));
      const auto condition = knownBool(results[0]);
      if (!condition) return takeBack(before, "its condition follows from values that are computed");
      goesOn = *condition;
    }
    return finish(state, collected);
  }

  // Forgets the iterations written since the order had `size` nodes; the loop stays.
  Status takeBack(std::size_t size, std::string reason) {
    const std::vector<NodeId> written(order_.begin() + static_cast<std::ptrdiff_t>(size), order_.end());
    order_.resize(size);
    graph_.removeNodes(written);
    return stay(std::move(reason));
  }

  // --- Scan: states…, sequences… → states…, scan outputs…; the body: states…, elements… → states…, elements…

  Status scan(NodeId id) {
    loop_ = id;
    SS_ASSIGN(const ScanForm form, scanForm());
    const std::size_t inputs = node().inputs.size(), states = form.states;
    SS_ASSIGN(const Graph* inner, body(inputs, states));
    std::int64_t count = -1;
    for (std::size_t s = states; s < inputs; ++s) {
      const auto shape = node().input(s) ? context_.inference.shape(node().input(s)) : std::nullopt;
      if (!shape) return stay("the shape of a sequence it scans is not known");
      const Dim& extent = (*shape)[static_cast<std::size_t>(form.axes[s - states])];
      if (!extent.known()) return stay(fmt::format("the extent '{}' that it scans is not a number", extent.text()));
      if (count >= 0 && extent.value() != count)
        return malformed(fmt::format("sequences of {} and {} elements", count, extent.value()));
      count = extent.value();
    }
    if (auto problem = tooMany(*inner, count)) return stay(*problem);
    for (std::size_t o = states; o < node().outputs.size(); ++o)
      if (count == 0 && isUsed(node().outputs[o])) return stay("it never runs, and a value that it collects is read");

    base_.clear();
    std::vector<ValueId> state(node().inputs.begin(), node().inputs.begin() + static_cast<std::ptrdiff_t>(states));
    std::vector<Collected> collected(inner->outputs().size() - states);
    for (std::size_t s = 0; s < collected.size(); ++s) {
      collected[s].axis = form.outAxes[s];
      collected[s].backwards = form.outDirections[s] != 0;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<ValueId> arguments = state;
      for (std::size_t s = 0; s < form.axes.size(); ++s) {
        const std::int64_t at = form.directions[s] != 0 ? count - 1 - i : i;
        const ValueId index = graph_.addConstant(fmt::format("{}/element.{}", node().name, at),
                                                 Tensor::scalar(DType::kI64, static_cast<double>(at)));
        arguments.push_back(emit("Gather", {node().input(states + s), index}, {{"axis", form.axes[s]}}));
      }
      SS_ASSIGN(const std::vector<ValueId> made, copyBody(*inner, arguments, i));
      for (std::size_t k = 0; k < states; ++k) state[k] = made[k];
      for (std::size_t s = 0; s < collected.size(); ++s) collected[s].parts.push_back(made[s + states]);
    }
    return finish(state, collected);
  }

  // --- SequenceMap: sequence, more sequences or tensors… → sequences…; the body: element of each sequence, tensors →
  // elements

  // The elements of a sequence that one node lists.
  std::optional<std::vector<ValueId>> elementsOf(ValueId value) const {
    const NodeId producer = value ? graph_.value(value).producer : NodeId{};
    if (!producer || !graph_.node(producer).domain.empty()) return std::nullopt;
    const Node& made = graph_.node(producer);
    if (made.op == "Identity") return elementsOf(made.input(0));
    return made.op == "SequenceConstruct" ? std::optional(made.inputs) : std::nullopt;
  }

  Status sequenceMap(NodeId id) {
    loop_ = id;
    SS_ASSIGN(const Graph* inner, body(node().inputs.size(), node().outputs.size()));
    std::vector<std::optional<std::vector<ValueId>>> sequences;
    for (const ValueId in : node().inputs) sequences.push_back(elementsOf(in));
    if (sequences.empty() || !sequences.front()) return stay("the elements of the sequence it maps are not known");
    const std::size_t count = sequences.front()->size();
    if (auto problem = tooMany(*inner, static_cast<std::int64_t>(count))) return stay(*problem);
    for (const auto& elements : sequences)
      if (elements && elements->size() != count)
        return malformed(fmt::format("sequences of {} and {} elements", count, elements->size()));
    base_.clear();
    std::vector<std::vector<ValueId>> made(node().outputs.size());
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<ValueId> arguments;
      for (std::size_t k = 0; k < sequences.size(); ++k)
        arguments.push_back(sequences[k] ? (*sequences[k])[i] : node().input(k));
      SS_ASSIGN(const std::vector<ValueId> results, copyBody(*inner, arguments, static_cast<std::int64_t>(i)));
      for (std::size_t o = 0; o < made.size(); ++o) made[o].push_back(results[o]);
    }
    std::unordered_map<ValueId, ValueId> replacements;
    for (std::size_t o = 0; o < made.size(); ++o)
      if (node().output(o)) replacements[node().output(o)] = emit("SequenceConstruct", made[o]);
    return replace(replacements);
  }

  // An element of a sequence that one node lists is known here: conditions of If may depend on its rank.
  void settlePosition(NodeId id) {
    const auto elements = elementsOf(graph_.node(id).input(0));
    const auto at = context_.inference.integers(graph_.node(id).input(1));
    if (!elements || !at || at->size() != 1) return;
    const auto size = static_cast<std::int64_t>(elements->size());
    const std::int64_t index = at->front() < 0 ? at->front() + size : at->front();
    if (index < 0 || index >= size) return;  // lower_sequences says what is wrong
    Node& changed = graph_.mutableNode(id);
    changed.op = "Identity";
    changed.inputs = {(*elements)[static_cast<std::size_t>(index)]};
    graph_.logChange(id);
    context_.match();
  }

  // --- all

  std::optional<std::string> tooMany(const Graph& inner, std::int64_t count) const {
    if (count <= roomFor(inner)) return std::nullopt;
    return tooManyText(inner, count);
  }

  Status finish(const std::vector<ValueId>& state, const std::vector<Collected>& collected) {
    const std::vector<ValueId> outputs = node().outputs;
    std::unordered_map<ValueId, ValueId> replacements;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o]) continue;
      if (o < state.size()) {
        if (!state[o]) return malformed(fmt::format("no initial value for output {}", o));
        replacements[outputs[o]] = emit("Identity", {state[o]});
        continue;
      }
      const Collected& values = collected[o - state.size()];
      if (values.parts.empty()) continue;
      const ValueId axes = graph_.addConstant(node().name + "/axes", Tensor::ints(std::vector<std::int64_t>{values.axis}));
      std::vector<ValueId> parts;
      for (const ValueId part : values.parts) parts.push_back(emit("Unsqueeze", {part, axes}));
      if (values.backwards) std::reverse(parts.begin(), parts.end());
      replacements[outputs[o]] = emit("Concat", std::move(parts), {{"axis", values.axis}});
    }
    return replace(replacements);
  }
};

}  // namespace

Status unrollLoops(Graph& graph, PassContext& context) {
  SS_TRY(Unroller(graph, context).run());
  if (context.result.matches > 0 || context.result.blocked.empty()) return {};
  const auto waits = [&](NodeId id) { return graph.node(id).domain.empty() && graph.node(id).op == "If"; };
  if (std::any_of(graph.order().begin(), graph.order().end(), waits)) return {};
  return predicateLoops(graph, context);
}

}  // namespace stepscope
