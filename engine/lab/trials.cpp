#include "engine/lab/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/lab/free_memory.h"
#include "engine/lab/paired_statistics.h"
#include "engine/lab/same_plan.h"
#include "engine/lab/trial_candidates.h"
#include "engine/lab/trial_lane.h"
#include "engine/lab/trial_parity.h"
#include "engine/lab/trial_verdicts.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

constexpr int kMostRounds = 100'000;
constexpr double kShortestTurnNs = 5e6, kSoonNs = 2e7;
constexpr int kMostRepeats = 1024;
constexpr double kPlanted = 0.05;

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
    TrialLane base(subject_, context_);
    SS_TRY(base.plan(subject_.request.options, false));
    SS_ASSIGN(auto candidates,
              trialCandidates({subject_.request.options, table(), subject_.cores, base.variant().plan.lowerBoundBytes,
                               subject_.batchDimension, subject_.batch},
                              question_));
    triesFlight_ = std::any_of(candidates.begin(), candidates.end(),
                               [](const TrialCandidate& candidate) { return candidate.option == "record.flight"; });
    const int nothing = std::max(1, question_.nothing()), planted = std::max(0, question_.planted());
    total_ = static_cast<std::int64_t>(candidates.size()) + nothing + planted;
    report_.set_candidates(static_cast<int>(candidates.size()));
    const Status done = [&]() -> Status {
      SS_TRY(base.bind(triesFlight_));
      SS_TRY(parity_.keep(base));
      begin_ = monotonicNs();
      for (int i = 0; i < nothing; ++i)
        SS_TRY(tryOne(base, {std::string(kTrialOfNothing), "", "", subject_.request.options, 0}, 0));
      for (int i = 0; i < planted; ++i)
        SS_TRY(tryOne(base, {std::string(kSlowedTrial), "", "", subject_.request.options, 0}, kPlanted));
      for (const TrialCandidate& candidate : candidates) SS_TRY(tryOne(base, candidate));
      return {};
    }();
    if (!done) {
      if (done.error().code != ErrorCode::kCancelled) return tl::make_unexpected(done.error());
      report_.set_cancelled(true);
    }
    giveVerdicts(report_);
    return std::move(report_);
  }

 private:
  const std::vector<OptionInfo>& table() const { return subject_.model->registry->options(); }

  Status stillWanted() {
    if (subject_.cancelled && subject_.cancelled->exchange(false)) return fail(ErrorCode::kCancelled, "trials: cancelled");
    return {};
  }

  // --- times

  // One turn: the median of so many steps, by its samples. What interrupts one of many short steps is no time of the plan.
  Result<double> turn(TrialLane& lane, int round, int repeats) {
    const std::vector<Batch>& batches = lane.batches();
    const Batch& batch = batches[static_cast<std::size_t>(round) % batches.size()];
    if (lastThreads_ != lane.threads()) {
      lastThreads_ = lane.threads();
      if (lane.lastNs < kSoonNs) SS_TRY(lane.step(batch));  // threads come and go: that is no time of the step
    }
    std::vector<double> steps(static_cast<std::size_t>(repeats));
    for (double& ns : steps) {
      SS_ASSIGN(ns, lane.step(batch));
    }
    lane.lastNs = medianOf(steps);
    return std::max(1.0, lane.lastNs) / static_cast<double>(lane.samples);
  }

  // Seconds that are left for the candidate, of those for all.
  bool enough(int rounds, std::int64_t began, double stepNs) const {
    const int wanted = question_.rounds() > 0 ? std::min(question_.rounds(), kMostRounds)
                       : stepNs > kSlowStepNs ? kPairsOfSlowSteps
                                              : kPairs;
    if (rounds < kFewestPairs) return false;
    if (question_.rounds() > 0 || question_.seconds() <= 0) return rounds >= wanted;
    const double spent = static_cast<double>(began - begin_) * 1e-9,
                 share = (question_.seconds() - spent) / static_cast<double>(std::max<std::int64_t>(1, total_ - done_ + 1));
    return rounds >= kMostRounds || static_cast<double>(monotonicNs() - began) * 1e-9 >= share;
  }

  Status measure(TrialLane& base, TrialLane& other, snapshot::Trial& trial) {
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
      TrialLane &first = round % 2 == 0 ? base : other, &second = round % 2 == 0 ? other : base;
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
    trial.set_measured_peak_before(base.measuredPeak());
    trial.set_measured_peak_after(other.measuredPeak());
    cancelledAfter_ = !status;
    return {};
  }

  // --- one candidate

  void tell(const snapshot::Trial& trial, int round) const {
    if (!subject_.progress) return;
    subject_.progress(fmt::format("{}{}{}{}", trial.option(), trial.to().empty() ? "" : "=", trial.to(),
                                  round > 0 ? fmt::format(", round {}", round) : std::string()),
                      done_, total_);
  }

  // `waits`: of the present plan, made again; a share of each of its steps. Absent: of the candidate's plan.
  Status tryOne(TrialLane& base, const TrialCandidate& candidate, std::optional<double> waits = std::nullopt) {
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
    trial.set_peak_before(base.plannedPeak());
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

  Status compareWith(TrialLane& base, const TrialCandidate& candidate, std::optional<double> waits, snapshot::Trial& trial) {
    TrialLane other(subject_, context_);
    other.waits = waits.value_or(0);
    SS_TRY(other.plan(candidate.options, candidate.batch > 0));
    if (!waits && candidate.batch == 0 && samePlan(base.variant(), other.variant())) {
      trial.set_identical(true);
      trial.set_peak_after(trial.peak_before());
      trial.mutable_parity()->set_compared(true);
      trial.mutable_parity()->set_bits(true);
      trial.set_note("the plan is the same, instruction by instruction");
      return {};
    }
    if (candidate.option == "precision" && candidate.options.masterWeights == "off") SS_TRY(other.giveOwnState());
    SS_TRY(other.bind(triesFlight_));
    trial.set_peak_after(other.plannedPeak());
    if (candidate.batch > 0) {
      base.samples = subject_.batch;
      other.samples = candidate.batch;
      trial.set_note("times are per sample");
      trial.mutable_parity()->set_unavailable("other batches");
      SS_TRY(lookAt(other, [](const std::string&, const Tensor&) { return Status(); }));
    } else {
      SS_TRY(parity_.compare(other, *trial.mutable_parity()));
    }
    if (subject_.roofs) {
      trial.set_expected_ns_before(base.expectedNs());
      trial.set_expected_ns_after(other.expectedNs());
    }
    const Status measured = measure(base, other, trial);
    base.samples = 1;
    return measured;
  }

  TrialSubject subject_;
  snapshot::GetTrials question_;
  StepContext context_{Observer{}};
  TrialParity parity_;
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
