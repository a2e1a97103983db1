#include "engine/plugin/plugin_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "engine/autodiff/gradient.h"
#include "engine/exec/interpreter.h"
#include "engine/plugin/attribute_views.h"
#include "engine/plugin/check_on_emulator.h"

namespace stepscope {
namespace {

constexpr int kTimedRuns = 20;
constexpr RandomKey kRandom{1, 0, 0};  // of every run

std::int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The contents of an example, drawn element by element.
Tensor drawn(const ssp_example_operand& operand, std::uint64_t seed, std::uint32_t input) {
  const auto type = static_cast<DType>(operand.dtype);
  Tensor tensor(type, Dims(operand.dims, operand.dims + operand.rank));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const double unit = uniform01({seed, 0, input}, static_cast<std::uint64_t>(i));
    const double value = isFloating(type) ? operand.low + unit * (operand.high - operand.low)
                                          : std::floor(operand.low + unit * (operand.high - operand.low + 1));
    storeElement(tensor.view(), i, std::min(value, operand.high));
  }
  return tensor;
}

// A graph of one node.
struct OneNode {
  Graph graph;
  NodeId node;
  std::vector<ValueId> inputs;
};

OneNode graphOf(const ssp_op& op, const ssp_example& example, const Attributes& attrs, bool symbols) {
  OneNode made;
  for (std::uint32_t i = 0; i < example.input_count; ++i) {
    const ssp_example_operand& operand = example.inputs[i];
    if (operand.dtype == SSP_UNDEFINED) {
      made.inputs.emplace_back();
      continue;
    }
    // Equal extents are one symbol, because they may have to be equal.
    Shape shape;
    for (std::uint32_t axis = 0; axis < operand.rank; ++axis)
      shape.push_back(symbols && operand.dims[axis] > 1 ? Dim::symbol(fmt::format("e{}", operand.dims[axis]))
                                                        : Dim(operand.dims[axis]));
    made.inputs.push_back(made.graph.addValue(
        fmt::format("x{}", i), {ValueKind::kTensor, static_cast<DType>(operand.dtype), shape}, ValueRole::kInput));
    made.graph.mutableInputs().push_back(made.inputs.back());
  }
  const std::uint32_t outputs =
      op.most_outputs == SSP_MANY ? std::max(op.least_outputs, 1U) : std::min(op.most_outputs, 64U);
  std::vector<std::string> names;
  for (std::uint32_t o = 0; o < outputs; ++o) names.push_back(fmt::format("y{}", o));
  made.node = made.graph.addNode("node", op.domain, op.name, made.inputs, names, attrs);
  for (std::uint32_t o = 0; o < outputs; ++o) made.graph.mutableOutputs().push_back(made.graph.node(made.node).output(o));
  return made;
}

class OpCheck {
 public:
  OpCheck(const Registry& plain, const Registry& checked, const ssp_op& op, int example, std::uint64_t seed,
          std::vector<PluginFinding>& findings)
      : plain_(plain), checked_(checked), op_(op), example_(op.examples[example]), number_(example), findings_(findings) {
    attrs_ = *attributesOf(example_.attrs, example_.attr_count);  // checkEntry did
    for (std::uint32_t i = 0; i < example_.input_count; ++i)
      data_.push_back(example_.inputs[i].dtype == SSP_UNDEFINED ? Tensor() : drawn(example_.inputs[i], seed, i));
  }

  void run() {
    if (!judge("shapes", shapes())) return;
    if (!judge("run", runBetweenZones())) return;
    if (op_.gradient != nullptr) judge("gradient", gradient());
    if (op_.in_place_inputs != 0) judge("aliasing", aliasing());
    judge("threads", threads());
    if (plain_.operators().kernels.has("cuda", op_.domain, op_.name)) judge("device", onEmulator());
    judge("speed", speed(), PluginFinding::Verdict::kTold);
  }

 private:
  using Answer = Result<std::string>;  // what passed, in words; or what did not
  tl::unexpected<Error> wrong(std::string text) const { return fail(ErrorCode::kCorrupt, std::move(text)); }

  bool judge(const char* check, const Answer& answer, PluginFinding::Verdict good = PluginFinding::Verdict::kPassed) {
    findings_.push_back({fmt::format("{}.{}", op_.domain, op_.name), number_, check,
                         answer ? good : PluginFinding::Verdict::kFailed, answer ? *answer : answer.error().message});
    return answer.has_value();
  }

  // The types of the outputs, with numbers; the rule with symbols must say the same.
  Answer shapes() {
    OneNode exact = graphOf(op_, example_, attrs_, false), symbolic = graphOf(op_, example_, attrs_, true);
    SS_TRY(Inference(exact.graph, plain_.operators()).run());
    SS_TRY(Inference(symbolic.graph, plain_.operators()).run());
    std::string text;
    for (const ValueId y : exact.graph.outputs()) {
      const ValueType &type = exact.graph.value(y).type, &other = symbolic.graph.value(y).type;
      const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
      if (!dims) return wrong(fmt::format("output {}: {}; expected extents that are numbers", y.index, type.text()));
      text += (text.empty() ? "" : ", ") + other.text();
      if (other.dtype != type.dtype || (other.shape && other.shape->size() != dims->size()))
        return wrong(fmt::format("{} with numbers, {} with symbols; expected the same", type.text(), other.text()));
      types_.push_back({type.dtype, *dims});
      for (std::size_t axis = 0; other.shape && axis < dims->size(); ++axis)
        if (const Dim at = (*other.shape)[axis].substitute(numbers()); at.known() && at.value() != (*dims)[axis])
          return wrong(fmt::format("{} with numbers, {} with symbols; expected the same", type.text(), other.text()));
    }
    return text;
  }
  std::map<std::string, Dim> numbers() const {
    std::map<std::string, Dim> values;
    for (std::uint32_t i = 0; i < example_.input_count; ++i)
      for (std::uint32_t axis = 0; axis < example_.inputs[i].rank; ++axis)
        values.emplace(fmt::format("e{}", example_.inputs[i].dims[axis]), Dim(example_.inputs[i].dims[axis]));
    return values;
  }

  struct Ran {
    std::vector<Tensor> outputs;
    Determinism determinism;
    std::string implementation;
    std::int64_t ns = 0;  // of the fastest run
  };
  KernelSpec specFor(int threads) const {
    KernelSpec spec;
    spec.domain = op_.domain, spec.op = op_.name, spec.attrs = attrs_, spec.threads = threads;
    for (const Tensor& tensor : data_) {
      if (tensor.valid())
        spec.inputs.push_back({tensor.dtype(), tensor.dims(), false, {}});
      else
        spec.inputs.emplace_back();
    }
    for (std::size_t i = 0; i < spec.inputs.size() && i < 32; ++i)
      if ((op_.host_inputs >> i & 1u) != 0) spec.inputs[i].constant = data_[i];
    for (const auto& [dtype, dims] : types_) spec.outputs.push_back({dtype, dims, false, {}});
    return spec;
  }
  // `over`: the input whose memory output 0 takes; -1: none.
  Result<Ran> runKernel(const Registry& registry, int threads, int over = -1, int times = 1) const {
    const KernelSpec spec = specFor(threads);
    std::vector<Tensor> owned;
    std::vector<TensorView> inputs, outputs;
    for (const Tensor& tensor : data_) {
      owned.push_back(tensor.valid() ? tensor.clone() : Tensor());
      inputs.push_back(owned.back().view());
    }
    Ran ran;
    for (std::size_t o = 0; o < types_.size(); ++o) {
      ran.outputs.push_back(o == 0 && over >= 0 ? owned[static_cast<std::size_t>(over)]
                                                : Tensor(types_[o].first, types_[o].second));
      outputs.push_back(ran.outputs.back().view());
    }
    SS_ASSIGN(const auto kernel, registry.operators().kernels.make("cpu", spec));
    ran.determinism = kernel->determinism();
    ran.implementation = kernel->implementation();
    Tensor workspace(DType::kU8, {static_cast<std::int64_t>(kernel->workspaceBytes())});
    const std::span<std::byte> scratch(static_cast<std::byte*>(workspace.data()), workspace.bytes());
    for (int k = 0; k < times; ++k) {
      const std::int64_t begin = nowNs();
      SS_TRY(kernel->run({inputs, outputs, scratch, kRandom, {}, {}}));
      const std::int64_t ns = nowNs() - begin;
      ran.ns = k == 0 ? ns : std::min(ran.ns, ns);
    }
    return ran;
  }
  static bool sameBits(const Tensor& a, const Tensor& b) {
    return a.bytes() == b.bytes() && (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
  }
  static Result<std::size_t> firstDifference(const Ran& a, const Ran& b) {
    for (std::size_t o = 0; o < a.outputs.size(); ++o)
      if (!sameBits(a.outputs[o], b.outputs[o])) return o;
    return fail(ErrorCode::kNotFound, "");
  }

  // Outputs begin as NaN there.
  Answer runBetweenZones() const {
    SS_ASSIGN(const Ran ran, runKernel(checked_, 1));
    for (std::size_t o = 0; o < ran.outputs.size(); ++o) {
      if (!isFloating(ran.outputs[o].dtype())) continue;
      for (std::int64_t i = 0; i < ran.outputs[o].elements(); ++i)
        if (const double value = elementAsDouble(ran.outputs[o].view(), i); !std::isfinite(value))
          return wrong(fmt::format(
              "output {} holds {} at element {}; expected that all of it is written with finite numbers", o, value, i));
    }
    return ran.implementation;
  }

  // L = sum of weights times outputs, with weights that are all different.
  static double weightOf(std::size_t output, std::int64_t i) {
    return std::cos(1.3 * static_cast<double>(i) + static_cast<double>(output));
  }

  // d L / d x of every differentiable input, by the rule.
  Result<std::vector<Tensor>> byRule() const {
    OneNode one = graphOf(op_, example_, attrs_, false);
    Graph& graph = one.graph;
    std::vector<ValueId> terms;
    const std::vector<ValueId> outputs = graph.outputs();
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!isFloating(types_[o].first) || !maskHas(op_.differentiable_outputs, o)) continue;
      Tensor weights(types_[o].first, types_[o].second);
      for (std::int64_t i = 0; i < weights.elements(); ++i) storeElement(weights.view(), i, weightOf(o, i));
      const ValueId constant = graph.addConstant(fmt::format("weights{}", o), std::move(weights));
      const NodeId product = graph.addNode("", "", "Mul", {outputs[o], constant}, {fmt::format("product{}", o)});
      const NodeId sum = graph.addNode("", "", "ReduceSum", {graph.node(product).output(0)}, {fmt::format("sum{}", o)},
                                       {{"keepdims", std::int64_t{0}}});
      terms.push_back(graph.node(sum).output(0));
    }
    if (terms.empty()) return wrong("no output is a float; expected one that carries a gradient");
    const NodeId loss = graph.addNode("", "", "Sum", terms, {"loss"});
    GradientRequest request;
    request.loss = graph.node(loss).output(0);
    for (std::size_t i = 0; i < one.inputs.size(); ++i)
      if (isDifferentiable(i)) request.trained.push_back(one.inputs[i]);
    Inference inference(graph, plain_.operators());
    SS_TRY(inference.run());
    graph.markImported();
    SS_ASSIGN(const GradientReport report, buildGradient(graph, inference, request));
    for (const ValueId gradient : report.gradients)
      if (gradient) graph.mutableOutputs().push_back(gradient);
    SS_TRY(graph.sortTopologically());
    Interpreter interpreter(graph, plain_.operators(), Backend::kCpu, kRandom);
    for (std::size_t i = 0; i < one.inputs.size(); ++i)
      if (one.inputs[i]) SS_TRY(interpreter.feed(one.inputs[i], data_[i].clone()));
    SS_TRY(interpreter.run());
    std::vector<Tensor> gradients;
    for (const ValueId gradient : report.gradients) {
      const Tensor* found = gradient ? interpreter.value(gradient) : nullptr;
      gradients.push_back(found ? found->clone() : Tensor());
    }
    return gradients;
  }
  bool isDifferentiable(std::size_t i) const {
    return data_[i].valid() && isFloating(data_[i].dtype()) && maskHas(op_.differentiable_inputs, i);
  }

  Result<double> loss() const {
    SS_ASSIGN(const Ran ran, runKernel(plain_, 1));
    double sum = 0;
    for (std::size_t o = 0; o < ran.outputs.size(); ++o)
      for (std::int64_t i = 0; maskHas(op_.differentiable_outputs, o) && i < ran.outputs[o].elements(); ++i)
        sum += weightOf(o, i) * elementAsDouble(ran.outputs[o].view(), i);
    return sum;
  }

  // Central differences of up to 24 elements of each input. Their error is the third derivative times h^2, and the rounding
  // of the outputs over h.
  Answer gradient() {
    SS_ASSIGN(const std::vector<Tensor> rule, byRule());
    double worst = 0;
    std::size_t slot = 0, compared = 0;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      if (!isDifferentiable(i)) continue;
      const Tensor& found = rule[slot++];
      if (!found.valid()) return wrong(fmt::format("input {} gets no gradient; expected one", i));
      if (found.dims() != data_[i].dims() || found.dtype() != data_[i].dtype())
        return wrong(fmt::format("gradient of input {} is {}{}; expected {}{}", i, dtypeName(found.dtype()),
                                 dimsText(found.dims()), dtypeName(data_[i].dtype()), dimsText(data_[i].dims())));
      const bool wide = data_[i].dtype() == DType::kF64;
      const double h = wide ? 1e-5 : 1e-2, tolerance = wide ? 1e-6 : 5e-3;
      const std::int64_t stride = std::max<std::int64_t>(1, data_[i].elements() / 24);
      for (std::int64_t e = 0; e < data_[i].elements(); e += stride) {
        const double x = elementAsDouble(data_[i].view(), e);
        storeElement(data_[i].view(), e, x + h);
        const double above = elementAsDouble(data_[i].view(), e);
        SS_ASSIGN(const double high, loss());
        storeElement(data_[i].view(), e, x - h);
        const double below = elementAsDouble(data_[i].view(), e);
        SS_ASSIGN(const double low, loss());
        storeElement(data_[i].view(), e, x);
        const double slope = (high - low) / (above - below), given = elementAsDouble(found.view(), e);
        const double distance = std::fabs(slope - given) / std::max(1.0, std::fabs(slope));
        if (!(distance <= tolerance))
          return wrong(
              fmt::format("gradient of input {} at element {}: found {:.6g}; expected {:.6g}, by central differences", i, e,
                          given, slope));
        worst = std::max(worst, distance);
        ++compared;
      }
    }
    return fmt::format("{} elements, largest distance {:.1e}", compared, worst);
  }

  // Output 0 over each input that it may take the memory of.
  Answer aliasing() const {
    SS_ASSIGN(const Ran apart, runKernel(plain_, 1));
    std::string taken;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      if (!maskHas(op_.in_place_inputs, i) || !data_[i].valid() || data_[i].dtype() != types_[0].first ||
          data_[i].dims() != types_[0].second)
        continue;
      SS_ASSIGN(const Ran over, runKernel(plain_, 1, static_cast<int>(i)));
      if (const auto o = firstDifference(apart, over))
        return wrong(fmt::format(
            "output {} has other bits when output 0 takes over the memory of input {}; expected the same", *o, i));
      taken += fmt::format("{}{}", taken.empty() ? "" : ", ", i);
    }
    if (taken.empty()) return wrong("no input of in_place_inputs has the type and shape of output 0; expected one");
    return fmt::format("output 0 over input {}: the same bits", taken);
  }

  Answer threads() const {
    SS_ASSIGN(const Ran alone, runKernel(plain_, 1));
    for (const int count : {1, 2, 3}) {
      SS_ASSIGN(const Ran ran, runKernel(plain_, count));
      SS_ASSIGN(const Ran again, runKernel(plain_, count));
      if (ran.determinism.order == Determinism::Order::kUnordered) continue;
      if (const auto o = firstDifference(ran, again))
        return wrong(fmt::format("output {} has other bits in a second run with {} threads; expected the same", *o, count));
      if (ran.determinism.order == Determinism::Order::kThreadCount) continue;
      if (const auto o = firstDifference(ran, alone))
        return wrong(fmt::format("output {} has other bits with {} threads than with one; expected the same, as it says: {}",
                                 *o, count, ran.determinism.reason));
    }
    return fmt::format("1, 2 and 3: {}", alone.determinism.reason);
  }

  Answer onEmulator() const {
    SS_ASSIGN(const Ran ran, runKernel(plain_, 1));
    return checkOnEmulator(plain_.operators().kernels, specFor(1), data_, ran.outputs, op_.host_inputs, op_.in_place_inputs,
                           kRandom);
  }

  Answer speed() const {
    SS_ASSIGN(const Ran ran, runKernel(plain_, 1, -1, kTimedRuns));
    std::size_t bytes = 0;
    for (const Tensor& tensor : data_) bytes += tensor.valid() ? tensor.bytes() : 0;
    for (const Tensor& tensor : ran.outputs) bytes += tensor.bytes();
    return fmt::format("{} ns for {} bytes of operands, {:.2f} GB/s, one thread", ran.ns, bytes,
                       static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(1, ran.ns)));
  }

  const Registry &plain_, &checked_;
  const ssp_op& op_;
  const ssp_example& example_;
  int number_;
  Attributes attrs_;
  std::vector<Tensor> data_;
  std::vector<std::pair<DType, Dims>> types_;  // of the outputs
  std::vector<PluginFinding>& findings_;
};

}  // namespace

Result<std::vector<PluginFinding>> checkPlugins(PluginWish wish, std::uint64_t seed) {
  wish.check = false;
  SS_ASSIGN(const auto plain, registryWith(wish));
  wish.check = true;
  SS_ASSIGN(const auto checked, registryWith(wish));
  std::vector<PluginFinding> findings;
  for (const auto& library : pluginsOf(plain))
    for (std::uint32_t i = 0; i < library->entry().op_count; ++i)
      for (std::uint32_t e = 0; e < library->entry().ops[i]->example_count; ++e)
        OpCheck(*plain, *checked, *library->entry().ops[i], static_cast<int>(e), seed, findings).run();
  return findings;
}

std::string_view verdictName(PluginFinding::Verdict verdict) {
  switch (verdict) {
    case PluginFinding::Verdict::kPassed: return "passed";
    case PluginFinding::Verdict::kFailed: return "failed";
    default: return "told";
  }
}

}  // namespace stepscope
