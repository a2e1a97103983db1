// The trained model as a file of its own: the outputs of the training's weights, Dropout and statistics as in evaluation.
#include "engine/train/export_inference.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "engine/data/file.h"
#include "engine/train/forward.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::sample;
using testing::TestModel;

struct ExportInference : ::testing::Test {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("stepscope_export_" + std::to_string(getpid()));
  ExportInference() { std::filesystem::create_directories(folder); }
  ~ExportInference() override { std::filesystem::remove_all(folder); }
};

// What a model computes on the first entry of the data, by name.
std::map<std::string, Tensor> forward(const std::filesystem::path& model, const TestModel& data,
                                      const std::vector<std::string>& fetch, const std::filesystem::path& weights = {}) {
  auto session = Session::open(model, {}, {});
  EXPECT_TRUE(session.has_value()) << session.error().message;
  if (!session) return {};
  TrainOptions options;
  EXPECT_TRUE(applySetting(options, "data", data.data.string(), "test").has_value());
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  if (!weights.empty()) EXPECT_TRUE((*session)->trained().load(weights, false).has_value());
  const auto outputs = runForward(**session, fetch);
  EXPECT_TRUE(outputs.has_value()) << outputs.error().message;
  std::map<std::string, Tensor> found;
  if (outputs)
    for (const auto& [name, tensor] : *outputs) found[name] = tensor;
  return found;
}

TEST_F(ExportInference, HasTheTrainedWeightsAndNoLoss) {
  for (const char* name : {"language_model"}) {  // neither Dropout nor running statistics
    SCOPED_TRACE(name);
    const TestModel model = sample(name);
    auto session = openSession(model);
    ASSERT_NE(session, nullptr);
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(session->step().has_value());
    const auto file = folder / (std::string(name) + ".onnx"), weights = folder / (std::string(name) + ".safetensors");
    const auto exported = exportInference(*session, file);
    ASSERT_TRUE(exported.has_value()) << exported.error().message;
    ASSERT_EQ(exported->outputs.size(), 1u);
    EXPECT_NE(exported->outputs[0], model.loss);
    EXPECT_GT(exported->weights, 0u);
    ASSERT_TRUE(session->trained().save(weights).has_value());
    const auto expected = forward(model.model, model, {exported->outputs[0]}, weights), found = forward(file, model, {});
    const Tensor &a = expected.at(exported->outputs[0]), &b = found.at(exported->outputs[0]);
    ASSERT_EQ(a.dims(), b.dims());
    for (std::int64_t k = 0; k < a.elements(); ++k)
      ASSERT_NEAR(elementAsDouble(b.view(), k), elementAsDouble(a.view(), k), 1e-5) << k;
    const auto reread = Session::open(file, {}, {});
    ASSERT_TRUE(reread.has_value()) << reread.error().message;
    for (const ValueId input : (*reread)->imported().inputs())
      EXPECT_EQ((*reread)->imported().value(input).name.find("label"), std::string::npos);
  }
}

// Of the corpus: dropout, and running statistics of a network in training.
TEST_F(ExportInference, EvaluatesInsteadOfTraining) {
  const auto models = testing::corpusCases({"gpt2_dropout", "resnet"});
  if (models.empty()) GTEST_SKIP() << "the corpus is not there";
  for (const TestModel& model : models) {
    SCOPED_TRACE(model.name);
    auto session = openSession(model);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->step().has_value());
    const auto file = folder / (model.name + ".onnx");
    const auto exported = exportInference(*session, file);
    ASSERT_TRUE(exported.has_value()) << exported.error().message;
    auto reread = Session::open(file, {}, {});
    ASSERT_TRUE(reread.has_value()) << reread.error().message;
    const Graph& graph = (*reread)->imported();
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (node.op == "Dropout") EXPECT_EQ(node.inputs.size(), 1u) << node.name;
      if (node.op != "BatchNormalization") continue;
      EXPECT_EQ(node.attrs.integer("training_mode", 0), 0) << node.name;
      EXPECT_EQ(node.outputs.size(), 1u) << node.name;
      // The statistics are those of the step, not the file's.
      const std::string& mean = graph.value(node.input(3)).name;
      const TensorView trained = session->trained().named(false).at(mean);
      for (std::int64_t k = 0; k < trained.elements(); ++k)
        ASSERT_EQ(elementAsDouble(graph.value(node.input(3)).data->view(), k), elementAsDouble(trained, k)) << mean;
    }
    const auto once = forward(file, model, {}), twice = forward(file, model, {});
    const Tensor &a = once.at(exported->outputs[0]), &b = twice.at(exported->outputs[0]);
    for (std::int64_t k = 0; k < a.elements(); ++k) {
      ASSERT_TRUE(std::isfinite(elementAsDouble(a.view(), k)));
      ASSERT_EQ(elementAsDouble(a.view(), k), elementAsDouble(b.view(), k));
    }
  }
}

// Branches are bodies of If again: the same numbers for every entry of the data, whichever branch it takes.
TEST_F(ExportInference, BranchesAreBodiesOfIfAgain) {
  const auto models = testing::corpusCases({"branching"});
  if (models.empty()) GTEST_SKIP() << "the corpus is not there";
  auto session = openSession(models.front());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->step().has_value());
  const auto file = folder / "branching.onnx", weights = folder / "weights.safetensors";
  const auto exported = exportInference(*session, file);
  ASSERT_TRUE(exported.has_value()) << exported.error().message;
  ASSERT_TRUE(session->trained().save(weights).has_value());
  const auto bytes = readWholeFile(file, 1 << 30, "model");
  ASSERT_TRUE(bytes.has_value());
  const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  EXPECT_NE(text.find("then_branch"), std::string::npos);
  const auto expected = forward(models.front().model, models.front(), exported->outputs, weights),
             found = forward(file, models.front(), {});
  for (const std::string& name : exported->outputs) {
    ASSERT_TRUE(expected.contains(name) && found.contains(name)) << name;
    const Tensor &a = expected.at(name), &b = found.at(name);
    ASSERT_EQ(a.dims(), b.dims());
    for (std::int64_t k = 0; k < a.elements(); ++k)
      ASSERT_NEAR(elementAsDouble(b.view(), k), elementAsDouble(a.view(), k), 1e-5) << name << " " << k;
  }
}

TEST_F(ExportInference, APlaceThatCannotBeWrittenIsSaid) {
  auto session = openSession(sample("digits"));
  ASSERT_NE(session, nullptr);
  const auto exported = exportInference(*session, folder / "none" / "model.onnx");
  ASSERT_FALSE(exported.has_value());
  EXPECT_NE(exported.error().message.find("model.onnx"), std::string::npos) << exported.error().message;
}

}  // namespace
}  // namespace stepscope
