#include "engine/onnx/writer.h"

#include <gtest/gtest.h>

#include "engine/onnx/inliner.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

std::string describe(const Graph& graph);

std::string describe(const Graph& graph, const Node& node) {
  std::string text = std::to_string(node.id.index) + " " + node.label() + " v" + std::to_string(node.sinceVersion) + " " +
                     std::string(phaseName(node.phase)) + " (";
  for (const ValueId id : node.inputs) text += (id ? graph.value(id).name.str() : "-") + ",";
  text += ")->(";
  for (const ValueId id : node.outputs) text += (id ? graph.value(id).name.str() : "-") + ",";
  text += ")";
  for (const Predicate& predicate : node.predicates)
    text += (predicate.expected ? " if " : " unless ") + graph.value(predicate.condition).name;
  const Provenance& p = node.provenance;
  text += " " + std::string(p.pass) + " " + std::string(p.modulePath) + (p.modulePathInferred ? "*" : "") + " " +
          std::string(p.sourceFile) + ":" + std::to_string(p.sourceLine) + " " + std::string(p.sourceCode);
  text += " imported " + std::to_string(p.imported.index) + " forward " + std::to_string(p.forward.index);
  for (const NodeId source : p.sources) text += " from " + std::to_string(source.index);
  for (const auto& [name, subgraph] : node.subgraphs) text += "\n{" + name + "\n" + describe(*subgraph) + "}";
  return text;
}

// Everything of a graph that a saved stage must bring back, as text; contents of tensors apart.
std::string describe(const Graph& graph) {
  std::string text;
  for (const ValueId id : graph.inputs()) text += "in " + graph.value(id).name + " " + graph.value(id).type.text() + "\n";
  for (const NodeId id : graph.order()) text += describe(graph, graph.node(id)) + "\n";
  for (std::size_t i = 0; i < graph.nodeCapacity(); ++i)
    if (const Node& node = graph.node(NodeId{static_cast<std::int32_t>(i)}); !graph.alive(node.id))
      text += "removed " + std::to_string(i) + " " + node.label() + " " + std::string(node.provenance.pass) + " " +
              std::string(node.provenance.modulePath) + "\n";
  for (const ValueId id : graph.outputs()) text += "out " + graph.value(id).name + " " + graph.value(id).type.text() + "\n";
  for (const StateUpdate& update : graph.stateUpdates)
    text += graph.value(update.state).name + " := " + graph.value(update.next).name + "\n";
  return text;
}

void expectSame(const Graph& a, const Graph& b, const std::string& what) {
  EXPECT_EQ(describe(a), describe(b)) << what;
  for (std::size_t i = 0; i < a.valueCapacity(); ++i) {
    const Value& value = a.value(ValueId{static_cast<std::int32_t>(i)});
    if (!a.alive(value.id) || value.role == ValueRole::kNodeOutput) continue;
    const ValueId other = b.findValue(value.name);
    ASSERT_TRUE(other.valid()) << what << " " << value.name;
    EXPECT_EQ(static_cast<int>(b.value(other).role), static_cast<int>(value.role)) << what << " " << value.name;
    ASSERT_EQ(b.value(other).data != nullptr, value.data != nullptr) << what << " " << value.name;
    if (value.data)
      EXPECT_EQ(Attributes({{"value", *value.data}}), Attributes({{"value", *b.value(other).data}}))
          << what << " " << value.name;
  }
  for (const NodeId id : a.order()) EXPECT_EQ(a.node(id).attrs, b.node(id).attrs) << what << " " << a.node(id).label();
}

Result<LoadedModel> load(const std::filesystem::path& path) {
  LoadOptions options;
  options.missingWeights = LoadOptions::MissingWeights::kRandom;
  return loadModel(path, options);
}

void expectRoundTrip(const Graph& graph, const std::string& what, const WriteOptions& options = {}) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "stage.onnx";
  const auto written = writeModel(graph, path, options);
  ASSERT_TRUE(written.has_value()) << what << written.error().message;
  const auto loaded = load(path);
  ASSERT_TRUE(loaded.has_value()) << what << loaded.error().message;
  expectSame(graph, loaded->graph, what);
}

TEST(Writer, SmallModelReadsBack) { expectRoundTrip(parse(smallModel())->graph, "small"); }

TEST(Writer, SubgraphsReadBack) { expectRoundTrip(parse(branchingModel())->graph, "branching"); }

TEST(Writer, InlinedFunctionsKeepTheirLineage) {
  auto model = parse(nestedFunctions(3));
  ASSERT_TRUE(inlineFunctions(model->graph, model->functions).has_value());
  expectRoundTrip(model->graph, "inlined");
}

TEST(Writer, StagesOfATrainingGraphReadBack) {
  Graph graph = std::move(parse(smallModel())->graph);
  graph.setPass("optimizer");
  const ValueId moment = graph.addValue("w.momentum", {ValueKind::kTensor, DType::kF32, Shape{3, 3}}, ValueRole::kState);
  graph.mutableValue(moment).data = std::make_shared<const Tensor>(DType::kF32, Dims{3, 3});
  const ValueId rate = graph.addConstant("rate", Tensor::scalar(DType::kF32, 0.1));
  const ValueId finite = graph.addValue("finite", {ValueKind::kTensor, DType::kBool, Shape{}}, ValueRole::kInput);
  graph.mutableInputs().push_back(finite);
  const ValueId weight = graph.findValue("w");
  const NodeId update = graph.addNode("update", "stepscope", "SgdUpdate", {weight, weight, moment, rate},
                                      {"w.next", "w.momentum.next"}, {{"momentum", 0.9f}, {"nesterov", std::int64_t{1}}});
  Node& node = graph.mutableNode(update);
  node.phase = Phase::kOptimizer;
  node.predicates = {{finite, true}};
  node.provenance.sources = {NodeId{0}};
  node.provenance.forward = NodeId{0};
  graph.stateUpdates = {{weight, node.output(0)}, {moment, node.output(1)}};
  const NodeId dead = graph.addNode("gone", "", "Neg", {weight}, {"unused"});
  graph.removeNode(dead);
  graph.addNode("gone", "", "Abs", {weight}, {"unused"});
  expectRoundTrip(graph, "training");
}

// What an optimizer adds has no contents before the first step: a saved stage opens without being told to make some up.
TEST(Writer, StateWithoutContentsReadsBackAsZeros) {
  Graph graph = std::move(parse(smallModel())->graph);
  graph.addValue("w.exp_avg", {ValueKind::kTensor, DType::kF32, Shape{3, 3}}, ValueRole::kState);
  graph.addValue("w.exp_avg_sq", {ValueKind::kTensor, DType::kF32, Shape{30, 30}}, ValueRole::kState);
  const TemporaryFolder folder;
  ASSERT_TRUE(writeModel(graph, folder.path() / "m.onnx").has_value());
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "m.zeros"), 3636u);
  const auto loaded = loadModel(folder.path() / "m.onnx", {});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  for (const auto& [name, elements] : {std::pair{"w.exp_avg", 9}, {"w.exp_avg_sq", 900}}) {
    const Value& state = loaded->graph.value(loaded->graph.findValue(name));
    EXPECT_EQ(state.role, ValueRole::kState);
    ASSERT_NE(state.data, nullptr) << name;
    ASSERT_EQ(state.data->elements(), elements) << name;
    for (std::int64_t i = 0; i < elements; ++i) EXPECT_EQ(elementAsDouble(state.data->view(), i), 0) << name;
  }
}

TEST(Writer, DomainsInUseAreImported) {
  Graph graph = std::move(parse(smallModel())->graph);
  graph.addNode("fused", "com.microsoft", "FusedMatMul", {graph.findValue("z")}, {"f"});
  const TemporaryFolder folder;
  ASSERT_TRUE(writeModel(graph, folder.path() / "m.onnx").has_value());
  const auto opsets = load(folder.path() / "m.onnx")->opsets;
  EXPECT_EQ(opsets.at(""), 17);
  EXPECT_EQ(opsets.at("com.microsoft"), 1);
}

TEST(Writer, LargeWeightsGoToASecondFile) {
  const Graph graph = std::move(parse(smallModel())->graph);
  WriteOptions options;
  options.externalAbove = 8;
  expectRoundTrip(graph, "external", options);
  const TemporaryFolder folder;
  ASSERT_TRUE(writeModel(graph, folder.path() / "stage.onnx", options).has_value());
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "stage.weights"), 36u);
}

TEST(Writer, LeavesNothingBehindWhenItFails) {
  auto proto = nestedFunctions(1);
  auto* attribute = proto.mutable_functions(0)->mutable_node(0)->add_attribute();
  attribute->set_name("alpha");
  attribute->set_ref_attr_name("a");
  const auto model = parse(proto);
  const TemporaryFolder folder;
  EXPECT_FALSE(writeModel(model->functions[0].body, folder.path() / "f.onnx").has_value());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(writeModel(parse(smallModel())->graph, "/nonexistent/folder/m.onnx").error().code, ErrorCode::kIo);
}

TEST(Writer, EveryCorpusModelReadsBackBeforeAndAfterInlining) {
  const auto models = corpusModels();
  if (models.empty()) GTEST_SKIP() << "no corpus beside the source tree (STEPSCOPE_SHARED)";
  for (const auto& path : models) {
    auto model = load(path);
    ASSERT_TRUE(model.has_value()) << path;
    expectRoundTrip(model->graph, path.string());
    ASSERT_TRUE(inlineFunctions(model->graph, model->functions).has_value()) << path;
    expectRoundTrip(model->graph, path.string() + " inlined");
  }
}

}  // namespace
}  // namespace stepscope::testing
