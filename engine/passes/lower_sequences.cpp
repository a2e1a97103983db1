#include "engine/passes/lower_sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_def.h"
#include "engine/passes/beside.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMostElements = 65536;

// What a value of sequence or optional type stands for.
struct Elements {
  std::vector<ValueId> values;  // of a sequence; of an optional tensor: one, or none
  bool isOptional = false;
  bool isSequence = false;  // for an optional: holds a sequence
  bool present = true;      // for an optional: holds anything
};

class Lowering {
 public:
  Lowering(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Status run() {
    SS_TRY(openInputs());
    std::vector<NodeId> order;
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      node_ = id;
      before_.clear();
      after_.clear();
      SS_TRY(lower());
      order.insert(order.end(), before_.begin(), before_.end());
      order.push_back(id);
      order.insert(order.end(), after_.begin(), after_.end());
    }
    SS_TRY(openOutputs(order));
    if (context_.result.matches == 0) return {};
    graph_.setOrder(std::move(order));
    graph_.removeNodes(removed_);
    for (const ValueId gone : replaced_) graph_.removeValue(gone);
    return {};
  }

 private:
  const Node& node() const { return graph_.node(node_); }
  tl::unexpected<Error> refuse(std::string message) const { return unsupported(node().label() + ": " + std::move(message)); }

  // --- what the graph takes and gives

  // An optional that is fed is there; a sequence has the elements that are read of it. Their tensors are inputs in its
  // place.
  Status openInputs() {
    std::vector<ValueId> inputs;
    for (const ValueId in : std::vector<ValueId>(graph_.inputs())) {
      const ValueType type = graph_.value(in).type;
      if (type.kind == ValueKind::kTensor) {
        inputs.push_back(in);
        continue;
      }
      Elements elements{{}, type.kind == ValueKind::kOptional, false};
      elements.isSequence = type.kind == ValueKind::kSequence || type.optionalOfSequence;
      std::size_t count = 1;
      if (elements.isSequence) {
        SS_ASSIGN(count, elementsRead(in));
      }
      const std::string name = graph_.value(in).name;
      graph_.renameValue(in, name + ".whole");
      for (std::size_t i = 0; i < count; ++i) {
        const std::string element = elements.isSequence ? fmt::format("{}.{}", name, i) : name;
        elements.values.push_back(graph_.addValue(element, {.dtype = type.dtype, .shape = type.shape}, ValueRole::kInput));
      }
      inputs.insert(inputs.end(), elements.values.begin(), elements.values.end());
      elements_[in] = std::move(elements);
      replaced_.push_back(in);
      context_.match();
    }
    graph_.mutableInputs() = std::move(inputs);
    return {};
  }

  // How many elements of a sequence that is fed somebody reads: one more than the largest position.
  Result<std::size_t> elementsRead(ValueId in) const {
    std::size_t count = 0;
    for (const NodeId id : graph_.order()) {
      const Node& reader = graph_.node(id);
      if (std::ranges::find(reader.inputs, in) == reader.inputs.end()) continue;
      const auto at =
          reader.domain.empty() && reader.op == "SequenceAt" ? context_.inference.integers(reader.input(1)) : std::nullopt;
      if (!at || at->size() != 1 || at->front() < 0 || at->front() >= kMostElements)
        return unsupported(
            fmt::format("graph input '{}': type {}, read by {}, so how many elements it has is open; expected "
                        "SequenceAt with constant positions from 0",
                        graph_.value(in).name, graph_.value(in).type.text(), reader.label()));
      count = std::max(count, static_cast<std::size_t>(at->front()) + 1);
    }
    return count;
  }

  // The tensors of a sequence are outputs in its place, named as those of an input.
  Status openOutputs(std::vector<NodeId>& order) {
    std::vector<ValueId> outputs;
    for (const ValueId out : graph_.outputs()) {
      const auto it = elements_.find(out);
      if (!out || it == elements_.end()) {
        outputs.push_back(out);
        continue;
      }
      const std::string name = graph_.value(out).name;
      for (std::size_t i = 0; i < it->second.values.size(); ++i) {
        const std::string element =
            it->second.isSequence || !it->second.isOptional ? fmt::format("{}.{}", name, i) : name + ".value";
        const NodeId named = graph_.addNode(element, "", "Identity", {it->second.values[i]}, {element});
        graph_.mutableNode(named).sinceVersion = kInternalOpset;
        order.push_back(named);
        outputs.push_back(graph_.node(named).output(0));
      }
    }
    graph_.mutableOutputs() = std::move(outputs);
    return {};
  }

  Status lower() {
    const std::string op = node().domain.empty() ? node().op.str() : "";
    if (op == "SplitToSequence") return splitToSequence();
    if (op == "SequenceEmpty") return build({{}, false, true});
    if (op == "SequenceConstruct") return build({node().inputs, false, true});
    if (op == "SequenceInsert") return sequenceInsert();
    if (op == "SequenceErase") return sequenceErase();
    if (op == "SequenceAt") return sequenceAt();
    if (op == "SequenceLength") return sequenceLength();
    if (op == "ConcatFromSequence") return concatFromSequence();
    if (op == "Optional") return optional();
    if (op == "OptionalHasElement") return optionalHasElement();
    if (op == "OptionalGetElement") return optionalGetElement();
    const bool select = node().domain == kInternalDomain && node().op == "Select";
    for (const ValueId in : node().inputs) {
      if (!in || !elements_.contains(in)) continue;
      if (op == "Identity") return build(elements_.at(in));
      if (select) return selectElements();
      return refuse(fmt::format("reads '{}', a sequence or optional; expected tensors", graph_.value(in).name));
    }
    return {};
  }

  // --- edits

  // The node becomes another one with the same outputs.
  void become(const char* op, std::vector<ValueId> inputs, Attributes attributes) {
    Node& changed = graph_.mutableNode(node_);
    changed.op = op;
    changed.inputs = std::move(inputs);
    changed.attrs = std::move(attributes);
    changed.sinceVersion = kInternalOpset;
    graph_.logChange(node_);
    context_.match();
  }

  // The node only built a sequence or optional: it goes, what it built is remembered.
  Status build(Elements elements) {
    elements_[node().output(0)] = std::move(elements);
    removed_.push_back(node_);
    context_.match();
    return {};
  }

  Result<Elements> sequence(std::size_t input) const {
    const auto it = elements_.find(node().input(input));
    if (it == elements_.end() || it->second.isOptional)
      return refuse("the sequence it reads has no known elements; expected one that is built in the graph");
    return it->second;
  }

  // Position from an operand, `fallback` when it is absent; valid -size..size-1 (last = size for insertion).
  Result<std::size_t> position(std::size_t input, std::size_t size, std::size_t last, std::size_t fallback) const {
    if (!node().input(input)) return fallback;
    const auto known = context_.inference.integers(node().input(input));
    if (!known || known->size() != 1) return refuse("the position is not known before the step; expected a constant");
    const auto count = static_cast<std::int64_t>(size), high = static_cast<std::int64_t>(last);
    if (known->front() < -count || known->front() > high)
      return invalid(
          fmt::format("{}: position {} out of range; valid {}..{}", node().label(), known->front(), -count, high));
    return static_cast<std::size_t>(known->front() < 0 ? known->front() + count : known->front());
  }

  // --- one per op

  // The sizes of the parts.
  Result<std::vector<std::int64_t>> partSizes(std::int64_t axis) const {
    const auto listed = node().input(1) ? context_.inference.integers(node().input(1)) : std::nullopt;
    if (node().input(1) && !listed)
      return refuse("the sizes of the parts are not known before the step; expected constants");
    const auto splitShape = node().input(1) ? context_.inference.shape(node().input(1)) : std::nullopt;
    if (listed && splitShape && splitShape->size() == 1) return *listed;
    const std::int64_t chunk = listed && listed->size() == 1 ? listed->front() : 1;
    const auto shape = context_.inference.shape(node().input(0));
    if (!shape) return refuse("the shape of the input is not known; expected a known number of parts");
    const auto normal = normalizeAxis(axis, static_cast<std::int64_t>(shape->size()));
    if (!normal)
      return invalid(fmt::format("{}: axis {} out of range for shape {}", node().label(), axis, shapeText(*shape)));
    const Dim& extent = (*shape)[static_cast<std::size_t>(*normal)];
    if (!extent.known())
      return refuse(fmt::format(
          "extent '{}' of axis {} is not a number, so the number of parts is open; hint: export with that extent fixed",
          extent.text(), *normal));
    if (chunk < 1) return invalid(fmt::format("{}: parts of size {}; expected a number from 1", node().label(), chunk));
    if (extent.value() / chunk >= kMostElements)
      return fail(ErrorCode::kLimitExceeded, fmt::format("{}: more than {} parts", node().label(), kMostElements));
    std::vector<std::int64_t> sizes;
    for (std::int64_t left = extent.value(); left > 0; left -= chunk) sizes.push_back(std::min(chunk, left));
    return sizes;
  }

  Status splitToSequence() {
    const std::int64_t axis = node().attrs.integer("axis", 0);
    const bool drop = !node().input(1) && node().attrs.integer("keepdims", 1) == 0;
    SS_ASSIGN(const std::vector<std::int64_t> sizes, partSizes(axis));
    const ValueId sequence = node().output(0);
    const std::string name = graph_.value(sequence).name;
    replaced_.push_back(sequence);
    if (sizes.empty()) return build({{}, false, true});
    const ValueId split = graph_.addConstant(node().name + "/split", Tensor::ints(sizes));
    become("Split", {node().input(0), split}, {{"axis", axis}});
    graph_.mutableNode(node_).outputs.clear();
    Elements elements{{}, false, true};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      ValueId part = graph_.addOutput(node_, fmt::format("{}_{}", name, i));
      if (drop) {
        const ValueId axes = graph_.addConstant(node().name + "/axes", Tensor::ints(std::vector<std::int64_t>{axis}));
        const NodeId squeezed = addBeside(graph_, node_, "Squeeze", {part, axes}, {fmt::format("{}_{}_squeezed", name, i)});
        after_.push_back(squeezed);
        part = graph_.node(squeezed).output(0);
      }
      elements.values.push_back(part);
    }
    elements_[sequence] = std::move(elements);
    return {};
  }

  Status sequenceInsert() {
    SS_ASSIGN(Elements elements, sequence(0));
    const std::size_t size = elements.values.size();
    SS_ASSIGN(const std::size_t at, position(2, size, size, size));
    elements.values.insert(elements.values.begin() + static_cast<std::ptrdiff_t>(at), node().input(1));
    return build(std::move(elements));
  }

  Status sequenceErase() {
    SS_ASSIGN(Elements elements, sequence(0));
    const std::size_t size = elements.values.size();
    if (size == 0) return invalid(node().label() + ": nothing to erase from an empty sequence");
    SS_ASSIGN(const std::size_t at, position(1, size, size - 1, size - 1));
    elements.values.erase(elements.values.begin() + static_cast<std::ptrdiff_t>(at));
    return build(std::move(elements));
  }

  Status sequenceAt() {
    SS_ASSIGN(const Elements elements, sequence(0));
    const std::size_t size = elements.values.size();
    if (size == 0) return invalid(node().label() + ": position in an empty sequence");
    if (!node().input(1)) return invalid(node().label() + ": no position");
    SS_ASSIGN(const std::size_t at, position(1, size, size - 1, 0));
    become("Identity", {elements.values[at]}, {});
    return {};
  }

  Status sequenceLength() {
    SS_ASSIGN(const Elements elements, sequence(0));
    become("Constant", {}, {{"value", Tensor::scalar(DType::kI64, static_cast<double>(elements.values.size()))}});
    return {};
  }

  Status concatFromSequence() {
    SS_ASSIGN(const Elements elements, sequence(0));
    if (elements.values.empty()) return invalid(node().label() + ": nothing to concatenate in an empty sequence");
    const std::int64_t axis = node().attrs.integer("axis", 0);
    std::vector<ValueId> parts = elements.values;
    if (node().attrs.integer("new_axis", 0) != 0) {
      const ValueId axes = graph_.addConstant(node().name + "/axes", Tensor::ints(std::vector<std::int64_t>{axis}));
      for (ValueId& part : parts) {
        const NodeId wider = addBeside(graph_, node_, "Unsqueeze", {part, axes}, {graph_.value(part).name + "_unsqueezed"});
        before_.push_back(wider);
        part = graph_.node(wider).output(0);
      }
    }
    become("Concat", std::move(parts), {{"axis", axis}});
    return {};
  }

  Status optional() {
    Elements elements{{}, true, false, node().input(0).valid()};
    if (elements.present) {
      const auto held = elements_.find(node().input(0));
      elements.isSequence = held != elements_.end();
      elements.values = elements.isSequence ? held->second.values : std::vector<ValueId>{node().input(0)};
    }
    return build(std::move(elements));
  }

  Status optionalHasElement() {
    const auto held = elements_.find(node().input(0));
    const bool present = node().input(0) && (held == elements_.end() || held->second.present);
    become("Constant", {}, {{"value", Tensor::scalar(DType::kBool, present ? 1 : 0)}});
    return {};
  }

  Status optionalGetElement() {
    const auto held = elements_.find(node().input(0));
    if (held == elements_.end()) {
      become("Identity", {node().input(0)}, {});
      return {};
    }
    Elements elements = held->second;
    if (!elements.present) return invalid(node().label() + ": the optional holds nothing");
    if (!elements.isSequence) {
      become("Identity", {elements.values.front()}, {});
      return {};
    }
    elements.isOptional = false;
    return build(std::move(elements));
  }

  // A sequence that leaves an If: both branches must give as many elements.
  Status selectElements() {
    SS_ASSIGN(const Elements a, sequence(1));
    SS_ASSIGN(const Elements b, sequence(2));
    if (a.values.size() != b.values.size())
      return refuse(fmt::format("branches give sequences of {} and {} elements; expected one length", a.values.size(),
                                b.values.size()));
    Elements elements{{}, false, true};
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      const NodeId made = addBeside(graph_, node_, "Select", {node().input(0), a.values[i], b.values[i]},
                                    {fmt::format("{}_{}", graph_.value(node().output(0)).name, i)}, {}, kInternalDomain);
      after_.push_back(made);
      elements.values.push_back(graph_.node(made).output(0));
    }
    return build(std::move(elements));
  }

  Graph& graph_;
  PassContext& context_;
  NodeId node_;
  std::unordered_map<ValueId, Elements> elements_;  // looked up, never iterated
  std::vector<NodeId> before_, after_, removed_;
  std::vector<ValueId> replaced_;
};

}  // namespace

Status lowerSequences(Graph& graph, PassContext& context) { return Lowering(graph, context).run(); }

}  // namespace stepscope
