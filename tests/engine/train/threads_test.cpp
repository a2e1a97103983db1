// The number of threads belongs to a session's plan, and little work has one thread.

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "tests/support/sessions.h"

namespace stepscope::testing {
namespace {

// What a session alone makes of four steps.
std::string alone(const TestModel& model, const char* threads) {
  const auto session = openSession(model, {{"threads", threads}});
  if (!session) return {};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(session->step().has_value());
  return stateBits(*session);
}

TEST(Threads, SessionsOfOneProcessDoNotDisturbEachOther) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(7);  // of somebody else
  for (const TestModel& model : {digits(), languageModel()}) {
    const auto one = openSession(model, {{"threads", "1"}}), four = openSession(model, {{"threads", "4"}});
    ASSERT_TRUE(one && four);
    EXPECT_EQ(omp_get_max_threads(), 7) << "after building";
    for (int i = 0; i < 4; ++i)
      for (const auto* session : {&one, &four}) {
        ASSERT_TRUE((*session)->step().has_value());
        ASSERT_EQ(omp_get_max_threads(), 7) << "after a step";
      }
    for (const auto& [session, threads] : {std::pair(&one, 1), std::pair(&four, 4)})
      for (const Instruction& instruction : (*session)->stepper().executor().plan().instructions)
        if (instruction.kind == InstructionKind::kKernel && !instruction.view)
          EXPECT_EQ(instruction.spec().threads, threads);
    EXPECT_EQ(stateBits(*one), alone(model, "1"));
    EXPECT_EQ(stateBits(*four), alone(model, "4"));
  }
  omp_set_num_threads(before);
}

// Option deterministic=threads: equal bits for any number; without it some kernels say that theirs depend on it.
TEST(Threads, AreOfNoInfluenceWhereTheOptionAsksForIt) {
  const auto after = [](const TestModel& model, const char* threads, const char* deterministic) -> std::string {
    const auto session = openSession(model, {{"threads", threads}, {"deterministic", deterministic}});
    if (!session) return threads;
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(session->step().has_value());
    int depend = 0;
    for (const snapshot::Determinism& verdict : session->determinism())
      depend += verdict.verdict() == "depends on thread count" ? 1 : 0;
    EXPECT_EQ(depend == 0, deterministic == std::string_view("threads")) << model.name << ", threads " << threads;
    return stateBits(*session);
  };
  // Whether bits really differ depends on the processor; that they may is what the verdicts say.
  EXPECT_FALSE(after(digits(), "2", "run").empty());
  std::vector<TestModel> models{digits(), languageModel()};
  for (TestModel& model : corpusCases({"resnet", "conv1d_lora", "bert_mlm"})) models.push_back(std::move(model));
  for (const TestModel& model : models) {
    const std::string one = after(model, "1", "threads");
    for (const char* threads : {"2", "3", "4"})
      EXPECT_EQ(after(model, threads, "threads"), one) << model.name << ", " << threads;
  }
}

TEST(Threads, ASessionComputesTheSameOnAnyThreadOfItsCaller) {
  const std::string expected = alone(languageModel(), "2");
  std::string bits;
  std::unique_ptr<Session> session;
  std::thread([&] { session = openSession(languageModel(), {{"threads", "2"}}); }).join();
  ASSERT_NE(session, nullptr);
  for (int i = 0; i < 4; ++i) std::thread([&] { EXPECT_TRUE(session->step().has_value()); }).join();
  EXPECT_EQ(stateBits(*session), expected);
}

std::int64_t tasks() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

// In a child process, which begins with one thread.
std::int64_t tasksAfter(const std::function<void()>& work) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // threads of the parent that the library waits for are not there
    work();
    const std::int64_t count = tasks();
    _exit(write(ends[1], &count, sizeof count) == sizeof count ? 0 : 1);
  }
  close(ends[1]);
  std::int64_t count = -1;
  EXPECT_EQ(read(ends[0], &count, sizeof count), static_cast<ssize_t>(sizeof count));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return count;
}

TEST(Threads, AStepOfASmallModelStartsNoSecondThread) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a thread of its own";
#endif
  // A fresh process, so that nothing has started threads: ctest runs each test in one; all tests at once do not.
  if (tasks() > 1) GTEST_SKIP() << "another test of this process has started threads; run this one alone";
  // The gradient of a convolution's weights keeps all threads, because its bits depend on them: this model has none.
  const std::vector<TestModel> models = corpusCases({"gpt2_lm"});
  if (models.empty()) GTEST_SKIP() << "no corpus beside the source tree (STEPSCOPE_SHARED)";
  for (const TestModel& model : models)
    EXPECT_EQ(tasksAfter([&] {
                const auto session = openSession(model, {{"threads", "4"}});
                if (!session || !session->step() || !session->step()) _exit(2);
              }),
              1)
        << model.name;
}

}  // namespace
}  // namespace stepscope::testing
