#include "engine/passes/predicate_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "engine/ir/pass_scope.h"
#include "engine/ops/op_def.h"
#include "engine/passes/loop_writer.h"

namespace stepscope {
namespace {

using Integers = std::vector<std::int64_t>;

class Predicating : LoopWriter {
 public:
  Predicating(Graph& graph, PassContext& context) : LoopWriter(graph, context) {}

  Status run() {
    std::string reason;  // why a number is not known matters no more
    reason.swap(context_.result.blocked);
    hint_ = roomHint();
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node& node = graph_.node(id);
      const bool loops = node.domain.empty() && (node.op == "Loop" || node.op == "Scan");
      const std::vector<ValueId> outputs = node.outputs;
      const bool follows =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) { return later_.contains(in); });
      if (follows || loops) later_.insert(outputs.begin(), outputs.end());
      if (loops && !follows)
        SS_TRY(node.op == "Loop" ? loop(id) : scan(id));
      else
        order_.push_back(id);
    }
    if (context_.result.matches > 0) graph_.setOrder(std::move(order_));
    if (context_.result.matches == 0 && context_.result.blocked.empty()) context_.result.blocked = std::move(reason);
    return {};
  }

 private:
  // A value that every iteration hands out.
  struct Collected {
    std::vector<ValueId> parts;
    std::int64_t axis = 0;
    bool backwards = false;
    bool read = false;
  };

  Status loop(NodeId id) {
    loop_ = id;
    SS_ASSIGN(const LoopForm form, loopForm());
    const auto [inner, carried] = form;
    const bool stays = conditionStays(*inner);
    limit_ = node().input(0);
    const std::optional<bool> begins = node().input(1) ? knownBool(node().input(1)) : true;
    if (!limit_ && stays && begins != false) return stay("it never ends");
    knownLimit_.reset();
    if (const auto known = limit_ ? context_.inference.integers(limit_) : std::nullopt; known && known->size() == 1)
      knownLimit_ = std::max<std::int64_t>(0, known->front());
    if (begins == false) knownLimit_ = 0;
    if (stays && begins == true && knownLimit_.value_or(0) > roomFor(*inner)) return stay(tooManyText(*inner, *knownLimit_));
    SS_ASSIGN(const std::int64_t bound, boundOf(*inner));
    if (bound == 0) return {};

    begin(carried, inner->outputs().size() - 1 - carried);
    for (std::size_t k = 0; k < carried; ++k) state_.push_back(node().input(k + 2));
    const ValueId yes = flag("condition", true);
    const auto allowed = [&](std::int64_t iteration) {
      const ValueId below = within(iteration);
      return begins == true ? below : emit("And", {scalar(node().input(1)), below});
    };
    ValueId runs = allowed(0);
    for (std::int64_t i = 0; i < bound; ++i) {
      std::vector<ValueId> arguments{number(*inner, i), yes};
      arguments.insert(arguments.end(), state_.begin(), state_.end());
      predicates_ = {{runs, true}};
      SS_ASSIGN(const std::vector<ValueId> results, copyBody(*inner, arguments, i));
      ValueId goesOn;  // as far as this iteration tells
      if (!stays) goesOn = emit("And", {scalar(results[0]), within(i + 1)});
      const auto split = results.begin() + 1 + static_cast<std::ptrdiff_t>(carried);
      collect(runs, {split, results.end()});
      predicates_.clear();
      carry(runs, {results.begin() + 1, split});
      runs = stays ? allowed(i + 1) : choose(runs, goesOn, runs);
    }
    return finish(runs, bound);
  }

  Status scan(NodeId id) {
    loop_ = id;
    SS_ASSIGN(const ScanForm form, scanForm());
    const std::size_t inputs = node().inputs.size();
    SS_ASSIGN(const Graph* inner, body(inputs, form.states));
    const ValueId first = node().input(form.states);
    if (!first) return malformed("no sequence to scan");
    knownLimit_.reset();
    if (const auto shape = context_.inference.shape(first))
      if (const Dim& along = (*shape)[static_cast<std::size_t>(form.axes[0])]; along.known()) knownLimit_ = along.value();
    SS_ASSIGN(const std::int64_t bound, boundOf(*inner));
    if (bound == 0) return {};
    begin(form.states, inner->outputs().size() - form.states);
    limit_ = emit("Gather", {emit("Shape", {first}), whole("axis", form.axes[0])}, {{"axis", std::int64_t{0}}});
    state_.assign(node().inputs.begin(), node().inputs.begin() + static_cast<std::ptrdiff_t>(form.states));
    for (std::size_t s = 0; s < collected_.size(); ++s) {
      collected_[s].axis = form.outAxes[s];
      collected_[s].backwards = form.outDirections[s] != 0;
    }
    for (std::int64_t i = 0; i < bound; ++i) {
      const ValueId runs = within(i);
      predicates_ = {{runs, true}};
      std::vector<ValueId> arguments = state_;
      for (std::size_t s = 0; s < form.axes.size(); ++s)
        // Backwards, element -1 is the last.
        arguments.push_back(emit("Gather",
                                 {node().input(form.states + s), whole("element", form.directions[s] != 0 ? -1 - i : i)},
                                 {{"axis", form.axes[s]}}));
      SS_ASSIGN(const std::vector<ValueId> results, copyBody(*inner, arguments, i));
      const auto split = results.begin() + static_cast<std::ptrdiff_t>(form.states);
      collect(runs, {split, results.end()});
      predicates_.clear();
      carry(runs, {results.begin(), split});
    }
    return finish(within(bound), bound);
  }

  // How many iterations are written out; 0: the node stays, and why was said.
  Result<std::int64_t> boundOf(const Graph& inner) {
    std::int64_t most = kMostLoopIterations;
    const std::string_view wish = context_.option("loop.max_iterations", "");
    std::from_chars(wish.data(), wish.data() + wish.size(), most);
    const std::int64_t wanted = std::max<std::int64_t>(1, std::min(most, knownLimit_.value_or(most)));
    const std::int64_t bound = std::min(wanted, roomFor(inner) / 2);  // besides the body, what chooses and collects
    if (bound < std::min<std::int64_t>(2, wanted)) {
      SS_TRY(stay(tooManyText(inner, wanted) + hint_));
      return 0;
    }
    return bound;
  }

  void begin(std::size_t states, std::size_t collected) {
    base_.clear();
    predicates_.clear();
    flags_.clear();
    state_.clear();
    state_.reserve(states);
    collected_.assign(collected, {});
    for (std::size_t s = 0; s < collected; ++s) collected_[s].read = isUsed(node().output(states + s));
  }

  ValueId whole(const char* what, std::int64_t value) {
    return graph_.addConstant(fmt::format("{}/{}.{}", node().name, what, value),
                              Tensor::scalar(DType::kI64, static_cast<double>(value)));
  }
  ValueId flag(const char* what, bool value) {
    return graph_.addConstant(fmt::format("{}/{}", node().name, what), Tensor::scalar(DType::kBool, value ? 1 : 0));
  }
  // Conditions and counts of one element may be vectors.
  ValueId scalar(ValueId id) {
    const auto shape = context_.inference.shape(id);
    if (shape && shape->empty()) return id;
    return emit("Reshape", {id, graph_.addConstant(node().name + "/scalar", Tensor::ints(Integers{}))});
  }
  // Whether iteration i is below the number of iterations.
  ValueId within(std::int64_t i) {
    if (knownLimit_ || !limit_) return flag("within", !knownLimit_ || i < *knownLimit_);
    return emit("Less", {whole("iteration", i), scalar(limit_)});
  }
  ValueId choose(ValueId condition, ValueId yes, ValueId no) {
    return yes == no ? yes : emit("Select", {condition, yes, no}, {}, kInternalDomain);
  }

  void carry(ValueId runs, const std::vector<ValueId>& given) {
    for (std::size_t k = 0; k < state_.size(); ++k) state_[k] = choose(runs, given[k], state_[k]);
  }

  void collect(ValueId runs, const std::vector<ValueId>& given) {
    flags_.push_back(runs);
    for (std::size_t s = 0; s < collected_.size(); ++s) {
      if (!collected_[s].read) continue;
      const ValueId axes = graph_.addConstant(node().name + "/axes", Tensor::ints(Integers{collected_[s].axis}));
      collected_[s].parts.push_back(emit("Unsqueeze", {given[s], axes}));
    }
  }

  // `goesOn`: whether an iteration beyond the last one that was written out would run.
  Status finish(ValueId goesOn, std::int64_t bound) {
    const std::vector<ValueId> outputs = node().outputs;
    std::unordered_map<ValueId, ValueId> replacements;
    const bool bounded = !knownLimit_ || bound < *knownLimit_;
    const auto leave = [&](ValueId output, ValueId value) {
      replacements[output] =
          bounded ? emit("LoopBound", {goesOn, value}, {{"iterations", bound}}, kInternalDomain) : emit("Identity", {value});
    };
    ValueId forward, backward;  // the flags as vectors
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o]) continue;
      if (o < state_.size()) {
        if (!state_[o]) return malformed(fmt::format("no initial value for output {}", o));
        leave(outputs[o], state_[o]);
        continue;
      }
      const Collected& values = collected_[o - state_.size()];
      if (values.parts.empty()) continue;
      ValueId& flags = values.backwards ? backward : forward;
      if (!flags) flags = vectorOf(values.backwards);
      std::vector<ValueId> inputs{flags};
      inputs.insert(inputs.end(), values.parts.begin(), values.parts.end());
      if (values.backwards) std::reverse(inputs.begin() + 1, inputs.end());
      leave(outputs[o], emit("ConcatTaken", std::move(inputs), {{"axis", values.axis}}, kInternalDomain));
    }
    context_.note(fmt::format("{}: {} iterations under predicates", node().label(), bound));
    for (const auto& [output, value] : replacements) later_.insert(value);
    return replace(replacements);
  }

  ValueId vectorOf(bool backwards) {
    const ValueId axes = graph_.addConstant(node().name + "/axes", Tensor::ints(Integers{0}));
    std::vector<ValueId> parts;
    for (const ValueId runs : flags_) parts.push_back(emit("Unsqueeze", {runs, axes}));
    if (backwards) std::reverse(parts.begin(), parts.end());
    return emit("Concat", std::move(parts), {{"axis", std::int64_t{0}}});
  }

  std::string hint_;                        // how many iterations leave room for all loops
  ValueId limit_;                           // the number of iterations; invalid: the condition alone decides
  std::optional<std::int64_t> knownLimit_;  // where it is a number
  std::vector<ValueId> state_, flags_;      // what is carried, and which iterations run
  std::vector<Collected> collected_;
  std::unordered_set<ValueId> later_;  // what follows from loops that were written out just now
};

}  // namespace

Status predicateLoops(Graph& graph, PassContext& context) {
  const PassScope scope(graph, std::string(kPredicateLoopsPass));
  return Predicating(graph, context).run();
}

}  // namespace stepscope
