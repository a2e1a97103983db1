// `stepscope trials` as a user runs it: the table, the events, the rows of a project, and what Ctrl+C leaves.
#include "storage/trials.h"

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "storage/queries.h"
#include "tests/app/cli/program.h"
#include "tests/app/cli/samples.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kTrials = "trials " + kDigitsWithData + "--rounds 6 ";

std::vector<nlohmann::json> eventsOf(const std::string& text) {
  std::vector<nlohmann::json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("{")) events.push_back(nlohmann::json::parse(line));
  return events;
}

TEST(TrialsCommand, RanksWhatItTried) {
  const TemporaryFolder folder;
  const Answer answer = run(kTrials + "--only 'layouts|cse|bf16'", folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  for (const char* part : {"pass.assign_layouts on -> off", "precision fp32 -> bf16", "95 % interval", "same bits",
                           "no effect on the plan (1): pass.cse=off", "of 1 called different"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
}

TEST(TrialsCommand, TellsTheSameAsEventsAndRows) {
  const TemporaryFolder folder;
  const auto project = folder.path() / "p.stepscope";
  const Answer answer = run(kTrials + "--only 'layouts|cse|bf16' --json --project " + project.string(), folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  std::vector<nlohmann::json> trials;
  const auto events = eventsOf(answer.text);
  for (const auto& event : events)
    if (event["event"] == "trial") trials.push_back(event);
  ASSERT_EQ(trials.size(), 4u) << answer.text;
  EXPECT_EQ(trials.back()["option"], "(nothing)");
  for (const auto& trial : trials) {
    for (const char* key :
         {"rounds", "median_ns_before", "median_ns_after", "ratio", "low", "high", "peak_before", "peak_after"})
      EXPECT_TRUE(trial[key].is_number()) << key << ": " << trial;
    for (const char* key : {"loss", "gradient", "parameter", "cosine"})
      EXPECT_TRUE(trial["parity"][key].is_number()) << key << ": " << trial;
    EXPECT_TRUE(trial["parity"]["bits"].is_boolean());
    const std::string verdict = trial["verdict"];
    EXPECT_TRUE(verdict == "slower" || verdict == "faster" || verdict == "same" || verdict == "not shown") << trial;
    if (trial["option"] == "pass.cse") {
      EXPECT_EQ(trial["from"], "on");
      EXPECT_EQ(trial["to"], "off");
      EXPECT_EQ(trial["rounds"], 0);
      EXPECT_EQ(trial["identical"], true);
    } else {
      EXPECT_EQ(trial["rounds"], 6);
    }
  }
  EXPECT_EQ(events.back()["event"], "done");
  EXPECT_EQ(events[events.size() - 2]["nothing"], 1);
  const auto opened = storage::Project::openReadOnly(project);
  ASSERT_TRUE(opened);
  const auto rows = storage::readTrials(*opened, 1);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), trials.size());
  for (std::size_t i = 0; i < rows->size(); ++i) {
    EXPECT_EQ((*rows)[i].option(), trials[i]["option"]);
    EXPECT_EQ((*rows)[i].ratio(), trials[i]["ratio"].get<double>());
    EXPECT_EQ((*rows)[i].verdict(), trials[i]["verdict"]);
  }
  EXPECT_EQ(storage::readRun(*opened, 1)->status, "finished");

  // Next to the trials of another run.
  ASSERT_EQ(run(kTrials + "--only 'bf16' --project " + project.string(), folder.path()).exitCode, 0);
  const Answer compared = run("compare " + project.string() + " 1 2 --json", folder.path());
  ASSERT_EQ(compared.exitCode, 0) << compared.text;
  const auto pairs = eventsOf(compared.text).at(0)["trials"];
  ASSERT_EQ(pairs.size(), 1u) << compared.text;
  EXPECT_EQ(pairs[0]["option"], "precision");
  EXPECT_EQ(pairs[0]["to"], "bf16");
  EXPECT_TRUE(pairs[0]["a"]["ratio"].is_number() && pairs[0]["b"]["ratio"].is_number());
  EXPECT_NE(run("compare " + project.string() + " 1 2", folder.path()).text.find("precision fp32 -> bf16"),
            std::string::npos);
}

TEST(TrialsCommand, EndsWithWhatWasMeasured) {
  const TemporaryFolder folder;
  const auto log = folder.path() / "log.txt";
  const pid_t child = fork();
  if (child == 0) {
    if (!std::freopen(log.c_str(), "w", stdout) || dup2(1, 2) < 0) _exit(99);
    execl(SS_PROGRAM, SS_PROGRAM, "trials", kDigits.c_str(), "--rounds", "20000", "--only", "layouts|bf16", "--json",
          nullptr);
    _exit(99);
  }
  for (int i = 0; i < 3000 && contents(log).find("bind") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << contents(log);
  const auto events = eventsOf(contents(log));
  ASSERT_GE(events.size(), 2u);
  const auto& summary = events[events.size() - 2];
  EXPECT_EQ(summary["event"], "trials") << contents(log);
  EXPECT_EQ(summary["cancelled"], true);
}

TEST(TrialsCommand, RefusesWhatMakesNoSense) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& more, int exitCode) {
    const Answer answer = run("trials " + kDigits + " " + more, folder.path());
    EXPECT_EQ(answer.exitCode, exitCode) << answer.text;
    return answer.text;
  };
  EXPECT_NE(refused("--rounds 5", 2).find("option 'rounds': found 5; expected 6 to 100000"), std::string::npos);
  EXPECT_NE(refused("--rounds 0", 2).find("option 'rounds': found 0; expected 6 to 100000"), std::string::npos);
  EXPECT_NE(refused("--seconds 0", 2).find("option 'seconds': found 0; expected a time above 0"), std::string::npos);
  EXPECT_NE(refused("--rounds 9 --seconds 2", 2).find("option 'seconds': rounds are given as well"), std::string::npos);
  EXPECT_NE(refused("--seconds -1", 2).find("option 'seconds': found -1"), std::string::npos);
  EXPECT_NE(refused("--batches 1,x", 2).find("option 'batches': found '1,x'"), std::string::npos);
  EXPECT_NE(refused("--nothing 0", 2).find("option 'nothing': found 0; expected 1 to 1000"), std::string::npos);
  EXPECT_NE(refused("--only nosuch", 1).find("option 'only': 'nosuch' matches none of "), std::string::npos);
  EXPECT_NE(refused("--project /tmp", 1).find("project '/tmp': "), std::string::npos);
}

}  // namespace
}  // namespace stepscope::testing
