// What sessions take from the build cache, and what they do where it lies.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "engine/build/build_cache.h"
#include "engine/build/environment.h"
#include "engine/build/known_recompute.h"
#include "engine/build/known_roofs.h"
#include "engine/profile/roofline.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

namespace fs = std::filesystem;
using testing::openSession;
using testing::stateBits;
using testing::testModels;

class KnownResults : public ::testing::Test {
 protected:
  KnownResults() : folder_(fs::temp_directory_path() / ("known_results_test." + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~KnownResults() override { fs::remove_all(folder_); }

  std::map<std::string, std::string> settings(const std::string& budget) const {
    return {{"recompute.budget", budget}, {"cache.dir", folder_.string()}};
  }
  // What the newest span of this name says; empty: there is none.
  static std::string told(const Session& session, const std::string& span) {
    std::string text;
    for (const snapshot::PhaseSpan& phase : session.phases())
      if (phase.name() == span) text = phase.pass().notes(0);
    return text;
  }
  static std::vector<std::int32_t> nodes(const Session& session) {
    std::vector<std::int32_t> order;
    for (const Instruction& instruction : session.stepper().plan().instructions) order.push_back(instruction.node.index);
    return order;
  }

  // What an entry answers: fields "NAME BYTES\nCONTENT\n" behind those of hash and time.
  static CacheQuestion questionIn(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    CacheQuestion question;
    std::string name, line;
    std::getline(in, line);
    for (std::size_t bytes = 0; in >> name >> bytes;) {
      std::string content(bytes, ' ');
      in.ignore(1);
      in.read(content.data(), static_cast<std::streamsize>(bytes));
      if (name == "kind")
        question.kind = content;
      else if (name != "sha256" && name != "written" && name != "answer")
        question.parts.emplace_back(name, content);
    }
    return question;
  }

  fs::path folder_;
};

// Some budget that makes the model compute again, and what it takes.
std::string tightBudget(const testing::TestModel& model) {
  const auto session = openSession(model);
  return session ? std::to_string(session->stepper().plan().lowerBoundBytes * 3 / 4) : "";
}

TEST_F(KnownResults, ASecondStartTakesTheChoiceOfABudget) {
  const auto model = testModels().front();
  const std::string budget = tightBudget(model);
  const auto without = openSession(model, {{"recompute.budget", budget}});
  ASSERT_TRUE(without);
  EXPECT_EQ(told(*without, "cache recompute"), "") << "a session without a folder keeps nothing";
  const auto first = openSession(model, settings(budget)), second = openSession(model, settings(budget));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(told(*first, "cache recompute"), "miss: no entry yet");
  EXPECT_TRUE(told(*second, "cache recompute").starts_with("hit: same version, model, signature, budget"))
      << told(*second, "cache recompute");
  EXPECT_EQ(nodes(*first), nodes(*without));
  EXPECT_EQ(nodes(*second), nodes(*without));
  ASSERT_TRUE(first->step() && second->step());
  EXPECT_EQ(stateBits(*first), stateBits(*second));
}

TEST_F(KnownResults, AnotherBudgetModelOrOptionIsAMissThatSaysSo) {
  const auto model = testModels().front();
  const std::string budget = tightBudget(model), other = std::to_string(std::stoll(budget) - 64);
  ASSERT_TRUE(openSession(model, settings(budget)));
  const auto reason = [&](const testing::TestModel& of, std::map<std::string, std::string> with) {
    const auto session = openSession(of, with);
    return session ? told(*session, "cache recompute") : std::string("not built");
  };
  EXPECT_EQ(reason(model, settings(other)),
            "miss: budget is 'recompute.budget=" + other + "', and 'recompute.budget=" + budget + "' in the newest entry");
  auto passes = settings(budget);
  passes["pass.fuse_pointwise"] = "off";
  passes["pass.fuse_epilogue"] = "off";
  // The newest entry is that of the other budget, so that is what it says first.
  fs::remove_all(folder_);
  ASSERT_TRUE(openSession(model, settings(budget)));
  EXPECT_EQ(reason(model, passes), "miss: not the options of the newest entry");
  ASSERT_GT(testModels().size(), 1U);
  EXPECT_EQ(reason(testModels()[1], settings(budget)), "miss: not the model of the newest entry");
}

TEST_F(KnownResults, AChoiceThatIsNoneOfThisStepIsAMiss) {
  const auto model = testModels().front();
  const std::string budget = tightBudget(model);
  const auto first = openSession(model, settings(budget));
  ASSERT_TRUE(first);
  const fs::path file = fs::directory_iterator(folder_)->path();
  const CacheQuestion question = questionIn(file);
  const BuildCache cache(folder_);
  ASSERT_EQ(cache.fileOf(question), file);
  for (const char* const wrong :
       {"", "no numbers", "5 1\n", "5 1\n999999\n", "5 2\n0\n", "1 1\n0\n", "5 99999999999\n0\n"}) {
    ASSERT_TRUE(cache.keep(question, wrong));
    const auto session = openSession(model, settings(budget));
    ASSERT_TRUE(session);
    EXPECT_TRUE(told(*session, "cache recompute").starts_with("miss: there is an entry, and it is damaged")) << wrong;
    EXPECT_EQ(nodes(*session), nodes(*first)) << wrong;
    EXPECT_TRUE(choiceFrom(*cache.find(question).answer)) << "it was written anew";
  }
}

TEST_F(KnownResults, AFolderThatCannotBeIsAnAlertAndNoError) {
  const auto model = testModels().front();
  auto with = settings(tightBudget(model));
  with["cache.dir"] = "/dev/null/cache";
  const auto session = openSession(model, with);
  ASSERT_TRUE(session);
  std::string alerts;
  for (const snapshot::Alert& alert : session->alerts()) alerts += alert.code() + ": " + alert.message() + "\n";
  EXPECT_NE(alerts.find("cache: cache.dir: cannot write '/dev/null/cache/"), std::string::npos) << alerts;
}

TEST(KnownRoofs, AreReadAsTheyWereWritten) {
  cpu::MachinePeak peak{3,   123.456e9, 0, 0, {{"core caches", 1 << 20, 1 << 19, 1.5e11}, {"memory", 0, 64 << 20, 2.25e10}},
                        777, 0.25,      3};
  const auto read = roofsFrom(roofsText(peak));
  ASSERT_TRUE(read);
  EXPECT_EQ(roofsText(*read), roofsText(peak));
  EXPECT_EQ(read->operationsPerSecond, peak.operationsPerSecond);
  EXPECT_EQ(read->waiting, 0.25);
  EXPECT_EQ(read->measurements, 3);
  EXPECT_EQ(read->levels[1].name, "memory");
  EXPECT_EQ(read->levels[1].bytesPerSecond, peak.levels[1].bytesPerSecond);
}

TEST(KnownRoofs, RefuseWhatIsNone) {
  for (const char* const text :
       {"", "2", "2 1e9 0 0 5 0 1\n", "0 1e9 0 0 5 0 1\n2 0 64 1e9\n", "2 -1 0 0 5 0 1\n2 0 64 1e9\n",
        "2 nan 0 0 5 0 1\n2 0 64 1e9\n", "2 1e9 0 0 5 0 1\n7 0 64 1e9\n", "2 1e9 0 0 5 0 1\n2 0 64\n",
        "2 1e9 0 0 5 0 1\n0 0 64 1e9\n", "2 1e9 0 0 5 0 1\n2 0 64 -1\n", "2 1e9 0 0 5 0 1\n2 0 64 1e9\nx",
        "2 1e9 0 0 5 1.5 1\n2 0 64 1e9\n", "2 1e9 0 0 5 -1 1\n2 0 64 1e9\n", "2 1e9 0 0 5 0 0\n2 0 64 1e9\n"})
    EXPECT_FALSE(roofsFrom(text)) << text;
}

// A peak is a maximum over all measurements, whatever kept a later one from it.
TEST_F(KnownResults, RoofsAreTheBestThatWereMeasured) {
  constexpr int kDoctor = 3, kRun = 5;  // threads; no session of this program has so many
  TrainOptions options;
  options.cacheDir = folder_.string();
  const BuildCache cache(folder_);
  cpu::MachinePeak before{kDoctor, 1e18, 0, 0, {{"memory", 0, 64 << 20, 1e17}}, 777, 0, 1};
  ASSERT_TRUE(cache.keep(roofsQuestion(kDoctor), roofsText(before)));
  const cpu::MachinePeak& best = measureRoofs(options, kDoctor);
  EXPECT_EQ(best.operationsPerSecond, 1e18);
  EXPECT_EQ(best.levels.back().bytesPerSecond, 1e17);
  EXPECT_GT(best.measurements, 1) << "it measured too";
  EXPECT_EQ(disturbanceText(best), "") << "one of them was not disturbed";
  const auto kept = cache.find(roofsQuestion(kDoctor));
  ASSERT_TRUE(kept.answer);
  EXPECT_EQ(roofsFrom(*kept.answer)->operationsPerSecond, 1e18);

  before.threads = kRun;
  before.waiting = 0.7;
  ASSERT_TRUE(cache.keep(roofsQuestion(kRun), roofsText(before)));
  EXPECT_EQ(roofsOf(options, kRun, nullptr).operationsPerSecond, 1e18);
  const auto again = roofsFrom(*cache.find(roofsQuestion(kRun)).answer);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->measurements, 2) << "a disturbed one is measured again";
  EXPECT_LE(again->waiting, 0.7);
}

TEST(KnownRoofs, TheBetterOfEachFigureStays) {
  const cpu::MachinePeak a{2,   3e9, 1e9, 0, {{"core caches", 1 << 20, 1 << 19, 5e9}, {"memory", 0, 64 << 20, 1e9}},
                           777, 0.5, 2},
      b{2, 1e9, 4e9, 0, {{"core caches", 1 << 20, 1 << 19, 2e9}, {"memory", 0, 64 << 20, 3e9}}, 777, 0.1, 1};
  for (const cpu::MachinePeak& best : {bestOf(a, b), bestOf(b, a)}) {
    EXPECT_EQ(best.operationsPerSecond, 3e9);
    EXPECT_EQ(best.bfloat16PerSecond, 4e9);
    EXPECT_EQ(best.levels[0].bytesPerSecond, 5e9);
    EXPECT_EQ(best.levels[1].bytesPerSecond, 3e9);
    EXPECT_EQ(best.waiting, 0.1);
    EXPECT_EQ(best.measurements, 3);
  }
}

TEST(KnownRoofs, ADisturbedMeasurementSaysSo) {
  cpu::MachinePeak peak{2, 1e9, 0, 0, {{"memory", 0, 64 << 20, 1e9}}, 777, 0.7, 1};
  const std::string said = "measured on a busy machine: its threads had no core for 70 % of the time";
  EXPECT_NE(peakText(peak).find(said), std::string::npos) << peakText(peak);
  peak.waiting = kMostQueuedShare;
  EXPECT_EQ(peakText(peak).find("busy"), std::string::npos) << peakText(peak);
}

// More threads than cores wait for each other.
TEST(KnownRoofs, TellHowLongTheirThreadsHadNoCore) {
  const int threads = 2 * static_cast<int>(std::thread::hardware_concurrency());
  if (!std::ifstream("/proc/self/schedstat")) GTEST_SKIP() << "no /proc/self/schedstat";
  const cpu::MachinePeak& peak = roofsOf(TrainOptions(), threads, nullptr);
  EXPECT_TRUE(disturbed(peak)) << peak.waiting;
}

TEST(CacheDir, IsOffInASessionByItselfAndTheUsersFolderInPrograms) {
  TrainOptions options;
  EXPECT_EQ(options.cacheDir, "");
  const char* const none[] = {nullptr};
  ASSERT_TRUE(applyEnvironment(options, none));
  EXPECT_EQ(options.cacheDir, userCacheFolder().string());
  const char* const off[] = {"STEPSCOPE_SET_CACHE_DIR=off", nullptr};
  ASSERT_TRUE(applyEnvironment(options, off));
  EXPECT_EQ(options.cacheDir, "");
  ASSERT_TRUE(applySetting(options, "cache.dir", "/some/folder", "command line"));
  ASSERT_TRUE(applyEnvironment(options, none));
  EXPECT_EQ(options.cacheDir, "/some/folder");
  const Status empty = applySetting(options, "cache.dir", "", "command line");
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().message.find("expected auto, off, or a folder"), std::string::npos) << empty.error().message;
}

}  // namespace
}  // namespace stepscope
