// What recompute is said to give, beside what it gives; and options that change while a session runs.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "engine/train/session.h"
#include "tests/support/models.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

std::unique_ptr<Session> open(const std::map<std::string, std::string>& settings = {}) {
  const testing::TestModel model = testing::languageModel();
  auto session = Session::open(model.model, {}, {});
  EXPECT_TRUE(session.has_value()) << session.error().message;
  if (!session) return nullptr;
  TrainOptions options;
  std::map<std::string, std::string> all{
      {"data", model.data.string()}, {"optimizer", "adamw"}, {"lr", "0.001"}, {"threads", "2"}};
  all.insert(settings.begin(), settings.end());
  for (const auto& [name, value] : all) EXPECT_TRUE(applySetting(options, name, value, "test").has_value()) << name;
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();
  EXPECT_TRUE(built.has_value()) << built.error().message;
  return built ? std::move(*session) : nullptr;
}

Status set(Session& session, const std::string& name, const std::string& value) {
  TrainOptions options = session.options();
  SS_TRY(applySetting(options, name, value, "test"));
  SS_TRY(session.setOptions(options));
  return session.applyOptions();
}

snapshot::RecomputeReport judged(Session& session, const std::optional<RecomputeQuestion>& question = {}) {
  auto report = session.lab().recompute(question);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  return report ? *report : snapshot::RecomputeReport();
}

std::string bitsOf(const TensorView& view) {
  std::string bits(view.bytes(), '\0');
  if (view.bytes() > 0) std::memcpy(bits.data(), view.data, view.bytes());
  return bits;
}

std::map<std::string, std::string> bitsOf(const Session& session) {
  std::map<std::string, std::string> bits;
  for (const auto& [name, view] : session.trained().named(true)) bits[name] = bitsOf(view);
  return bits;
}

TEST(RecomputeAnalysis, SaysOfEachPatternWhatApplyingItGives) {
  auto session = open();
  ASSERT_TRUE(session);
  const auto report = judged(*session);
  ASSERT_GT(report.patterns_size(), 1);
  EXPECT_EQ(report.present_peak_bytes(), report.plain_peak_bytes());
  int saving = 0;
  for (const auto& pattern : report.patterns()) {
    EXPECT_EQ(pattern.applied(), 0);
    EXPECT_GT(pattern.occurrences(), 0);
    EXPECT_EQ(pattern.makers_size(), pattern.occurrences());
    EXPECT_GT(pattern.shapes_size(), 0);
    if (pattern.saved_bytes() <= 0 || ++saving > 2) continue;
    auto applied = open({{"recompute.plan", pattern.pattern() + ":1:-1"}});
    ASSERT_TRUE(applied);
    const auto after = judged(*applied);
    EXPECT_EQ(after.present_peak_bytes(), report.plain_peak_bytes() - pattern.saved_bytes()) << pattern.pattern();
    for (const auto& row : after.patterns())
      if (row.pattern() == pattern.pattern()) EXPECT_EQ(row.applied(), row.occurrences());
  }
  EXPECT_GT(saving, 0);
}

// What is promised of memory is what the machine gets back: the arena, with workspaces, of the plan that is made then.
TEST(RecomputeAnalysis, TheArenaShrinksByWhatItSaves) {
  int checked = 0;
  for (const testing::TestModel& model : testing::corpusCases({"gpt2_lm", "bert_mlm", "resnet"}))
    for (const char* precision : {"fp32", "bf16"}) {
      const auto openWith = [&](const std::string& plan) {
        return testing::openSession(model, {{"precision", precision}, {"threads", "1"}, {"recompute.plan", plan}});
      };
      const auto plain = openWith("");
      ASSERT_TRUE(plain) << model.name;
      const auto report = judged(*plain);
      EXPECT_EQ(report.plain_arena_bytes(), plain->planSnapshot()->arena_bytes()) << model.name;
      EXPECT_EQ(report.present_arena_bytes(), report.plain_arena_bytes());
      int saving = 0;
      for (const auto& pattern : report.patterns()) {
        if (pattern.saved_arena_bytes() <= 0 || ++saving > 2) continue;
        const auto applied = openWith(pattern.pattern() + ":1:-1");
        ASSERT_TRUE(applied) << model.name << " " << pattern.pattern();
        EXPECT_EQ(applied->planSnapshot()->arena_bytes(), report.plain_arena_bytes() - pattern.saved_arena_bytes())
            << model.name << " " << precision << " " << pattern.pattern();
        EXPECT_EQ(judged(*applied).present_arena_bytes(), applied->planSnapshot()->arena_bytes());
        ++checked;
      }
    }
  if (checked == 0) GTEST_SKIP() << "no corpus";
}

TEST(RecomputeAnalysis, DrawsTheCurveThatBudgetsFollow) {
  auto session = open();
  ASSERT_TRUE(session);
  const auto report = judged(*session);
  ASSERT_GT(report.curve_size(), 2);
  EXPECT_EQ(report.curve(0).peak_bytes(), report.plain_peak_bytes());
  EXPECT_EQ(report.curve(0).extra_ns(), 0);
  for (int i = 1; i < report.curve_size(); ++i) {
    EXPECT_LT(report.curve(i).peak_bytes(), report.curve(i - 1).peak_bytes());
    EXPECT_GT(report.curve(i).extra_ns(), 0);
    EXPECT_GT(report.curve(i).nodes(), 0);
  }
  const std::int64_t budget = report.curve(report.curve_size() - 1).peak_bytes();
  const auto answer = judged(*session, RecomputeQuestion{{}, budget});
  EXPECT_LE(answer.what_if().peak_bytes(), budget);
  auto applied = open({{"recompute.budget", std::to_string(budget)}});
  ASSERT_TRUE(applied);
  EXPECT_EQ(judged(*applied).present_peak_bytes(), answer.what_if().peak_bytes());
}

TEST(RecomputeAnalysis, NamesAChoiceInTheNotationThatMakesIt) {
  auto session = open();
  ASSERT_TRUE(session);
  int exact = 0;
  const auto report = judged(*session);
  for (const auto& point : report.curve()) {
    if (!point.exact() || point.plan().empty()) continue;
    ++exact;
    const auto plan = parseRecomputePlan(point.plan());
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    const auto answer = judged(*session, RecomputeQuestion{*plan, 0});
    EXPECT_EQ(answer.what_if().peak_bytes(), point.peak_bytes()) << point.plan();
    EXPECT_EQ(answer.what_if().nodes(), point.nodes()) << point.plan();
  }
  EXPECT_GT(exact, 0);
}

TEST(RecomputeAnalysis, RefusesAPatternThatIsNotThere) {
  auto session = open();
  ASSERT_TRUE(session);
  const auto answer = session->lab().recompute(RecomputeQuestion{{{"Nothing+"}}, 0});
  ASSERT_FALSE(answer.has_value());
  EXPECT_NE(answer.error().message.find("pattern 'Nothing+' is not in this graph"), std::string::npos)
      << answer.error().message;
}

TEST(RecomputeAnalysis, EstimatesCostsUntilAStepHasRun) {
  auto session = open();
  ASSERT_TRUE(session);
  const auto before = judged(*session);
  EXPECT_FALSE(before.measured());
  EXPECT_NE(before.basis().find("estimated from flops and bytes"), std::string::npos) << before.basis();
  EXPECT_EQ(before.runs_size(), 0);
  EXPECT_EQ(before.timed_steps(), 0);
  ASSERT_TRUE(session->step().has_value());
  const auto cold = judged(*session);
  EXPECT_TRUE(cold.measured() && cold.cold()) << cold.basis();
  EXPECT_EQ(cold.timed_steps(), 1);
  EXPECT_TRUE(cold.runs(0).cold());
  EXPECT_NE(cold.basis().find("1 step, cold"), std::string::npos) << cold.basis();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session->step().has_value());
  const auto after = judged(*session);
  EXPECT_FALSE(after.cold() || after.runs(0).cold());
  EXPECT_EQ(after.timed_steps(), 2);
  EXPECT_GT(after.runs(0).newest(), 0);
  EXPECT_TRUE(after.measured());
  EXPECT_GT(after.plain_step_ns(), 0);
  for (const auto& pattern : after.patterns()) EXPECT_EQ(pattern.measured_nodes(), pattern.nodes()) << pattern.pattern();
  ASSERT_EQ(after.runs_size(), 1);
  EXPECT_EQ(after.runs(0).steps(), 2);  // the first is warm-up
  EXPECT_TRUE(after.runs(0).present());
  EXPECT_EQ(after.runs(0).peak_bytes(), after.plain_peak_bytes());
}

// Neither an estimate nor a cold step takes the place of what warm steps of another choice have told.
TEST(RecomputeAnalysis, TheCurveStaysUntilAStepIsWarmUnderTheNewPlan) {
  auto session = open();
  ASSERT_TRUE(session);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session->step().has_value());
  const auto before = judged(*session);
  ASSERT_TRUE(set(*session, "recompute.budget", "1").has_value());
  const auto applied = judged(*session);
  ASSERT_TRUE(session->step().has_value());
  const auto cold = judged(*session);
  for (const auto* report : {&applied, &cold}) {
    EXPECT_TRUE(report->measured() && !report->cold()) << report->basis();
    EXPECT_EQ(report->timed_steps(), 3);
    EXPECT_NE(report->basis().find("under another choice of recompute"), std::string::npos) << report->basis();
    EXPECT_EQ(report->plain_step_ns(), before.plain_step_ns());
    ASSERT_EQ(report->curve_size(), before.curve_size());
    for (int i = 0; i < report->curve_size(); ++i) EXPECT_EQ(report->curve(i).step_ns(), before.curve(i).step_ns()) << i;
  }
  ASSERT_EQ(cold.runs_size(), 2);
  EXPECT_TRUE(cold.runs(1).cold() && cold.runs(1).present());
  EXPECT_FALSE(cold.runs(0).present());
  EXPECT_LT(cold.runs(0).newest(), cold.runs(1).newest());
  ASSERT_TRUE(session->step().has_value());
  const auto warm = judged(*session);
  EXPECT_EQ(warm.timed_steps(), 1);
  EXPECT_FALSE(warm.cold());
}

TEST(RecomputeAnalysis, CanBeCancelled) {
  auto session = open();
  ASSERT_TRUE(session);
  Session* running = session.get();
  const testing::TestModel model = testing::languageModel();
  Observer observer;
  int told = 0;
  observer.progress = [&](const std::string&, std::int64_t done, std::int64_t total) {
    EXPECT_LT(done, total);
    if (++told == 3) running->cancel();
  };
  auto observed = Session::open(model.model, {}, observer);
  ASSERT_TRUE(observed.has_value());
  running = observed->get();
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "data", model.data.string(), "test").has_value());
  ASSERT_TRUE(running->setOptions(options).has_value());
  ASSERT_TRUE(running->build().has_value());
  const auto report = running->lab().recompute({});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(told, 3);
  EXPECT_TRUE(running->lab().recompute({}).has_value());
}

TEST(LiveOptions, ProveThatRecomputeChangesNoBit) {
  auto session = open(), plain = open();
  ASSERT_TRUE(session && plain);
  for (Session* s : {session.get(), plain.get()}) ASSERT_TRUE(s->step().has_value());
  EXPECT_EQ(session->optionProof(), nullptr);
  const auto before = session->planSnapshot()->instructions_size();
  const Status applied = set(*session, "recompute.budget", "1");
  ASSERT_TRUE(applied.has_value()) << applied.error().message;
  EXPECT_GT(session->planSnapshot()->instructions_size(), before);
  ASSERT_NE(session->optionProof(), nullptr);
  const snapshot::OptionProof& proof = *session->optionProof();
  EXPECT_EQ(proof.unavailable(), "");
  EXPECT_TRUE(proof.equal()) << proof.worst();
  EXPECT_EQ(proof.differing(), 0);
  EXPECT_GT(proof.values(), 10);
  EXPECT_LT(proof.after_peak_bytes(), proof.before_peak_bytes());
  EXPECT_LT(proof.after_arena_bytes(), proof.before_arena_bytes());
  EXPECT_EQ(proof.after_arena_bytes(), session->planSnapshot()->arena_bytes());
  EXPECT_GE(proof.after_arena_bytes(), proof.after_peak_bytes());
  EXPECT_EQ(proof.change(), "recompute.budget = 1");
  EXPECT_EQ(proof.step(), 1);
  // The proof committed nothing, and the plan after it goes on from where the one before it stood.
  for (Session* s : {session.get(), plain.get()})
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(s->step().has_value());
  EXPECT_EQ(bitsOf(*session), bitsOf(*plain));
  const auto report = judged(*session);
  ASSERT_EQ(report.runs_size(), 2);
  EXPECT_LT(report.runs(1).peak_bytes(), report.runs(0).peak_bytes());
  // The proof tells what the report tells.
  EXPECT_EQ(proof.after_peak_bytes(), report.present_peak_bytes());
  EXPECT_EQ(proof.after_arena_bytes(), report.present_arena_bytes());
  EXPECT_EQ(proof.before_peak_bytes(), report.plain_peak_bytes());
  // Another build is another plan.
  ASSERT_TRUE(session->build().has_value());
  EXPECT_EQ(session->optionProof(), nullptr);
}

// A proof that cannot fail would prove nothing: plain loops sum in another order.
TEST(LiveOptions, TellThatAnotherKernelGivesOtherBits) {
  auto session = open();
  ASSERT_TRUE(session);
  ASSERT_TRUE(set(*session, "kernels", "reference").has_value());
  ASSERT_NE(session->optionProof(), nullptr);
  EXPECT_FALSE(session->optionProof()->equal());
  EXPECT_GT(session->optionProof()->differing(), 0);
  EXPECT_GT(session->optionProof()->max_abs(), 0);
  EXPECT_LT(session->optionProof()->max_abs(), 0.1);
}

TEST(LiveOptions, AreTakenInTheMiddleOfAStepAtTheSamePlace) {
  auto session = open(), plain = open();
  ASSERT_TRUE(session && plain);
  ASSERT_TRUE(session->beginStep().has_value());
  ASSERT_TRUE(session->runTo(20).has_value());
  const auto before = session->planSnapshot()->instructions_size();
  ASSERT_TRUE(set(*session, "recompute.budget", "1").has_value());
  EXPECT_GT(session->planSnapshot()->instructions_size(), before);
  EXPECT_TRUE(session->position().in_step());
  EXPECT_EQ(session->position().instruction(), 20);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session->finishStep().has_value());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(plain->step().has_value());
  EXPECT_EQ(bitsOf(*session), bitsOf(*plain));
}

TEST(LiveOptions, LeaveThePlanThatRanWhenTheNewOneCannotBeBuilt) {
  auto session = open(), plain = open();
  ASSERT_TRUE(session && plain);
  ASSERT_TRUE(session->step().has_value());
  const Status refused = set(*session, "memory.limit", "1000");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("1000"), std::string::npos) << refused.error().message;
  ASSERT_TRUE(session->step().has_value());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(plain->step().has_value());
  EXPECT_EQ(bitsOf(*session), bitsOf(*plain));
  EXPECT_EQ(session->options().memoryLimit, 0);
}

}  // namespace
}  // namespace stepscope
