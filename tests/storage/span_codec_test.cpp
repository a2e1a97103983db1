#include "storage/span_codec.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

TEST(SpanCodec, TakesAFewBytesForASpan) {
  const auto step = testing::sampleStep(testing::samplePlan({20, 0}), 1);
  EXPECT_LT(encodeSpans(step).size(), static_cast<std::size_t>(step.spans_size()) * 12);
}

TEST(SpanCodec, SurvivesExtremeNumbers) {
  snapshot::StepRecord step;
  step.set_begin_ns(-5);
  auto* span = step.add_spans();
  span->set_instruction(2147483647);
  span->set_node(-2147483647);
  span->set_begin_ns(100);
  span->set_end_ns(50);
  const auto spans = decodeSpans(encodeSpans(step), -5).value();
  EXPECT_EQ(spans[0].instruction, 2147483647);
  EXPECT_EQ(spans[0].node, -2147483647);
  EXPECT_EQ(spans[0].ns, 0);
}

TEST(SpanCodec, RefusesTruncatedBytes) {
  const std::string bytes = encodeSpans(testing::sampleStep(testing::samplePlan({1, 0}), 0));
  EXPECT_EQ(decodeSpans(bytes.substr(0, bytes.size() - 1), 0).error().code, ErrorCode::kCorrupt);
}

TEST(SpanCodec, RandomBytesAreAnErrorOrSpans) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    (void)decodeSpans(bytes, static_cast<std::int64_t>(random()));
  }
}

}  // namespace
}  // namespace stepscope::storage
