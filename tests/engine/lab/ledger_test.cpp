// The ledger of a step: its lines sum to the plan's operations and bytes and to the step's time, exactly, on every model;
// what it calls padding, ignored and computed again is that.
#include "engine/lab/ledger.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::TestModel;

// Of the second step.
Result<Ledger> ledgerAfterTwo(Session& session, snapshot::StepRecord& record) {
  SS_TRY(session.step());
  SS_ASSIGN(record, session.step());
  std::map<std::string, std::string> values;
  for (const snapshot::Option& option : session.optionList()) values[option.name()] = option.value();
  const Stepper& stepper = session.stepper();
  return ledgerOf({&stepper.graph(), &stepper.plan(), &record, &stepper.step().density, &stepper.step().keptRows,
                   &stepper.batch(), nullptr, [&](std::string_view option) { return values[std::string(option)]; }, "m"});
}

class LedgerOfModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(LedgerOfModel, SumsExactlyToTheStep) {
  const auto session = openSession(GetParam(), {{"threads", "1"}});
  ASSERT_TRUE(session);
  snapshot::StepRecord record;
  const auto ledger = ledgerAfterTwo(*session, record);
  ASSERT_TRUE(ledger.has_value()) << ledger.error().message;
  LedgerFlops flops;
  std::int64_t all = 0, bytes = 0;
  for (const auto& span : record.spans()) {
    const Instruction& instruction = session->stepper().plan().instructions[static_cast<std::size_t>(span.instruction())];
    if (instruction.view) continue;
    all += std::llround(instruction.flops);
    bytes += instruction.bytesRead + instruction.bytesWritten;
  }
  const LedgerLine total = ledger->total();
  EXPECT_EQ(total.flops.total(), all);
  EXPECT_EQ(total.bytes.total(), bytes);
  EXPECT_EQ(total.time.total(), record.ns());
  for (const LedgerLine& line : ledger->lines) {
    for (const std::int64_t part : {line.flops.useful, line.flops.padding, line.flops.ignored, line.flops.recomputed,
                                    line.bytes.total(), line.time.kernel, line.time.gap, line.time.waiting})
      EXPECT_GE(part, 0) << line.label;
  }
  for (const char* column : {"phase", "module", "op", "source"}) {
    LedgerLine sum;
    for (const LedgerLine& line : groupedBy(*ledger, column)) sum.add(line);
    EXPECT_EQ(sum.flops.total(), all) << column;
    EXPECT_EQ(sum.bytes.total(), bytes) << column;
    EXPECT_EQ(sum.time.total(), record.ns()) << column;
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, LedgerOfModel, ::testing::ValuesIn(testing::testModels()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Further, LedgerOfModel, ::testing::ValuesIn(testing::furtherModels()),
                         [](const auto& info) { return info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LedgerOfModel);

std::optional<TestModel> bert() {
  const auto models = testing::corpusCases({"bert_mlm"});
  return models.empty() ? std::nullopt : std::optional(models.front());
}

TEST(Ledger, PaddingIsWhatEliminatePaddingLeavesOut) {
  const auto model = bert();
  if (!model) GTEST_SKIP() << "no corpus";
  snapshot::StepRecord record;
  const auto whole = openSession(*model), packed = openSession(*model, {{"pass.eliminate_padding", "on"}});
  ASSERT_TRUE(whole && packed);
  const auto before = ledgerAfterTwo(*whole, record), after = ledgerAfterTwo(*packed, record);
  ASSERT_TRUE(before && after);
  const LedgerFlops a = before->total().flops, b = after->total().flops;
  EXPECT_GT(a.padding, a.total() / 10);
  EXPECT_LT(b.padding, a.padding / 2);
  EXPECT_LT(b.total(), a.total() - a.padding / 2);
  ASSERT_FALSE(before->advice.empty());
  const auto names = [](const Ledger& ledger, std::string_view option) {
    return std::ranges::any_of(ledger.advice, [&](const LedgerAdvice& advice) { return advice.option == option; });
  };
  EXPECT_TRUE(names(*before, "pass.eliminate_padding"));
  EXPECT_FALSE(names(*after, "pass.eliminate_padding"));
  for (const LedgerAdvice& advice : before->advice) EXPECT_LT(advice.gainNs, static_cast<double>(before->ns));
}

// 64 tokens of 64 channels: [B, S, C] are rows, [B, H, S, S] pairs, by what made them.
TEST(Ledger, AsManyChannelsAsTokensAreNoPairs) {
  const auto session = openSession(testing::sample("padding"));
  ASSERT_TRUE(session);
  snapshot::StepRecord record;
  const auto ledger = ledgerAfterTwo(*session, record);
  ASSERT_TRUE(ledger.has_value()) << ledger.error().message;
  const Tensor& mask = session->stepper().batch().arrays.at("attention_mask");
  const std::int64_t rows = mask.dims()[0], length = mask.dims()[1];
  double tokens = 0, pairs = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    double valid = 0;
    for (std::int64_t k = 0; k < length; ++k) valid += elementAsDouble(mask.view(), row * length + k);
    tokens += valid / static_cast<double>(rows * length);
    pairs += valid * valid / static_cast<double>(rows * length * length);
  }
  ASSERT_GT(tokens - pairs, 0.1);
  int ofTokens = 0, ofPairs = 0;
  for (const LedgerLine& line : ledger->lines) {
    if (line.flops.total() < 1000000) continue;
    const bool scores = line.module.ends_with(".attention.scores") || line.module.ends_with(".attention.mix") ||
                        line.op.find("Softmax") != std::string::npos;
    (scores ? ofPairs : ofTokens) += 1;
    EXPECT_NEAR(static_cast<double>(line.flops.useful) / static_cast<double>(line.flops.total()), scores ? pairs : tokens,
                1e-6)
        << line.label << " of " << line.module;
  }
  EXPECT_GE(ofTokens, 10);
  EXPECT_GE(ofPairs, 10);
}

TEST(Ledger, IgnoredRowsAreWhatSparseLabelsLeavesOut) {
  const auto model = bert();
  if (!model) GTEST_SKIP() << "no corpus";
  snapshot::StepRecord record;
  const auto whole = openSession(*model), sparse = openSession(*model, {{"pass.sparse_labels", "on"}});
  ASSERT_TRUE(whole && sparse);
  const auto before = ledgerAfterTwo(*whole, record), after = ledgerAfterTwo(*sparse, record);
  ASSERT_TRUE(before && after);
  EXPECT_GT(before->total().flops.ignored, 0);
  EXPECT_LT(after->total().flops.ignored, before->total().flops.ignored / 2);
}

TEST(Ledger, WhatRunsAgainIsRecomputed) {
  snapshot::StepRecord record;
  const auto session = openSession(testing::languageModel(), {{"recompute.budget", "1"}});
  ASSERT_TRUE(session);
  const auto ledger = ledgerAfterTwo(*session, record);
  ASSERT_TRUE(ledger.has_value()) << ledger.error().message;
  std::int64_t again = 0;
  for (const LedgerLine& line : ledger->lines) {
    EXPECT_EQ(line.flops.recomputed > 0, line.phase == "recompute" && line.flops.total() > 0) << line.label;
    again += line.flops.recomputed;
  }
  EXPECT_GT(again, 0);
}

TEST(Ledger, AStepWithoutTimesIsAnError) {
  const auto session = openSession(testing::digits(), {{"record", "steps"}});
  ASSERT_TRUE(session);
  snapshot::StepRecord record;
  const auto ledger = ledgerAfterTwo(*session, record);
  ASSERT_FALSE(ledger.has_value());
  EXPECT_NE(ledger.error().message.find("record=instructions"), std::string::npos) << ledger.error().message;
}

}  // namespace
}  // namespace stepscope
