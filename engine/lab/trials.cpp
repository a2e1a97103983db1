#include "engine/lab/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "engine/build/loss_scale.h"
#include "engine/exec/touched.h"
#include "engine/lab/free_memory.h"
#include "engine/lab/paired_statistics.h"
#include "engine/lab/same_plan.h"
#include "engine/lab/tensor_distance.h"
#include "engine/lab/trial_candidates.h"
#include "engine/profile/roofline.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/stepper.h"

namespace stepscope {
namespace {

constexpr int kRounds = 25, kRoundsOfSlowSteps = 12;
constexpr double kSlowNs = 2e8;
constexpr int kMostRounds = 100'000;
// A gradient whose norm is a smaller share of that of all is rounding: that of a key's bias in attention is zero in theory.
constexpr double kNoise = 1e-5;
constexpr double kShortestTurnNs = 5e6, kSoonNs = 2e7;
constexpr int kMostRepeats = 1024;
constexpr double kPlanted = 0.05;
const std::string kNothing = "(nothing)", kSlowed = "(5 % slower)";

// A plan with what belongs to it.
struct Lane {
  std::unique_ptr<StepContext> own;  // where its parameters have another type; else the state is shared
  StepContext* context = nullptr;
  std::shared_ptr<const Variant> variant;
  std::unique_ptr<Stepper> stepper;
  StateSnapshot start;  // only where it has a context of its own
  LossScale scale;
  std::vector<Batch> batches;  // empty: those of all
  std::int64_t samples = 1;    // by which times are divided
  double lastNs = 0;
  FlightRecorder flight;  // on where it is tried
  std::optional<FlightPlan> flown;
  std::int64_t steps = 0;  // that it saw: every one looks at other parts
  double waits = 0;        // a share of its time that it is slowed down by

  const SymbolicStep& step() const { return *variant->step; }
  int threads() const { return step().request.threads; }
};

// What the step as it is left behind.
struct Reference {
  double loss = 0;
  double squares = 0;  // of all elements of all gradients
  std::map<std::string, Tensor> gradients, parameters;
};

class Trials {
 public:
  Trials(TrialSubject subject, const snapshot::GetTrials& question) : subject_(std::move(subject)), question_(question) {}

  Result<snapshot::TrialsReport> run() {
    if (const std::int64_t bytes = subject_.start.bytes(), free = freeMemoryBytes(); 3 * bytes >= free)
      return fail(ErrorCode::kOutOfMemory,
                  fmt::format("trials: the state, {} bytes, is needed three times more; found {} bytes free", bytes, free));
    report_.set_step(subject_.start.counters.step);
    report_.set_batch(toUtf8(subject_.batches.front().label));
    report_.set_batches(static_cast<int>(subject_.batches.size()));
    for (const auto& [name, tensor] : subject_.start.tensors) SS_TRY(context_.state.set(name, tensor.clone()));
    context_.state.counters = subject_.start.counters;
    Lane base;
    SS_TRY(plan(base, subject_.request.options, false));
    SS_ASSIGN(auto candidates, trialCandidates({subject_.request.options, table(), subject_.cores,
                                                base.variant->plan.lowerBoundBytes, subject_.batchDimension, subject_.batch},
                                               question_));
    triesFlight_ = std::any_of(candidates.begin(), candidates.end(),
                               [](const TrialCandidate& candidate) { return candidate.option == "record.flight"; });
    const int nothing = std::max(1, question_.nothing()), planted = std::max(0, question_.planted());
    total_ = static_cast<std::int64_t>(candidates.size()) + nothing + planted;
    report_.set_candidates(static_cast<int>(candidates.size()));
    const Status done = [&]() -> Status {
      SS_TRY(bind(base));
      SS_TRY(look(base, [&](const Lane& lane, int instruction) { return keep(lane, instruction); }));
      SS_TRY(keepParameters(base));
      begin_ = monotonicNs();
      for (int i = 0; i < nothing; ++i) SS_TRY(tryOne(base, {kNothing, "", "", subject_.request.options, 0}, 0));
      for (int i = 0; i < planted; ++i) SS_TRY(tryOne(base, {kSlowed, "", "", subject_.request.options, 0}, kPlanted));
      for (const TrialCandidate& candidate : candidates) SS_TRY(tryOne(base, candidate));
      return {};
    }();
    if (!done) {
      if (done.error().code != ErrorCode::kCancelled) return tl::make_unexpected(done.error());
      report_.set_cancelled(true);
    }
    judge();
    return std::move(report_);
  }

 private:
  const std::vector<OptionInfo>& table() const { return subject_.model->registry->options(); }

  Status stillWanted() {
    if (subject_.cancelled && subject_.cancelled->exchange(false)) return fail(ErrorCode::kCancelled, "trials: cancelled");
    return {};
  }

  // --- plans

  Status plan(Lane& lane, const TrainOptions& options, bool otherBatch) {
    BuildRequest request = subject_.request;
    request.options = options;
    request.threads = threadsOf(options);
    request.firstBatch = [&](const Graph& graph, std::vector<std::string>*) -> Result<Batch> {
      if (otherBatch) {
        SS_ASSIGN(lane.batches, subject_.batchesUnder(graph, options));
      }
      return batchesOf(lane).front();
    };
    context_.log.beginBuild();
    const Builder builder(subject_.model, context_.log);
    std::vector<Stage> stages;
    SS_ASSIGN(auto step, builder.build(std::move(request), stages));
    const Signature signature = signatureOf(batchesOf(lane), step->keptRows);
    SS_ASSIGN(lane.variant, builder.specialise(std::move(step), signature, "trial", stages));
    lane.context = &context_;
    return {};
  }

  Status bind(Lane& lane) {
    SS_ASSIGN(lane.stepper, Stepper::bind(lane.variant, *lane.context));
    lane.flight = FlightRecorder(triesFlight_ && lane.step().request.options.recordFlight);
    if (lane.flight.on())
      lane.flown = lane.flight.planFor(
          lane.stepper->executor(),
          planNotes(lane.stepper->executor(), lane.step().trained, lane.step().optimizer.accumulated, lane.step().loss));
    return settleLossScale(lane);
  }

  // With parameters of another type the shared state would change under the step as it is.
  Status giveOwnState(Lane& lane) {
    lane.own = std::make_unique<StepContext>(Observer{});
    lane.context = lane.own.get();
    for (const auto& [name, tensor] : subject_.start.tensors) SS_TRY(lane.context->state.set(name, tensor.clone()));
    lane.context->state.counters = subject_.start.counters;
    return {};
  }

  const std::vector<Batch>& batchesOf(const Lane& lane) const {
    return lane.batches.empty() ? subject_.batches : lane.batches;
  }

  void putBack(Lane& lane) {
    lane.context->state.restore(subject_.start);
    lane.context->state.counters.lossScale = lane.scale;
    ++lane.context->places;
  }

  // Where a first batch decides about the loss scale.
  Status settleLossScale(Lane& lane) {
    lane.scale = subject_.start.counters.lossScale;
    putBack(lane);
    if (!lane.step().optimizer.lossScale || !findsLossScale(lane.step().request.options, lane.scale)) return {};
    SS_TRY(lane.stepper->begin(Batch(batchesOf(lane).front())));
    lane.stepper->abandon();
    lane.scale = lane.context->state.counters.lossScale;
    return {};
  }

  Executor::RunOptions runOptions(const Lane& lane) const {
    Executor::RunOptions run = lane.stepper->runOptions();
    run.update = true;
    run.cancel = subject_.cancelled;
    return run;
  }

  // One step from the start; what it wrote stays. Nanoseconds.
  Result<double> step(Lane& lane, const Batch& batch, std::function<Status(int)> after = {}) {
    putBack(lane);
    SS_TRY(lane.stepper->feed(batch));
    Executor::RunOptions run = runOptions(lane);
    run.after = std::move(after);
    const bool flies = lane.flight.on() && !run.after;
    const std::int64_t begin = monotonicNs();
    if (flies) {
      lane.flight.begin(lane.stepper->executor(), &*lane.flown, lane.context->state.counters.step + lane.steps++);
      if (lane.flight.listens())
        run.after = [&lane](int i) -> Status {
          lane.flight.after(i, lane.stepper->executor().conditionsHold(i));
          return {};
        };
    }
    SS_TRY(lane.stepper->executor().run(0, lane.stepper->count(), run));
    std::int64_t ns = monotonicNs() - begin;
    lane.flight.finish(ns);
    for (const auto until = begin + ns + std::llround(lane.waits * static_cast<double>(ns));
         lane.waits > 0 && begin + ns < until;)
      ns = monotonicNs() - begin;
    return static_cast<double>(ns);
  }

  // --- parity

  // The first step of a plan, with the gradients as they are made.
  Status look(Lane& lane, const std::function<Status(const Lane& lane, int instruction)>& gradientIsMade) {
    const auto after = [&](int i) { return gradientIsMade(lane, i); };
    SS_ASSIGN(lane.lastNs, step(lane, batchesOf(lane).front(), after));
    return {};
  }

  static double lossOf(const Lane& lane) {
    const auto contents = lane.stepper->executor().read(lane.step().loss);
    return contents ? elementAsDouble(contents->view(), 0) : std::numeric_limits<double>::quiet_NaN();
  }

  static double factorOf(const Lane& lane) {
    return lane.step().optimizer.lossScale
               ? lossScaleFactor(lane.step().request.options, lane.context->state.counters.lossScale)
               : 1;
  }

  // The gradients that are complete after this instruction: name of the parameter and value.
  template <typename Each>
  static Status gradientsAfter(const Lane& lane, int instruction, const Each& each) {
    const ExecutionPlan& plan = lane.stepper->plan();
    for (std::size_t i = 0; i < lane.step().trained.size(); ++i) {
      const ValueId id = lane.step().optimizer.accumulated[i];
      if (!id || plan.instructionOf(lane.stepper->graph().value(id).producer) != instruction) continue;
      const auto contents = lane.stepper->executor().read(id);
      if (contents) SS_TRY(each(lane.step().graph.value(lane.step().trained[i]).name, *contents));
    }
    return {};
  }

  Status keep(const Lane& lane, int instruction) {
    return gradientsAfter(lane, instruction, [&](const std::string& name, const Tensor& gradient) -> Status {
      reference_.squares += distanceOf(gradient, factorOf(lane), gradient, factorOf(lane)).expected;
      reference_.gradients[name] = gradient.clone();
      return {};
    });
  }

  Status keepParameters(const Lane& lane) {
    reference_.loss = lossOf(lane);
    factor_ = factorOf(lane);
    for (const ValueId id : lane.step().trained) {
      const std::string& name = lane.step().graph.value(id).name;
      reference_.parameters[name] = lane.context->state.read(name).clone();
    }
    return {};
  }

  static bool sameBits(const Tensor& a, const Tensor& b) {
    return a.dtype() == b.dtype() && a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
  }

  // The distance as a share of the tensor's norm, or of `floor` where the norm is smaller.
  static double errorAbove(const TensorDistance& distance, double floor) {
    if (distance.notFinite > 0 || distance.difference == 0 || floor <= 0) return distance.error();
    return std::sqrt(distance.difference) / std::max(std::sqrt(distance.expected), floor);
  }

  // `a` divided by `factorOfA`, and so on.
  static TensorDistance distanceOf(const Tensor& a, double factorOfA, const Tensor& b, double factorOfB) {
    TensorDistance distance;
    if (a.elements() != b.elements()) {
      distance.notFinite = 1;
      return distance;
    }
    if (a.dtype() == DType::kF32 && b.dtype() == DType::kF32 && factorOfA == 1 && factorOfB == 1) {
      const auto x = a.as<const float>(), y = b.as<const float>();
      for (std::size_t k = 0; k < x.size(); ++k) distance.add(x[k], y[k]);
      return distance;
    }
    for (std::int64_t k = 0; k < a.elements(); ++k)
      distance.add(elementAsDouble(a.view(), k) / factorOfA, elementAsDouble(b.view(), k) / factorOfB);
    return distance;
  }

  Status compare(Lane& lane, snapshot::TrialParity& parity) {
    parity.set_compared(true);
    parity.set_cosine(1);
    bool bits = true;
    std::size_t gradients = 0;
    const double factor = factorOf(lane);
    SS_TRY(look(lane, [&](const Lane& of, int instruction) {
      return gradientsAfter(of, instruction, [&](const std::string& name, const Tensor& gradient) -> Status {
        const auto expected = reference_.gradients.find(name);
        if (expected == reference_.gradients.end()) return {};
        ++gradients;
        if (factor == factor_ && sameBits(gradient, expected->second)) return {};
        bits = bits && factor != factor_;
        const TensorDistance distance = distanceOf(gradient, factor, expected->second, factor_);
        bits = bits && distance.largest == 0;
        parity.set_gradient(std::max(parity.gradient(), distance.largest));
        const double error = errorAbove(distance, kNoise * std::sqrt(reference_.squares));
        if (!(error <= parity.gradient_relative())) {
          parity.set_gradient_relative(error);
          parity.set_worst(toUtf8(name));
        }
        // NaN is the worst. Directions of noise say nothing.
        const bool noise = distance.notFinite == 0 && distance.expected <= kNoise * kNoise * reference_.squares;
        if (!noise && !(distance.cosine() >= parity.cosine())) parity.set_cosine(distance.cosine());
        return {};
      });
    }));
    const double loss = lossOf(lane);
    parity.set_loss(numberDistance(loss, reference_.loss));
    parity.set_loss_relative(relativeDistance(loss, reference_.loss));
    bits = bits && std::memcmp(&loss, &reference_.loss, sizeof loss) == 0;
    for (const auto& [name, expected] : reference_.parameters) {
      if (!lane.context->state.contains(name)) continue;
      const Tensor found = lane.context->state.read(name);
      if (sameBits(found, expected)) continue;
      bits = false;
      const TensorDistance distance = distanceOf(found, 1, expected, 1);
      if (distance.error() > parity.parameter_relative() && parity.gradient_relative() == 0) parity.set_worst(toUtf8(name));
      parity.set_parameter_relative(std::max(parity.parameter_relative(), distance.error()));
      parity.set_parameter(std::max(parity.parameter(), distance.largest));
    }
    if (gradients < reference_.gradients.size())
      parity.set_unavailable(fmt::format("{} of {} gradients are not computed as values of their own",
                                         reference_.gradients.size() - gradients, reference_.gradients.size()));
    parity.set_bits(bits);
    return {};
  }

  // --- times

  // One turn: the median of so many steps, by its samples. What interrupts one of many short steps is no time of the plan.
  Result<double> turn(Lane& lane, int round, int repeats) {
    const std::vector<Batch>& batches = batchesOf(lane);
    const Batch& batch = batches[static_cast<std::size_t>(round) % batches.size()];
    if (lastThreads_ != lane.threads()) {
      lastThreads_ = lane.threads();
      if (lane.lastNs < kSoonNs) SS_TRY(step(lane, batch));  // threads come and go: that is no time of the step
    }
    std::vector<double> steps(static_cast<std::size_t>(repeats));
    for (double& ns : steps) {
      SS_ASSIGN(ns, step(lane, batch));
    }
    lane.lastNs = medianOf(steps);
    return std::max(1.0, lane.lastNs) / static_cast<double>(lane.samples);
  }

  // Seconds that are left for the candidate, of those for all.
  bool enough(int rounds, std::int64_t began, double stepNs) const {
    const int wanted = question_.rounds() > 0 ? std::min(question_.rounds(), kMostRounds)
                       : stepNs > kSlowNs     ? kRoundsOfSlowSteps
                                              : kRounds;
    if (rounds < kFewestPairs) return false;
    if (question_.rounds() > 0 || question_.seconds() <= 0) return rounds >= wanted;
    const double spent = static_cast<double>(began - begin_) * 1e-9,
                 share = (question_.seconds() - spent) / static_cast<double>(std::max<std::int64_t>(1, total_ - done_ + 1));
    return rounds >= kMostRounds || static_cast<double>(monotonicNs() - began) * 1e-9 >= share;
  }

  Status measure(Lane& base, Lane& other, snapshot::Trial& trial) {
    const std::int64_t began = monotonicNs();
    // The first steps showed about how long one takes; they were listened to, so each runs once more.
    SS_TRY(turn(base, 0, 1));
    SS_TRY(turn(other, 0, 1));
    const double shorter = std::max(1.0, std::min(base.lastNs, other.lastNs));
    const int repeats = std::clamp(static_cast<int>(std::ceil(kShortestTurnNs / shorter)), 1, kMostRepeats);
    std::vector<double> before, after;
    Status status;
    for (int round = 0; !enough(round, began, shorter); ++round) {
      status = stillWanted();
      if (!status) break;
      Lane &first = round % 2 == 0 ? base : other, &second = round % 2 == 0 ? other : base;
      const auto a = turn(first, round, repeats);
      const auto b = a ? turn(second, round, repeats) : a;
      if (!a || !b) {
        status = tl::make_unexpected(a ? b.error() : a.error());
        break;
      }
      before.push_back(round % 2 == 0 ? *a : *b);
      after.push_back(round % 2 == 0 ? *b : *a);
      tell(trial, round + 1);
    }
    if (!status && (status.error().code != ErrorCode::kCancelled || before.size() < static_cast<std::size_t>(kFewestPairs)))
      return status;
    const PairedTimes times = comparePaired(before, after);
    trial.set_rounds(static_cast<int>(before.size()));
    trial.set_median_ns_before(medianOf(before));
    trial.set_median_ns_after(medianOf(after));
    trial.set_ratio(times.ratio);
    trial.set_low(times.low);
    trial.set_high(times.high);
    trial.set_p(times.p);
    trial.set_measured_peak_before(measuredPeak(base));
    trial.set_measured_peak_after(measuredPeak(other));
    cancelledAfter_ = !status;
    return {};
  }

  static std::int64_t plannedPeak(const Lane& lane) { return lane.stepper->executor().plannedBytes(); }
  static std::int64_t measuredPeak(const Lane& lane) {
    const Executor& executor = lane.stepper->executor();
    return touchedPersistentBytes(executor) + executor.touchedBytes() + executor.dynamicBytes();
  }

  static double expectedNs(const Lane& lane) {
    double ns = 0;
    for (const InstructionRoof& roof : rooflineOf(lane.stepper->plan(), cpu::machinePeak(lane.threads()))) ns += roof.ns;
    return ns / static_cast<double>(lane.samples);
  }

  // --- one candidate

  void tell(const snapshot::Trial& trial, int round) const {
    if (!subject_.progress) return;
    subject_.progress(fmt::format("{}{}{}{}", trial.option(), trial.to().empty() ? "" : "=", trial.to(),
                                  round > 0 ? fmt::format(", round {}", round) : std::string()),
                      done_, total_);
  }

  // `waits`: of the present plan, made again; a share of each of its steps. Absent: of the candidate's plan.
  Status tryOne(Lane& base, const TrialCandidate& candidate, std::optional<double> waits = std::nullopt) {
    SS_TRY(stillWanted());
    snapshot::Trial trial;
    trial.set_option(toUtf8(candidate.option));
    trial.set_from(toUtf8(candidate.from));
    trial.set_to(toUtf8(candidate.to));
    trial.set_ratio(1);
    trial.set_low(1);
    trial.set_high(1);
    trial.set_p(1);
    trial.set_adjusted_p(1);
    trial.set_peak_before(plannedPeak(base));
    trial.mutable_parity()->set_cosine(1);
    ++done_;
    tell(trial, 0);
    const Status status = compareWith(base, candidate, waits, trial);
    if (!status && status.error().code == ErrorCode::kCancelled) return status;
    if (!status) {
      trial.set_verdict("failed");
      trial.set_note(toUtf8(status.error().message));
    }
    if (subject_.tried) subject_.tried(trial);
    *report_.add_trials() = std::move(trial);
    return cancelledAfter_ ? fail(ErrorCode::kCancelled, "trials: cancelled") : Status();
  }

  Status compareWith(Lane& base, const TrialCandidate& candidate, std::optional<double> waits, snapshot::Trial& trial) {
    Lane other;
    other.waits = waits.value_or(0);
    SS_TRY(plan(other, candidate.options, candidate.batch > 0));
    if (!waits && candidate.batch == 0 && samePlan(*base.variant, *other.variant)) {
      trial.set_identical(true);
      trial.set_peak_after(trial.peak_before());
      trial.mutable_parity()->set_compared(true);
      trial.mutable_parity()->set_bits(true);
      trial.set_note("the plan is the same, instruction by instruction");
      return {};
    }
    if (candidate.option == "precision" && candidate.options.masterWeights == "off") SS_TRY(giveOwnState(other));
    SS_TRY(bind(other));
    trial.set_peak_after(plannedPeak(other));
    if (candidate.batch > 0) {
      base.samples = subject_.batch;
      other.samples = candidate.batch;
      trial.set_note("times are per sample");
      trial.mutable_parity()->set_unavailable("other batches");
      SS_TRY(look(other, [](const Lane&, int) { return Status(); }));
    } else {
      SS_TRY(compare(other, *trial.mutable_parity()));
    }
    if (subject_.roofs) {
      trial.set_expected_ns_before(expectedNs(base));
      trial.set_expected_ns_after(expectedNs(other));
    }
    const Status measured = measure(base, other, trial);
    base.samples = 1;
    return measured;
  }

  // Verdicts are given when all pairs are there.
  void judge() {
    std::vector<int> measured;
    std::vector<double> p;
    for (int i = 0; i < report_.trials_size(); ++i)
      if (report_.trials(i).rounds() > 0) {
        measured.push_back(i);
        p.push_back(report_.trials(i).p());
      }
    const std::vector<double> adjusted = adjustedByHolm(p);
    for (std::size_t k = 0; k < measured.size(); ++k) {
      snapshot::Trial& trial = *report_.mutable_trials(measured[k]);
      trial.set_adjusted_p(adjusted[k]);
      trial.set_verdict(std::string(verdictOf({trial.ratio(), trial.low(), trial.high(), trial.p()}, trial.adjusted_p())));
    }
    for (snapshot::Trial& trial : *report_.mutable_trials()) {
      if (trial.verdict().empty()) trial.set_verdict("same");
      if (trial.rounds() == 0) continue;
      if (trial.option() == kNothing) {
        report_.set_nothing(report_.nothing() + 1);
        report_.set_nothing_found(report_.nothing_found() + (trial.verdict() != "same"));
      } else if (trial.option() == kSlowed) {
        report_.set_planted(report_.planted() + 1);
        report_.set_planted_found(report_.planted_found() + (trial.verdict() == "slower"));
      }
    }
    // The fastest first, then what has no times, the pairs of nothing at the end.
    const auto rank = [](const snapshot::Trial& t) { return t.option().starts_with('(') ? 2 : t.rounds() == 0 ? 1 : 0; };
    std::stable_sort(report_.mutable_trials()->begin(), report_.mutable_trials()->end(),
                     [&](const snapshot::Trial& a, const snapshot::Trial& b) {
                       return rank(a) != rank(b) ? rank(a) < rank(b) : rank(a) == 0 && a.ratio() < b.ratio();
                     });
  }

  TrialSubject subject_;
  snapshot::GetTrials question_;
  StepContext context_{Observer{}};
  Reference reference_;
  double factor_ = 1;  // of the reference's gradients
  snapshot::TrialsReport report_;
  std::int64_t done_ = 0, total_ = 0, begin_ = 0;
  int lastThreads_ = 0;
  bool cancelledAfter_ = false;
  bool triesFlight_ = false;
};

}  // namespace

Result<snapshot::TrialsReport> runTrials(TrialSubject subject, const snapshot::GetTrials& question) {
  return Trials(std::move(subject), question).run();
}

}  // namespace stepscope
