#include "engine/lab/first_cause.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/build/input_role.h"
#include "engine/data/element_index.h"
#include "engine/ops/class_loss.h"
#include "engine/snapshot/units.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/numbers.h"
#include "kernels/cpu/loops/not_finite.h"

namespace stepscope {
namespace {

constexpr const char* kNoLabelCounts = "no label of the batch counts, so the loss is undefined";

struct Flags {
  bool nan = false, inf = false, positive = false;  // positive: an infinity that is
  bool expected = false;                            // its infinities come from infinite constants alone
  bool looked = false;
  bool any() const { return nan || (inf && !expected); }
};

Flags flagsOf(const TensorView& view) {
  Flags flags;
  flags.looked = true;
  if (!view.present() || !view.data || !isFloating(view.dtype) || !cpu::anyNotFinite(view)) return flags;
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    const double x = elementAsDouble(view, i);
    flags.nan = flags.nan || std::isnan(x);
    flags.inf = flags.inf || std::isinf(x);
    flags.positive = flags.positive || (std::isinf(x) && x > 0);
  }
  return flags;
}

// The element of an operand that meets an element of the result; -1: their extents do not broadcast.
std::int64_t meets(const Dims& operand, const Dims& result, const std::vector<std::int64_t>& index) {
  if (operand.size() > result.size()) return -1;
  const std::size_t skipped = result.size() - operand.size();
  std::int64_t element = 0;
  for (std::size_t axis = 0; axis < operand.size(); ++axis) {
    const std::int64_t extent = result[axis + skipped];
    if (operand[axis] != extent && operand[axis] != 1) return -1;
    element = element * operand[axis] + (operand[axis] == 1 ? 0 : index[axis + skipped]);
  }
  return element;
}

// The first element that is NaN, else the first infinite one, else the largest.
std::int64_t mostTelling(const TensorView& view) {
  std::int64_t inf = -1, largest = -1;
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    const double x = elementAsDouble(view, i);
    if (std::isnan(x)) return i;
    if (inf < 0 && std::isinf(x)) inf = i;
    if (largest < 0 || std::abs(x) > std::abs(elementAsDouble(view, largest))) largest = i;
  }
  return inf >= 0 ? inf : largest;
}

struct Operand {
  ValueId value;
  Tensor contents;
};

// The replay of one plan, watched.
class Replay {
 public:
  explicit Replay(const SideSubject& subject, const WeightWatch& weights) : subject_(subject), weights_(weights) {}

  Result<std::optional<FirstCause>> run(const SideSubject& request) {
    SS_ASSIGN(side_, SideStep::make(request));
    flags_.assign(graph().valueCapacity(), {});
    const auto look = [&](int i) -> Status {
      note(i);
      return {};
    };
    SS_TRY(side_->run(subject_.batch, look));
    const Place place = firstPlace();
    if (place.instruction < 0) return std::optional<FirstCause>();
    // Once more, up to the place: operands are read before they may be written over, the result right after.
    std::vector<Operand> operands;
    Tensor result;
    const auto before = [&](int i) {
      if (i == place.instruction) operands = read(ran(i).inputs);
      return i <= place.instruction;
    };
    const auto after = [&](int i) -> Status {
      if (i != place.instruction) return {};
      for (Operand& output : read(ran(i).outputs))
        if (!result.valid() && (flagsOf(output.contents.view()).nan || flagsOf(output.contents.view()).inf)) {
          result = std::move(output.contents);
          resultOf_ = output.value;
        }
      return {};
    };
    SS_TRY(side_->run(subject_.batch, after, before));
    if (!result.valid()) return std::optional<FirstCause>();
    return std::optional(tell(place, operands, result));
  }

 private:
  struct Place {
    int instruction = -1;
    ValueId leaf;  // what came in not finite: batch, parameter; invalid: the instruction made it of finite operands
  };

  const Graph& graph() const { return side_->stepper().graph(); }
  const ExecutionPlan& plan() const { return side_->stepper().plan(); }
  const Instruction& ran(int i) const { return plan().instructions[static_cast<std::size_t>(i)]; }
  Flags& flags(ValueId id) { return flags_[static_cast<std::size_t>(id.index)]; }

  std::vector<Operand> read(const std::vector<int>& buffers) const {
    std::vector<Operand> operands;
    for (const int b : buffers) {
      if (b < 0) continue;
      const ValueId id = plan().buffers[static_cast<std::size_t>(b)].value;
      if (!id) continue;
      const auto contents = side_->stepper().executor().read(id);
      if (contents && contents->dtype() != DType::kString) operands.push_back({id, contents->clone()});
    }
    return operands;
  }

  // Of a value that no instruction makes; computed ones are noted when they are made.
  const Flags& given(ValueId id) {
    Flags& known = flags(id);
    const Value& value = graph().value(id);
    if (known.looked || value.role == ValueRole::kNodeOutput) return known;
    if (value.role == ValueRole::kInput) {
      const auto array = subject_.batch.arrays.find(value.name);
      known = array == subject_.batch.arrays.end() ? Flags{} : flagsOf(array->second.view());
      known.expected = known.inf && !known.nan && !known.positive;  // a mask that is added
    } else if (const auto contents = side_->stepper().executor().read(id)) {
      known = flagsOf(contents->view());
      const auto& trained = side_->step().trained;
      // A mask that is stored like a weight is no fault of the file.
      const auto stored = known.inf && !known.nan && !known.positive && value.data ? value.data.read() : Tensor();
      const bool mask =
          stored && stored->valid() && std::isinf(elementAsDouble(stored->view(), mostTelling(stored->view())));
      known.expected = mask || std::find(trained.begin(), trained.end(), id) == trained.end();
    }
    known.looked = true;
    return known;
  }

  std::vector<ValueId> inputsOf(int i) const {
    std::vector<ValueId> values;
    for (const int b : ran(i).inputs)
      if (b >= 0)
        if (const ValueId id = plan().buffers[static_cast<std::size_t>(b)].value; id) values.push_back(id);
    return values;
  }

  void note(int i) {
    const Instruction& instruction = ran(i);
    if (instruction.kind == InstructionKind::kCommit || i >= plan().firstOptimizer) return;
    if (!side_->stepper().executor().conditionsHold(i)) return;
    bool floats = false, excused = false, blamed = false;
    for (const ValueId id : inputsOf(i)) {
      const Flags& known = given(id);
      floats = floats || isFloating(graph().value(id).type.dtype);
      excused = excused || (known.inf && known.expected);
      blamed = blamed || known.any();
    }
    for (const int b : instruction.outputs) {
      if (b < 0) continue;
      const ValueId id = plan().buffers[static_cast<std::size_t>(b)].value;
      if (!id) continue;
      const auto contents = side_->stepper().executor().read(id);
      if (!contents) continue;
      Flags& known = flags(id);
      known = flagsOf(contents->view());
      known.expected = known.inf && (excused || !floats) && !blamed;  // without floats: a constant that is written down
    }
  }

  // Made of numbers, and not written down in the graph.
  bool computed(ValueId id) const {
    const int made =
        graph().value(id).role == ValueRole::kNodeOutput ? plan().instructionOf(graph().value(id).producer) : -1;
    if (made < 0) return false;
    const std::vector<ValueId> inputs = inputsOf(made);
    return std::ranges::any_of(inputs, [&](ValueId in) { return isFloating(graph().value(in).type.dtype); });
  }

  // Along values that are not finite, from the loss or the gradients to where they begin; of several beginnings the first.
  Place firstPlace() {
    std::vector<ValueId> open;
    const SymbolicStep& step = side_->step();
    // An infinite constant excuses what is masked later; nothing masks the loss.
    if (step.loss && (flags(step.loss).nan || flags(step.loss).inf)) open.push_back(step.loss);
    if (open.empty())
      for (const ValueId id : step.optimizer.accumulated)
        if (id && flags(id).any()) open.push_back(id);
    // No loss of this step reads what running statistics become, but they may be the first to hold one.
    for (const StateUpdate& update : graph().stateUpdates)
      if (update.next && flags(update.next).any()) open.push_back(update.next);
    Place first;
    std::set<std::int32_t> seen;
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!seen.insert(id.index).second) continue;
      const int made = plan().instructionOf(graph().value(id).producer);
      if (made < 0) continue;
      bool handedOn = false;
      ValueId leaf;
      const bool excused = !flags(id).any();
      for (const ValueId in : inputsOf(made)) {
        const Flags& known = given(in);
        if (!known.any() && !(excused && known.inf && computed(in))) continue;
        if (graph().value(in).role == ValueRole::kNodeOutput) {
          open.push_back(in);
          handedOn = true;
        } else if (!leaf) {
          leaf = in;
        }
      }
      if ((handedOn && !leaf) || (first.instruction >= 0 && made >= first.instruction)) continue;
      first = {made, leaf};
    }
    return first;
  }

  double operandValue(const std::vector<Operand>& operands, std::size_t k, const FirstCause& cause,
                      const Dims& result) const {
    if (k >= operands.size()) return std::nan("");
    const std::int64_t at = meets(operands[k].contents.dims(), result, cause.index);
    return at < 0 ? std::nan("") : elementAsDouble(operands[k].contents.view(), at);
  }

  bool allMasked(const std::vector<Operand>& operands, const FirstCause& cause, const Node& node) const {
    if (operands.empty()) return false;
    const Tensor& x = operands.front().contents;
    const Dims& dims = x.dims();
    if (dims.empty() || !isFloating(x.dtype())) return false;
    const auto rank = static_cast<std::int64_t>(dims.size());
    std::int64_t axis = node.attrs.integer("axis", isCrossEntropy(node) ? 1 : -1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    std::int64_t inner = 1;
    for (std::size_t k = static_cast<std::size_t>(axis) + 1; k < dims.size(); ++k) inner *= dims[k];
    const std::int64_t extent = dims[static_cast<std::size_t>(axis)],
                       outer = x.elements() / std::max<std::int64_t>(1, extent * inner);
    // Of the row that the element belongs to; of another result, any row.
    const bool own = cause.index.size() == dims.size();
    std::int64_t at = 0;
    for (std::size_t k = 0; own && k < dims.size(); ++k) at = at * dims[k] + cause.index[k];
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t n = 0; n < inner; ++n) {
        if (own && (at / (extent * inner) != o || at % inner != n)) continue;
        bool masked = extent > 0;
        for (std::int64_t k = 0; k < extent && masked; ++k) {
          const double v = elementAsDouble(x.view(), (o * extent + k) * inner + n);
          masked = std::isinf(v) && v < 0;
        }
        if (masked) return true;
      }
    return false;
  }

  // What labels, masks and constants alone make: how many labels count.
  bool countsLabels(ValueId id) const {
    const Graph& imported = subject_.model->graph;
    bool labels = false;
    std::vector<ValueId> open{id};
    std::set<std::int32_t> seen;
    while (!open.empty()) {
      const Value& value = graph().value(open.back());
      open.pop_back();
      if (!seen.insert(value.id.index).second) continue;
      if (value.role == ValueRole::kNodeOutput) {
        const Node& node = graph().node(value.producer);
        if (node.op != "Shape" && node.op != "Size") open.insert(open.end(), node.inputs.begin(), node.inputs.end());
        std::erase_if(open, [](ValueId input) { return !input.valid(); });
      } else if (value.role == ValueRole::kInput) {
        const InputRole::Kind kind = inferRole(imported, imported.findValue(value.name)).kind;
        if (kind == InputRole::Kind::kTokens || (isFloating(value.type.dtype) && kind != InputRole::Kind::kMask))
          return false;
        labels = true;
      } else if (std::ranges::find(side_->step().trained, value.id) != side_->step().trained.end()) {
        return false;
      }
    }
    return labels;
  }

  // Of a class loss: every label is the one that does not count.
  bool allIgnored(const Node& loss, const std::vector<Operand>& operands) const {
    const auto ignored = isClassLoss(loss) ? ignoredLabel(graph(), loss) : std::nullopt;
    if (!ignored || operands.size() < 2) return false;
    const TensorView& labels = operands[1].contents.view();
    for (std::int64_t i = 0; i < labels.elements(); ++i)
      if (elementAsInt(labels, i) != *ignored) return false;
    return true;
  }

  // Of operands that no one handed on not finite.
  std::string kindOf(const Node& node, const std::vector<Operand>& operands, const FirstCause& cause,
                     const Dims& result) const {
    const std::string& op = node.op;
    const std::string forward = cause.backward ? cause.op : op;
    const double x = operandValue(operands, 0, cause, result), y = operandValue(operands, 1, cause, result);
    const auto is = [](const std::string& name, std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const bool root = is(forward, {"Log", "Log1p", "Sqrt", "Pow", "Acos", "Asin", "Acosh", "Atanh", "Rsqrt", "ReduceL2",
                                   "ReduceLogSum", "LpNormalization"});
    if (op.find("Softmax") != std::string::npos && allMasked(operands, cause, node)) return "all-masked softmax";
    if (is(op, {"Reciprocal"}) && x == 0) return cause.backward && root ? "log or root out of domain" : "division by zero";
    if (allIgnored(node, operands) || (op == "Div" && y == 0 && countsLabels(operands[1].value))) return kNoLabelCounts;
    if (is(op, {"Div", "Mod"}) && y == 0) return cause.backward && root ? "log or root out of domain" : "division by zero";
    if (is(op, {"Log"}) && x <= 0) return "log or root out of domain";
    if (is(op, {"Log1p"}) && x <= -1) return "log or root out of domain";
    if (is(op, {"Sqrt", "Rsqrt"}) && x < 0) return "log or root out of domain";
    if (is(op, {"Rsqrt"}) && x == 0) return "division by zero";
    if (is(op, {"Acos", "Asin"}) && std::abs(x) > 1) return "log or root out of domain";
    if (is(op, {"Acosh"}) && x < 1) return "log or root out of domain";
    if (is(op, {"Atanh"}) && std::abs(x) >= 1) return "log or root out of domain";
    if (is(op, {"ReduceLogSum"})) return "log or root out of domain";
    if (is(op, {"Pow"}) && x < 0 && y != std::floor(y)) return "log or root out of domain";
    if (is(op, {"Pow"}) && x == 0 && y < 0)
      return cause.backward && y > -1 ? "log or root out of domain" : "division by zero";
    bool infinite = false, empty = false;
    double largest = 0;
    for (const Operand& operand : operands) {
      const std::int64_t most = isFloating(operand.contents.dtype()) ? mostTelling(operand.contents.view()) : -1;
      if (most >= 0) largest = std::max(largest, std::abs(elementAsDouble(operand.contents.view(), most)));
      const Flags known = flagsOf(operand.contents.view());
      infinite = infinite || known.inf || known.nan;
      empty = empty || operand.contents.elements() == 0;
    }
    if (empty && op.starts_with("Reduce")) return "mean of no elements";
    if (infinite) return "invalid operand";
    if (!cause.nan) return "overflow";
    // The mean of a loss over labels whose weights are zero, and of a normalisation whose variance is below zero.
    if (is(forward, {"SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyLossInternal", "NegativeLogLikelihoodLoss"}))
      return "division by zero";
    // The variance of large numbers is infinite, that of a step below zero has no root.
    if (op.find("Normalization") != std::string::npos) return largest > 1e17 ? "overflow" : "log or root out of domain";
    return "invalid operand";
  }

  std::int64_t samples() const {
    std::int64_t samples = -1;
    for (const auto& [name, array] : subject_.batch.arrays) {
      if (array.dims().empty()) continue;
      if (samples >= 0 && samples != array.dims()[0]) return 0;
      samples = array.dims()[0];
    }
    return std::max<std::int64_t>(samples, 0);
  }

  // Rows of the batch whose elements are not finite. A first axis that is batch times something is taken apart.
  void addRows(const TensorView& view, bool several, FirstCause& cause) const {
    const std::int64_t rows = samples();
    if (rows <= 0 || view.dims.empty() || view.dims[0] < rows || view.dims[0] % rows != 0) return;
    if (view.dims[0] != rows && !several) return;
    const std::int64_t each = view.elements() / rows;
    for (std::int64_t r = 0; r < rows && cause.rows.size() < kMostCauseRows; ++r)
      for (std::int64_t i = r * each; i < (r + 1) * each; ++i)
        if (const double x = elementAsDouble(view, i); cause.nan ? std::isnan(x) : std::isinf(x)) {
          cause.rows.push_back(r);
          break;
        }
  }

  FirstCause tell(const Place& place, const std::vector<Operand>& operands, const Tensor& result) {
    const Instruction& instruction = ran(place.instruction);
    const Node& node = graph().node(instruction.node);
    FirstCause cause;
    cause.step = subject_.start.counters.step;
    cause.backward = instruction.phase == Phase::kBackward || instruction.phase == Phase::kRecompute;
    cause.node = importedNodeOf(graph(), instruction.node);
    const Node& imported = cause.node ? subject_.model->graph.node(cause.node) : node;
    cause.name = imported.name;
    cause.op = imported.op;
    cause.module = imported.provenance.modulePath.view();
    if (!imported.provenance.sourceFile.empty())
      cause.source = fmt::format("{}:{}{}{}", imported.provenance.sourceFile.view(), imported.provenance.sourceLine,
                                 imported.provenance.sourceCode.empty() ? "" : " ", imported.provenance.sourceCode.view());
    const std::int64_t element = mostTelling(result.view());
    cause.nan = std::isnan(elementAsDouble(result.view(), element));
    cause.index = indexOf(element, result.dims());
    cause.value = graph().value(resultOf_).name;
    for (const Operand& operand : operands) {
      if (operand.contents.elements() == 0) continue;
      const std::int64_t met = operand.value == place.leaf ? -1 : meets(operand.contents.dims(), result.dims(), cause.index);
      const std::int64_t at = met >= 0 ? met : mostTelling(operand.contents.view());
      cause.operands.push_back({graph().value(operand.value).name, elementAsDouble(operand.contents.view(), at),
                                indexOf(at, operand.contents.dims())});
    }
    const Tensor* came = nullptr;
    for (const Operand& operand : operands)
      if (operand.value == place.leaf) came = &operand.contents;
    const bool fromBatch = place.leaf && graph().value(place.leaf).role == ValueRole::kInput;
    if (came != nullptr) {
      const std::int64_t at = mostTelling(came->view());
      cause.value = graph().value(place.leaf).name;
      cause.nan = std::isnan(elementAsDouble(came->view(), at));
      cause.index = indexOf(at, came->dims());
      cause.kind = fromBatch ? "bad input" : "invalid operand";
      if (fromBatch) addRows(came->view(), true, cause);
    } else {
      cause.kind = kindOf(node, operands, cause, result.dims());
      if (!isNextState(graph(), resultOf_)) addRows(result.view(), !cause.backward, cause);
      for (std::int64_t row = 0; cause.kind == kNoLabelCounts && row < std::min<std::int64_t>(samples(), kMostCauseRows);
           ++row)
        cause.rows.push_back(row);
    }
    // An infinite mask is fine; where it made a NaN without masking all, it is no mask.
    if (cause.kind == "invalid operand" && came == nullptr) blameBatch(cause);
    if (const auto since = weights_.explodedSince();
        since && (cause.kind == "overflow" || (cause.kind == "invalid operand" && !fromBatch)))
      cause.kind = fmt::format("exploded weights since step {}", *since);
    return cause;
  }

  void blameBatch(FirstCause& cause) {
    for (const ValueId id : graph().inputs()) {
      const auto array = subject_.batch.arrays.find(graph().value(id).name);
      if (array == subject_.batch.arrays.end() || !given(id).inf) continue;
      const std::int64_t at = mostTelling(array->second.view());
      cause.kind = "bad input";
      cause.value = graph().value(id).name;
      cause.nan = false;
      cause.index = indexOf(at, array->second.dims());
      cause.rows.clear();
      addRows(array->second.view(), true, cause);
      return;
    }
  }

  const SideSubject& subject_;
  const WeightWatch& weights_;
  std::unique_ptr<SideStep> side_;
  std::vector<Flags> flags_;  // by value id
  ValueId resultOf_;
};

}  // namespace

NodeId importedNodeOf(const Graph& graph, NodeId id) {
  for (int depth = 0; depth < 64 && id; ++depth) {
    if (static_cast<std::size_t>(id.index) < graph.births().importedNodes) return id;
    const Provenance& from = graph.node(id).provenance;
    id = from.forward           ? from.forward
         : from.imported        ? from.imported
         : from.sources.empty() ? NodeId{}
                                : from.sources.front();
  }
  return {};
}

std::string FirstCause::text() const {
  std::string text =
      fmt::format("{} in '{}' [{}], {} {}{} '{}': {}", nan ? "NaN" : "Inf", toUtf8(value), fmt::join(index, ", "),
                  kind == "bad input" ? "read first by" : "made by", op, backward ? "'s gradient" : "", toUtf8(name), kind);
  // A bad input is told by its element; what it was combined with says nothing.
  if (!operands.empty() && kind != "bad input") {
    text += "; of ";
    for (std::size_t i = 0; i < operands.size(); ++i)
      text += fmt::format("{}{} = {:.6g}", i ? ", " : "", toUtf8(operands[i].name), units::signless(operands[i].value));
  }
  if (!rows.empty())
    text += fmt::format(
        "; batch row{} {}{}", rows.size() == 1 ? "" : "s",
        fmt::join(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(8, rows.size())), ", "),
        rows.size() > 8 ? " …" : "");
  if (!module.empty()) text += fmt::format("; module {}", toUtf8(module));
  if (!source.empty()) text += fmt::format("; {}", toUtf8(source));
  return text;
}

Result<std::optional<FirstCause>> findFirstCause(const SideSubject& subject, const WeightWatch& weights) {
  SideSubject plain = subject;
  for (const OptionInfo& option : subject.model->registry->options())
    if (option.name.starts_with("pass.")) plain.request.options.passes[std::string(option.name.substr(5))] = false;
  auto found = Replay(subject, weights).run(plain);
  if (!found && found.error().code == ErrorCode::kCancelled) return found;
  if (found && *found) return found;
  return Replay(subject, weights).run(subject);
}

}  // namespace stepscope
