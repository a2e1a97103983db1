// A step takes its memory from the plan: arena, workspaces, state. What the heap gives besides is counted here, per kernel.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/step/stepper.h"
#include "engine/train/session.h"
#include "tests/engine/exec/heap_count.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

using testing::heapTaken;
using testing::Taker;
using testing::TestModel;

// What is taken all the same, and why:
//   oneDNN    puts the arguments of a primitive into a map of its own at every call (some hundred bytes), and its gemm packs
//   its
//             operands into memory of its own, also where a primitive with scratchpad mode user calls it.
//   OpenMP    keeps the team of the last parallel region only: one of another size makes a new one (1.6 KB).
//   Einsum    that is no matrix product falls to the reference kernel, which works its loop nest out at every call.
//   dynamic   instructions, whose extents are known only then: accounted by the executor.
bool explained(const Instruction& instruction) { return instruction.dynamic || instruction.spec().op.starts_with("Einsum"); }

class HeapOnModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(HeapOnModel, AStepTakesNothingBesideItsPlan) {
  if (!testing::heapIsCounted()) GTEST_SKIP() << "the sanitizer has the malloc family for itself";
  auto session = Session::open(GetParam().model, {}, {});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  for (const auto& [name, value] : std::map<std::string, std::string>{{"data", GetParam().data.string()},
                                                                      {"loss", GetParam().loss},
                                                                      {"optimizer", "adamw"},
                                                                      {"clip-grad-norm", "1"},
                                                                      {"threads", "2"}})
    ASSERT_TRUE(applySetting(options, name, value, "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  ASSERT_TRUE((*session)->build().has_value());
  ASSERT_TRUE((*session)->step().has_value());  // libraries and threads make their lasting things in the first step
  Executor& executor = (*session)->stepper().executor();
  const int count = static_cast<int>(executor.plan().instructions.size());
  std::vector<Span> spans;
  spans.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto before = heapTaken();
    ASSERT_TRUE(executor.run(i, i + 1, {.spans = &spans}).has_value());
    const auto after = heapTaken();
    const Instruction& instruction = executor.plan().instructions[static_cast<std::size_t>(i)];
    const std::string_view implementation = executor.implementation(i);
    const std::string name = fmt::format("instruction {}: {}, {}", i, instruction.spec().op, implementation);
    const auto taken = [&](Taker taker) {
      return after[static_cast<std::size_t>(taker)] - before[static_cast<std::size_t>(taker)];
    };
    if (!explained(instruction))
      EXPECT_EQ(taken(Taker::kOurs).calls, 0) << name << " took " << taken(Taker::kOurs).bytes << " bytes";
    const auto has = [&](const char* word) { return implementation.find(word) != std::string::npos; };
    if (!has("gemm")) EXPECT_LE(taken(Taker::kOneDnn).bytes, has("onednn") ? 64 << 10 : 0) << name;
    EXPECT_LE(taken(Taker::kOpenMp).bytes, 64 << 10) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HeapOnModel, ::testing::ValuesIn(testing::testModels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
