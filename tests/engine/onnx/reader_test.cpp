#include "engine/onnx/reader.h"

#include <gtest/gtest.h>

#include "engine/onnx/type_reader.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

TEST(Reader, KeepsNamesTypesAndOrder) {
  const auto model = parse(smallModel());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const Graph& graph = model->graph;
  ASSERT_EQ(graph.order().size(), 2u);
  EXPECT_EQ(graph.node(graph.order()[0]).label(), "MatMul 'matmul'");
  EXPECT_EQ(graph.node(graph.order()[0]).sinceVersion, 17);
  EXPECT_EQ(graph.value(graph.inputs()[0]).type.text(), "float32[2, 3]");
  const Value& weight = graph.value(graph.findValue("w"));
  EXPECT_EQ(weight.role, ValueRole::kInitializer);
  EXPECT_EQ(weight.data->as<float>()[8], 8.0f);
  EXPECT_TRUE(graph.verify().empty());
}

// q [5] in four bits, read by `op`.
onnx::ModelProto fourBitModel(int type, const std::string& bytes, const std::string& op) {
  onnx::ModelProto model = smallModel();
  auto& graph = *model.mutable_graph();
  graph.clear_initializer();
  graph.clear_node();
  auto* weight = graph.add_initializer();
  weight->set_name("q");
  weight->set_data_type(type);
  weight->add_dims(5);
  weight->set_raw_data(bytes);
  addFloats(graph, "s", {1});
  addNode(graph, op, {"q", "s"}, {"z"}, "reads");
  return model;
}

// The even element is in the low half of its byte; the half behind the last one is not looked at.
TEST(Reader, WidensWeightsOfFourBits) {
  constexpr int kU4 = 21, kI4 = 22;
  const std::string bytes{'\x21', '\x8f', '\xf7'};
  const auto valuesOf = [&](int type) {
    std::vector<double> values;
    const auto model = parse(fourBitModel(type, bytes, "DequantizeLinear"));
    EXPECT_TRUE(model.has_value()) << model.error().message;
    if (!model) return values;
    const Value& q = model->graph.value(model->graph.findValue("q"));
    EXPECT_EQ(q.type.dtype, type == kI4 ? DType::kI8 : DType::kU8);
    for (std::int64_t i = 0; i < q.data->elements(); ++i) values.push_back(elementAsDouble(q.data->view(), i));
    return values;
  };
  EXPECT_EQ(valuesOf(kI4), (std::vector<double>{1, 2, -1, -8, 7}));
  EXPECT_EQ(valuesOf(kU4), (std::vector<double>{1, 2, 15, 8, 7}));
  const auto refused = [&](const std::string& contents, const std::string& op, const std::string& part) {
    const auto model = parse(fourBitModel(kI4, contents, op));
    ASSERT_FALSE(model.has_value());
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  };
  refused(bytes.substr(1), "DequantizeLinear", "2 bytes of raw_data; expected 3");
  refused(bytes, "Cast", "four-bit elements read by Cast 'reads'; expected DequantizeLinear");
}

// A length-delimited field as bytes; `lengthBytes` pads its length with zeros, which parsers take.
std::string delimited(int number, const std::string& content, std::size_t lengthBytes = 1) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  std::size_t length = content.size();
  for (std::size_t i = 0; length > 0 || i < lengthBytes; ++i, length >>= 7)
    bytes += static_cast<char>((length & 0x7f) | (length > 0x7f || i + 1 < lengthBytes ? 0x80 : 0));
  return bytes + content;
}

onnx::TensorProto rawTensor(const std::string& name, int type, std::int64_t elements) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(type);
  tensor.add_dims(elements);
  return tensor;
}

std::string pattern(std::size_t bytes, int seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i)
    text[i] = static_cast<char>((i * 31 + i / 251 + static_cast<std::size_t>(seed)) % 255);
  return text;
}

// Large raw contents pass the parser by: they arrive whole, in every order of fields, beside small and typed ones.
TEST(Reader, TakesLargeRawContentsAsTheyAre) {
  constexpr int kU8 = onnx::TensorProto_DataType_UINT8, kBool = onnx::TensorProto_DataType_BOOL;
  auto model = smallModel();
  std::string first, second;  // two parts of the graph, which the parser merges
  const std::string small = pattern(100, 1), large = pattern(5000, 2), larger = pattern(300'000, 3),
                    other = pattern(5000, 4);
  first += delimited(5, rawTensor("small", kU8, 100).SerializeAsString() + delimited(9, small));
  first += delimited(5, delimited(9, large, 4) + rawTensor("large", kU8, 5000).SerializeAsString(), 5);
  second += delimited(5, rawTensor("larger", kU8, 300'000).SerializeAsString() + delimited(9, larger));
  // Given twice: the last counts.
  second += delimited(5, rawTensor("twice", kU8, 5000).SerializeAsString() + delimited(9, large) + delimited(9, other));
  second += delimited(5, rawTensor("bits", kBool, 5000).SerializeAsString() + delimited(9, large));
  const std::string bytes = model.SerializeAsString() + delimited(7, first, 5) + delimited(7, second);
  const TemporaryFolder folder;
  for (const auto& loaded : {loadModel(folder.write("m.onnx", bytes)), parse(bytes)}) {
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    const auto held = [&](const char* name) {
      const TensorView& view = loaded->graph.value(loaded->graph.findValue(name)).data->view();
      return std::string(static_cast<const char*>(view.data), view.bytes());
    };
    EXPECT_EQ(held("small"), small);
    EXPECT_TRUE(held("large") == large);
    EXPECT_TRUE(held("larger") == larger);
    EXPECT_TRUE(held("twice") == other);
    std::string flags = large;
    for (char& flag : flags) flag = flag != 0;
    EXPECT_TRUE(held("bits") == flags);
    EXPECT_EQ(loaded->graph.value(loaded->graph.findValue("w")).data->as<float>()[8], 8.0F);
    EXPECT_EQ(loaded->fileBytes, static_cast<std::int64_t>(bytes.size()));
  }
}

TEST(Reader, RefusesLargeRawContentsThatDisagree) {
  const auto refusal = [](const std::string& tensor) {
    const auto loaded = parse(smallModel().SerializeAsString() + delimited(7, delimited(5, tensor)));
    return loaded ? std::string() : loaded.error().message;
  };
  constexpr int kU8 = onnx::TensorProto_DataType_UINT8;
  const std::string large = delimited(9, pattern(5000, 2));
  EXPECT_NE(refusal(rawTensor("t", kU8, 5001).SerializeAsString() + large).find("5000 bytes of raw_data; expected 5001"),
            std::string::npos);
  EXPECT_NE(refusal(rawTensor("t", onnx::TensorProto_DataType_STRING, 5000).SerializeAsString() + large)
                .find("string tensor with raw_data"),
            std::string::npos);
  auto typed = rawTensor("t", kU8, 5000);
  typed.add_int32_data(1);
  EXPECT_NE(refusal(typed.SerializeAsString() + large).find("both raw_data and typed data"), std::string::npos);
  auto external = rawTensor("t", kU8, 5000);
  setExternal(external, "w.bin");
  EXPECT_NE(refusal(external.SerializeAsString() + large).find("both external and inline data"), std::string::npos);
}

TEST(Reader, SortsNodesInAnyOrder) {
  auto model = smallModel();
  model.mutable_graph()->mutable_node()->SwapElements(0, 1);
  const auto loaded = parse(model);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->graph.node(loaded->graph.order()[0]).op, "MatMul");
  EXPECT_TRUE(loaded->graph.verify().empty());
}

TEST(Reader, InitializerThatIsAlsoAnInputIsAnInitializer) {
  auto model = smallModel();
  addInput(*model.mutable_graph(), "w", {3, 3});
  const auto loaded = parse(model);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->graph.inputs().size(), 1u);
  EXPECT_EQ(loaded->graph.value(loaded->graph.findValue("w")).role, ValueRole::kInitializer);
}

TEST(Reader, CapturedValuesAreInputsOfTheSubgraph) {
  const auto model = parse(branchingModel());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const Node& node = model->graph.node(model->graph.order()[0]);
  const Graph& elseBranch = *node.subgraphs.at("else_branch");
  ASSERT_EQ(elseBranch.inputs().size(), 2u);
  EXPECT_EQ(elseBranch.value(elseBranch.inputs()[0]).name, "x");
  EXPECT_EQ(elseBranch.value(elseBranch.inputs()[1]).name, "w");
  EXPECT_TRUE(elseBranch.verify().empty());
}

TEST(Reader, SubgraphMayUseAValueMadeByALaterNode) {
  auto model = branchingModel();
  auto& graph = *model.mutable_graph();
  addNode(graph, "Relu", {"x"}, {"late"}, "late");
  graph.mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(0, "late");
  const auto loaded = parse(model);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->graph.node(loaded->graph.order()[0]).name, "late");
}

TEST(Reader, ValueUsedTwoLevelsDownIsAnInputOfBoth) {
  auto model = branchingModel();
  auto& outer = *model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  auto* inner = addNode(outer, "If", {"cond"}, {"c"}, "inner");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& graph = *addGraphAttribute(*inner, name)->mutable_g();
    addNode(graph, "Neg", {"w"}, {"n"}, "neg");
    addOutput(graph, "n");
  }
  const auto loaded = parse(model);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const Graph& branch = *loaded->graph.node(loaded->graph.order()[0]).subgraphs.at("then_branch");
  EXPECT_TRUE(branch.findValue("w").valid());
  EXPECT_EQ(branch.inputs().size(), 3u);  // x, cond, w
}

TEST(Reader, ReadsEveryTypedField) {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  const auto add = [&](const char* name, int type) {
    auto* tensor = graph.add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    tensor->add_dims(2);
    return tensor;
  };
  for (const auto& [name, type] : std::vector<std::pair<const char*, int>>{{"uint8", 2},
                                                                           {"int8", 3},
                                                                           {"uint16", 4},
                                                                           {"int16", 5},
                                                                           {"int32", 6},
                                                                           {"bool", 9},
                                                                           {"float16", 10},
                                                                           {"bfloat16", 16}}) {
    auto* tensor = add(name, type);
    tensor->add_int32_data(0);
    tensor->add_int32_data(type == 10 ? 0x4000 : 64);  // 2.0 in half precision
  }
  for (const auto& [name, type] : std::vector<std::pair<const char*, int>>{{"uint32", 12}, {"uint64", 13}}) {
    auto* tensor = add(name, type);
    tensor->add_uint64_data(0);
    tensor->add_uint64_data(64);
  }
  auto* ints = add("int64", 7);
  ints->add_int64_data(-1);
  ints->add_int64_data(64);
  auto* doubles = add("float64", 11);
  doubles->add_double_data(0.5);
  doubles->add_double_data(64);
  auto* strings = add("string", 8);
  strings->add_string_data("a");
  strings->add_string_data(std::string("b\0c", 3));
  const auto loaded = parse(model);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const auto data = [&](const char* name) { return loaded->graph.value(loaded->graph.findValue(name)).data->view(); };
  for (const char* name : {"uint8", "int8", "uint16", "int16", "int32", "uint32", "uint64", "int64", "float64"}) {
    EXPECT_EQ(dtypeName(data(name).dtype), name);
    EXPECT_EQ(elementAsDouble(data(name), 1), 64.0) << name;
  }
  EXPECT_EQ(elementAsDouble(data("float16"), 1), 2.0);
  EXPECT_EQ(data("bool").as<std::uint8_t>()[1], 1);
  EXPECT_EQ(data("string").as<std::string>()[1], std::string("b\0c", 3));
}

TEST(Reader, RawBoolsBecomeZeroOrOne) {
  auto model = smallModel();
  auto* tensor = model.mutable_graph()->add_initializer();
  tensor->set_name("mask");
  tensor->set_data_type(onnx::TensorProto::BOOL);
  tensor->add_dims(3);
  tensor->set_raw_data(std::string("\x00\x7f\xff", 3));
  const auto loaded = parse(model);
  const auto mask = loaded->graph.value(loaded->graph.findValue("mask")).data->as<std::uint8_t>();
  EXPECT_EQ(mask[0] + 10 * mask[1] + 100 * mask[2], 110);
}

TEST(Reader, ConstantFormsBecomeValue) {
  auto model = smallModel();
  auto* attribute = addNode(*model.mutable_graph(), "Constant", {}, {"c"}, "constant")->add_attribute();
  attribute->set_name("value_ints");
  attribute->set_type(onnx::AttributeProto::INTS);
  attribute->add_ints(7);
  const auto loaded = parse(model);
  ASSERT_TRUE(loaded.has_value());
  const Tensor* value = loaded->graph.node(loaded->graph.findNode("constant")).attrs.tensor("value");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->as<std::int64_t>()[0], 7);
}

TEST(Reader, OptionalInputsAndOutputsStayAbsent) {
  auto model = smallModel();
  addNode(*model.mutable_graph(), "Clip", {"z", "", "z"}, {"", "second"}, "clip");
  const auto loaded = parse(model);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const Node& node = loaded->graph.node(loaded->graph.findNode("clip"));
  EXPECT_FALSE(node.input(1).valid());
  EXPECT_FALSE(node.output(0).valid());
  EXPECT_EQ(loaded->graph.value(node.output(1)).outputIndex, 1);
}

TEST(Reader, DimsReadAsPolynomials) {
  const Dim batch = Dim::symbol("batch");
  EXPECT_EQ(dimFromText("batch"), batch);
  EXPECT_EQ(dimFromText("batch + 1"), batch + 1);
  EXPECT_EQ(dimFromText("2*batch*heads"), Dim(2) * batch * Dim::symbol("heads"));
  EXPECT_EQ(dimFromText("batch-size"), Dim::symbol("batch-size"));
  EXPECT_EQ(dimFromText("floor((s0+1)/(2))"), Dim::floorDiv(Dim::symbol("s0") + 1, Dim(2)));
  for (const Dim& dim : {batch * batch - 3, Dim(4) * batch - Dim::symbol("s0"), Dim::max(batch, Dim(2)) + 7,
                         Dim::floorDiv(batch, Dim::symbol("s0")), Dim::ceilDiv(Dim::min(batch, Dim(9)), Dim(4)) - 1,
                         Dim::floorDiv(Dim::floorDiv(batch - 1, Dim(2)), Dim(2)) + 1})
    EXPECT_EQ(dimFromText(dim.text()), dim) << dim.text();
  for (const char* text : {"", "+", "a+", "9999999999999999999999", "((", "a b", "1e9*9999999999999*a*9*9*9", "-"})
    EXPECT_FALSE(dimFromText(text).known()) << text;
}

// As exporters write them: PyTorch's two, ONNX Runtime's symbolic shape inference, names of TensorFlow and Paddle.
TEST(Reader, DimsReadAsRationalArithmetic) {
  const Dim height = Dim::symbol("height"), s0 = Dim::symbol("s0");
  EXPECT_EQ(dimFromText("floor(height/2 - 1/2) + 1"), Dim::floorDiv(height - 1, Dim(2)) + 1);
  EXPECT_EQ(dimFromText("floor(floor(height/2 - 1/2)/2 - 1/2) + 1"),
            Dim::floorDiv(Dim::floorDiv(height - 1, Dim(2)) - 1, Dim(2)) + 1);
  EXPECT_EQ(dimFromText("floor(height/2 - 1/3)"), Dim::floorDiv(Dim(3) * height - 2, Dim(6)));
  EXPECT_EQ(dimFromText("ceiling(height/16)"), Dim::ceilDiv(height, Dim(16)));
  EXPECT_EQ(dimFromText("((s0 - 1)//2) + 1"), Dim::floorDiv(s0 - 1, Dim(2)) + 1);
  EXPECT_EQ(dimFromText("2*(s0//2)"), Dim(2) * Dim::floorDiv(s0, Dim(2)));
  EXPECT_EQ(dimFromText("(s0 + 1)*(s0 - 1)"), s0 * s0 - 1);
  EXPECT_EQ(dimFromText("s0**2"), s0 * s0);
  EXPECT_EQ(dimFromText("Max(1, s0)"), Dim::max(Dim(1), s0));
  EXPECT_EQ(dimFromText("Min(128, height, s0)"), Dim::min(Dim::min(Dim(128), height), s0));
  EXPECT_EQ(dimFromText("(2*height + 4)/2"), height + 2);
  EXPECT_EQ(dimFromText("-(-s0//2)"), Dim(0) - Dim::floorDiv(Dim(0) - s0, Dim(2)));
  // No whole number, no expression, or another function: names.
  for (const char* text : {"height/2", "height/2 + 1", "floor(height/0)", "height//0", "floor(height/2", "s0**99", "a//",
                           "model/dense/dim0", "unk__749", "Max(1/2, s0)", "floor()", "p2o.DynamicDimension.0", "s0**-1"})
    EXPECT_EQ(dimFromText(text), Dim::symbol(text)) << text;
  EXPECT_EQ(dimFromText("Mod(s0, 2) + 1"), Dim::symbol("Mod(s0, 2)") + 1);
}

TEST(Reader, WarnsOfParametersThatAnExporterMerged) {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  auto* zeros = addFloats(graph, "first.bias", {3});
  for (float& element : *zeros->mutable_float_data()) element = 0;
  addNode(graph, "Add", {"z", "first.bias"}, {"p"}, "/first/Add");
  addNode(graph, "Add", {"p", "first.bias"}, {"q"}, "/second/Add");
  const auto merged = parse(model);
  ASSERT_EQ(merged->warnings.size(), 1u);
  EXPECT_NE(merged->warnings[0].message.find("first, second"), std::string::npos) << merged->warnings[0].message;
  // TorchScript numbers the calls of a module; the first module's own name decides which are calls.
  graph.mutable_node(graph.node_size() - 1)->set_name("/first_1/Add");
  EXPECT_TRUE(parse(model)->warnings.empty());
  for (const char* other : {"/first_norm/Add", "/first_1x/Add", "/first/inner/Add", "/second_1/Add"}) {
    graph.mutable_node(graph.node_size() - 1)->set_name(other);
    EXPECT_EQ(parse(model)->warnings.size(), 1u) << other;
  }
  zeros->set_float_data(0, 1);  // tied on purpose: random numbers are never equal by accident
  EXPECT_TRUE(parse(model)->warnings.empty());
}

TEST(Reader, ReadsExtentsOfMinusOneAsUnknownAndWarns) {
  auto model = smallModel();
  auto* shape = model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape->mutable_dim(0)->set_dim_value(-1);
  const auto loaded = parse(model);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->graph.value(loaded->graph.findValue("x")).type.text(), "float32[x.dim0, 3]");
  ASSERT_EQ(loaded->warnings.size(), 1u);
  EXPECT_EQ(loaded->warnings[0].message, "1 declared extent is -1, which is no extent: read as unknown");
}

TEST(Reader, OpensOddButRightModels) {
  auto empty = smallModel();
  empty.mutable_graph()->Clear();
  EXPECT_TRUE(parse(empty).has_value());
  auto unicode = smallModel();
  unicode.mutable_graph()->mutable_node(0)->set_name("Schicht/größe/\xff\xfe");
  unicode.mutable_graph()->mutable_node(1)->clear_name();
  EXPECT_TRUE(parse(unicode).has_value());
  auto zeroSized = smallModel();
  addFloats(*zeroSized.mutable_graph(), "none", {0, 4});
  EXPECT_TRUE(parse(zeroSized).has_value());
  auto prefixed = smallModel();
  prefixed.mutable_opset_import(0)->set_domain("ai.onnx");
  prefixed.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  ASSERT_TRUE(parse(prefixed).has_value());
  EXPECT_EQ(parse(prefixed)->graph.node(NodeId{0}).domain, "");
  for (const int opset : {7, 21, 28}) {
    auto model = smallModel();
    model.mutable_opset_import(0)->set_version(opset);
    model.set_ir_version(opset == 7 ? 3 : 13);
    EXPECT_TRUE(parse(model).has_value()) << opset;
  }
  EXPECT_TRUE(parse(nestedFunctions(100)).has_value());
}

TEST(Reader, OpensEveryModelOfTheCorpus) {
  const auto models = corpusModels();
  if (models.empty()) GTEST_SKIP() << "no corpus beside the source tree (STEPSCOPE_SHARED)";
  LoadOptions options;
  options.missingWeights = LoadOptions::MissingWeights::kRandom;
  for (const auto& path : models) {
    const auto loaded = loadModel(path, options);
    ASSERT_TRUE(loaded.has_value()) << path << loaded.error().message;
    EXPECT_TRUE(loaded->graph.verify().empty()) << path;
    EXPECT_TRUE(loaded->warnings.empty()) << path << loaded->warnings[0].message;
    std::size_t withPath = 0;
    for (const NodeId id : loaded->graph.order()) withPath += loaded->graph.node(id).provenance.modulePath.empty() ? 0 : 1;
    EXPECT_GE(withPath * 100, loaded->graph.order().size() * 99) << path;
  }
}

}  // namespace
}  // namespace stepscope::testing
