#include "engine/lab/precision_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/build/loss_scale.h"
#include "engine/lab/free_memory.h"
#include "engine/lab/precision_probe.h"
#include "engine/lab/tensor_distance.h"
#include "engine/profile/compare_tensors.h"
#include "engine/profile/step_times.h"
#include "engine/snapshot/number_rule.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

constexpr int kNodesTold = 64, kMeasured = 3, kMostMeasured = 64, kTimed = 5, kMostTimed = 1000;

// A plan with a state of its own.
struct Lane {
  StepContext context{Observer{}};
  std::vector<Stage> stages;
  std::unique_ptr<Stepper> stepper;

  const SymbolicStep& step() const { return stepper->step(); }
  const Graph& plain() const {  // the graph that option precision.force chooses from
    const auto it = std::find_if(stages.begin(), stages.end(), [](const Stage& s) { return s.phase == "pre-grad passes"; });
    SS_CHECK(it != stages.end());
    return *it->graph;
  }
};

class Study {
 public:
  Study(PrecisionSubject subject, const snapshot::GetPrecision& question)
      : subject_(std::move(subject)), question_(question), options_(subject_.request.options) {
    if (question_.precision().empty()) question_.set_precision(options_.precision == "fp32" ? "bf16" : options_.precision);
    measured_ = question_.measured() == 0 ? kMeasured : std::clamp(question_.measured(), 0, kMostMeasured);
    timed_ = question_.timed() <= 0 ? kTimed : std::min(question_.timed(), kMostTimed);
    total_ = 2 + measured_ + 1;
  }

  Result<snapshot::PrecisionReport> run() {
    SS_TRY(applySetting(options_, "precision", question_.precision(), "study"));
    if (const std::int64_t bytes = stateBytes(), free = freeMemoryBytes(); 3 * bytes >= free)
      return fail(
          ErrorCode::kOutOfMemory,
          fmt::format("precision: the state, {} bytes, is needed three times more; found {} bytes free", bytes, free));
    report_.set_precision(options_.precision);
    report_.set_step(subject_.start.counters.step);
    report_.set_batch(toUtf8(subject_.batch.label));
    for (const PrecisionForce& force : options_.precisionForce)
      report_.set_forced(toUtf8(report_.forced() + (report_.forced().empty() ? "" : " ") + settingOf(force)));
    SS_TRY(compareSteps());
    SS_TRY(timeSteps());
    return std::move(report_);
  }

 private:
  static std::string settingOf(const PrecisionForce& force) {
    return fmt::format("{}:{}", force.regex,
                       force.dtype == DType::kF32    ? "fp32"
                       : force.dtype == DType::kBF16 ? "bf16"
                                                     : "fp16");
  }

  std::int64_t stateBytes() const { return subject_.start.bytes(); }

  Status next(const std::string& what) {
    if (subject_.cancelled && subject_.cancelled->exchange(false))
      return fail(ErrorCode::kCancelled, "precision: cancelled");
    if (subject_.progress) subject_.progress("precision: " + what, done_, total_);
    ++done_;
    return {};
  }

  TrainOptions inFloat32() const {
    TrainOptions wide = options_;
    for (const char* name : {"precision", "precision.force"})  // passes read what was set, others the members
      SS_CHECK(applySetting(wide, name, std::string_view(name) == "precision" ? "fp32" : "", "study").has_value());
    return wide;
  }

  Result<std::unique_ptr<Lane>> makeLane(const TrainOptions& options, bool keepGradients) const {
    auto lane = std::make_unique<Lane>();
    for (const auto& [name, tensor] : subject_.start.tensors) SS_TRY(lane->context.state.set(name, tensor.clone()));
    lane->context.state.counters = subject_.start.counters;
    lane->context.log.beginBuild();
    BuildRequest request = subject_.request;
    request.options = options;
    request.keepGradients = keepGradients;
    request.firstBatch = [this](const Graph&, std::vector<std::string>*) -> Result<Batch> { return subject_.batch; };
    const Builder builder(subject_.model, lane->context.log, Cancel(subject_.cancelled));
    SS_ASSIGN(auto step, builder.build(std::move(request), lane->stages));
    std::vector<Stage> bound;
    const Signature signature = signatureOf(subject_.batch, step->keptRows);
    SS_ASSIGN(auto variant, builder.specialise(std::move(step), signature, "precision study", bound));
    SS_ASSIGN(lane->stepper, Stepper::bind(std::move(variant), lane->context, Cancel(subject_.cancelled)));
    return lane;
  }

  Executor::RunOptions runOptions(const Lane& lane) const {
    Executor::RunOptions run = lane.stepper->runOptions();
    run.update = true;
    run.cancel = subject_.cancelled;
    return run;
  }

  // Where a first batch decides about the loss scale. A forward pass that overflows does so with any factor: the search
  // would try them all.
  Status settleLossScale(Lane& lane) {
    LossScale& scale = lane.context.state.counters.lossScale;
    const TrainOptions& options = lane.step().request.options;
    if (!lane.step().optimizer.lossScale || !findsLossScale(options, scale)) return {};
    if (scale_) {
      scale = *scale_;
      return {};
    }
    Stepper& stepper = *lane.stepper;
    SS_TRY(stepper.feed(subject_.batch));
    SS_TRY(stepper.executor().run(0, stepper.plan().firstBackward, runOptions(lane)));
    const bool finite = std::isfinite(lossOf(lane));
    lane.context.state.restore(subject_.start);
    if (!finite) {
      scale = {lossScaleFactor(options, scale), 0};
      return {};
    }
    SS_TRY(stepper.begin(Batch(subject_.batch)));
    stepper.abandon();
    scale_ = scale;
    return {};
  }

  static double lossOf(const Lane& lane) {
    const auto contents = lane.stepper->executor().read(lane.step().loss);
    return contents ? elementAsDouble(contents->view(), 0) : 0;
  }

  static double factorOf(const Lane& lane) {
    return lane.step().optimizer.lossScale
               ? lossScaleFactor(lane.step().request.options, lane.context.state.counters.lossScale)
               : 1;
  }

  // From the start of the step to its end; what it wrote stays until the state is put back.
  Status runStep(Lane& lane, std::function<Status(int)> after) const {
    SS_TRY(lane.stepper->feed(subject_.batch));
    Executor::RunOptions run = runOptions(lane);
    run.after = std::move(after);
    SS_TRY(lane.stepper->executor().run(0, lane.stepper->count(), run));
    return {};
  }

  // Both steps, each looked at while it runs; then the overrides.
  Status compareSteps() {
    SS_TRY(next("the step in " + options_.precision));
    SS_ASSIGN(const auto low, makeLane(options_, true));
    SS_TRY(settleLossScale(*low));
    report_.set_loss_scale(factorOf(*low));
    SS_TRY(next("the step in fp32"));
    // With the same factor, so that values of the backward pass can be compared as they are.
    TrainOptions wide = inFloat32();
    wide.lossScale = low->step().optimizer.lossScale ? fmt::format("{}", factorOf(*low)) : "off";
    SS_ASSIGN(const auto reference, makeLane(wide, true));
    PrecisionProbe probe;
    SS_TRY(runStep(*reference, [&](int i) { return probe.reference(*reference->stepper, i); }));
    SS_TRY(runStep(*low, [&](int i) { return probe.compared(*low->stepper, i); }));

    report_.set_loss(lossOf(*low));
    report_.set_reference_loss(lossOf(*reference));
    report_.set_loss_error(relativeDistance(report_.loss(), report_.reference_loss()));
    if (const ValueId finite = low->step().optimizer.finite)
      if (const auto contents = low->stepper->executor().read(finite))
        report_.set_skipped(elementAsDouble(contents->view(), 0) == 0);
    SS_TRY(compareParameters(*low, *reference, probe));
    for (snapshot::PrecisionClass& tensors : probe.classes()) *report_.add_classes() = std::move(tensors);
    std::vector<snapshot::PrecisionNode> nodes = probe.nodes(*low->stepper, low->plain());
    nodes.resize(std::min<std::size_t>(nodes.size(), kNodesTold));
    SS_TRY(measureOverrides(nodes, *reference));
    for (snapshot::PrecisionNode& node : nodes) *report_.add_nodes() = std::move(node);
    return {};
  }

  // Gradients of trained parameter `i`, with the loss scale divided out of both. Nothing where there is none.
  static Result<std::optional<TensorDistance>> gradientDistance(const Lane& low, const Lane& wide, std::size_t i,
                                                                snapshot::PrecisionGradient* told) {
    const ValueId a = low.step().optimizer.accumulated[i], b = wide.step().optimizer.accumulated[i];
    if (!a || !b) return std::optional<TensorDistance>();
    SS_ASSIGN(const Tensor found, low.stepper->executor().read(a));
    SS_ASSIGN(const Tensor expected, wide.stepper->executor().read(b));
    const double ofLow = factorOf(low), ofWide = factorOf(wide);
    TensorDistance distance;
    double maxRel = 0;
    for (std::int64_t k = 0; k < found.elements(); ++k) {
      const double x = elementAsDouble(found.view(), k) / ofLow, y = elementAsDouble(expected.view(), k) / ofWide;
      distance.add(x, y);
      if (told == nullptr) continue;
      maxRel = std::max(maxRel, relativeDistance(x, y));
    }
    if (told != nullptr) {
      told->set_elements(found.elements());
      told->set_cosine(distance.cosine());
      told->set_error(distance.error());
      told->set_max_abs(distance.largest);
      told->set_max_rel(maxRel);
      told->set_not_finite(distance.notFinite);
      told->set_norm(std::sqrt(distance.expected));
    }
    return std::optional<TensorDistance>(distance);
  }

  TensorDistance updateDistance(const Lane& low, const Lane& wide, const std::string& name) const {
    TensorDistance distance;
    const auto before = subject_.start.tensors.find(name);
    if (before == subject_.start.tensors.end()) return distance;
    const Tensor a = low.context.state.read(name), b = wide.context.state.read(name);
    for (std::int64_t k = 0; k < a.elements(); ++k) {
      const double from = elementAsDouble(before->second.view(), k);
      distance.add(elementAsDouble(a.view(), k) - from, elementAsDouble(b.view(), k) - from);
    }
    return distance;
  }

  Status compareParameters(const Lane& low, const Lane& wide, const PrecisionProbe& probe) {
    TensorDistance all, updates;
    std::vector<snapshot::PrecisionGradient> list;
    for (std::size_t i = 0; i < low.step().trained.size(); ++i) {
      const std::string& name = low.step().graph.value(low.step().trained[i]).name;
      snapshot::PrecisionGradient told;
      told.set_name(toUtf8(name));
      SS_ASSIGN(const auto distance, gradientDistance(low, wide, i, &told));
      if (!distance) continue;
      all.add(*distance);
      const TensorDistance update = updateDistance(low, wide, name);
      updates.add(update);
      told.set_update_error(update.error());
      if (const auto summed = probe.termsOf(*wide.stepper, wide.step().optimizer.accumulated[i])) {
        told.set_terms(summed->terms / factorOf(wide));
        told.set_zero(summed->zeroUpToRounding() && told.not_finite() == 0);
      }
      list.push_back(std::move(told));
    }
    report_.set_error(all.error());
    report_.set_not_finite(all.notFinite);
    report_.set_update_error(updates.error());
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.zero() != b.zero() ? b.zero() : a.error() > b.error(); });
    for (snapshot::PrecisionGradient& told : list) *report_.add_gradients() = std::move(told);
    return {};
  }

  // The step with one node more in float32, for those that add most. Those that it helps come first.
  Status measureOverrides(std::vector<snapshot::PrecisionNode>& nodes, const Lane& reference) {
    for (std::size_t n = 0; n < std::min<std::size_t>(nodes.size(), static_cast<std::size_t>(measured_)); ++n) {
      snapshot::PrecisionNode& node = nodes[n];
      SS_TRY(next("the override of " + node.node()));
      TrainOptions options = options_;
      SS_TRY(applySetting(options, "precision.force", node.override(), "study"));
      // The first match counts: the new one stands before those that are there.
      std::rotate(options.precisionForce.begin(), options.precisionForce.end() - 1, options.precisionForce.end());
      SS_ASSIGN(const auto lane, makeLane(options, true));
      SS_TRY(settleLossScale(*lane));
      SS_TRY(runStep(*lane, {}));
      TensorDistance all;
      for (std::size_t i = 0; i < lane->step().trained.size(); ++i) {
        SS_ASSIGN(const auto distance, gradientDistance(*lane, reference, i, nullptr));
        if (distance) all.add(*distance);
      }
      node.set_measured(true);
      node.set_error_with_override(all.error());
      node.set_not_finite_with_override(all.notFinite);
      node.set_loss_error_with_override(relativeDistance(lossOf(*lane), report_.reference_loss()));
    }
    const auto helps = [&](const snapshot::PrecisionNode& node) {
      if (!node.measured()) return false;
      return node.not_finite_with_override() < report_.not_finite() ||
             (report_.not_finite() == 0 && node.error_with_override() < report_.error());
    };
    std::stable_sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) {
      if (helps(a) != helps(b)) return helps(a);
      if (!helps(a)) return false;
      return a.not_finite_with_override() != b.not_finite_with_override()
                 ? a.not_finite_with_override() < b.not_finite_with_override()
                 : a.error_with_override() < b.error_with_override();
    });
    return {};
  }

  Result<double> timed(Lane& lane) const {
    // Counters too, but for the scale that was found.
    const LossScale scale = lane.context.state.counters.lossScale;
    lane.context.state.restore(subject_.start);
    lane.context.state.counters.lossScale = scale;
    SS_TRY(lane.stepper->feed(subject_.batch));
    const std::int64_t begin = monotonicNs();
    SS_TRY(lane.stepper->executor().run(0, lane.stepper->count(), runOptions(lane)));
    return static_cast<double>(monotonicNs() - begin);
  }

  // The plans as they would run without a study, in turns; the first step of each is not counted.
  Status timeSteps() {
    SS_TRY(next("times"));
    SS_ASSIGN(const auto wide, makeLane(inFloat32(), false));
    SS_ASSIGN(const auto low, makeLane(options_, false));
    SS_TRY(settleLossScale(*low));
    std::vector<double> before, after;
    for (int round = -1; round < timed_; ++round) {
      SS_ASSIGN(const double first, timed(round % 2 == 0 ? *wide : *low));
      SS_ASSIGN(const double second, timed(round % 2 == 0 ? *low : *wide));
      if (round < 0) continue;
      before.push_back(round % 2 == 0 ? first : second);
      after.push_back(round % 2 == 0 ? second : first);
    }
    const auto traffic = [](const Lane& lane) {
      std::int64_t bytes = 0;
      for (const Instruction& i : lane.stepper->plan().instructions) bytes += i.bytesRead + i.bytesWritten;
      return bytes;
    };
    const auto arena = [](const Lane& lane) {
      return lane.stepper->plan().arenaBytes + lane.stepper->plan().hostArenaBytes;
    };
    snapshot::PrecisionCost& cost = *report_.mutable_cost();
    cost.set_bytes_before(arena(*wide));
    cost.set_bytes_after(arena(*low));
    cost.set_traffic_before(traffic(*wide));
    cost.set_traffic_after(traffic(*low));
    cost.set_ns_before(medianOf(before));
    cost.set_ns_after(medianOf(after));
    cost.set_min_ns_before(*std::min_element(before.begin(), before.end()));
    cost.set_max_ns_before(*std::max_element(before.begin(), before.end()));
    cost.set_min_ns_after(*std::min_element(after.begin(), after.end()));
    cost.set_max_ns_after(*std::max_element(after.begin(), after.end()));
    cost.set_steps(timed_);
    return {};
  }

  PrecisionSubject subject_;
  snapshot::GetPrecision question_;
  TrainOptions options_;  // in the precision that is asked for
  int measured_ = 0, timed_ = 0;
  std::int64_t done_ = 0, total_ = 0;
  std::optional<LossScale> scale_;  // that the first batch gave
  snapshot::PrecisionReport report_;
};

}  // namespace

Result<snapshot::PrecisionReport> studyPrecision(PrecisionSubject subject, const snapshot::GetPrecision& question) {
  return Study(std::move(subject), question).run();
}

}  // namespace stepscope
