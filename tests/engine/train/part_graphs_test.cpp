// A loss and an update that a user wrote as models: they train as those that the options name, and what is wrong with them
// is said.
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// A graph in short: inputs and outputs as "float32 x N 3", initializers as a name and their elements, nodes as "y = Op a b".
struct GraphText {
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>>> initializers;
  std::vector<std::string> nodes;
};

std::vector<std::string> wordsOf(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

void declare(onnx::ValueInfoProto& value, const std::string& text) {
  const std::vector<std::string> words = wordsOf(text);
  value.set_name(words[1]);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(words[0] == "int64" ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
  if (words.back() == "?") return;  // any rank
  auto& shape = *type.mutable_shape();
  for (std::size_t i = 2; i < words.size(); ++i) {
    auto& dim = *shape.add_dim();
    if (std::isdigit(static_cast<unsigned char>(words[i][0])))
      dim.set_dim_value(std::stol(words[i]));
    else
      dim.set_dim_param(words[i]);
  }
}

std::string bytesOf(const GraphText& text) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("g");
  for (const std::string& input : text.inputs) declare(*graph.add_input(), input);
  for (const std::string& output : text.outputs) declare(*graph.add_output(), output);
  for (const auto& [name, contents] : text.initializers) {
    auto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t dim : contents.first) tensor.add_dims(dim);
    for (const float value : contents.second) tensor.add_float_data(value);
  }
  for (const std::string& line : text.nodes) {
    const std::vector<std::string> words = wordsOf(line);
    auto& node = *graph.add_node();
    node.set_op_type(words[2]);
    node.add_output(words[0]);
    for (std::size_t i = 3; i < words.size(); ++i) node.add_input(words[i]);
    if (words[2] != "ReduceMean") continue;
    auto& keep = *node.add_attribute();
    keep.set_name("keepdims");
    keep.set_type(onnx::AttributeProto::INT);
    keep.set_i(0);
  }
  return model.SerializeAsString();
}

// y = tanh(x w) + b
const GraphText kModel{{"float32 x N 3"},
                       {"float32 y N 2"},
                       {{"w", {{3, 2}, {0.5F, -1, 2, 0.25F, 1, -0.5F}}}, {"b", {{2}, {0.1F, -0.2F}}}},
                       {"a = MatMul x w", "t = Tanh a", "y = Add t b"}};
const GraphText kMse{{"float32 y M 2", "float32 labels M 2"},
                     {"float32 value"},
                     {},
                     {"d = Sub y labels", "q = Mul d d", "value = ReduceMean q"}};
// PyTorch's Adam, for parameters of any rank. 1 - 0.999 in float32 is not 0.001: hence the tolerance of the tests.
const GraphText kAdam{
    {"float32 parameter ?", "float32 gradient ?", "float32 learning_rate", "int64 step", "float32 m ?", "float32 v ?"},
    {"float32 parameter_next ?", "float32 m_next ?", "float32 v_next ?"},
    {{"b1", {{}, {0.9F}}},
     {"c1", {{}, {0.1F}}},
     {"b2", {{}, {0.999F}}},
     {"c2", {{}, {0.001F}}},
     {"one", {{}, {1}}},
     {"eps", {{}, {1e-8F}}}},
    {"ma = Mul m b1", "mb = Mul gradient c1", "m_next = Add ma mb", "g2 = Mul gradient gradient", "va = Mul v b2",
     "vb = Mul g2 c2", "v_next = Add va vb", "t = CastLike step one", "p1 = Pow b1 t", "k1 = Sub one p1", "p2 = Pow b2 t",
     "k2 = Sub one p2", "mh = Div m_next k1", "vh = Div v_next k2", "r = Sqrt vh", "n = Add r eps", "s = Div mh n",
     "l = Mul s learning_rate", "parameter_next = Sub parameter l"}};

class PartGraphs : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) { return folder_.write(name, bytes).string(); }
  std::string adam() { return write("adam.onnx", bytesOf(kAdam)); }

  std::unique_ptr<Session> open(const Settings& settings) {
    auto session = Session::open(write("model.onnx", bytesOf(kModel)), {}, {});
    EXPECT_TRUE(session.has_value()) << session.error().message;
    TrainOptions options;
    for (const auto& [name, value] : settings) {
      const Status set = applySetting(options, name, value, "test");
      EXPECT_TRUE(set.has_value()) << set.error().message;
    }
    EXPECT_TRUE((*session)->setOptions(options).has_value());
    return std::move(*session);
  }

  // Losses of six steps, then the parameters.
  std::vector<double> train(const Settings& settings) {
    const auto session = open(settings);
    const Status built = session->build();
    EXPECT_TRUE(built.has_value()) << built.error().message;
    std::vector<double> numbers;
    for (int step = 0; built && step < 6; ++step) {
      const auto record = session->step();
      EXPECT_TRUE(record.has_value()) << record.error().message;
      if (record) numbers.push_back(record->loss());
    }
    for (const auto& [name, view] : session->trained().named(false))
      for (std::int64_t i = 0; i < view.elements(); ++i) numbers.push_back(elementAsDouble(view, i));
    return numbers;
  }

  void expectEqual(const Settings& ours, const Settings& theirs, double tolerance) {
    const std::vector<double> a = train(ours), b = train(theirs);
    ASSERT_EQ(a.size(), b.size());
    ASSERT_GT(a.size(), 12u);
    EXPECT_NE(a[0], a[5]);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
  }

  std::string errorOf(const Settings& settings) {
    const Status built = open(settings)->build();
    return built ? std::string() : built.error().message;
  }

  const TemporaryFolder folder_;
};

TEST_F(PartGraphs, ALossGraphTrainsAsTheLossThatItSpells) {
  expectEqual({{"loss-graph", write("mse.onnx", bytesOf(kMse))}, {"lr", "0.1"}}, {{"loss-fn", "mse"}, {"lr", "0.1"}}, 0);
}

TEST_F(PartGraphs, ParametersOfALossGraphAreTrained) {
  const GraphText scaled{{"float32 y M 2", "float32 labels M 2"},
                         {"float32 value"},
                         {{"gain", {{2}, {1, 2}}}},
                         {"g = Mul y gain", "d = Sub g labels", "q = Mul d d", "value = ReduceMean q"}};
  const auto session = open({{"loss-graph", write("scaled.onnx", bytesOf(scaled))}, {"lr", "0.1"}});
  const Status built = session->build();
  ASSERT_TRUE(built.has_value()) << built.error().message;
  ASSERT_TRUE(session->step().has_value());
  const auto state = session->trained().named(false);
  ASSERT_TRUE(state.contains("gain"));
  EXPECT_NE(elementAsDouble(state.at("gain"), 0), 1);
  EXPECT_NE(elementAsDouble(state.at("gain"), 1), 2);
}

TEST_F(PartGraphs, AnOptimizerGraphUpdatesAsTheOptimizerThatItSpells) {
  expectEqual({{"loss-fn", "mse"}, {"optimizer-graph", adam()}, {"lr", "0.05"}},
              {{"loss-fn", "mse"}, {"optimizer", "adam"}, {"lr", "0.05"}}, 2e-5);
}

TEST_F(PartGraphs, AnOptimizerGraphGetsClippedAccumulatedGradientsScheduleAndGroups) {
  const Settings shared{{"loss-fn", "mse"},        {"lr", "0.05"},        {"clip-grad-norm", "0.01"}, {"accumulate", "2"},
                        {"lr-schedule", "linear"}, {"total-steps", "10"}, {"group", "^b$:lr=0.5"}};
  Settings ours = shared, theirs = shared;
  ours.emplace_back("optimizer-graph", adam());
  theirs.emplace_back("optimizer", "adam");
  expectEqual(ours, theirs, 2e-5);
}

TEST_F(PartGraphs, AnOptimizerGraphTrainsInLowPrecisionAndSkipsWhatOverflows) {
  for (const char* precision : {"bf16", "fp16"}) {
    const Settings shared{{"loss-fn", "mse"}, {"lr", "0.05"}, {"precision", precision}};
    Settings ours = shared, theirs = shared;
    ours.emplace_back("optimizer-graph", adam());
    theirs.emplace_back("optimizer", "adam");
    expectEqual(ours, theirs, 1e-4);
  }
}

TEST_F(PartGraphs, StateOfAnOptimizerGraphIsSavedAndResumed) {
  const Settings settings{{"loss-fn", "mse"}, {"optimizer-graph", adam()}, {"lr", "0.05"}};
  const auto session = open(settings);
  ASSERT_TRUE(session->build().has_value());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->step().has_value());
  const auto state = session->trained().named(true);
  for (const char* name : {"w.m", "w.v", "b.m", "b.v"}) EXPECT_TRUE(state.contains(name)) << name;
  const std::filesystem::path file = folder_.path() / "state.safetensors";
  ASSERT_TRUE(session->trained().save(file).has_value());
  const auto again = open(settings);
  ASSERT_TRUE(again->build().has_value());
  const Status loaded = again->trained().load(file, true);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(session->step()->loss(), again->step()->loss());
}

TEST_F(PartGraphs, WhatIsWrongWithThemIsNamed) {
  const auto loss = [&](const GraphText& graph) { return errorOf({{"loss-graph", write("part.onnx", bytesOf(graph))}}); };
  const auto update = [&](const GraphText& graph) {
    return errorOf({{"loss-fn", "mse"}, {"optimizer-graph", write("part.onnx", bytesOf(graph))}});
  };
  const auto mean = [](const std::string& input, const std::string& name) {
    return GraphText{{input}, {"float32 v"}, {}, {"v = ReduceMean " + name}};
  };
  EXPECT_NE(errorOf({{"loss-graph", "/nowhere.onnx"}}).find("loss graph '/nowhere.onnx'"), std::string::npos);
  EXPECT_NE(loss(mean("float32 z M 2", "z")).find("outputs of the model are 'y'"), std::string::npos);
  EXPECT_NE(loss(mean("float32 y M 2 1", "y")).find("input 'y' is float32[M, 2, 1]"), std::string::npos);
  EXPECT_NE(loss(mean("float32 y M 3", "y")).find("expected equal types"), std::string::npos);
  EXPECT_NE(loss({{"float32 y M 2"}, {"float32 v M 2"}, {}, {"v = Neg y"}}).find("no scalar float output"),
            std::string::npos);
  const std::string wrong = update({{"float32 parameter N", "float32 m N"},
                                    {"float32 parameter_next N", "float32 q_next N"},
                                    {},
                                    {"parameter_next = Neg parameter", "q_next = Neg m"}});
  for (const char* part : {"input 'gradient' is missing", "input 'm' is state without an output 'm_next'",
                           "output 'q_next' is the next contents of nothing"})
    EXPECT_NE(wrong.find(part), std::string::npos) << wrong;
  EXPECT_NE(update({{"float32 parameter N", "float32 gradient N"},
                    {"float32 parameter_next N"},
                    {},
                    {"parameter_next = Sub parameter gradient"}})
                .find("an input without a shape takes any"),
            std::string::npos);
  TrainOptions both;
  both.lossFn = "mse";
  both.lossGraph = "x.onnx";
  const Status checked = checkOptions(both);
  ASSERT_FALSE(checked.has_value());
  EXPECT_NE(checked.error().message.find("expected one of the two"), std::string::npos);
}

}  // namespace
}  // namespace stepscope::testing
