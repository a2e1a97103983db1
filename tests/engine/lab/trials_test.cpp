// Options tried on models that are small: what they say of numbers and plans, and that the session stays as it was.
#include "engine/lab/trials.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/lab/paired_statistics.h"
#include "engine/lab/trial_candidates.h"
#include "engine/lab/trial_verdicts.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::stateBits;

snapshot::GetTrials question(const std::string& only, int rounds = kFewestPairs) {
  snapshot::GetTrials asked;
  asked.set_only(only);
  asked.set_rounds(rounds);
  return asked;
}

const snapshot::Trial* find(const snapshot::TrialsReport& report, const std::string& option) {
  for (const auto& trial : report.trials())
    if (trial.option() == option) return &trial;
  return nullptr;
}

TEST(Trials, MeasureEveryCandidateAndLeaveTheSession) {
  auto session = openSession(testing::languageModel());
  ASSERT_TRUE(session && session->step());
  const std::string before = stateBits(*session);
  const std::size_t builds = session->log().builds();
  const std::int64_t planned = session->stepper().executor().plannedBytes();
  int told = 0;
  const auto report = session->lab().trials(question(""), [&](const snapshot::Trial&) { ++told; });
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(stateBits(*session), before);
  EXPECT_EQ(session->log().builds(), builds);
  EXPECT_EQ(session->nextStep(), 1);
  EXPECT_EQ(report->step(), 1);
  EXPECT_EQ(report->batches(), 4);
  EXPECT_FALSE(report->cancelled());
  EXPECT_EQ(report->nothing(), 1);
  EXPECT_EQ(report->trials_size(), report->candidates() + 1);
  EXPECT_EQ(told, report->trials_size());
  std::set<std::string> options;
  double last = 0;
  bool timesOver = false;
  for (const auto& trial : report->trials()) {
    options.insert(trial.option());
    EXPECT_NE(trial.verdict(), "failed") << trial.option() << ": " << trial.note();
    EXPECT_EQ(trial.peak_before(), planned) << trial.option();
    EXPECT_EQ(trial.identical(), trial.rounds() == 0) << trial.option();
    if (trial.option() == "(nothing)") continue;
    timesOver = timesOver || trial.rounds() == 0;
    if (trial.rounds() == 0) {
      EXPECT_EQ(trial.verdict(), "same");
      EXPECT_TRUE(trial.parity().bits());
      continue;
    }
    EXPECT_FALSE(timesOver) << "what has times comes first";
    EXPECT_GE(trial.ratio(), last) << "fastest first";
    last = trial.ratio();
    EXPECT_EQ(trial.rounds(), kFewestPairs);
    EXPECT_LE(trial.low(), trial.ratio());
    EXPECT_LE(trial.ratio(), trial.high());
    EXPECT_GT(trial.median_ns_before(), 0);
    EXPECT_GT(trial.median_ns_after(), 0);
    EXPECT_GE(trial.adjusted_p(), trial.p());
    EXPECT_GT(trial.measured_peak_after(), 0);
    EXPECT_GT(trial.expected_ns_after(), 0);
    EXPECT_TRUE(trial.parity().compared()) << trial.option();
    EXPECT_EQ(trial.parity().unavailable(), "") << trial.option();
    EXPECT_GT(trial.parity().cosine(), 0.95) << trial.option();
    EXPECT_LT(trial.parity().loss(), 0.05) << trial.option();
  }
  for (const char* option : {"pass.cse", "pass.fuse_epilogue", "memory.reuse", "memory.inplace", "recompute.budget",
                             "precision", "threads", "deterministic", "subnormals", "(nothing)"})
    EXPECT_TRUE(options.contains(option)) << option;
  EXPECT_FALSE(options.contains("kernels")) << "reference kernels take long; only where they are named";
  EXPECT_TRUE(session->step().has_value()) << "the session goes on";
}

// What only moves data or reuses memory changes no bit, what rounds does.
TEST(Trials, TellWhetherNumbersChange) {
  auto session = openSession(testing::languageModel());
  ASSERT_TRUE(session);
  const auto report = session->lab().trials(question("memory|recompute|subnormals|precision=bf16|group_updates"));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  for (const auto& trial : report->trials()) {
    if (trial.option() == "precision") {
      EXPECT_FALSE(trial.parity().bits());
      EXPECT_GT(trial.parity().gradient(), 0);
      EXPECT_GT(trial.parity().gradient_relative(), 1e-4);
      EXPECT_GT(trial.parity().parameter(), 0);
      EXPECT_GT(trial.parity().loss(), 0);
      EXPECT_LT(trial.parity().cosine(), 1);
      EXPECT_FALSE(trial.parity().worst().empty());
      continue;
    }
    EXPECT_TRUE(trial.parity().bits()) << trial.option();
    EXPECT_EQ(trial.parity().gradient(), 0) << trial.option();
    EXPECT_EQ(trial.parity().cosine(), 1) << trial.option();
  }
  const auto* reuse = find(*report, "memory.reuse");
  ASSERT_TRUE(reuse);
  EXPECT_GT(reuse->peak_after(), reuse->peak_before()) << "without it every value has memory of its own";
  const auto* recompute = find(*report, "recompute.budget");
  ASSERT_TRUE(recompute);
  EXPECT_LT(recompute->peak_after(), recompute->peak_before());
}

// The same batch and the same state for both: what an option says of the numbers is what setting it gives.
TEST(Trials, AgreeWithTheOptionThatIsSet) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session);
  const auto report = session->lab().trials(question("precision=bf16"));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  auto plain = openSession(testing::digits()), low = openSession(testing::digits(), {{"precision", "bf16"}});
  ASSERT_TRUE(plain && low);
  const auto a = plain->step(), b = low->step();
  ASSERT_TRUE(a.has_value() && b.has_value());
  const auto* trial = find(*report, "precision");
  ASSERT_TRUE(trial);
  EXPECT_DOUBLE_EQ(trial->parity().loss(), std::abs(a->loss() - b->loss()));
  EXPECT_EQ(trial->peak_after(), low->stepper().executor().plannedBytes());
}

// It changes no plan, but what a step takes.
TEST(Trials, TryTheFlightRecorderWhereItIsAskedFor) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session);
  const auto report = session->lab().trials(question("^record.flight="));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  const auto* trial = find(*report, "record.flight");
  ASSERT_TRUE(trial);
  EXPECT_FALSE(trial->identical());
  EXPECT_GT(trial->rounds(), 0);
  EXPECT_TRUE(trial->parity().bits());
}

TEST(Trials, TryOtherBatchesPerSample) {
  auto session = openSession(testing::digits(), {{"data", ""}, {"dim", "batch=4"}});
  ASSERT_TRUE(session);
  snapshot::GetTrials asked = question("^dim=");
  for (const std::int64_t batch : {4, 64}) asked.add_batches(batch);
  const auto report = session->lab().trials(asked);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  ASSERT_EQ(report->candidates(), 1) << "4 is what it has";
  const auto* trial = find(*report, "dim");
  ASSERT_TRUE(trial);
  EXPECT_EQ(trial->from(), "batch=4");
  EXPECT_EQ(trial->to(), "batch=64");
  EXPECT_FALSE(trial->parity().compared());
  EXPECT_EQ(trial->note(), "times are per sample");
  EXPECT_GT(trial->peak_after(), trial->peak_before());
  EXPECT_LT(trial->median_ns_after(), 8 * trial->median_ns_before()) << "per sample, not 16 times a step";
  auto fixed = openSession(testing::digits());  // from a file
  ASSERT_TRUE(fixed);
  const auto refused = fixed->lab().trials(asked);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("option 'batches'"), std::string::npos) << refused.error().message;
}

TEST(Trials, StandInABegunStepAtItsStart) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session && session->step() && session->beginStep().has_value());
  ASSERT_TRUE(session->runTo(session->stepper().count() - 1).has_value());  // some parameters are new already
  const auto there = session->position();
  const auto paused = session->lab().trials(question("precision=bf16"));
  ASSERT_TRUE(paused.has_value()) << paused.error().message;
  EXPECT_EQ(session->position().instruction(), there.instruction());
  auto other = openSession(testing::digits());
  ASSERT_TRUE(other && other->step());
  const auto between = other->lab().trials(question("precision=bf16"));
  ASSERT_TRUE(between.has_value());
  EXPECT_EQ(find(*paused, "precision")->parity().gradient(), find(*between, "precision")->parity().gradient());
  EXPECT_EQ(find(*paused, "precision")->parity().loss(), find(*between, "precision")->parity().loss());
}

TEST(Trials, EndWithWhatWasMeasured) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session);
  int told = 0;
  const auto report = session->lab().trials(question("pass[.]"), [&](const snapshot::Trial&) {
    if (++told == 3) session->cancel();
  });
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->cancelled());
  EXPECT_EQ(report->trials_size(), 3);
  EXPECT_GT(report->candidates(), 3);
  EXPECT_TRUE(session->step().has_value()) << "the cancel was taken back";
}

// Whatever the machine does meanwhile, the one that waits takes at least its 5 % more of its own time.
TEST(Trials, PlantSlowStepsWhereTheyAreAskedFor) {
  auto session = openSession(testing::languageModel());
  ASSERT_TRUE(session);
  snapshot::GetTrials asked = question("pass.cse");
  asked.set_nothing(2);
  asked.set_planted(3);
  const auto report = session->lab().trials(asked);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->nothing(), 2);
  EXPECT_EQ(report->planted(), 3);
  EXPECT_LE(report->planted_found(), 3);
  int planted = 0;
  for (const auto& trial : report->trials()) {
    if (trial.option() != "(5 % slower)") continue;
    ++planted;
    EXPECT_GT(trial.rounds(), 0);
    EXPECT_TRUE(trial.parity().bits()) << "waiting changes no number";
    EXPECT_EQ(trial.peak_before(), trial.peak_after());
  }
  EXPECT_EQ(planted, 3);
  EXPECT_EQ(report->trials_size(), 5 + report->candidates());
}

TEST(Trials, SaysWhatIsWrong) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session);
  const auto none = session->lab().trials(question("nosuchoption"));
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_NE(none.error().message.find("option 'only': 'nosuchoption' matches none of "), std::string::npos);
  const auto malformed = session->lab().trials(question("("));
  ASSERT_FALSE(malformed.has_value());
  EXPECT_NE(malformed.error().message.find("option 'only'"), std::string::npos) << malformed.error().message;
  auto open = Session::open(testing::digits().model, {}, {});
  ASSERT_TRUE(open.has_value());
  EXPECT_EQ((*open)->lab().trials(question("")).error().message, "trials: nothing was built; build first");
}

// Of two pairs of nothing whose intervals leave 1 out one is found, by its corrected p; of what was slowed down none.
TEST(TrialVerdicts, CallNothingDifferentThatIsNotShown) {
  snapshot::TrialsReport report;
  const auto add = [&](std::string_view option, double ratio, double low, double high, double p) {
    snapshot::Trial& trial = *report.add_trials();
    trial.set_option(std::string(option));
    trial.set_rounds(kPairs);
    trial.set_ratio(ratio);
    trial.set_low(low);
    trial.set_high(high);
    trial.set_p(p);
  };
  add(kTrialOfNothing, 1.02, 1.001, 1.04, 0.03);
  add(kTrialOfNothing, 1.03, 1.02, 1.04, 1e-7);
  add(kSlowedTrial, 1.05, 1.03, 1.07, 0.026);
  add("likely", 0.96, 0.94, 0.98, 0.01);
  add("slow", 1.2, 1.1, 1.3, 1e-8);
  giveVerdicts(report);
  EXPECT_EQ(report.nothing(), 2);
  EXPECT_EQ(report.nothing_found(), 1);
  EXPECT_EQ(report.planted(), 1);
  EXPECT_EQ(report.planted_found(), 0);
  EXPECT_EQ(find(report, "likely")->verdict(), "faster") << find(report, "likely")->adjusted_p();
  EXPECT_EQ(find(report, "slow")->verdict(), "slower");
  EXPECT_EQ(find(report, std::string(kSlowedTrial))->verdict(), "not shown");
  EXPECT_EQ(report.trials(report.trials_size() - 3).verdict(), "not shown") << "the first of nothing";
}

TEST(TrialCandidates, SetWhatTheySay) {
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "threads", "2", "test").has_value());
  ASSERT_TRUE(applySetting(options, "pass.cse", "off", "test").has_value());
  const auto list = trialCandidates({options, optionTable(), 8, 1 << 20, "", 0}, {});
  ASSERT_TRUE(list.has_value()) << list.error().message;
  std::map<std::string, std::set<std::string>> values;
  for (const TrialCandidate& candidate : *list) {
    values[candidate.option].insert(candidate.to);
    EXPECT_EQ(candidate.options.origins.at(candidate.option).value, candidate.to);
    EXPECT_NE(candidate.from, candidate.to);
  }
  EXPECT_EQ(values["threads"], (std::set<std::string>{"1", "4", "8"}));
  EXPECT_EQ(values["pass.cse"], (std::set<std::string>{"on"}));
  EXPECT_EQ(values["recompute.budget"], (std::set<std::string>{"786432", "524288"}));
  EXPECT_EQ(values["precision"], (std::set<std::string>{"bf16", "fp16"}));
  for (const OptionInfo& info : optionTable())
    if (info.name.starts_with("pass.")) EXPECT_EQ(values[std::string(info.name)].size(), 1u) << info.name;
}

}  // namespace
}  // namespace stepscope
