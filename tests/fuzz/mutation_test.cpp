// Damaged models and data files: any outcome is fine but a crash, an endless loop or an unsound graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "engine/data/npy.h"
#include "engine/data/safetensors.h"
#include "engine/onnx/inliner.h"
#include "engine/onnx/tensor_pb.h"
#include "engine/onnx/writer.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/fuzz/damages.h"
#include "tests/support/yardstick.h"

namespace stepscope::testing {
namespace {

struct Outcome {
  int sound = 0, refused = 0;
  double slowest = 0;
};

void tryModel(const std::string& bytes, Outcome& outcome) {
  LoadOptions options;
  options.missingWeights = LoadOptions::MissingWeights::kRandom;
  const double start = cpuSeconds();
  auto model = parseModel(std::as_bytes(std::span(bytes)), "/nonexistent", options);
  if (model) {
    EXPECT_TRUE(model->graph.verify().empty());
    if (inlineFunctions(model->graph, model->functions)) EXPECT_TRUE(model->graph.verify().empty());
    ++outcome.sound;
  } else {
    EXPECT_FALSE(model.error().message.empty());
    ++outcome.refused;
  }
  outcome.slowest = std::max(outcome.slowest, cpuSeconds() - start);
}

// Proto text of a saved training stage, with all of our own metadata.
std::string savedStage() {
  auto model = parse(nestedFunctions(3));
  SS_CHECK(inlineFunctions(model->graph, model->functions).has_value());
  Graph& graph = model->graph;
  const ValueId state = graph.addValue("s", {ValueKind::kTensor, DType::kF32, Shape{2}}, ValueRole::kState);
  graph.mutableValue(state).data = std::make_shared<const Tensor>(DType::kF32, Dims{2});
  graph.stateUpdates.push_back({state, graph.findValue("z")});
  graph.mutableNode(graph.order()[0]).predicates = {{graph.findValue("x"), true}};
  const TemporaryFolder folder;
  SS_CHECK(writeModel(graph, folder.path() / "stage.onnx").has_value());
  return slurp(folder.path() / "stage.onnx");
}

TEST(Mutation, ModelsMadeHereNeverCrash) {
  auto constants = smallModel();
  auto* attribute = addNode(*constants.mutable_graph(), "Constant", {}, {"c"})->add_attribute();
  attribute->set_name("value_floats");
  attribute->set_type(onnx::AttributeProto::FLOATS);
  attribute->add_floats(1);
  const std::vector<std::string> seeds{smallModel().SerializeAsString(), branchingModel().SerializeAsString(),
                                       nestedFunctions(5, 2).SerializeAsString(), constants.SerializeAsString(),
                                       savedStage()};
  Outcome outcome;
  for (std::size_t seed = 0; seed < 2'500; ++seed) tryModel(damaged(seeds[seed % seeds.size()], seed), outcome);
  EXPECT_EQ(outcome.sound + outcome.refused, 2'500);
  EXPECT_GT(outcome.refused, 1'000);
  EXPECT_GT(outcome.sound, 50);  // damage that leaves a model sound is judged too
  EXPECT_LT(outcome.slowest, 10 * slowness());
}

TEST(Mutation, ExportedModelsNeverCrash) {
  const auto models = corpusModels();
  if (models.empty()) GTEST_SKIP() << "no corpus beside the source tree (STEPSCOPE_SHARED)";
  Outcome outcome;
  for (const auto& path : models) {
    if (std::filesystem::file_size(path) > 700'000) continue;  // the rest has the same shapes of messages
    const std::string bytes = slurp(path);
    for (std::uint64_t seed = 0; seed < 40; ++seed) tryModel(damaged(bytes, seed * 1'000 + bytes.size()), outcome);
  }
  EXPECT_GT(outcome.sound + outcome.refused, 600);
  EXPECT_LT(outcome.slowest, 10 * slowness());
}

TEST(Mutation, DataFilesNeverCrash) {
  const TemporaryFolder folder;
  const Tensor tensor = Tensor::ints(std::vector<std::int64_t>{1, 2, 3});
  ASSERT_TRUE(writeNpy(folder.path() / "a.npy", tensor.view()).has_value());
  ASSERT_TRUE(writeSafetensors(folder.path() / "a.safetensors", {{"a", tensor.view()}, {"b", tensor.view()}}, {{"k", "v"}})
                  .has_value());
  ASSERT_TRUE(writeTensorFile(folder.path() / "a.pb", "a", tensor.view()).has_value());
  const std::string npy = slurp(folder.path() / "a.npy"), safetensors = slurp(folder.path() / "a.safetensors"),
                    proto = slurp(folder.path() / "a.pb");
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    const std::string first = damaged(npy, seed), second = damaged(safetensors, seed), third = damaged(proto, seed);
    refused += readNpy(std::as_bytes(std::span(first))).has_value() ? 0 : 1;
    refused += parseSafetensors(std::as_bytes(std::span(second))).has_value() ? 0 : 1;
    refused += parseTensor(std::as_bytes(std::span(third)), "a.pb").has_value() ? 0 : 1;
  }
  EXPECT_GT(refused, 1'000);
}

}  // namespace
}  // namespace stepscope::testing
