// What kept stages hold of the weights: the contents of the file, whatever was trained since.
#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "engine/onnx/reader.h"
#include "engine/onnx/writer.h"
#include "engine/step/values.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/sessions.h"

namespace stepscope::testing {
namespace {

using Contents = std::map<std::string, std::string>;

std::string bytesOf(const TensorView& view) { return {static_cast<const char*>(view.data), view.bytes()}; }

// Bytes of what the values of a graph begin with, or why they are not there; names are behind `prefix`.
void collect(const Graph& graph, const std::string& prefix, Contents& contents) {
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    const Value& value = graph.value(ValueId{static_cast<std::int32_t>(i)});
    if (!graph.alive(value.id) || !value.data || value.data.dtype() == DType::kString) continue;
    const auto read = value.data.read();
    contents[prefix + value.name.str()] = read ? bytesOf(read->view()) : "error: " + read.error().message;
  }
}

Contents contentsOfStages(const Session& session) {
  Contents contents;
  for (const Stage& stage : session.plans().stages()) collect(*stage.graph, stage.phase + ": ", contents);
  return contents;
}

class KeptContents : public ::testing::TestWithParam<TestModel> {};

// Steps at full speed and by hand, an edit of a parameter, a way back: no kept stage sees any of it.
TEST_P(KeptContents, TrainingLeavesThemAsTheyAreInTheFile) {
  auto session = openSession(GetParam());
  ASSERT_NE(session, nullptr);
  const auto file = loadModel(GetParam().model);
  ASSERT_TRUE(file.has_value());
  Contents expected;
  collect(file->graph, "load: ", expected);
  const Contents before = contentsOfStages(*session);
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(session->step().has_value());
  ASSERT_TRUE(session->beginStep().has_value());
  for (const ValueId id : session->plans().step()->trained)
    ASSERT_TRUE(editValue(session->stepper(), id, {}, 0.25, true).has_value());
  ASSERT_TRUE(session->runTo(session->stepper().count()).has_value());
  EXPECT_TRUE(contentsOfStages(*session) == before);
  ASSERT_TRUE(session->finishStep().has_value());
  ASSERT_FALSE(session->ring().empty());
  ASSERT_TRUE(session->rewind(session->ring().front()).has_value());
  ASSERT_TRUE(session->step().has_value());
  const Contents after = contentsOfStages(*session);
  EXPECT_TRUE(after == before);
  for (const auto& [name, bytes] : expected) {
    ASSERT_TRUE(after.contains(name)) << name;
    EXPECT_TRUE(after.at(name) == bytes) << name;
  }
  bool trained = false;
  for (const auto& [name, view] : session->trained().named(false))
    if (const auto it = expected.find("load: " + name); it != expected.end()) trained |= it->second != bytesOf(view);
  EXPECT_TRUE(trained) << "a test that trains nothing shows nothing";
}

INSTANTIATE_TEST_SUITE_P(Models, KeptContents, ::testing::ValuesIn(testModels()),
                         [](const auto& info) { return info.param.name; });

// loss = mean of x · w · frozen; both weights are large enough to be taken over, and so is a table of numbers that nobody
// trains.
class LargeWeights : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::int64_t kSide = 64;

  static std::string contents(int weight) {
    std::vector<float> values(static_cast<std::size_t>(kSide * kSide));
    std::iota(values.begin(), values.end(), static_cast<float>(weight));
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }

  std::filesystem::path write() const {
    onnx::ModelProto model;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "ir_version: 8 opset_import { version: 17 } graph { name: \"two\" "
        "output { name: \"loss\" type { tensor_type { elem_type: 1 shape {} } } } }",
        &model));
    onnx::GraphProto& graph = *model.mutable_graph();
    addInput(graph, "x", {2, kSide});
    addNode(graph, "MatMul", {"x", "w"}, {"y"});
    addNode(graph, "MatMul", {"y", "frozen"}, {"z"});
    auto* attribute = addNode(graph, "ReduceMean", {"z"}, {"loss"})->add_attribute();
    attribute->set_name("keepdims");
    attribute->set_type(onnx::AttributeProto::INT);
    std::string data;
    for (const char* name : {"w", "frozen"}) {
      auto* weight = graph.add_initializer();
      weight->set_name(name);
      weight->set_data_type(onnx::TensorProto_DataType_FLOAT);
      weight->add_dims(kSide);
      weight->add_dims(kSide);
      if (GetParam())
        setExternal(*weight, "w.bin", std::to_string(data.size()), std::to_string(contents(0).size()));
      else
        weight->set_raw_data(contents(graph.initializer_size()));
      data += contents(graph.initializer_size());
    }
    folder_.write("w.bin", data);
    return folder_.write("m.onnx", model.SerializeAsString());
  }
  std::filesystem::path weightsFile() const { return folder_.path() / (GetParam() ? "w.bin" : "m.onnx"); }

  std::unique_ptr<Session> trainedSession(const std::map<std::string, std::string>& settings = {}) const {
    std::map<std::string, std::string> all = settings;
    all.insert({{"freeze", "frozen"}, {"optimizer", "sgd"}, {"threads", "1"}});
    auto session = Session::open(write(), {}, {});
    TrainOptions options;
    for (const auto& [name, value] : all) EXPECT_TRUE(applySetting(options, name, value, "test").has_value());
    if (!session || !(*session)->setOptions(options) || !(*session)->build()) return nullptr;
    for (int step = 0; step < 2; ++step)
      if (!(*session)->step()) return nullptr;
    return std::move(*session);
  }
  static InitialContents initial(const Session& session, const std::string& name) {
    return session.imported().value(session.imported().findValue(name)).data;
  }
  static std::string state(const Session& session, const std::string& name) {
    return bytesOf(session.trained().named(false).at(name));
  }

  TemporaryFolder folder_;
};

TEST_P(LargeWeights, AreInMemoryOnceAndReadAgainFromTheFile) {
  const auto session = trainedSession();
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(initial(*session, "w").inMemory(), nullptr) << "the state has the memory";
  ASSERT_NE(initial(*session, "frozen").inMemory(), nullptr);
  EXPECT_EQ(initial(*session, "frozen").inMemory()->data(), session->trained().named(false).at("frozen").data);
  EXPECT_NE(state(*session, "w"), contents(1));
  EXPECT_EQ(state(*session, "frozen"), contents(2));
  const auto w = initial(*session, "w").read();
  ASSERT_TRUE(w.has_value()) << w.error().message;
  EXPECT_EQ(bytesOf(w->view()), contents(1));
}

TEST_P(LargeWeights, AreSavedWithAStageAsTheyBegan) {
  const auto session = trainedSession();
  ASSERT_NE(session, nullptr);
  const auto saved = folder_.path() / "stage.onnx";
  ASSERT_TRUE(writeModel(*session->plans().stages().front().graph, saved).has_value());
  const auto again = loadModel(saved);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(bytesOf(again->graph.value(again->graph.findValue("w")).data->view()), contents(1));
}

// A frozen weight stays the file's until somebody writes to it.
TEST_P(LargeWeights, AreGivenUpWhenAPersonEditsThem) {
  const auto session = trainedSession();
  ASSERT_NE(session, nullptr);
  const ValueId frozen = session->findValue("frozen");
  ASSERT_TRUE(editValue(session->stepper(), frozen, {}, 0.5, true).has_value());
  EXPECT_NE(state(*session, "frozen"), contents(2));
  const auto read = initial(*session, "frozen").read();
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(bytesOf(read->view()), contents(2));
}

TEST_P(LargeWeights, AreNotAvailableWhereTheFileChanged) {
  const auto session = trainedSession();
  ASSERT_NE(session, nullptr);
  const auto time = std::filesystem::last_write_time(weightsFile());
  std::filesystem::last_write_time(weightsFile(), time + std::chrono::seconds(1));
  auto read = initial(*session, "w").read();
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(
      read.error().message,
      fmt::format("the contents that it began with were trained since and are not available any more: initializer 'w': "
                  "file '{}': changed since it was opened; expected it as it was",
                  weightsFile().filename().string()));
  EXPECT_TRUE(initial(*session, "frozen").read().has_value()) << "nobody wrote to these";
  std::filesystem::remove(weightsFile());
  read = initial(*session, "w").read();
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("No such file"), std::string::npos) << read.error().message;
  const auto saved = writeModel(*session->plans().stages().front().graph, folder_.path() / "stage.onnx");
  ASSERT_FALSE(saved.has_value());
  EXPECT_NE(saved.error().message.find("value 'w': "), std::string::npos) << saved.error().message;
  ASSERT_TRUE(session->step().has_value()) << "who trains needs no file";
}

// Other trained sets and types are builds of the same file: what is trained goes on, what is kept stays.
TEST_P(LargeWeights, StayOverBuildsWithOtherOptions) {
  const auto session = trainedSession();
  ASSERT_NE(session, nullptr);
  const std::string before = state(*session, "w");
  for (const auto& [name, value] : std::map<std::string, std::string>{{"freeze", ""}, {"precision", "bf16"}}) {
    TrainOptions options = session->options();
    ASSERT_TRUE(applySetting(options, name, value, "test").has_value());
    ASSERT_TRUE(session->setOptions(options).has_value());
    ASSERT_TRUE(session->build().has_value());
    EXPECT_EQ(state(*session, "w"), before) << name;
  }
  ASSERT_TRUE(session->step().has_value());
  EXPECT_NE(state(*session, "frozen"), contents(2)) << "it is trained now";
  for (const auto& [name, bytes] : contentsOfStages(*session)) {
    if (name == "load: w") EXPECT_EQ(bytes, contents(1));
    if (name == "load: frozen") EXPECT_EQ(bytes, contents(2));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, LargeWeights, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Beside" : "Inside"; });

// Two initializers of one range of a file are two parameters, whose memory is not shared once they are trained.
TEST(TwinWeights, OfOneRangeAreTrainedApart) {
  const TemporaryFolder folder;
  constexpr std::int64_t kSide = 64;
  const std::vector<float> values(static_cast<std::size_t>(kSide * kSide), 0.5F);
  const std::string data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  onnx::ModelProto model;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "ir_version: 8 opset_import { version: 17 } graph { name: \"twins\" "
      "output { name: \"loss\" type { tensor_type { elem_type: 1 shape {} } } } }",
      &model));
  onnx::GraphProto& graph = *model.mutable_graph();
  addInput(graph, "x", {2, kSide});
  for (const char* name : {"a", "b"}) {
    auto* weight = graph.add_initializer();
    weight->set_name(name);
    weight->set_data_type(onnx::TensorProto_DataType_FLOAT);
    weight->add_dims(kSide);
    weight->add_dims(kSide);
    setExternal(*weight, "w.bin", "0", std::to_string(data.size()));
  }
  folder.write("w.bin", data);
  addNode(graph, "MatMul", {"x", "a"}, {"y"});
  addNode(graph, "MatMul", {"y", "b"}, {"z"});
  auto* attribute = addNode(graph, "ReduceMean", {"z"}, {"loss"})->add_attribute();
  attribute->set_name("keepdims");
  attribute->set_type(onnx::AttributeProto::INT);
  auto session = Session::open(folder.write("m.onnx", model.SerializeAsString()), {}, {});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  ASSERT_TRUE((*session)->build().has_value());
  ASSERT_TRUE((*session)->step().has_value());
  const auto trained = (*session)->trained().named(false);
  EXPECT_NE(trained.at("a").data, trained.at("b").data);
  EXPECT_NE(bytesOf(trained.at("a")), bytesOf(trained.at("b"))) << "their gradients differ";
}

}  // namespace
}  // namespace stepscope::testing
