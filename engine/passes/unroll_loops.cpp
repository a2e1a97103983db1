#include "engine/passes/unroll_loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/op_def.h"
#include "engine/passes/beside.h"
#include "engine/passes/captures.h"

namespace stepscope {
namespace {

using Integers = std::vector<std::int64_t>;

class Unroller {
 public:
  Unroller(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node& node = graph_.node(id);
      if (node.domain.empty() && (node.op == "Loop" || node.op == "Scan"))
        SS_TRY(node.op == "Loop" ? loop(id) : scan(id));
      else
        order_.push_back(id);
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

  const Node& node() const { return graph_.node(loop_); }
  tl::unexpected<Error> malformed(std::string message) const { return invalid(node().label() + ": " + std::move(message)); }

  Status stay(std::string reason) {
    context_.block(fmt::format(
        "{}: {}; expected a number of iterations that is known before the step; hint: export with fixed shapes or "
        "with the loop unrolled",
        node().label(), reason));
    order_.push_back(loop_);
    return {};
  }

  Result<const Graph*> body(std::size_t formals, std::size_t results) {
    const auto it = node().subgraphs.find("body");
    if (it == node().subgraphs.end() || !it->second) return malformed("no body");
    if (it->second->inputs().size() < formals || it->second->outputs().size() < results)
      return malformed(fmt::format("the body has {} inputs and {} outputs; expected at least {} and {}",
                                   it->second->inputs().size(), it->second->outputs().size(), formals, results));
    return it->second.get();
  }

  // --- Loop: M?, condition?, carried… → carried…, scan outputs…; the body: number, condition, carried… → condition,
  // carried…, scan…

  Status loop(NodeId id) {
    loop_ = id;
    const std::size_t formals = std::max<std::size_t>(2, node().inputs.size()), carried = formals - 2;
    SS_ASSIGN(const Graph* inner, body(formals, carried + 1));
    if (node().outputs.size() + 1 > inner->outputs().size())
      return malformed(fmt::format("{} outputs; its body gives {}", node().outputs.size(), inner->outputs().size() - 1));
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

  ValueId number(const Graph& inner, std::int64_t i) {
    const auto& shape = inner.value(inner.inputs()[0]).type.shape;
    const std::string name = fmt::format("{}/iteration.{}", node().name, i);
    return graph_.addConstant(
        name, shape && shape->size() == 1 ? Tensor::ints(Integers{i}) : Tensor::scalar(DType::kI64, static_cast<double>(i)));
  }

  std::optional<bool> knownBool(ValueId id) const {
    const auto known = context_.inference.integers(id);
    if (!known || known->size() != 1) return std::nullopt;
    return known->front() != 0;
  }

  // Whether the body hands on "true": the condition it gets, a constant, or one of the graph around it.
  bool conditionStays(const Graph& inner) const {
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

  // --- Scan: states…, sequences… → states…, scan outputs…; the body: states…, elements… → states…, elements…

  Status scan(NodeId id) {
    loop_ = id;
    const std::size_t inputs = node().inputs.size();
    const std::int64_t sequences = node().attrs.integer("num_scan_inputs", 0);
    if (sequences < 1 || static_cast<std::size_t>(sequences) > inputs)
      return malformed(fmt::format("num_scan_inputs {}; expected 1 to {}", sequences, inputs));
    const std::size_t states = inputs - static_cast<std::size_t>(sequences);
    SS_ASSIGN(const Graph* inner, body(inputs, states));
    const std::size_t results = inner->outputs().size();
    if (node().outputs.size() > results)
      return malformed(fmt::format("{} outputs; its body gives {}", node().outputs.size(), results));
    const auto list = [this](const char* name, std::size_t size) {
      Integers values = node().attrs.integers(name);
      values.resize(size, 0);
      return values;
    };
    const Integers axes = list("scan_input_axes", inputs - states),
                   directions = list("scan_input_directions", inputs - states);
    const Integers outAxes = list("scan_output_axes", results - states),
                   outDirections = list("scan_output_directions", results - states);
    std::int64_t count = -1;
    Integers along;
    for (std::size_t s = states; s < inputs; ++s) {
      const auto shape = node().input(s) ? context_.inference.shape(node().input(s)) : std::nullopt;
      if (!shape) return stay("the shape of a sequence it scans is not known");
      const auto rank = static_cast<std::int64_t>(shape->size());
      const std::int64_t axis = axes[s - states] < 0 ? axes[s - states] + rank : axes[s - states];
      if (axis < 0 || axis >= rank)
        return malformed(fmt::format("scan input axis {}; shape {}", axes[s - states], shapeText(*shape)));
      along.push_back(axis);
      const Dim& extent = (*shape)[static_cast<std::size_t>(axis)];
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
    std::vector<Collected> collected(results - states);
    for (std::size_t s = 0; s < collected.size(); ++s) {
      collected[s].axis = outAxes[s];
      collected[s].backwards = outDirections[s] != 0;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<ValueId> arguments = state;
      for (std::size_t s = 0; s < along.size(); ++s) {
        const std::int64_t at = directions[s] != 0 ? count - 1 - i : i;
        const ValueId index = graph_.addConstant(fmt::format("{}/element.{}", node().name, at),
                                                 Tensor::scalar(DType::kI64, static_cast<double>(at)));
        arguments.push_back(emit("Gather", {node().input(states + s), index}, {{"axis", along[s]}}));
      }
      SS_ASSIGN(const std::vector<ValueId> made, copyBody(*inner, arguments, i));
      for (std::size_t k = 0; k < states; ++k) state[k] = made[k];
      for (std::size_t s = 0; s < collected.size(); ++s) collected[s].parts.push_back(made[s + states]);
    }
    return finish(state, collected);
  }

  // --- both

  std::optional<std::string> tooMany(const Graph& inner, std::int64_t count) const {
    const std::size_t room = kMostUnrolledNodes - std::min(kMostUnrolledNodes, graph_.order().size() + order_.size());
    const std::size_t each = inner.order().size() + 2;
    if (count >= 0 && static_cast<std::uint64_t>(count) <= room / each) return std::nullopt;
    return fmt::format("{} or more iterations of {} nodes are more than the {} nodes that a graph may grow to", count,
                       inner.order().size(), kMostUnrolledNodes);
  }

  bool isUsed(ValueId id) {
    if (!id) return false;
    if (std::find(graph_.outputs().begin(), graph_.outputs().end(), id) != graph_.outputs().end()) return true;
    return !graph_.uses()[static_cast<std::size_t>(id.index)].empty();
  }

  void adopt(Node& made) {
    made.phase = node().phase;
    made.predicates = node().predicates;
    made.provenance.sources = {loop_};
    made.provenance.pass = graph_.pass();
    if (made.provenance.modulePath.empty()) {
      made.provenance.modulePath = node().provenance.modulePath;
      made.provenance.modulePathInferred = true;
    }
  }

  ValueId emit(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const ValueId result = emitBeside(graph_, loop_, op, std::move(inputs), std::move(attributes));
    order_.push_back(graph_.value(result).producer);
    return result;
  }

  Result<std::vector<ValueId>> copyBody(const Graph& inner, const std::vector<ValueId>& arguments, std::int64_t iteration) {
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
      const ValueId axes = graph_.addConstant(node().name + "/axes", Tensor::ints(Integers{values.axis}));
      std::vector<ValueId> parts;
      for (const ValueId part : values.parts) parts.push_back(emit("Unsqueeze", {part, axes}));
      if (values.backwards) std::reverse(parts.begin(), parts.end());
      replacements[outputs[o]] = emit("Concat", std::move(parts), {{"axis", values.axis}});
    }
    std::vector<std::pair<ValueId, std::string>> names;
    for (const ValueId out : outputs)
      if (out && replacements.contains(out)) names.emplace_back(replacements[out], graph_.value(out).name);
    graph_.replaceAllUses(replacements);
    graph_.removeNode(loop_);
    for (auto& [value, name] : names) graph_.renameValue(value, std::move(name));
    context_.match();
    return {};
  }

  Graph& graph_;
  PassContext& context_;
  NodeId loop_;
  std::vector<NodeId> order_;
  std::unordered_map<ValueId, ValueId> base_;  // what the body at hand holds itself, copied once
};

}  // namespace

Status unrollLoops(Graph& graph, PassContext& context) { return Unroller(graph, context).run(); }

}  // namespace stepscope
