// Tensors of more than 2^31 elements, files above 8 GB and 64 GB of address space: the file is sparse, so that the test
// takes neither disk nor memory.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

constexpr std::int64_t kRows = 65536, kColumns = 32784, kElements = kRows * kColumns;  // 2,148,532,224
static_assert(kElements > std::int64_t{1} << 31);
constexpr std::int64_t kFactorsAt = (kElements * 4 + 4095) / 4096 * 4096;  // bytes: beyond 8 GiB

onnx::TensorProto* addExternal(onnx::GraphProto& graph, const std::string& name, std::initializer_list<std::int64_t> dims,
                               std::int64_t offset, std::int64_t bytes) {
  auto* tensor = graph.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : dims) tensor->add_dims(extent);
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", "weights.bin"},
                                   {"offset", std::to_string(offset)},
                                   {"length", std::to_string(bytes)}}) {
    auto* entry = tensor->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return tensor;
}

void put(std::fstream& file, std::int64_t at, float value) {
  file.seekp(at);
  file.write(reinterpret_cast<const char*>(&value), sizeof(value));
}

// loss = mean(table[ids] factors), of four rows and two columns. The last row of the table begins with 3 and ends with 5,
// everything else of it is 0; factors begin with 7 and end with 11.
std::filesystem::path writeLarge(const TemporaryFolder& folder) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("large");
  auto* ids = graph.add_input();
  ids->set_name("ids");
  ids->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
  ids->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(4);
  addExternal(graph, "table", {kRows, kColumns}, 0, kElements * 4);
  addExternal(graph, "factors", {kColumns, 2}, kFactorsAt, kColumns * 2 * 4);
  addNode(graph, "Gather", {"table", "ids"}, {"rows"}, "look");
  addNode(graph, "MatMul", {"rows", "factors"}, {"y"}, "product");
  auto* mean = addNode(graph, "ReduceMean", {"y"}, {"loss"}, "mean")->add_attribute();
  mean->set_name("keepdims");
  mean->set_type(onnx::AttributeProto::INT);
  addOutput(graph, "loss");
  const auto weights = folder.path() / "weights.bin";
  std::ofstream(weights).flush();
  std::filesystem::resize_file(weights, static_cast<std::uintmax_t>(kFactorsAt + kColumns * 2 * 4));
  std::fstream file(weights, std::ios::in | std::ios::out | std::ios::binary);
  put(file, (kElements - kColumns) * 4, 3);
  put(file, (kElements - 1) * 4, 5);
  put(file, kFactorsAt, 7);
  put(file, kFactorsAt + (kColumns * 2 - 1) * 4, 11);
  return folder.write("model.onnx", model.SerializeAsString());
}

std::filesystem::path writeIds(const TemporaryFolder& folder) {
  onnx::TensorProto ids;
  ids.set_name("ids");
  ids.set_data_type(onnx::TensorProto::INT64);
  ids.add_dims(4);
  for (const std::int64_t id : {kRows - 1, std::int64_t{0}, kRows - 1, std::int64_t{1}}) ids.add_int64_data(id);
  std::filesystem::create_directory(folder.path() / "data");
  std::ofstream(folder.path() / "data" / "input_0.pb", std::ios::binary) << ids.SerializeAsString();
  return folder.path() / "data";
}

// With 64 GB of address space.
Answer runNarrow(const std::string& arguments, const TemporaryFolder& folder) {
  return runWith("ulimit -v 67108864;", arguments, folder.path());
}

nlohmann::json lastOf(const Answer& answer, const std::string& kind) {
  nlohmann::json found;
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);)
    if (auto event = nlohmann::json::parse(line, nullptr, false); event.is_object() && event.value("event", "") == kind)
      found = event;
  return found;
}

TEST(LargeTensors, AreReadWhereTheyLie) {
  const TemporaryFolder folder;
  const Answer answer = runNarrow(fmt::format("train {} --data {} --map-weights --freeze table --optimizer sgd --lr 1 "
                                              "--steps 2 --json",
                                              writeLarge(folder).string(), writeIds(folder).string()),
                                  folder);
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  const nlohmann::json step = lastOf(answer, "step");
  // First step: 2 (3 · 7 + 5 · 11) / 8 = 19. Gradients: of the two rows of factors 2 · 3 / 8 and 2 · 5 / 8 in both columns;
  // so the second loss is 19 - 2 · 2 (3 · 0.75 + 5 · 1.25) / 8.
  EXPECT_NEAR(step.at("loss"), 19 - 4 * (3 * 0.75 + 5 * 1.25) / 8, 1e-4) << answer.text;
}

TEST(LargeTensors, AreInspectedWithoutBeingRead) {
  const TemporaryFolder folder;
  const Answer answer = runWith("ulimit -v 16777216;", "inspect " + writeLarge(folder).string(), folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  EXPECT_NE(answer.text.find("2148597792 parameters"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("float32[65536, 32784]"), std::string::npos) << answer.text;
}

TEST(LargeTensors, ArePlannedWithoutMemory) {
  const TemporaryFolder folder;
  const auto model = writeLarge(folder).string();
  const Answer capacity = runNarrow(fmt::format("capacity {} --optimizer adamw --json", model), folder);
  ASSERT_EQ(capacity.exitCode, 0) << capacity.text;
  // Parameters, both moments, and the gradient of the table.
  EXPECT_NE(capacity.text.find(std::to_string(3 * (kElements + kColumns * 2) * 4)), std::string::npos) << capacity.text;
  const Answer refused = runNarrow(
      fmt::format("train {} --map-weights --optimizer adamw --set memory.limit=17179869184 --steps 1", model), folder);
  EXPECT_EQ(refused.exitCode, 1) << refused.text;
  EXPECT_NE(refused.text.find("gradient 8594"), std::string::npos) << refused.text;
  EXPECT_NE(refused.text.find("optimizer state 17188"), std::string::npos) << refused.text;
}

}  // namespace
}  // namespace stepscope::testing
