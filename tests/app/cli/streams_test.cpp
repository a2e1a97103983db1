// Streams that are full, closed or no longer read, and outputs that must not be replaced: an exit code and a message, never
// a signal, and never success when nothing was written.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <regex>

#include "tests/app/cli/program.h"
#include "tests/app/cli/samples.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

// The exit code under a redirection; -1: a signal.
int exitCode(const std::string& arguments, const std::string& redirection) {
  const int status = std::system(fmt::format("{} {} {}", SS_PROGRAM, arguments, redirection).c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) < 128 ? WEXITSTATUS(status) : -1;
}

class Streams : public ::testing::TestWithParam<std::string> {};

TEST_P(Streams, FullOutputIsAFailure) {
  EXPECT_EQ(exitCode(GetParam(), ">/dev/full 2>/dev/null"), 1);
  EXPECT_EQ(exitCode(GetParam(), ">/dev/full 2>&1"), 1);
  EXPECT_EQ(exitCode(GetParam(), ">&- 2>/dev/null"), 1);
  EXPECT_EQ(exitCode(GetParam(), ">&- 2>&- <&-"), 1);
}

TEST_P(Streams, FullErrorsDoNotEndTheWork) {
  EXPECT_EQ(exitCode(GetParam(), ">/dev/null 2>/dev/full"), 0);
  EXPECT_EQ(exitCode(GetParam(), ">/dev/null 2>&-"), 0);
}

INSTANTIATE_TEST_SUITE_P(Commands, Streams,
                         ::testing::Values("--help", "--version", "train --help", "inspect " + kDigits,
                                           "inspect " + kDigits + " --json", "options", "build " + kDigits,
                                           "train " + kDigits + " --steps 3", "train " + kDigits + " --steps 3 --json",
                                           "run " + kDigits));

TEST(ClosedOutput, NeverBecomesTheCheckpoint) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "x.safetensors";
  EXPECT_EQ(exitCode("train " + kDigits + " --steps 1 --save " + file.string(), ">&- 2>/dev/null"), 1);
  EXPECT_EQ(contents(file).find("loss"), std::string::npos) << "what was printed went into the file";
  EXPECT_EQ(run("train " + kDigits + " --steps 1 --init-from " + file.string() + " --resume", folder.path()).exitCode, 0);
}

TEST(Outputs, ReplaceFilesAlone) {
  const TemporaryFolder folder;
  const std::string pipe = (folder.path() / "pipe").string(), report = (folder.path() / "pipe.html").string(),
                    project = (folder.path() / "p.stepscope").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(report.c_str(), 0600), 0);
  ASSERT_EQ(run("train " + kDigits + " --steps 1 --project " + project, folder.path()).exitCode, 0);
  for (const std::string& arguments :
       {"train " + kDigits + " --steps 1 --save " + pipe, "train " + kDigits + " --steps 1 --dump-params " + pipe,
        "train " + kDigits + " --steps 1 --fetch loss=" + pipe, "train " + kDigits + " --steps 1 --project " + pipe,
        "train " + kDigits + " --steps 1 --project /dev/null", "report " + project + " -o " + report}) {
    const Answer answer = run(arguments, folder.path());
    EXPECT_EQ(answer.exitCode, 1) << arguments << "\n" << answer.text;
    EXPECT_NE(answer.text.find("expected a file or a new name"), std::string::npos) << arguments << "\n" << answer.text;
    EXPECT_EQ(answer.text.find("step      0"), std::string::npos) << "told before the work";
  }
  for (const std::string& path : {pipe, report})
    EXPECT_EQ(std::filesystem::status(path).type(), std::filesystem::file_type::fifo);
}

// A disk that is full at once: nothing is left that is no project.
TEST(Outputs, AProjectThatCannotBeCreatedIsNotLeftBehind) {
  const TemporaryFolder folder;
  const auto project = folder.path() / "p.stepscope";
  const std::string train =
      fmt::format("{} train {} --steps 1 --project {} >/dev/null 2>&1", SS_PROGRAM, kDigits, project.string());
  EXPECT_EQ(WEXITSTATUS(std::system(("ulimit -f 40; " + train).c_str())), 1);
  EXPECT_FALSE(std::filesystem::exists(project));
  // What was there stays, whatever it is.
  folder.write("p.stepscope", "");
  EXPECT_EQ(WEXITSTATUS(std::system(("ulimit -f 40; " + train).c_str())), 1);
  EXPECT_TRUE(std::filesystem::exists(project));
  const Answer empty = run("inspect " + folder.write("q.stepscope", "").string(), folder.path());
  EXPECT_EQ(empty.exitCode, 1);
  EXPECT_NE(empty.text.find("nothing was recorded in it"), std::string::npos) << empty.text;
  EXPECT_EQ(std::system(train.c_str()), 0);
}

// A disk that is full until the end has room for how the run ended and what is not recorded of it.
TEST(Outputs, AFullDiskStillHoldsWhatWasLost) {
  const TemporaryFolder folder;
  const std::string disk = folder.path().string();
  const std::string mount = "unshare -rm sh -c 'mount -t tmpfs -o size=2m tmpfs " + disk + " && ";
  if (std::system((mount + "true' >/dev/null 2>&1").c_str()) != 0) GTEST_SKIP() << "this machine lets nobody mount a tmpfs";
  const std::string project = disk + "/p.stepscope";
  const TemporaryFolder elsewhere;
  const std::string report = (elsewhere.path() / "p.txt").string();
  const std::string script = fmt::format(
      "{}({} train {} --steps 20000 --project {}; echo exit $?; {} sql {} \"SELECT what, last_step, reason FROM lost\"; "
      "{} sql {} \"SELECT status, message FROM runs\"; {} inspect {}; {} report {} -o {}; cat {}) 2>&1'",
      mount, SS_PROGRAM, kDigits, project, SS_PROGRAM, project, SS_PROGRAM, project, SS_PROGRAM, project, SS_PROGRAM,
      project, report, report);
  std::string text;
  FILE* pipe = popen(script.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  for (std::array<char, 4096> part; fgets(part.data(), part.size(), pipe) != nullptr;) text += part.data();
  pclose(pipe);
  const std::string end = text.substr(text.size() - std::min<std::size_t>(text.size(), 1500));
  EXPECT_NE(text.find("exit 1"), std::string::npos) << end;
  EXPECT_TRUE(std::regex_search(text, std::regex("steps +19999 +.*full"))) << end;
  EXPECT_NE(text.find("finished"), std::string::npos) << end;
  EXPECT_TRUE(std::regex_search(text, std::regex("finished +[0-9]+, [0-9]+ lost"))) << end;
  EXPECT_TRUE(std::regex_search(text, std::regex("[0-9,]+ more ran and are not recorded"))) << end;
}

TEST(Loss, ThatIsNotFiniteIsSaid) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string();
  const Answer answer = run("train " + kDigits + " --steps 20 --lr 1e30 --project " + project, folder.path());
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  EXPECT_NE(answer.text.find("warning: loss of step 1: nan"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("error: loss: not finite in 19 steps, first in step 1"), std::string::npos) << answer.text;
  const Answer sql =
      run("sql " + project + " \"SELECT status, message FROM runs UNION SELECT code, step FROM alerts\"", folder.path());
  EXPECT_NE(sql.text.find("loss: not finite in 19 steps, first in step 1"), std::string::npos) << sql.text;
  EXPECT_TRUE(std::regex_search(sql.text, std::regex("loss_not_finite +1\n"))) << sql.text;
}

}  // namespace
}  // namespace stepscope::testing
