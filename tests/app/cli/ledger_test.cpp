// `stepscope ledger` as a user runs it: the tables, the events, what it refuses.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kLedger =
    "ledger " SS_SAMPLES "/language_model/model.onnx --data " SS_SAMPLES "/language_model/batches.npz --steps 3 ";

TEST(LedgerCommand, SaysWhereTheStepWent) {
  const TemporaryFolder folder;
  for (const char* column : {"phase", "op"}) {
    const Answer answer = run(kLedger + "--by " + column, folder.path());
    ASSERT_EQ(answer.exitCode, 0) << answer.text;
    for (const char* part : {"flops: useful", "bytes: payload", "time: kernels", "time: waiting", "roof", column})
      EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
  }
}

TEST(LedgerCommand, TheEventsOfInstructionsSumToThatOfTheStep) {
  const TemporaryFolder folder;
  const Answer answer = run(kLedger + "--json", folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  std::map<std::string, std::int64_t> sums;
  nlohmann::json total;
  std::istringstream lines(answer.text);
  for (std::string text; std::getline(lines, text);) {
    if (!text.starts_with("{")) continue;
    const auto event = nlohmann::json::parse(text);
    if (event["event"] == "ledger") total = event;
    if (event["event"] != "ledger_line") continue;
    for (const auto& [key, value] : event.items())
      if (key.starts_with("flops_") || key.starts_with("bytes_") || key.starts_with("ns_"))
        sums[key] += value.get<std::int64_t>();
  }
  ASSERT_TRUE(total.is_object()) << answer.text;
  ASSERT_EQ(sums.size(), 11u);
  for (const auto& [key, sum] : sums) EXPECT_EQ(total[key].get<std::int64_t>(), sum) << key;
  EXPECT_EQ(sums["ns_kernel"] + sums["ns_gap"] + sums["ns_waiting"], total["ns"].get<std::int64_t>());
  EXPECT_GT(total["roof_ns"].get<double>(), 0);
}

TEST(LedgerCommand, StandsInAProjectForSqlAndReports) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string(), html = (folder.path() / "r.html").string();
  const Answer answer = run(kLedger + "--json --project " + project, folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  nlohmann::json total;
  std::istringstream lines(answer.text);
  for (std::string text; std::getline(lines, text);)
    if (text.starts_with("{"))
      if (const auto event = nlohmann::json::parse(text); event["event"] == "ledger") total = event;
  const Answer sum = run("sql " + project +
                             " \"SELECT 'ns' || sum(ns_kernel + ns_gap + ns_waiting), 'flops' || sum(flops_useful + "
                             "flops_padding + flops_ignored + flops_recomputed) FROM ledger\"",
                         folder.path());
  ASSERT_EQ(sum.exitCode, 0) << sum.text;
  std::int64_t flops = 0;
  for (const char* part : {"flops_useful", "flops_padding", "flops_ignored", "flops_recomputed"})
    flops += total[part].get<std::int64_t>();
  EXPECT_GT(flops, 0);
  for (const std::string& wanted : {"ns" + std::to_string(total["ns"].get<std::int64_t>()), "flops" + std::to_string(flops)})
    EXPECT_NE(sum.text.find(wanted), std::string::npos) << sum.text << "\n" << wanted;
  // A row belongs to the instruction that the plan of the run has there.
  const Answer joined = run("sql " + project +
                                " \"SELECT 'all ' || (count(*) = (SELECT count(*) FROM ledger WHERE instruction >= 0)) FROM "
                                "ledger l JOIN instructions i ON i.position = l.instruction AND i.op = l.op\"",
                            folder.path());
  EXPECT_NE(joined.text.find("all 1"), std::string::npos) << joined.text;
  const Answer report = run("report " + project + " -o " + html, folder.path());
  ASSERT_EQ(report.exitCode, 0) << report.text;
  std::ifstream file(html);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("id=\"ledger\""), std::string::npos);
}

// Threads that want the first core that this process may use.
class Rivals {
 public:
  Rivals() {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    while (core_ < CPU_SETSIZE && !CPU_ISSET(core_, &all)) ++core_;
    CPU_ZERO(&one);
    CPU_SET(core_, &one);
    for (int i = 0; i < 2; ++i) {
      threads_.emplace_back([this] {
        while (!done_) {
        }
      });
      pthread_setaffinity_np(threads_.back().native_handle(), sizeof one, &one);
    }
  }
  ~Rivals() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  int core() const { return core_; }

 private:
  int core_ = 0;
  std::atomic<bool> done_ = false;
  std::vector<std::thread> threads_;
};

nlohmann::json eventOf(const std::string& text, const std::string& name) {
  nlohmann::json found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("{"))
      if (const auto event = nlohmann::json::parse(line); event["event"] == name) found = event;
  return found;
}

// Where others took the core, that is no kernel's time.
TEST(LedgerCommand, OnABusyMachineItDoesNotBlameTheKernels) {
  if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "this system does not count how long threads wait";
  const TemporaryFolder folder;
  const Rivals rivals;
  const std::string pinned = "taskset -c " + std::to_string(rivals.core());
  const std::string busySteps = kLedger + "--threads 1 --steps 40 ";
  const Answer text = runWith(pinned, busySteps, folder.path());
  ASSERT_EQ(text.exitCode, 0) << text.text;
  for (const char* part : {"warning: machine busy: ", "spent waiting for a core", "time: threads without a core"})
    EXPECT_NE(text.text.find(part), std::string::npos) << part << "\n" << text.text;
  const nlohmann::json told = eventOf(runWith(pinned, busySteps + "--json", folder.path()).text, "ledger");
  EXPECT_TRUE(told["busy"].get<bool>()) << told;
  EXPECT_GT(told["wait_ns"].get<std::int64_t>(), told["cpu_ns"].get<std::int64_t>()) << "two of three turns are the others'";
  EXPECT_GT(told["ns_without_core"].get<std::int64_t>(), 0);
  EXPECT_LE(told["ns_without_core"].get<std::int64_t>(), told["ns_kernel"].get<std::int64_t>());
}

TEST(TrainCommand, SaysThatTheMachineWasBusy) {
  if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "this system does not count how long threads wait";
  const TemporaryFolder folder;
  const Rivals rivals;
  const std::string train = "train " SS_SAMPLES "/language_model/model.onnx --data " SS_SAMPLES
                            "/language_model/batches.npz --threads 1 --steps 60 ";
  const std::string pinned = "taskset -c " + std::to_string(rivals.core());
  const Answer text = runWith(pinned, train, folder.path());
  ASSERT_EQ(text.exitCode, 0) << text.text;
  EXPECT_NE(text.text.find("\nmachine busy: "), std::string::npos) << text.text;
  EXPECT_TRUE(eventOf(runWith(pinned, train + "--json", folder.path()).text, "done")["busy"].get<bool>());
}

TEST(LedgerCommand, NoStepsAreNoLedger) {
  const TemporaryFolder folder;
  const Answer answer = run(kLedger + "--steps 0", folder.path());
  EXPECT_EQ(answer.exitCode, 1);
  EXPECT_NE(answer.text.find("option 'steps': found 0; expected 1 or more"), std::string::npos) << answer.text;
}

TEST(LedgerCommand, AnUnknownColumnIsWrongUsage) {
  const TemporaryFolder folder;
  const Answer answer = run(kLedger + "--by colour", folder.path());
  EXPECT_EQ(answer.exitCode, 2);
  EXPECT_NE(answer.text.find("option 'by': found 'colour'; expected phase, module, op or source"), std::string::npos)
      << answer.text;
}

}  // namespace
}  // namespace stepscope::testing
