// A run that is asked to end: the step is finished and the run closed, whatever the signal; and what its recording loses
// meanwhile is said.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <csignal>
#include <regex>
#include <thread>

#include "engine/data/safetensors.h"
#include "storage/queries.h"
#include "tests/app/cli/program.h"
#include "tests/app/cli/samples.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

// A training that goes on until it is told to end; its text goes to log.txt in the folder.
class EndlessTraining {
 public:
  explicit EndlessTraining(const TemporaryFolder& folder, bool ignoreHangUp = false,
                           const std::vector<std::string>& more = {})
      : project_(folder.path() / "p.stepscope"), log_(folder.path() / "log.txt") {
    child_ = fork();
    if (child_ != 0) return;
    std::signal(SIGHUP, ignoreHangUp ? SIG_IGN : SIG_DFL);
    if (!std::freopen(log_.c_str(), "w", stdout) || dup2(1, 2) < 0) _exit(99);
    std::vector<std::string> words{SS_PROGRAM, "train", kDigits, "--steps", "1000000000", "--project", project_};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(SS_PROGRAM, arguments.data());
    _exit(99);
  }
  ~EndlessTraining() {
    if (child_ > 0) kill(child_, SIGKILL), waitpid(child_, nullptr, 0);
  }
  // Until the text has the words; false when that never happens.
  bool waitFor(const std::string& words) const {
    for (int i = 0; i < 6000; ++i) {
      if (text().find(words) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  void send(int signal) const { kill(child_, signal); }
  int end() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string text() const { return contents(log_); }
  const std::filesystem::path& project() const { return project_; }

 private:
  std::filesystem::path project_, log_;
  pid_t child_ = 0;
};

class EndSignal : public ::testing::TestWithParam<int> {};

TEST_P(EndSignal, FinishesTheStepAndClosesTheRun) {
  const TemporaryFolder folder;
  EndlessTraining training(folder);
  ASSERT_TRUE(training.waitFor("step     19")) << training.text();
  training.send(GetParam());
  EXPECT_EQ(training.end(), 1) << training.text();
  const auto project = storage::Project::openReadOnly(training.project());
  ASSERT_TRUE(project) << project.error().message;
  const auto row = storage::readRun(*project, 1);
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_EQ(row->status, "cancelled");
  EXPECT_NE(training.text().find(fmt::format("cancelled after {} steps", row->steps)), std::string::npos)
      << row->steps << " steps are recorded\n"
      << training.text();
}

INSTANTIATE_TEST_SUITE_P(Signals, EndSignal, ::testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(EndSignal, HangUpThatIsIgnoredEndsNothing) {
  const TemporaryFolder folder;
  EndlessTraining training(folder, true);
  ASSERT_TRUE(training.waitFor("step      9"));
  training.send(SIGHUP);
  ASSERT_TRUE(training.waitFor("step     79")) << training.text();
  training.send(SIGTERM);
  EXPECT_EQ(training.end(), 1);
}

TEST(Checkpoint, OfAKilledRunGoesOnBitForBit) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "c.safetensors").string();
  {
    EndlessTraining training(
        folder, false,
        {"--optimizer", "adam", "--save", file, "--set", "checkpoint.seconds=0.001", "--set", "checkpoint.keep=3"});
    ASSERT_TRUE(training.waitFor("step    199")) << training.text();
    training.send(SIGKILL);
    EXPECT_EQ(training.end(), -SIGKILL);
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "c.2.safetensors")) << "the last three are kept";
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "c.3.safetensors"));
  // Killed while the older ones moved on by one, the first of them has no file.
  std::string before = (folder.path() / "c.1.safetensors").string();
  if (!std::filesystem::exists(before)) before = (folder.path() / "c.2.safetensors").string();
  const std::string train = "train " + kDigits + " --optimizer adam ", a = (folder.path() / "a").string(),
                    b = (folder.path() / "b").string();
  for (const std::string& checkpoint : {file, before}) {
    const auto read = readSafetensors(checkpoint);
    ASSERT_TRUE(read) << read.error().message;
    const std::int64_t at = std::stoll(read->metadata.at("stepscope.step"));
    EXPECT_GT(at, 0);
    const Answer whole = run(train + fmt::format("--steps {} --dump-params {}", at + 20, a), folder.path());
    ASSERT_EQ(whole.exitCode, 0) << whole.text;
    const Answer resumed =
        run(train + fmt::format("--steps 20 --init-from {} --resume --dump-params {}", checkpoint, b), folder.path());
    ASSERT_EQ(resumed.exitCode, 0) << resumed.text;
    EXPECT_EQ(contents(a), contents(b));
  }
}

TEST(Recording, GoesOnWhenAnotherProcessLetsTheFileGo) {
  const TemporaryFolder folder;
  EndlessTraining training(folder);
  ASSERT_TRUE(training.waitFor("step     19")) << training.text();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(training.project().c_str(), &other), SQLITE_OK);
  sqlite3_busy_timeout(other, 60'000);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(other);
  EXPECT_TRUE(training.waitFor("warning: recording pauses ")) << training.text();
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_TRUE(training.waitFor("warning: recording goes on; no step is lost")) << training.text();
  training.send(SIGTERM);
  EXPECT_EQ(training.end(), 1);
  const auto project = storage::Project::openReadOnly(training.project());
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_NE(training.text().find(fmt::format("cancelled after {} steps", storage::readRun(*project, 1)->steps)),
            std::string::npos)
      << training.text();
  const auto alerts = storage::readAlerts(*project, 1).value();
  for (const char* code : {"recording_paused", "recording_resumed"})
    EXPECT_TRUE(std::any_of(alerts.begin(), alerts.end(), [&](const auto& alert) { return alert.code == code; })) << code;
}

TEST(Recording, OfAProjectThatIsMovedSaysSoAtOnce) {
  for (const bool removed : {false, true}) {
    const TemporaryFolder folder;
    EndlessTraining training(folder);
    ASSERT_TRUE(training.waitFor("step     19")) << training.text();
    const auto moved = folder.path() / "moved.stepscope";
    if (removed)
      std::filesystem::remove(training.project());
    else
      std::filesystem::rename(training.project(), moved);
    EXPECT_TRUE(training.waitFor("warning: recording ended ")) << training.text();
    training.send(SIGTERM);
    EXPECT_EQ(training.end(), 1);
    std::smatch found;
    const std::string text = training.text();
    ASSERT_TRUE(std::regex_search(text, found, std::regex("([0-9]+) of ([0-9]+) steps are not recorded \\(project '")))
        << text;
    if (removed) EXPECT_EQ(found[1], found[2]) << "all that was written is gone";
    if (removed) continue;
    const auto project = storage::Project::openReadOnly(moved);
    ASSERT_TRUE(project) << project.error().message;
    const auto row = storage::readRun(*project, 1);
    ASSERT_TRUE(row) << row.error().message;
    EXPECT_EQ(row->status, "interrupted");
    EXPECT_EQ(row->steps + std::stoll(found[1]), std::stoll(found[2]));
    EXPECT_GE(row->steps, 1) << "what was on the disk when it was moved is kept; a commit may be late on a busy machine";
  }
}

}  // namespace
}  // namespace stepscope::testing
