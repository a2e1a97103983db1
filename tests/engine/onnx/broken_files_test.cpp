// Broken models: each gives its own typed error, soon and without taking memory.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "engine/data/limits.h"
#include "tests/engine/onnx/broken_models.h"
#include "tests/support/yardstick.h"

namespace stepscope::testing {
namespace {

class BrokenFile : public ::testing::TestWithParam<BrokenModel> {};

// Peak of this process so far; meaningful because every test runs in a process of its own under ctest.
std::int64_t peakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST_P(BrokenFile, GivesItsTypedErrorWithinTimeAndMemory) {
  const TemporaryFolder outer;
  const std::filesystem::path folder = outer.path() / "model";
  prepareExternalFiles(outer);
  const std::string bytes = GetParam().bytes();
  const std::int64_t idle = peakBytes();
  const double start = cpuSeconds();
  const auto model = parse(bytes, folder);
  const double seconds = cpuSeconds() - start;
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(errorCodeName(model.error().code), errorCodeName(GetParam().code)) << model.error().message;
  EXPECT_NE(model.error().message.find(GetParam().text), std::string::npos) << model.error().message;
  EXPECT_LE(seconds, (kSanitized ? 10.0 : 1.0) * slowness());
  if (!kSanitized) EXPECT_LE(peakBytes() - idle, 256 * limits::kMiB);
}

INSTANTIATE_TEST_SUITE_P(Model, BrokenFile, ::testing::ValuesIn(brokenModels()),
                         [](const auto& info) { return info.param.name; });

TEST(BrokenFile, ThereAreAtLeastEighty) { EXPECT_GE(brokenModels().size(), 80u); }

TEST(BrokenFile, PathThatDoesNotExistIsNotFound) {
  EXPECT_EQ(loadModel("/nonexistent/model.onnx").error().code, ErrorCode::kNotFound);
}

TEST(BrokenFile, FolderIsNoModel) {
  const TemporaryFolder folder;
  EXPECT_EQ(loadModel(folder.path()).error().code, ErrorCode::kInvalidArgument);
}

TEST(BrokenFile, PipeIsRefusedWithoutWaiting) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe.onnx";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(loadModel(pipe).error().code, ErrorCode::kInvalidArgument);
}

TEST(BrokenFile, AllProblemsAreListedNotTheFirst) {
  auto model = smallModel();
  addNode(*model.mutable_graph(), "Add", {"nowhere", "y"}, {"y"}, "one");
  addNode(*model.mutable_graph(), "", {"y"}, {"q"}, "two");
  model.mutable_graph()->mutable_initializer(0)->add_float_data(1);
  std::vector<Problem> problems;
  ASSERT_FALSE(parse(model, "/nonexistent", {}, &problems).has_value());
  ASSERT_EQ(problems.size(), 4u);
  EXPECT_NE(problems[0].where.find("'w'"), std::string::npos);
  EXPECT_NE(problems[1].message.find("defined twice"), std::string::npos);
}

TEST(BrokenFile, ProblemsBeyondTheKeptOnesAreCounted) {
  auto model = smallModel();
  for (int i = 0; i < 2000; ++i) addNode(*model.mutable_graph(), "Relu", {"missing"}, {"out" + std::to_string(i)});
  std::vector<Problem> problems;
  const auto loaded = parse(model, "/nonexistent", {}, &problems);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(problems.size(), limits::kProblemsKept);
  EXPECT_NE(loaded.error().message.find("1997 more problems"), std::string::npos) << loaded.error().message;
}

}  // namespace
}  // namespace stepscope::testing
