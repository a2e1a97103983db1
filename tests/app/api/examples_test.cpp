// The examples are built out of the tree, with the header and the library alone, and do what they say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/app/api/sessions.h"
#include "tests/app/cli/program.h"

namespace stepscope::testing {
namespace {

// Exit code and both streams of a command of the shell.
Answer command(const std::string& text, const TemporaryFolder& folder) {
  const auto log = folder.path() / "log.txt";
  const int status = std::system((text + " > " + log.string() + " 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(log)};
}

class ApiExamples : public ::testing::Test {
 protected:
  // The header alone in a folder, the example beside it.
  std::filesystem::path built(const std::string& compiler, const std::string& source) {
    const auto include = folder_.path() / "include";
    std::filesystem::create_directories(include);
    std::filesystem::copy_file(sourceFolder() / "app" / "api" / "stepscope.h", include / "stepscope.h");
    const std::filesystem::path library = SS_LIBRARY;
    const auto program = folder_.path() / "program";
    const Answer answer = command(
        fmt::format("{} -Wall -Wextra -Wpedantic -Werror -O1 {} -I {} -o {} {} -Wl,-rpath,{}", compiler,
                    (sourceFolder() / "app" / "api" / "examples" / source).string(), (folder_.path() / "include").string(),
                    program.string(), library.string(), library.parent_path().string()),
        folder_);
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
    return program;
  }

  const TemporaryFolder folder_;
};

TEST_F(ApiExamples, TrainInC) {
  const auto program = built(SS_C_COMPILER " -std=c11", "train.c");
  const auto state = folder_.path() / "state.safetensors";
  const Answer answer =
      command(fmt::format("{} {} {} {}", program.string(), digits().model.string(), digits().data.string(), state.string()),
              folder_);
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  for (const char* part : {"step 0: loss", "step 20: loss", "back at instruction 1 of"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
  EXPECT_GT(std::filesystem::file_size(state), 1000u);
  const Answer wrong = command(program.string() + " /nonexistent.onnx x y", folder_);
  EXPECT_EQ(wrong.exitCode, 1);
  EXPECT_NE(wrong.text.find("'nonexistent.onnx'"), std::string::npos) << wrong.text;
}

TEST_F(ApiExamples, AverageInC) {
  const auto program = built(SS_C_COMPILER " -std=c11", "average.c");
  const Answer answer = command(fmt::format("{} {} {} {}", program.string(), digits().model.string(), digits().data.string(),
                                            (folder_.path() / "state.safetensors").string()),
                                folder_);
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  for (const char* part : {"round 3: loss", "goes on at step 8"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
}

TEST_F(ApiExamples, FeedInCxx) {
  const auto program = built(SS_CXX_COMPILER " -std=c++20", "feed.cpp");
  const Answer answer = command(program.string() + " " + digits().model.string(), folder_);
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
}

}  // namespace
}  // namespace stepscope::testing
