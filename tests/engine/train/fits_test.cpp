// What does not fit is refused before the run, and before memory is taken for it.
#include "engine/plan/fits.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

// loss = mean of w expanded to `shape`.
std::string expanded(const std::string& shape, const std::string& weight) {
  return "ir_version: 8 opset_import { version: 17 } graph { name: \"wide\" "
         "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } } "
         "output { name: \"loss\" type { tensor_type { elem_type: 1 shape {} } } } "
         "initializer { name: \"w\" data_type: 1 " +
         weight +
         " } "
         "initializer { name: \"shape\" data_type: 7 dims: 2 " +
         shape +
         " } "
         "node { op_type: \"Mul\" input: \"w\" input: \"x\" output: \"p\" } "
         "node { op_type: \"Expand\" input: \"p\" input: \"shape\" output: \"wide\" } "
         "node { op_type: \"Exp\" input: \"wide\" output: \"y\" } "
         "node { op_type: \"ReduceMean\" input: \"y\" output: \"loss\" attribute { name: \"keepdims\" type: INT i: 0 } } }";
}

std::unique_ptr<Session> open(const TemporaryFolder& folder, const std::string& text) {
  onnx::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  LoadOptions load;
  load.missingWeights = LoadOptions::MissingWeights::kRandom;
  auto session = Session::open(folder.write("m.onnx", model.SerializeAsString()), load, {});
  EXPECT_TRUE(session.has_value()) << session.error().message;
  return session ? std::move(*session) : nullptr;
}

std::int64_t peakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

// The thread sanitizer takes the address space that an arena of terabytes would be reserved in.
#if defined(__SANITIZE_THREAD__)
constexpr bool kNarrow = true;
#else
constexpr bool kNarrow = false;
#endif

TEST(Fits, AStepLargerThanTheMachineIsRefusedWithItsPeakAndOwners) {
  if (kNarrow) GTEST_SKIP() << "terabytes of address space are not there";
  const TemporaryFolder folder;
  const auto session = open(folder, expanded("int64_data: 34359738368 int64_data: 8", "dims: 1 float_data: 1"));  // 1 TiB
  ASSERT_NE(session, nullptr);
  const std::int64_t before = peakBytes();
  const Status built = session->build();  // its graph and plan may be looked at
  ASSERT_TRUE(built.has_value()) << built.error().message;
  ASSERT_EQ(session->alerts().size(), 1u);
  const std::string told = session->alerts()[0].message();
  for (const char* part : {"expected at most ", "the memory of this machine", "at the peak (instruction", " bytes; hint: "})
    EXPECT_NE(told.find(part), std::string::npos) << part << " is not in " << told;
  EXPECT_GT(session->planSnapshot()->arena_bytes(), std::int64_t{1} << 39);
  const auto step = session->step();
  ASSERT_FALSE(step.has_value());
  EXPECT_EQ(step.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(step.error().message, told);
  EXPECT_FALSE(session->beginStep().has_value());
  EXPECT_FALSE(session->compareBits().has_value());
  EXPECT_LT(peakBytes() - before, 64 << 20);
}

TEST(Fits, AForwardRunIsRefusedLikewise) {
  if (kNarrow) GTEST_SKIP() << "terabytes of address space are not there";
  const TemporaryFolder folder;
  const auto session = open(folder, expanded("int64_data: 34359738368 int64_data: 8", "dims: 1 float_data: 1"));
  ASSERT_NE(session, nullptr);
  const Status built = session->buildForward({});
  ASSERT_TRUE(built.has_value()) << built.error().message;
  const auto step = session->step();
  ASSERT_FALSE(step.has_value());
  EXPECT_EQ(step.error().code, ErrorCode::kOutOfMemory);
}

TEST(Fits, WeightsThatAreNotThereAreNotFilledWhereTheyDoNotFit) {
  const TemporaryFolder folder;
  const auto session = open(
      folder,
      expanded("int64_data: 1 int64_data: 1",
               "dims: 8796093022208 data_location: EXTERNAL external_data { key: \"location\" value: \"absent.bin\" }"));
  ASSERT_NE(session, nullptr);
  const std::int64_t before = peakBytes();
  const Status built = session->build();
  ASSERT_FALSE(built.has_value());
  EXPECT_EQ(built.error().code, ErrorCode::kOutOfMemory) << built.error().message;
  EXPECT_LT(peakBytes() - before, 64 << 20);
}

TEST(Fits, WhatBindingTakesCounts) {
  ExecutionPlan plan;
  plan.signature = "x float32[1]";
  plan.persistentBytes = 1000;
  plan.arenaBytes = 500;
  const std::int64_t most = machineMemoryBytes();
  EXPECT_TRUE(checkFits(plan, 0, most - 1500).has_value());
  const Status fits = checkFits(plan, 0, most - 1499);
  ASSERT_FALSE(fits.has_value());
  EXPECT_EQ(fits.error().code, ErrorCode::kOutOfMemory);
  EXPECT_NE(fits.error().message.find("needs 1500 bytes and binding takes " + std::to_string(most - 1499) + " bytes more"),
            std::string::npos)
      << fits.error().message;
  EXPECT_TRUE(checkFits(plan, 1500, most).has_value()) << "the option limits what the plan needs";
}

TEST(Fits, TheOptionSetsAnotherLimit) {
  const TemporaryFolder folder;
  const auto session = open(folder, expanded("int64_data: 1024 int64_data: 8", "dims: 1 float_data: 1"));
  ASSERT_NE(session, nullptr);
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "memory.limit", "20000", "test").has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  const Status built = session->build();
  ASSERT_FALSE(built.has_value());
  EXPECT_NE(built.error().message.find("expected at most 20000 bytes, the option memory.limit"), std::string::npos)
      << built.error().message;
  EXPECT_GT(machineMemoryBytes(), 1 << 20);
}

}  // namespace
}  // namespace stepscope::testing
