// What buffers really take: values are written whole, nothing takes more than it was planned to, and the session stays.
#include "engine/lab/buffer_bytes.h"

#include <gtest/gtest.h>

#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::TestModel;

class BufferBytesOf : public ::testing::TestWithParam<TestModel> {};

TEST_P(BufferBytesOf, AreThoseOfTheValuesThatAreWritten) {
  auto session = openSession(GetParam());
  ASSERT_TRUE(session && session->step());
  const std::string before = testing::stateBits(*session);
  const auto measured = session->lab().bufferBytes();
  ASSERT_TRUE(measured.has_value()) << measured.error().message;
  EXPECT_EQ(testing::stateBits(*session) == before, true);
  EXPECT_EQ(session->nextStep(), 1);
  const ExecutionPlan& plan = session->stepper().plan();
  ASSERT_EQ(measured->size(), plan.buffers.size());
  std::size_t large = 0, checked = 0;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.home != Home::kArena || buffer.shares >= 0) {
      EXPECT_EQ((*measured)[b], -1) << buffer.name;
      continue;
    }
    if (buffer.first < 0 || buffer.bytes == 0) continue;
    ++checked;
    EXPECT_GE((*measured)[b], 0) << buffer.name;
    EXPECT_LE((*measured)[b], buffer.bytes) << buffer.name;
    if (buffer.bufferClass == BufferClass::kWorkspace) continue;
    // What is written whole is there whole.
    large += buffer.bytes >= 1 << 16;
    EXPECT_EQ((*measured)[b], buffer.bytes) << buffer.name << " " << decisionText(plan, static_cast<int>(b));
  }
  EXPECT_GT(checked, 10u);
  EXPECT_GT(large, 0u) << "some are larger than their pages at both ends";
}

std::vector<TestModel> models() {
  std::vector<TestModel> list{testing::digits(), testing::languageModel()};
  for (TestModel& model : testing::corpusCases({"gpt2_lm"})) list.push_back(std::move(model));
  return list;
}

INSTANTIATE_TEST_SUITE_P(Models, BufferBytesOf, ::testing::ValuesIn(models()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
