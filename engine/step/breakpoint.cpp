#include "engine/step/breakpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "engine/exec/executor.h"
#include "engine/profile/tensor_summary.h"
#include "engine/snapshot/units.h"
#include "kernels/dispatch.h"

namespace stepscope {
namespace {

struct Found {
  bool nan = false, inf = false;
};

Found scan(const TensorView& view) {
  Found found;
  dispatchFloat(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* data = static_cast<const T*>(view.data);
    for (std::int64_t i = 0; i < view.elements(); ++i) {
      const double x = static_cast<double>(data[i]);
      found.nan |= std::isnan(x);
      found.inf |= std::isinf(x);
    }
  });
  return found;
}

constexpr std::array<std::string_view, 9> kFields = {"min", "max", "mean", "std", "norm", "zeros", "nan", "inf", "value"};

double fieldOf(const ValuePredicate& predicate, const TensorView& view) {
  if (predicate.field == "value") return view.elements() > 0 ? elementAsDouble(view, 0) : 0;
  const snapshot::TensorStatistics s = tensorSummary(view);
  if (predicate.field == "min") return s.min();
  if (predicate.field == "max") return s.max();
  if (predicate.field == "mean") return s.mean();
  if (predicate.field == "std") return s.std();
  if (predicate.field == "norm") return s.norm();
  if (predicate.field == "zeros") return static_cast<double>(s.zeros());
  if (predicate.field == "nan") return static_cast<double>(s.nan());
  return static_cast<double>(s.inf());
}

bool holds(double a, const std::string& op, double b) {
  if (op == ">") return a > b;
  if (op == "<") return a < b;
  if (op == ">=") return a >= b;
  if (op == "<=") return a <= b;
  if (op == "==") return a == b;
  return a != b;
}

}  // namespace

Result<ValuePredicate> parsePredicate(const std::string& text) {
  // Names may hold spaces, so the three last words are split off from the right.
  std::vector<std::string> words;
  std::string rest = text;
  for (int i = 0; i < 3; ++i) {
    while (!rest.empty() && rest.back() == ' ') rest.pop_back();
    const auto space = rest.rfind(' ');
    if (space == std::string::npos)
      return invalid(fmt::format("predicate '{}': expected VALUE FIELD OP NUMBER, such as 'loss max > 10'", text));
    words.push_back(rest.substr(space + 1));
    rest.resize(space);
  }
  while (!rest.empty() && rest.back() == ' ') rest.pop_back();
  ValuePredicate predicate{rest, words[2], words[1], 0};
  const auto [end, error] = std::from_chars(words[0].data(), words[0].data() + words[0].size(), predicate.number);
  if (error != std::errc() || end != words[0].data() + words[0].size())
    return invalid(fmt::format("predicate '{}': found '{}'; expected a number at the end", text, words[0]));
  if (std::find(kFields.begin(), kFields.end(), predicate.field) == kFields.end())
    return invalid(
        fmt::format("predicate '{}': found field '{}'; expected min, max, mean, std, norm, zeros, nan, inf or value", text,
                    predicate.field));
  constexpr std::array<std::string_view, 6> ops = {">", "<", ">=", "<=", "==", "!="};
  if (std::find(ops.begin(), ops.end(), predicate.op) == ops.end())
    return invalid(fmt::format("predicate '{}': found '{}'; expected one of > < >= <= == !=", text, predicate.op));
  return predicate;
}

std::string breakBefore(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints, int index, int* id) {
  const ExecutionPlan& plan = executor.plan();
  const Instruction& instruction = plan.instructions[static_cast<std::size_t>(index)];
  const Node& node = executor.graph().node(instruction.node);
  const bool kernel = instruction.kind == InstructionKind::kKernel;  // else it only serves the node
  for (const snapshot::Breakpoint& b : breakpoints) {
    if (!b.enabled()) continue;
    *id = b.id();
    using B = snapshot::Breakpoint;
    switch (b.condition_case()) {
      case B::kNode:
        if (kernel && b.node() == instruction.node.index) return fmt::format("breakpoint {}: {}", b.id(), node.label());
        break;
      case B::kOp:
        if (kernel && b.op() == node.op) return fmt::format("breakpoint {}: op {}", b.id(), node.op);
        break;
      case B::kInstruction:
        if (b.instruction() == index) return fmt::format("breakpoint {}: instruction {}", b.id(), index);
        break;
      case B::kPhase: {
        const auto phase = static_cast<snapshot::Phase>(instruction.phase);
        // Recomputed nodes lie between backward ones: they do not make the backward phase begin again.
        int before = index - 1;
        while (before >= 0 && phase != snapshot::RECOMPUTE &&
               plan.instructions[static_cast<std::size_t>(before)].phase == Phase::kRecompute)
          --before;
        const bool begins = before < 0 || plan.instructions[static_cast<std::size_t>(before)].phase != instruction.phase;
        if (b.phase() == phase && begins)
          return fmt::format("breakpoint {}: phase {} begins", b.id(), phaseName(instruction.phase));
        break;
      }
      default: break;
    }
  }
  *id = 0;
  return {};
}

bool holdsFor(const ValuePredicate& predicate, const TensorView& contents) {
  return holds(fieldOf(predicate, contents), predicate.op, predicate.number);
}

bool isNamed(const Graph& graph, ValueId made, const std::string& name) {
  if (graph.value(made).name == name) return true;
  return std::any_of(graph.stateUpdates.begin(), graph.stateUpdates.end(), [&](const StateUpdate& update) {
    return update.next == made && graph.value(update.state).name == name;
  });
}

// What came in is told with what it made.
static void tellInputs(const Executor& executor, const Instruction& instruction, KnownNumbers& known) {
  for (const int input : instruction.inputs) {
    if (input < 0) continue;
    const ValueId value = executor.plan().buffers[static_cast<std::size_t>(input)].value;
    const auto contents = value ? executor.read(value) : Result<Tensor>(Tensor());
    if (!value || !contents) continue;
    const Found found = scan(contents->view());
    const auto at = static_cast<std::size_t>(value.index);
    if (found.nan || (found.inf && !known.expectedInf[at])) known.told[at] = true;
  }
}

namespace {

struct Condition {
  const snapshot::Breakpoint& breakpoint;
  ValuePredicate predicate;
};

// Those that are switched on.
std::vector<Condition> conditionsOf(const std::vector<snapshot::Breakpoint>& breakpoints) {
  std::vector<Condition> conditions;
  for (const snapshot::Breakpoint& b : breakpoints) {
    if (!b.enabled() || b.condition_case() != snapshot::Breakpoint::kPredicate) continue;
    if (auto predicate = parsePredicate(b.predicate())) conditions.push_back({b, std::move(*predicate)});
  }
  return conditions;
}

// Of a condition that holds for the contents of `value`; else empty.
std::string reasonOf(const Executor& executor, const Condition& condition, ValueId value, int* id) {
  const auto contents = executor.read(value);
  if (!contents) return {};
  const double found = fieldOf(condition.predicate, contents->view());
  if (!holds(found, condition.predicate.op, condition.predicate.number)) return {};
  const snapshot::Breakpoint& b = condition.breakpoint;
  *id = b.id();
  return fmt::format("breakpoint {}: {} ({} is {:g})", b.id(), b.predicate(), condition.predicate.field,
                     units::signless(found));
}

}  // namespace

std::string breakAfter(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints, int index,
                       KnownNumbers& known, int* id) {
  const ExecutionPlan& plan = executor.plan();
  const Instruction& instruction = plan.instructions[static_cast<std::size_t>(index)];
  *id = 0;
  if (instruction.kind != InstructionKind::kKernel) return {};  // copies and commits make nothing new
  const bool numbers = std::any_of(breakpoints.begin(), breakpoints.end(),
                                   [](const auto& b) { return b.enabled() && (b.nan() || b.new_inf()); });
  if (numbers) {
    // An infinity is expected when it was already in an expected input or a constant.
    bool excused = false, told = false;
    for (const int b : instruction.inputs) {
      if (b < 0) continue;
      const Buffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
      if (buffer.home == Home::kConstant) {
        if (const auto& data = executor.graph().value(buffer.value).data; data && data->elements() < (1 << 20))
          excused |= scan(data->view()).inf;
      }
      excused |= known.expectedInf[static_cast<std::size_t>(buffer.value.index)];
      told |= known.told[static_cast<std::size_t>(buffer.value.index)];
    }
    for (const int out : instruction.outputs) {
      if (out < 0) continue;
      const ValueId value = plan.buffers[static_cast<std::size_t>(out)].value;
      const auto contents = executor.read(value);
      if (!contents) continue;
      const Found found = scan(contents->view());
      const auto at = static_cast<std::size_t>(value.index);
      known.expectedInf[at] = found.inf && excused;
      known.told[at] = told && (found.nan || found.inf);
      if (known.told[at]) continue;
      for (const snapshot::Breakpoint& b : breakpoints) {
        if (!b.enabled()) continue;
        const bool nan = b.nan() && found.nan;
        if (!nan && !(b.new_inf() && found.inf && !excused)) continue;
        *id = b.id();
        known.told[at] = true;
        tellInputs(executor, instruction, known);
        return fmt::format("breakpoint {}: {} in '{}'", b.id(), nan ? "NaN" : "new Inf", executor.graph().value(value).name);
      }
    }
  }
  for (const Condition& condition : conditionsOf(breakpoints)) {
    for (const int out : instruction.outputs) {
      if (out < 0) continue;
      const ValueId value = plan.buffers[static_cast<std::size_t>(out)].value;
      if (!isNamed(executor.graph(), value, condition.predicate.value)) continue;
      if (std::string reason = reasonOf(executor, condition, value, id); !reason.empty()) return reason;
    }
  }
  *id = 0;
  return {};
}

std::string breakOnRead(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints, int index, int* id) {
  const ExecutionPlan& plan = executor.plan();
  const Graph& graph = executor.graph();
  *id = 0;
  for (const Condition& condition : conditionsOf(breakpoints)) {
    const ValueId value = graph.findValue(condition.predicate.value);
    if (!value || graph.value(value).role == ValueRole::kNodeOutput) continue;
    const int buffer = plan.bufferOfValue[static_cast<std::size_t>(value.index)];
    const auto reads = [&](const Instruction& instruction) {
      return std::any_of(instruction.inputs.begin(), instruction.inputs.end(),
                         [&](int input) { return input >= 0 && plan.root(input) == plan.root(buffer); });
    };
    const auto begin = plan.instructions.begin();
    if (buffer < 0 || std::find_if(begin, begin + index + 1, reads) != begin + index) continue;
    if (std::string reason = reasonOf(executor, condition, value, id); !reason.empty()) return reason;
  }
  return {};
}

}  // namespace stepscope
