// The graphs of a build: the same bytes on every run, and each of them loads again.
#include <gtest/gtest.h>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

TEST(Stages, AreTheSameOnEveryRunWhateverTheThreadsAndLoadAgain) {
  for (const char* sample : {"digits", "language_model"}) {
    SCOPED_TRACE(sample);
    const TemporaryFolder folder;
    const std::string build =
        std::string("build " SS_SAMPLES "/") + sample + "/model.onnx --optimizer adamw --clip-grad-norm 1 --save-graphs ";
    const auto first = folder.path() / "first", second = folder.path() / "second";
    ASSERT_EQ(run(build + first.string() + " --threads 1", folder.path()).exitCode, 0);
    ASSERT_EQ(run(build + second.string() + " --threads 2", folder.path()).exitCode, 0);
    int stages = 0;
    for (const auto& entry : std::filesystem::directory_iterator(first)) {
      const auto name = entry.path().filename();
      EXPECT_TRUE(contents(entry.path()) == contents(second / name)) << name << " differs: order, names or symbols changed";
      if (name.extension() != ".onnx") continue;
      for (const char* command : {"inspect ", "run "}) {
        const Answer again = run(command + entry.path().string(), folder.path());
        EXPECT_EQ(again.exitCode, 0) << command << name << ": " << again.text;
      }
      ++stages;
    }
    EXPECT_GE(stages, 8);
  }
}

}  // namespace
}  // namespace stepscope::testing
