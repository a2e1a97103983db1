// Extents that the graph fixes, and data that lies beside a model.
#include "engine/train/fit_dims.h"

#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>
#include <fstream>

#include "engine/data/npy_header.h"
#include "engine/train/proposed_data.h"
#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

const Dim kBatch = Dim::symbol("batch"), kSequence = Dim::symbol("sequence");

ValueId graphInput(Graph& graph, const std::string& name, Shape shape, DType dtype = DType::kF32) {
  const ValueId id = graph.addValue(name, {ValueKind::kTensor, dtype, std::move(shape)}, ValueRole::kInput);
  graph.mutableInputs().push_back(id);
  return id;
}

ValueId addTable(Graph& graph, const std::string& name, const Dims& dims) {
  const ValueId id = graph.addValue(name, {ValueKind::kTensor, DType::kF32, shapeOf(dims)}, ValueRole::kInitializer);
  graph.mutableValue(id).data = std::make_shared<const Tensor>(DType::kF32, dims);
  return id;
}

ValueId emit(Graph& graph, const std::string& op, std::vector<ValueId> inputs, Attributes attrs = {}) {
  const NodeId id =
      graph.addNode(op + "_" + std::to_string(graph.order().size()), "", op, std::move(inputs), {}, std::move(attrs));
  return graph.node(id).output(0) ? graph.node(id).output(0) : graph.addOutput(id, graph.node(id).name + "_out");
}

// x [batch, sequence] + a mask of 64 columns.
Graph masked() {
  Graph graph;
  const ValueId x = graphInput(graph, "x", {kBatch, kSequence});
  emit(graph, "Add", {x, addTable(graph, "mask", {1, 64})});
  return graph;
}

// Positions 0 … sequence-1 of a table of 48 rows.
Graph positioned() {
  Graph graph;
  const ValueId x = graphInput(graph, "x", {kBatch, kSequence});
  const ValueId shape = emit(graph, "Shape", {x});
  const ValueId length = emit(graph, "Gather", {shape, graph.addConstant("one", Tensor::scalar(DType::kI64, 1))});
  const ValueId positions = emit(graph, "Range",
                                 {graph.addConstant("zero", Tensor::scalar(DType::kI64, 0)), length,
                                  graph.addConstant("step", Tensor::scalar(DType::kI64, 1))});
  emit(graph, "Gather", {addTable(graph, "table", {48, 4}), positions});
  return graph;
}

// A recurrent layer that is given its state, whose batch has no name.
Graph recurrent() {
  Graph graph;
  const ValueId x = graphInput(graph, "x", {kSequence, kBatch, 3});
  const ValueId state = graphInput(graph, "state", {1, Dim::symbol("state.dim1"), 4});
  emit(graph, "LSTM",
       {x, addTable(graph, "w", {1, 16, 3}), addTable(graph, "r", {1, 16, 4}), ValueId{}, ValueId{}, state, state},
       {{"hidden_size", std::int64_t{4}}});
  return graph;
}

std::map<std::string, DimChoice> fitted(const Graph& graph, const std::map<std::string, std::int64_t>& given = {}) {
  TrainOptions options;
  options.dims = given;
  std::map<std::string, DimChoice> found;
  for (DimChoice& choice : fitDims(graph, options, builtInOperators())) found[choice.name] = std::move(choice);
  return found;
}

TEST(FitDims, AnExtentWithoutANameFollowsTheOneOnItsAxisThatIsGiven) {
  Graph graph;
  const auto nameless = [&](const std::string& name) {
    return graphInput(graph, name, {Dim::symbol(name + ".dim0"), Dim::symbol(name + ".dim1")});
  };
  const ValueId ids = nameless("ids"), mask = nameless("mask");
  graphInput(graph, "scale", {Dim::symbol("scale.dim0")});  // of another rank
  emit(graph, "Add", {ids, mask});
  const auto choices = fitted(graph, {{"ids.dim0", 3}, {"mask.dim1", 7}});
  EXPECT_EQ(choices.at("mask.dim0").extent, 3);
  EXPECT_EQ(choices.at("mask.dim0").reason, "as 'ids.dim0'");
  EXPECT_EQ(choices.at("ids.dim1").extent, 7);
  EXPECT_EQ(choices.at("scale.dim0").extent, 2);
}

TEST(FitDims, ABranchThatSurelyRunsFixesExtents) {
  for (const bool runs : {true, false}) {
    Graph graph = masked();
    graph.mutableNode(graph.order().front()).predicates = {{graph.addConstant("if", Tensor::scalar(DType::kBool, 1)), runs}};
    EXPECT_EQ(fitted(graph).at("sequence").extent, runs ? 64 : 128);
  }
}

TEST(FitDims, AStateHasTheBatchOfWhatTheLayerReads) {
  for (const std::int64_t batch : {0, 5}) {
    const auto found = fitted(recurrent(), batch > 0 ? std::map<std::string, std::int64_t>{{"batch", batch}}
                                                     : std::map<std::string, std::int64_t>{});
    EXPECT_EQ(found.at("state.dim1").extent, batch > 0 ? batch : found.at("batch").extent);
  }
}

// What is left of 128 elements behind the 200th.
TEST(FitDims, AnOutputWithoutElementsHasNoLoss) {
  const std::string model =
      "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_param: \"time\" } } } } "
      "} " +
      floats("w", {2, 1}, {1, 2}) + ints("from", {1}, {200}) + ints("to", {1}, {1 << 30}) + ints("axis", {1}, {1}) +
      node("Mul", "x w", "m") + node("Slice", "m from to axis", "y") +
      "output { name: \"y\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_param: \"rest\" } } } "
      "} } ";
  const auto step = smallStep(model, 17, {"w"}, {1, {{"loss-fn", "mse"}}, {}});
  ASSERT_FALSE(step.has_value());
  EXPECT_NE(step.error().message.find("output 'y': shape [2, 0] with synthetic data; expected elements"), std::string::npos)
      << step.error().message;
  EXPECT_TRUE(smallStep(model, 17, {"w"}, {1, {{"loss-fn", "mse"}, {"dim", "time=210"}}, {}}).has_value());
}

TEST(FitDims, AMaskOfTheFileSaysHowLongASequenceIs) {
  const auto found = fitted(masked());
  EXPECT_EQ(found.at("sequence").extent, 64);
  EXPECT_TRUE(found.at("sequence").fixed);
  EXPECT_NE(found.at("sequence").reason.find("128 does not fit: Add 'Add_0': shapes"), std::string::npos)
      << found.at("sequence").reason;
  EXPECT_EQ(found.at("batch").extent, 2);
  EXPECT_FALSE(found.at("batch").fixed);
}

TEST(FitDims, ATableOfPositionsSaysHowLongASequenceMayBe) {
  const auto found = fitted(positioned());
  EXPECT_EQ(found.at("sequence").extent, 48);
  EXPECT_NE(found.at("sequence").reason.find("index 127 for a table of 48 rows"), std::string::npos)
      << found.at("sequence").reason;
}

TEST(FitDims, WhatFitsKeepsItsDefault) {
  Graph graph;
  emit(graph, "Relu", {graphInput(graph, "x", {kBatch, kSequence})});
  const auto found = fitted(graph);
  EXPECT_EQ(found.at("sequence").extent, 128);
  EXPECT_FALSE(found.at("sequence").fixed);
}

TEST(FitDims, WhatTheUserSetIsNotChanged) {
  EXPECT_FALSE(fitted(masked(), {{"sequence", 100}}).contains("sequence"));
  EXPECT_EQ(fitted(masked(), {{"batch", 3}}).at("sequence").extent, 64);
  TrainOptions options;
  options.dims = {{"sequence", 100}};
  const auto hinted = [&] {
    return withDimHint({ErrorCode::kInvalidArgument, "shapes"}, masked(), options, builtInOperators()).message;
  };
  EXPECT_NE(
      hinted().find("dimension 'sequence' of the synthetic data is 100 (--dim) and the model needs 64: --dim sequence=64"),
      std::string::npos)
      << hinted();
  options.data = "batches.npz";
  EXPECT_EQ(hinted(), "shapes");
}

TEST(FitDims, AGraphThatFitsNothingKeepsTheDefaults) {
  Graph graph;
  const ValueId x = graphInput(graph, "x", {kBatch, kSequence});
  emit(graph, "Add", {emit(graph, "Add", {x, addTable(graph, "a", {1, 64})}), addTable(graph, "b", {1, 32})});
  EXPECT_EQ(fitted(graph).at("sequence").extent, 128);
}

// Every exported model trains on synthetic data too, without being told how long a sequence is.
TEST(FitDims, EveryModelOfTheCorpusRunsOnSyntheticData) {
  const auto corpus = corpusFolder();
  if (!corpus) GTEST_SKIP() << "no corpus beside the source tree (STEPSCOPE_SHARED)";
  for (const auto& path : corpusModels()) {
    if (path.parent_path().filename() == "large") continue;  // their weights are not there
    auto session = Session::open(path, {}, {});
    ASSERT_TRUE(session.has_value()) << path << ": " << session.error().message;
    TrainOptions options;
    ASSERT_TRUE(applySetting(options, "threads", "2", "test").has_value());
    ASSERT_TRUE((*session)->setOptions(options).has_value());
    const Status built = (*session)->build();
    EXPECT_TRUE(built.has_value()) << path << ": " << built.error().message;
    if (!built) continue;
    const auto step = (*session)->step();
    EXPECT_TRUE(step.has_value()) << path << ": " << step.error().message;
  }
}

std::filesystem::path writeNpz(const std::filesystem::path& path, const std::vector<std::pair<std::string, Dims>>& arrays,
                               DType dtype = DType::kF32) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  std::vector<std::string> contents;
  contents.reserve(arrays.size());
  for (const auto& [name, dims] : arrays) {
    contents.push_back(npyHeaderText(dtype, dims) +
                       std::string(static_cast<std::size_t>(elementCount(dims)) * dtypeSize(dtype), '\0'));
    zip_file_add(archive, (name + ".npy").c_str(),
                 zip_source_buffer(archive, contents.back().data(), contents.back().size(), 0), ZIP_FL_ENC_UTF_8);
  }
  SS_CHECK(zip_close(archive) == 0);
  return path;
}

// With a loss of its own unless `loss` is false.
Graph twoInputs(bool loss = true) {
  Graph graph;
  graphInput(graph, "a", {kBatch, Dim(3)});
  graphInput(graph, "b", {kBatch});
  graph.mutableOutputs().push_back(graph.addValue(
      "loss", {ValueKind::kTensor, DType::kF32, loss ? Shape{} : Shape{kBatch, Dim(3)}}, ValueRole::kNodeOutput));
  return graph;
}

TEST(ProposedData, IsTheArchiveBesideTheModelThatFeedsEveryInput) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model.onnx";
  EXPECT_EQ(proposeData(model, twoInputs()).path, "");
  EXPECT_EQ(proposeData(model, twoInputs()).reason, "");
  const auto other = writeNpz(folder.path() / "a_first.npz", {{"a", {5, 2, 3}}, {"b", {5, 2}}, {"more", {7}}});
  EXPECT_EQ(proposeData(model, twoInputs()).path, other.string());
  EXPECT_EQ(proposeData(model, twoInputs()).reason,
            "'a_first.npz' lies beside the model; its arrays feed all 2 inputs: 5 batches");
  const auto captured = writeNpz(folder.path() / "batches.npz", {{"a", {2, 3}}, {"b", {2}}});
  EXPECT_EQ(proposeData(model, twoInputs()).path, captured.string()) << "the name that captures use comes first";
  EXPECT_EQ(proposeData(model, twoInputs()).reason,
            "'batches.npz' lies beside the model, as captures have it; its arrays feed all 2 inputs: one batch");
}

TEST(ProposedData, WhatDoesNotFitIsNamedAndNotProposed) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model.onnx";
  const auto reason = [&](const std::vector<std::pair<std::string, Dims>>& arrays, DType dtype = DType::kF32,
                          bool loss = true) {
    writeNpz(folder.path() / "batches.npz", arrays, dtype);
    const ProposedData found = proposeData(model, twoInputs(loss));
    EXPECT_EQ(found.path, "");
    return found.reason;
  };
  EXPECT_NE(reason({{"a", {2, 3}}}).find("no array 'b'; found a"), std::string::npos);
  EXPECT_NE(reason({{"a", {2, 4}}, {"b", {2}}}).find("array 'a' has shape [2, 4]"), std::string::npos);
  EXPECT_NE(reason({{"a", {5, 2, 3}}, {"b", {4, 2}}}).find("'a' has 5; expected as many"), std::string::npos);
  EXPECT_NE(reason({{"a", {2, 3}}, {"b", {2}}}, DType::kI64).find("array 'a' is int64; expected float32"),
            std::string::npos);
  EXPECT_NE(reason({{"a", {2, 3}}, {"b", {2}}}, DType::kF32, false).find("no array 'labels'"), std::string::npos);
  std::ofstream(folder.path() / "batches.npz") << "no archive";
  const ProposedData broken = proposeData(model, twoInputs());
  EXPECT_EQ(broken.path, "");
  EXPECT_NE(broken.reason.find("'batches.npz' beside the model is not proposed"), std::string::npos) << broken.reason;
}

// The file says "frames" of an output whose extent follows from that of the input; for two poolings in a row its extent is a
// quotient of a quotient.
TEST(LabelExtents, AreThoseOfTheOutputOnceTheInputsAreBound) {
  const auto input = [](const std::string& field, const std::string& name, const std::string& last) {
    return field + " { name: \"" + name +
           "\" type { tensor_type { elem_type: 1 shape { dim { dim_param: \"batch\" } dim { dim_value: 1 } dim { dim_param: "
           "\"" +
           last + "\" } } } } } ";
  };
  const std::string window =
      attribute("kernel_shape", std::vector<std::int64_t>{3}) + attribute("strides", std::vector<std::int64_t>{2});
  const std::string graph = input("input", "x", "samples") + floats("w", {1, 1, 1}, {2}) + node("Conv", "x w", "c") +
                            node("AveragePool", "c", "p", window) + node("AveragePool", "p", "y", window) +
                            input("output", "y", "frames");
  for (const auto* samples : {"", "samples=50"}) {
    SmallStepOptions options{1, {{"loss-fn", "mse"}}, {"y", "labels"}};
    if (*samples) options.settings["dim"] = samples;
    const auto step = smallStep(graph, 17, {"w"}, options);
    ASSERT_TRUE(step.has_value()) << step.error().message;
    EXPECT_EQ(step->values.at("y").size(), *samples ? 2u * 11 : 2u * 31);
    EXPECT_EQ(step->values.at("labels").size(), step->values.at("y").size());
  }
}

TEST(ProposedData, EveryModelOfTheCorpusFindsItsBatches) {
  const auto corpus = corpusFolder();
  if (!corpus) GTEST_SKIP() << "no corpus beside the source tree (STEPSCOPE_SHARED)";
  for (const auto& path : corpusModels()) {
    if (path.parent_path().filename() == "large") continue;
    auto session = Session::open(path, {}, {});
    ASSERT_TRUE(session.has_value()) << path << ": " << session.error().message;
    const snapshot::ModelInfo info = (*session)->inspect();
    EXPECT_EQ(info.proposed_data(), (path.parent_path() / "batches.npz").string()) << info.data_reason();
  }
}

}  // namespace
}  // namespace stepscope::testing
