// `stepscope recover`: a new project from what can be read of another.
#include <gtest/gtest.h>

#include "storage/queries.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

TEST(Recover, WritesWhatCanBeReadAndSaysWhatIsMissing) {
  const TemporaryFolder folder;
  const auto project = folder.path() / "p.stepscope", whole = folder.path() / "whole.stepscope",
             part = folder.path() / "part.stepscope";
  ASSERT_EQ(run("train " SS_SAMPLES "/digits/model.onnx --steps 300 --project " + project.string(), folder.path()).exitCode,
            0);
  const Answer all = run("recover " + project.string() + " -o " + whole.string(), folder.path());
  EXPECT_EQ(all.exitCode, 0) << all.text;
  EXPECT_EQ(all.text.find("warning"), std::string::npos) << all.text;
  EXPECT_EQ(storage::readRun(*storage::Project::openReadOnly(whole), 1)->steps, 300);
  EXPECT_EQ(run("recover " + project.string() + " -o " + whole.string(), folder.path()).exitCode, 1) << "never over a file";
  std::filesystem::resize_file(project, std::filesystem::file_size(project) / 2 / 4096 * 4096);
  const Answer report = run("inspect " + project.string(), folder.path());
  EXPECT_EQ(report.exitCode, 0) << report.text;
  EXPECT_NE(report.text.find("stepscope recover"), std::string::npos) << report.text;
  const Answer half = run("recover " + project.string() + " -o " + part.string(), folder.path());
  EXPECT_EQ(half.exitCode, 0) << half.text;
  EXPECT_NE(half.text.find("warning: table "), std::string::npos) << half.text;
  EXPECT_TRUE(storage::Project::openForWriting(part)) << "the new project is whole";
  EXPECT_EQ(run("recover /etc/passwd -o " + (folder.path() / "x").string(), folder.path()).exitCode, 1);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "x"));
  // Without room nothing of it stays.
  const auto none = folder.path() / "none.stepscope";
  const int status = std::system(
      fmt::format("ulimit -f 40; {} recover {} -o {} >/dev/null 2>&1", SS_PROGRAM, whole.string(), none.string()).c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  for (const char* rest : {"", "-journal", "-wal", "-shm"})
    EXPECT_FALSE(std::filesystem::exists(none.string() + rest)) << rest;
}

}  // namespace
}  // namespace stepscope::testing
