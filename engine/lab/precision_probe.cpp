#include "engine/lab/precision_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "engine/passes/pattern.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Odd, so that it does not fall into step with the extents of a tensor.
std::int64_t strideOf(std::int64_t elements) {
  return elements <= kPrecisionSample ? 1 : ((elements + kPrecisionSample - 1) / kPrecisionSample) | 1;
}

// The value that was cast, however often.
ValueId beforeCasts(const Graph& graph, ValueId id) {
  while (id) {
    const NodeId producer = graph.value(id).producer;
    if (!producer || !isOp(graph.node(producer), "Cast")) break;
    id = graph.node(producer).input(0);
  }
  return id;
}

bool readsLow(const Graph& graph, const Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return id && isLow(graph.value(id).type.dtype); });
}

// As a regular expression that matches this name alone.
std::string patternOf(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view("\\.+*?()|[]{}^$").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

// The nodes of `plain` that became this one: itself, the forward node of a gradient, what was fused.
std::set<std::int32_t> originsOf(const Graph& graph, NodeId id, const Graph& plain) {
  std::set<std::int32_t> found, seen;
  std::vector<NodeId> open{id};
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    if (!at || !seen.insert(at.index).second || static_cast<std::size_t>(at.index) >= graph.nodeCapacity()) continue;
    const Node& node = graph.node(at);
    const bool known = static_cast<std::size_t>(at.index) < plain.nodeCapacity() && plain.alive(at);
    if (known && !isOp(plain.node(at), "Cast")) {
      found.insert(at.index);
    } else if (node.provenance.forward && node.provenance.forward != at) {
      open.push_back(node.provenance.forward);
    } else {
      open.insert(open.end(), node.provenance.sources.begin(), node.provenance.sources.end());
    }
  }
  return found;
}

}  // namespace

Status PrecisionProbe::reference(const Stepper& stepper, int instruction) {
  const Executor& executor = stepper.executor();
  const Instruction& ran = executor.plan().instructions[static_cast<std::size_t>(instruction)];
  if (ran.kind != InstructionKind::kKernel || !executor.conditionsHold(instruction)) return {};
  for (const int b : ran.outputs) {
    if (b < 0) continue;
    const ValueId id = executor.plan().buffers[static_cast<std::size_t>(b)].value;
    if (!isFloating(stepper.graph().value(id).type.dtype)) continue;
    const ValueKey key = stepper.keys().keyOf(id);
    if (!key) continue;
    SS_ASSIGN(const Tensor contents, executor.read(id));
    const TensorView view = contents.view();
    Sample sample;
    sample.total = view.elements();
    ExponentHistogram all;
    all.add(view);
    sample.notFinite = all.notFinite;
    const std::int64_t stride = strideOf(sample.total);
    sample.elements.reserve(static_cast<std::size_t>(sample.total / stride + 1));
    for (std::int64_t i = 0; i < sample.total; i += stride)
      sample.elements.push_back(static_cast<float>(elementAsDouble(view, i)));
    if (const Node& node = stepper.graph().node(ran.node); sumsTerms(node) && view.dtype == DType::kF32) {
      // What is lost already is not known: then the value is compared as any.
      if (const auto terms = executor.read(node.input(0)); terms && terms->dtype() == DType::kF32)
        sample.summed = summedTerms(terms->view(), view);
    }
    samples_[key] = std::move(sample);
  }
  return {};
}

PrecisionProbe::Class& PrecisionProbe::classOf(const ExecutionPlan& plan, int buffer, DType dtype) {
  const Buffer& own = plan.buffers[static_cast<std::size_t>(buffer)];
  const Buffer& root = plan.buffers[static_cast<std::size_t>(plan.root(buffer))];
  const BufferClass bufferClass = root.home == Home::kState                ? root.bufferClass
                                  : own.bufferClass == BufferClass::kStash ? BufferClass::kActivation
                                                                           : own.bufferClass;
  const std::string name(bufferClassName(bufferClass));
  const auto it =
      std::find_if(classes_.begin(), classes_.end(), [&](const Class& c) { return c.tensors == name && c.dtype == dtype; });
  if (it != classes_.end()) return *it;
  classes_.emplace_back();
  classes_.back().tensors = name;
  classes_.back().dtype = dtype;
  return classes_.back();
}

PrecisionProbe::Found PrecisionProbe::compare(const Sample& sample, const TensorView& view, Class* into,
                                              std::int64_t* notFinite) const {
  const std::int64_t stride = strideOf(sample.total);
  double difference = 0, length = 0;
  for (std::size_t k = 0; k < sample.elements.size(); ++k) {
    const double wide = sample.elements[k], low = elementAsDouble(view, static_cast<std::int64_t>(k) * stride);
    if (into != nullptr) {
      into->flushed += low == 0 && wide != 0;
      into->reference.add(wide, view.dtype);
    }
    if (!std::isfinite(wide) || !std::isfinite(low)) continue;
    difference += (low - wide) * (low - wide);
    length += wide * wide;
  }
  if (into != nullptr) into->compared += static_cast<std::int64_t>(sample.elements.size());
  ExponentHistogram all;
  all.add(view);
  *notFinite = std::max<std::int64_t>(0, all.notFinite - sample.notFinite);
  Found found;
  found.overflowed = *notFinite > 0;
  found.error = found.overflowed ? kInfinite : difference == 0 ? 0 : length == 0 ? 1 : std::sqrt(difference / length);
  return found;
}

// The largest error among what the node reads, casts left out: what they round counts with who reads them.
PrecisionProbe::Found PrecisionProbe::readBy(const Graph& graph, const Node& node) const {
  Found worst;
  for (const ValueId input : node.inputs) {
    const auto it = found_.find(beforeCasts(graph, input).index);
    if (it == found_.end()) continue;
    worst.error = std::max(worst.error, it->second.error);
    worst.overflowed |= it->second.overflowed;
  }
  return worst;
}

Status PrecisionProbe::compared(const Stepper& stepper, int instruction) {
  const Executor& executor = stepper.executor();
  const Graph& graph = stepper.graph();
  const ExecutionPlan& plan = executor.plan();
  const Instruction& ran = plan.instructions[static_cast<std::size_t>(instruction)];
  if (ran.kind != InstructionKind::kKernel || !executor.conditionsHold(instruction)) return {};
  const Node& node = graph.node(ran.node);
  const Found read = readBy(graph, node);
  Added added{ran.node, 0, 0, DType::kUndefined};
  for (const int b : ran.outputs) {
    if (b < 0) continue;
    const ValueId id = plan.buffers[static_cast<std::size_t>(b)].value;
    if (!isFloating(graph.value(id).type.dtype)) continue;
    SS_ASSIGN(const Tensor contents, executor.read(id));
    const TensorView view = contents.view();
    Class* into = ran.view ? nullptr : &classOf(plan, b, view.dtype);
    if (into != nullptr) {
      ++into->values;
      into->own.add(view);
    }
    const auto sample = samples_.find(stepper.keys().keyOf(id));
    if (sample == samples_.end() || sample->second.total != view.elements()) {
      found_[id.index] = read;
      continue;
    }
    std::int64_t notFinite = 0;
    const Found found = compare(sample->second, view, into, &notFinite);
    if (sample->second.summed && sample->second.summed->zeroUpToRounding() && !found.overflowed) {
      found_[id.index] = read;
      continue;
    }
    found_[id.index] = found;
    if (read.overflowed) continue;
    added.error = std::max(added.error, found.overflowed ? kInfinite : found.error - read.error);
    added.notFinite += notFinite;
  }
  if (added.error <= 0 || isOp(node, "Cast") || node.phase == Phase::kOptimizer || !readsLow(graph, node)) return {};
  for (const ValueId input : node.inputs)
    if (input && isLow(graph.value(input).type.dtype)) added.dtype = graph.value(input).type.dtype;
  added_.push_back(added);
  return {};
}

std::optional<SummedTerms> PrecisionProbe::termsOf(const Stepper& reference, ValueId id) const {
  const Graph& graph = reference.graph();
  while (id) {
    if (const auto it = samples_.find(reference.keys().keyOf(id)); it != samples_.end() && it->second.summed)
      return it->second.summed;
    const NodeId producer = graph.value(id).producer;
    if (!producer) return std::nullopt;
    const Node& node = graph.node(producer);
    const bool same = isOp(node, "Cast") || isOp(node, "Reshape") || isOp(node, "Flatten") || isOp(node, "Transpose") ||
                      isOp(node, "Squeeze") || isOp(node, "Unsqueeze") || isOp(node, "Identity");
    id = same ? node.input(0) : ValueId();
  }
  return std::nullopt;
}

std::vector<snapshot::PrecisionClass> PrecisionProbe::classes() const {
  std::vector<snapshot::PrecisionClass> list;
  for (const Class& c : classes_) {
    snapshot::PrecisionClass told;
    told.set_tensors(c.tensors);
    told.set_dtype(std::string(dtypeName(c.dtype)));
    told.set_values(c.values);
    told.set_elements(c.own.elements);
    told.set_zeros(c.own.zeros);
    told.set_not_finite(c.own.notFinite);
    told.set_near_overflow(c.own.nearOverflow);
    told.set_subnormal(c.own.subnormal);
    told.set_compared(c.compared);
    told.set_flushed(c.flushed);
    int first = ExponentHistogram::kHighest + 1, last = ExponentHistogram::kLowest - 1;
    for (int e = ExponentHistogram::kLowest; e <= ExponentHistogram::kHighest; ++e)
      if (c.own.exponent(e) + c.reference.exponent(e) > 0) {
        first = std::min(first, e);
        last = e;
      }
    if (first <= last) told.set_first_exponent(first);
    for (int e = first; e <= last; ++e) {
      told.add_counts(c.own.exponent(e));
      told.add_reference_counts(c.reference.exponent(e));
    }
    list.push_back(std::move(told));
  }
  return list;
}

std::vector<snapshot::PrecisionNode> PrecisionProbe::nodes(const Stepper& stepper, const Graph& plain) const {
  struct Sum {
    double error = 0;
    std::int64_t notFinite = 0;
    DType dtype = DType::kUndefined;
    std::size_t first = 0;  // in the order of the step
  };
  std::map<std::set<std::int32_t>, Sum> sums;
  for (std::size_t i = 0; i < added_.size(); ++i) {
    const std::set<std::int32_t> origins = originsOf(stepper.graph(), added_[i].node, plain);
    if (origins.empty()) continue;
    const auto [it, isNew] = sums.try_emplace(origins);
    if (isNew) it->second.first = i;
    it->second.error += added_[i].error;
    it->second.notFinite += added_[i].notFinite;
    it->second.dtype = added_[i].dtype;
  }
  std::vector<std::pair<std::set<std::int32_t>, Sum>> order(sums.begin(), sums.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.error != b.second.error ? a.second.error > b.second.error : a.second.first < b.second.first;
  });
  std::vector<snapshot::PrecisionNode> list;
  for (const auto& [origins, sum] : order) {
    snapshot::PrecisionNode told;
    std::string names, pattern;
    for (const std::int32_t index : origins) {
      const Node& node = plain.node({index});
      names += (names.empty() ? "" : " + ") + node.name;
      pattern += (pattern.empty() ? "" : "|") + patternOf(node.name);
      told.set_op(told.op() + (told.op().empty() ? "" : " + ") + toUtf8(node.op));
      if (told.module().empty()) told.set_module(toUtf8(std::string(node.provenance.modulePath)));
    }
    told.set_node(toUtf8(names));
    told.set_dtype(std::string(dtypeName(sum.dtype)));
    told.set_added(sum.error);
    told.set_not_finite(sum.notFinite);
    told.set_override(toUtf8(origins.size() == 1 ? fmt::format("^{}$:fp32", pattern) : fmt::format("^({})$:fp32", pattern)));
    list.push_back(std::move(told));
  }
  return list;
}

}  // namespace stepscope
