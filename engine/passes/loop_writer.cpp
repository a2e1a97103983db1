#include "engine/passes/loop_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_def.h"
#include "engine/passes/beside.h"
#include "engine/passes/captures.h"
#include "engine/passes/unroll_loops.h"

namespace stepscope {

using Integers = std::vector<std::int64_t>;

tl::unexpected<Error> LoopWriter::malformed(std::string message) const {
  return invalid(node().label() + ": " + std::move(message));
}

Status LoopWriter::stay(std::string reason) {
  context_.block(
      fmt::format("{}: {}; expected a number of iterations that is known before the step; hint: export with fixed shapes or "
                  "with the loop unrolled",
                  node().label(), reason));
  order_.push_back(loop_);
  return {};
}

Result<const Graph*> LoopWriter::body(std::size_t formals, std::size_t results) const {
  const auto it = node().subgraphs.find("body");
  if (it == node().subgraphs.end() || !it->second) return malformed("no body");
  if (it->second->inputs().size() < formals || it->second->outputs().size() < results)
    return malformed(fmt::format("the body has {} inputs and {} outputs; expected at least {} and {}",
                                 it->second->inputs().size(), it->second->outputs().size(), formals, results));
  return it->second.get();
}

Result<LoopWriter::LoopForm> LoopWriter::loopForm() const {
  const std::size_t formals = std::max<std::size_t>(2, node().inputs.size()), carried = formals - 2;
  SS_ASSIGN(const Graph* inner, body(formals, carried + 1));
  if (node().outputs.size() + 1 > inner->outputs().size())
    return malformed(fmt::format("{} outputs; its body gives {}", node().outputs.size(), inner->outputs().size() - 1));
  return LoopForm{inner, carried};
}

Result<LoopWriter::ScanForm> LoopWriter::scanForm() const {
  const std::size_t inputs = node().inputs.size();
  const std::int64_t sequences = node().attrs.integer("num_scan_inputs", 0);
  if (sequences < 1 || static_cast<std::size_t>(sequences) > inputs)
    return malformed(fmt::format("num_scan_inputs {}; expected 1 to {}", sequences, inputs));
  ScanForm form;
  form.states = inputs - static_cast<std::size_t>(sequences);
  SS_ASSIGN(const Graph* inner, body(inputs, form.states));
  const std::size_t results = inner->outputs().size();
  if (node().outputs.size() > results)
    return malformed(fmt::format("{} outputs; its body gives {}", node().outputs.size(), results));
  const auto list = [this](const char* name, std::size_t size) {
    Integers values = node().attrs.integers(name);
    values.resize(size, 0);
    return values;
  };
  form.axes = list("scan_input_axes", inputs - form.states);
  form.directions = list("scan_input_directions", inputs - form.states);
  form.outAxes = list("scan_output_axes", results - form.states);
  form.outDirections = list("scan_output_directions", results - form.states);
  for (std::size_t s = 0; s < form.axes.size(); ++s) {
    const auto shape =
        node().input(form.states + s) ? context_.inference.shape(node().input(form.states + s)) : std::nullopt;
    if (!shape) continue;
    const auto rank = static_cast<std::int64_t>(shape->size());
    std::int64_t& axis = form.axes[s];
    if (axis < -rank || axis >= rank) return malformed(fmt::format("scan input axis {}; shape {}", axis, shapeText(*shape)));
    if (axis < 0) axis += rank;
  }
  return form;
}

ValueId LoopWriter::number(const Graph& inner, std::int64_t i) {
  const auto& shape = inner.value(inner.inputs()[0]).type.shape;
  const std::string name = fmt::format("{}/iteration.{}", node().name, i);
  return graph_.addConstant(
      name, shape && shape->size() == 1 ? Tensor::ints(Integers{i}) : Tensor::scalar(DType::kI64, static_cast<double>(i)));
}

std::optional<bool> LoopWriter::knownBool(ValueId id) const {
  const auto known = context_.inference.integers(id);
  if (!known || known->size() != 1) return std::nullopt;
  return known->front() != 0;
}

bool LoopWriter::conditionStays(const Graph& inner) const {
  ValueId at = inner.outputs()[0];
  for (int hops = 0; hops < 16; ++hops) {
    if (at == inner.inputs()[1]) return true;
    const Value& value = inner.value(at);
    if (value.data) return elementAsInt(value.data->view(), 0) != 0;
    if (value.role != ValueRole::kNodeOutput) {
      const ValueId outside = graph_.findValue(value.name);
      return outside && knownBool(outside).value_or(false);
    }
    const Node& made = inner.node(value.producer);
    if (!made.domain.empty()) return false;
    if (made.op == "Constant") {
      const Tensor* tensor = made.attrs.tensor("value");
      return tensor != nullptr && tensor->elements() == 1 && elementAsInt(tensor->view(), 0) != 0;
    }
    if (made.op != "Identity" && made.op != "Cast") return false;
    at = made.input(0);
  }
  return false;
}

bool LoopWriter::isUsed(ValueId id) {
  if (!id) return false;
  if (std::find(graph_.outputs().begin(), graph_.outputs().end(), id) != graph_.outputs().end()) return true;
  return !graph_.uses()[static_cast<std::size_t>(id.index)].empty();
}

std::int64_t LoopWriter::roomFor(const Graph& inner) const {
  const std::size_t room = kMostUnrolledNodes - std::min(kMostUnrolledNodes, graph_.order().size() + order_.size());
  return static_cast<std::int64_t>(room / (inner.order().size() + 2));
}

std::string LoopWriter::tooManyText(const Graph& inner, std::int64_t count) const {
  return fmt::format("{} or more iterations of {} nodes are more than the {} nodes that a graph may grow to", count,
                     inner.order().size(), kMostUnrolledNodes);
}

std::string LoopWriter::roomHint() const {
  std::size_t loops = 0, nodes = 0;
  for (const NodeId id : graph_.order()) {
    const Node& other = graph_.node(id);
    if (!other.domain.empty() || (other.op != "Loop" && other.op != "Scan")) continue;
    ++loops;
    for (const auto& [name, inner] : other.subgraphs)
      if (inner) nodes += 2 * (inner->order().size() + 2);  // besides the body, what chooses and collects
  }
  // Half of the room, for those that were written out before.
  const std::size_t fits = std::max<std::size_t>(1, kMostUnrolledNodes / 2 / std::max<std::size_t>(1, nodes));
  return fmt::format("; hint: --set loop.max_iterations={} leaves room for all loops (left: {})", fits, loops);
}

ValueId LoopWriter::emit(const char* op, std::vector<ValueId> inputs, Attributes attributes, std::string_view domain) {
  const ValueId result = emitBeside(graph_, loop_, op, std::move(inputs), std::move(attributes), domain);
  Node& made = graph_.mutableNode(graph_.value(result).producer);
  if (!predicates_.empty()) made.predicates.edit().insert(made.predicates.end(), predicates_.begin(), predicates_.end());
  order_.push_back(made.id);
  return result;
}

Result<std::vector<ValueId>> LoopWriter::copyBody(const Graph& inner, const std::vector<ValueId>& arguments,
                                                  std::int64_t iteration) {
  std::unordered_map<ValueId, ValueId> map = base_;
  for (std::size_t i = 0; i < arguments.size(); ++i) map[inner.inputs()[i]] = arguments[i];
  for (std::size_t i = arguments.size(); i < inner.inputs().size(); ++i) {
    const ValueId captured = inner.inputs()[i], outside = graph_.findValue(inner.value(captured).name);
    if (!outside)
      return malformed(
          fmt::format("its body reads '{}'; expected a value of the enclosing graph", inner.value(captured).name));
    map[captured] = outside;
  }
  const auto mapped = [&](ValueId id) -> ValueId {
    if (!id) return {};
    if (const auto it = map.find(id); it != map.end()) return it->second;
    const Value& value = inner.value(id);
    if (value.role == ValueRole::kNodeOutput) return {};
    // What the body holds itself is the same in every iteration.
    const ValueId copy = graph_.addValue(value.name, value.type, value.role);
    graph_.mutableValue(copy).data = value.data;
    base_[id] = copy;
    return map[id] = copy;
  };
  const auto adopt = [this](Node& made) {
    made.phase = node().phase;
    made.predicates = node().predicates;
    if (!predicates_.empty()) made.predicates.edit().insert(made.predicates.end(), predicates_.begin(), predicates_.end());
    made.provenance.sources = {loop_};
    made.provenance.pass = graph_.pass();
    if (made.provenance.modulePath.empty()) {
      made.provenance.modulePath = node().provenance.modulePath;
      made.provenance.modulePathInferred = true;
    }
  };
  for (const NodeId from : inner.order()) {
    const Node& source = inner.node(from);
    std::vector<ValueId> inputs;
    for (const ValueId in : source.inputs) inputs.push_back(mapped(in));
    std::vector<std::string> names;
    for (const ValueId out : source.outputs)
      names.push_back(out ? fmt::format("{}.{}", inner.value(out).name, iteration) : "");
    const NodeId made = graph_.addNode(fmt::format("{}.{}", source.name, iteration), source.domain, source.op,
                                       std::move(inputs), std::move(names), source.attrs);
    Node& copy = graph_.mutableNode(made);
    copy.subgraphs = source.subgraphs;
    copy.sinceVersion = source.sinceVersion;
    copy.provenance = source.provenance;
    copy.provenance.imported = made;
    adopt(copy);
    for (std::size_t o = 0; o < source.outputs.size(); ++o) {
      if (!source.outputs[o]) continue;
      map[source.outputs[o]] = copy.outputs[o];
      const ValueType& type = inner.value(source.outputs[o]).type;
      // Extents may differ from one iteration to the next.
      graph_.mutableValue(copy.outputs[o]).type = {type.kind, type.dtype, std::nullopt, type.optionalOfSequence};
    }
    if (!copy.subgraphs.empty())
      renameCaptures(copy, [&](const std::string& name) {
        const ValueId own = inner.findValue(name), now = own ? mapped(own) : ValueId{};
        return now ? graph_.value(now).name : name;
      });
    order_.push_back(made);
  }
  std::vector<ValueId> results;
  for (const ValueId out : inner.outputs()) {
    results.push_back(mapped(out));
    if (!results.back()) return malformed("an output of the body is made by no node");
  }
  return results;
}

Status LoopWriter::replace(const std::unordered_map<ValueId, ValueId>& replacements) {
  const std::vector<ValueId> outputs = node().outputs;
  std::vector<std::pair<ValueId, std::string>> names;
  for (const ValueId out : outputs)
    if (out && replacements.contains(out)) names.emplace_back(replacements.at(out), graph_.value(out).name);
  graph_.replaceAllUses(replacements);
  graph_.removeNode(loop_);
  for (auto& [value, name] : names) graph_.renameValue(value, std::move(name));
  context_.match();
  return {};
}

}  // namespace stepscope
