// How much memory a process takes to get from a file to a step: weights are there once, and what a step reports is measured.
#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>

#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// What memory_child.cpp prints.
struct Growth {
  std::int64_t answer = -1, bytes = 0;
};
Growth growthOf(const std::filesystem::path& model, const std::string& arguments) {
  const std::string command = fmt::format("{} '{}' {}", SS_MEMORY_CHILD, model.string(), arguments);
  FILE* child = popen(command.c_str(), "r");
  EXPECT_NE(child, nullptr);
  if (!child) return {};
  Growth growth;
  EXPECT_EQ(std::fscanf(child, "%" SCNd64 " %" SCNd64, &growth.answer, &growth.bytes), 2) << command;
  EXPECT_EQ(pclose(child), 0) << command;
  return growth;
}

// loss = mean of x · w0 · w1 …: every weight takes 16 MiB.
constexpr std::int64_t kSide = 2048, kWeightBytes = kSide * kSide * 4;

onnx::ModelProto chain(int weights) {
  onnx::ModelProto model;
  const std::string text =
      "ir_version: 8 opset_import { version: 17 } graph { name: \"chain\" "
      "output { name: \"loss\" type { tensor_type { elem_type: 1 shape {} } } } "
      "node { op_type: \"ReduceMean\" input: \"y" +
      std::to_string(weights - 1) + "\" output: \"loss\" attribute { name: \"keepdims\" type: INT i: 0 } } }";
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  addInput(*model.mutable_graph(), "x", {1, kSide});
  for (int i = 0; i < weights; ++i) {
    auto* weight = model.mutable_graph()->add_initializer();
    weight->set_name("w" + std::to_string(i));
    weight->set_data_type(onnx::TensorProto_DataType_FLOAT);
    weight->add_dims(kSide);
    weight->add_dims(kSide);
    addNode(*model.mutable_graph(), "MatMul", {i == 0 ? "x" : "y" + std::to_string(i - 1), weight->name()},
            {"y" + std::to_string(i)});
  }
  return model;
}

std::string contents(int weight) {
  std::vector<float> values(static_cast<std::size_t>(kSide * kSide), 1e-3F * static_cast<float>(weight + 1));
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::filesystem::path writeInside(const TemporaryFolder& folder, int weights) {
  onnx::ModelProto model = chain(weights);
  for (int i = 0; i < weights; ++i) model.mutable_graph()->mutable_initializer(i)->set_raw_data(contents(i));
  return folder.write("m.onnx", model.SerializeAsString());
}

std::filesystem::path writeBeside(const TemporaryFolder& folder, int weights) {
  onnx::ModelProto model = chain(weights);
  std::string data;
  for (int i = 0; i < weights; ++i) {
    setExternal(*model.mutable_graph()->mutable_initializer(i), "w.bin", std::to_string(data.size()),
                std::to_string(kWeightBytes));
    data += contents(i);
  }
  folder.write("w.bin", data);
  return folder.write("m.onnx", model.SerializeAsString());
}

std::unique_ptr<Session> open(const std::filesystem::path& path, const std::map<std::string, std::string>& settings) {
  auto session = Session::open(path, {}, {});
  if (!session) return nullptr;
  TrainOptions options;
  for (const auto& [name, value] : settings)
    if (!applySetting(options, name, value, "test")) return nullptr;
  return (*session)->setOptions(options) ? std::move(*session) : nullptr;
}

TEST(Memory, WeightsAreInMemoryOnceWhenAFileIsOpen) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory counts too";
  const TemporaryFolder inside, beside;
  for (const auto& path : {writeInside(inside, 4), writeBeside(beside, 4)}) {
    const Growth growth = growthOf(path, "w3");
    EXPECT_EQ(growth.answer, kWeightBytes);
    EXPECT_GE(growth.bytes, 4 * kWeightBytes) << path;
    EXPECT_LE(growth.bytes, 5 * kWeightBytes + 16 * kMiB) << path << ": four weights, and the one that moves";
  }
}

TEST(Memory, BindingAndAStepTakeWhatThePlanSays) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory counts too";
  const TemporaryFolder folder;
  // The state, with its moments, is larger than what the ring may keep.
  const Growth growth = growthOf(writeInside(folder, 4), "step optimizer=adamw threads=1 ring.bytes=104857600");
  ASSERT_GE(growth.answer, 12 * kWeightBytes) << "weights and two moments";
  EXPECT_GE(growth.bytes, 12 * kWeightBytes);
  EXPECT_LE(growth.bytes, growth.answer + 2 * kWeightBytes);
}

// What is begun by hand and finished at once cannot be gone back into, so nothing is kept for that.
TEST(Memory, FinishingAStepByHandTakesNoMoreThanOneAtFullSpeed) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory counts too";
  const TemporaryFolder folder;
  const Growth growth = growthOf(writeInside(folder, 4), "by_hand optimizer=adamw threads=1 ring.bytes=104857600");
  EXPECT_GE(growth.bytes, 12 * kWeightBytes);
  EXPECT_LE(growth.bytes, growth.answer + 2 * kWeightBytes);
}

TEST(Memory, PeakBytesOfAStepAreMeasured) {
  const TemporaryFolder folder;
  const auto session =
      open(writeInside(folder, 1), {{"optimizer", "adamw"}, {"accumulate", "2"}, {"threads", "1"}, {"ring.bytes", "0"}});
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->build().has_value());
  const auto first = session->step(), second = session->step();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(first->updated());
  EXPECT_LE(first->peak_bytes(), first->planned_bytes() - 2 * kWeightBytes + 2 * kMiB) << "nothing has touched the moments";
  EXPECT_GE(first->peak_bytes(), 2 * kWeightBytes) << "weight and accumulated gradient";
  EXPECT_TRUE(second->updated());
  EXPECT_GE(second->peak_bytes(), first->peak_bytes() + 2 * kWeightBytes - 2 * kMiB);
  EXPECT_LE(second->peak_bytes(), second->planned_bytes() + 2 * kMiB);
}

}  // namespace
}  // namespace stepscope::testing
