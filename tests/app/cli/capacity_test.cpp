// `stepscope capacity` as a user runs it: a table for people, one event per line for programs, and what it refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kLanguageModel = SS_SAMPLES "/language_model/model.onnx";

std::vector<nlohmann::json> parsedEvents(const std::string& text) {
  std::vector<nlohmann::json> events;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) events.push_back(nlohmann::json::parse(line));
  return events;
}

TEST(CapacityCommand, PrintsWhatFits) {
  const TemporaryFolder folder;
  const Answer answer = run("capacity " + kLanguageModel + " --memory 20MiB --vary batch=1..64 --recompute", folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  for (const char* part :
       {"batch=1 ", "batch=8 ", "budget=", "fits", " no ", "step at least", "largest batch that fits 20 MiB: "})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
}

TEST(CapacityCommand, TellsTheSameAsEvents) {
  const TemporaryFolder folder;
  const Answer answer =
      run("capacity " + kLanguageModel + " --memory 20MiB --vary batch=1..64 --recompute --optimizer adamw --json",
          folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  std::int64_t largest = 0, withRecompute = 0, last = 0;
  const auto events = parsedEvents(answer.text);
  for (const auto& event : events) {
    if (event["event"] != "capacity") continue;
    const auto batch = event["batch"].get<std::int64_t>();
    EXPECT_GE(batch, last) << "by extent";
    last = batch;
    EXPECT_EQ(event["fits"].get<bool>(), event["peak_bytes"].get<std::int64_t>() <= 20 << 20);
    EXPECT_GT(event["predicted_ns"].get<double>(), 0);
    const bool recomputed = event["recompute"] != "none";
    if (recomputed) EXPECT_TRUE(event["recompute"].get<std::string>().starts_with("budget="));
    if (event["fits"].get<bool>()) (recomputed ? withRecompute : largest) = batch;
  }
  const auto& summary = events[events.size() - 2];
  EXPECT_EQ(summary["event"], "capacity_largest");
  EXPECT_EQ(summary["largest"], largest);
  EXPECT_EQ(summary["largest_with_recompute"], withRecompute);
  EXPECT_GT(withRecompute, largest);
  EXPECT_EQ(events.back()["event"], "done");
}

// A model whose weights are nowhere.
TEST(CapacityCommand, NeedsNoWeights) {
  const TemporaryFolder folder;
  const Answer answer = run("capacity " + kLanguageModel + " --vary batch=2..2 --json", folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  const auto events = parsedEvents(answer.text);
  EXPECT_EQ(events.front()["event"], "phase");
  for (const auto& event : events)
    if (event["event"] == "phase") EXPECT_NE(event["name"], "bind") << "nothing is bound to memory";
}

TEST(CapacityCommand, RefusesWhatMakesNoSense) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& more, int exitCode) {
    const Answer answer = run("capacity " + kLanguageModel + more, folder.path());
    EXPECT_EQ(answer.exitCode, exitCode) << answer.text;
    return answer.text;
  };
  EXPECT_NE(refused(" --vary depth=1..4", 1).find("dimension 'depth': no input has it; expected one of "),
            std::string::npos);
  EXPECT_NE(refused(" --vary batch=4..2", 2).find("option 'vary': found 'batch=4..2': the range is empty"),
            std::string::npos);
  EXPECT_NE(refused(" --vary batch=0..2", 2).find("option 'vary': found 'batch=0..2': no extents from 1 to 2^32"),
            std::string::npos);
  EXPECT_NE(refused(" --vary batch", 2).find("option 'vary': found 'batch'; expected NAME=FROM..TO"), std::string::npos);
  EXPECT_NE(refused(" --memory much", 2).find("option 'memory': found 'much'; expected a size above 0"), std::string::npos);
  EXPECT_NE(refused(" --memory 0", 2).find("option 'memory': found '0'; expected a size above 0"), std::string::npos);
  EXPECT_NE(refused(" --optimizer foo", 2).find("option 'optimizer': found 'foo'"), std::string::npos);
}

}  // namespace
}  // namespace stepscope::testing
