// Option cache.dir as a user meets it: what a first and a second start say.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/cli/program.h"

namespace stepscope {
namespace {

namespace fs = std::filesystem;
using testing::Answer;

const std::string kLanguage = SS_SAMPLES "/language_model/model.onnx --data " SS_SAMPLES "/language_model/batches.npz ";

class CacheDir : public ::testing::Test {
 protected:
  CacheDir() : folder_(fs::temp_directory_path() / fmt::format("cache_test.{}", getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CacheDir() override { fs::remove_all(folder_); }

  Answer run(const std::string& arguments, const std::string& environment = "STEPSCOPE_SET_CACHE_DIR=auto") const {
    return testing::runWith(fmt::format("env {} XDG_CACHE_HOME={}", environment, folder_.string()), arguments, folder_);
  }
  // What the phases of this name say, in their order.
  static std::vector<std::string> notes(const Answer& answer, const std::string& phase) {
    std::vector<std::string> found;
    std::istringstream lines(answer.text);
    for (std::string line; std::getline(lines, line);) {
      const auto event = nlohmann::json::parse(line, nullptr, false);
      if (!event.is_discarded() && event.value("event", "") == "phase" && event.value("name", "") == phase)
        found.push_back(event["notes"][0]);
    }
    return found;
  }

  fs::path folder_;
};

TEST_F(CacheDir, ASecondStartFindsWhatTheMachineCanDo) {
  const Answer first = run("build " + kLanguage + "--roofline on --json"),
               second = run("build " + kLanguage + "--roofline on --json");
  ASSERT_EQ(first.exitCode, 0) << first.text;
  ASSERT_EQ(second.exitCode, 0) << second.text;
  EXPECT_EQ(notes(first, "cache roofs"), std::vector<std::string>{"miss: no entry yet"});
  ASSERT_EQ(notes(second, "cache roofs").size(), 1U) << second.text;
  EXPECT_TRUE(notes(second, "cache roofs")[0].starts_with("hit: same machine, threads, version; found ")) << second.text;
  const Answer threads = run("build " + kLanguage + "--roofline on --threads 1 --json");
  EXPECT_EQ(notes(threads, "cache roofs"), std::vector<std::string>{"miss: threads is '1', and '2' in the newest entry"});
  const Answer text = run("build " + kLanguage + "--roofline on");
  EXPECT_NE(text.text.find("hit: same machine"), std::string::npos) << text.text;
}

TEST_F(CacheDir, IsOffWhereTheUserSaysSo) {
  for (const char* const off : {"STEPSCOPE_SET_CACHE_DIR=off", "STEPSCOPE_SET_ROOFLINE=on"}) {
    const Answer answer = run("build " + kLanguage + "--roofline on --set cache.dir=off --json", off);
    ASSERT_EQ(answer.exitCode, 0) << answer.text;
    EXPECT_EQ(notes(answer, "cache roofs"), std::vector<std::string>{"miss: cache.dir is off"});
  }
  EXPECT_FALSE(fs::exists(folder_ / "stepscope"));
}

TEST_F(CacheDir, TrainsAlikeWithAChoiceThatWasFound) {
  const std::string arguments =
      "train " + kLanguage + "--steps 2 --json --set recompute.budget=100000 --set cache.dir=" + (folder_ / "own").string();
  const Answer first = run(arguments), second = run(arguments);
  ASSERT_EQ(first.exitCode, 0) << first.text;
  ASSERT_EQ(second.exitCode, 0) << second.text;
  EXPECT_EQ(notes(first, "cache recompute"), std::vector<std::string>{"miss: no entry yet"});
  ASSERT_EQ(notes(second, "cache recompute").size(), 1U) << second.text;
  EXPECT_TRUE(notes(second, "cache recompute")[0].starts_with("hit: same version, model, signature, budget, "))
      << second.text;
  const auto losses = [](const Answer& answer) {
    std::vector<double> all;
    std::istringstream lines(answer.text);
    for (std::string line; std::getline(lines, line);)
      if (const auto event = nlohmann::json::parse(line, nullptr, false);
          !event.is_discarded() && event.value("event", "") == "step")
        all.push_back(event["loss"]);
    return all;
  };
  EXPECT_EQ(losses(first).size(), 2U);
  EXPECT_EQ(losses(first), losses(second));
}

}  // namespace
}  // namespace stepscope
