// Infinities, NaN and zeros arrive at the result of every operator; what reaches its inputs is compared with PyTorch's
// autograd. The table, upstream_gradients.json, is written by upstream_gradients.py beside it. A rule that multiplies by a
// mask turns the infinite gradient of a branch that was not taken into NaN; a rule that selects does not.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/autodiff/gradient.h"
#include "engine/exec/interpreter.h"
#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

using Json = nlohmann::json;

// Differences on purpose, each with its reason; "row" or "row input".
const std::map<std::string, std::string> kDifferent{
    {"Conv 1", "finite where PyTorch multiplies the padding with an infinity"},
    {"ReduceProd 0", "finite where PyTorch has inf * 0: beside a zero the product of the others is not multiplied with dy"},
};

const Json& table() {
  static const Json rows = Json::parse(std::ifstream(SS_SOURCE_DIR "/tests/engine/autodiff/upstream_gradients.json"));
  return rows;
}

double number(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  return json == "inf" ? infinity : json == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

Tensor tensorOf(const Json& data, DType dtype, const Dims& dims) {
  Tensor tensor(dtype, dims);
  for (std::size_t i = 0; i < data.size(); ++i) storeElement(tensor.view(), static_cast<std::int64_t>(i), number(data[i]));
  return tensor;
}

Attributes attributesOf(const Json& row) {
  Attributes attrs;
  for (const auto& [name, value] : row.at("attrs").items()) {
    if (value.is_array()) attrs.set(name, value.get<std::vector<std::int64_t>>());
    if (value.is_string()) attrs.set(name, value.get<std::string>());
    if (value.is_number_integer()) attrs.set(name, value.get<std::int64_t>());
    if (value.is_number_float()) attrs.set(name, value.get<float>());
  }
  return attrs;
}

bool trained(const Json& row, std::size_t input) {
  const Json& list = row.at("trained");
  return std::find(list.begin(), list.end(), input) != list.end();
}

DType floatAs(DType dtype, DType wanted) { return dtype == DType::kF64 ? wanted : dtype; }

void expectGradients(const Json& row, const Json& expected, const std::vector<std::vector<double>>& found,
                     double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  const bool mixes = row.at("mixes").get<bool>();  // infinities are summed: of which kind the result is, the order decides
  for (std::size_t t = 0; t < found.size(); ++t) {
    const std::string input = row.at("trained")[t].dump();
    if (kDifferent.contains(row.at("name").get<std::string>() + " " + input)) continue;
    ASSERT_EQ(found[t].size(), expected[t].size()) << "input " << input;
    for (std::size_t k = 0; k < found[t].size(); ++k) {
      const double want = number(expected[t][k]), got = found[t][k];
      const bool same = mixes && !std::isfinite(want) ? !std::isfinite(got)
                        : std::isnan(want)            ? std::isnan(got)
                        : std::isinf(want)            ? got == want
                                                      : std::abs(got - want) <= tolerance * (1 + std::abs(want));
      EXPECT_TRUE(same) << "input " << input << "[" << k << "]: found " << got << ", PyTorch has " << want;
    }
  }
}

// loss = ReduceSum(y * upstream): what arrives at y is 1 * upstream.
Result<std::vector<std::vector<double>>> interpreted(const Json& row, const Json& dy, DType type) {
  Graph graph;
  std::vector<ValueId> operands, leaves;
  std::vector<Tensor> contents;
  for (std::size_t i = 0; i < row.at("inputs").size(); ++i) {
    const Json& input = row.at("inputs")[i];
    if (input.is_null()) {
      operands.emplace_back();
      continue;
    }
    const DType dtype = floatAs(*dtypeFromName(input.at("dtype").get<std::string>()), type);
    Tensor tensor = tensorOf(input.at("data"), dtype, input.at("dims").get<Dims>());
    if (!trained(row, i)) {
      operands.push_back(graph.addConstant("c" + std::to_string(i), tensor));
      continue;
    }
    const ValueId id =
        graph.addValue("t" + std::to_string(i), {ValueKind::kTensor, dtype, shapeOf(tensor.dims())}, ValueRole::kInput);
    graph.mutableInputs().push_back(id);
    operands.push_back(id);
    leaves.push_back(id);
    contents.push_back(std::move(tensor));
  }
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < row.at("outputs").get<std::size_t>(); ++i) outputs.push_back("y" + std::to_string(i));
  Attributes attrs = attributesOf(row);
  if (row.at("op") == "Cast") attrs.set("to", static_cast<std::int64_t>(type));
  const NodeId node = graph.addNode("op", row.at("domain"), row.at("op"), operands, outputs, attrs);
  graph.mutableNode(node).sinceVersion = kInternalOpset;
  Inference inference(graph, builtInOperators(), {.foldElements = -1});
  SS_TRY(inference.run());
  const ValueId y = graph.node(node).output(row.at("output").get<std::size_t>());
  const ValueId upstream = graph.addConstant("upstream", tensorOf(dy, type, row.at("dims").get<Dims>()));
  const NodeId product = graph.addNode("product", "", "Mul", {y, upstream}, {"weighted"});
  const NodeId sum =
      graph.addNode("sum", "", "ReduceSum", {graph.node(product).output(0)}, {"loss"}, {{"keepdims", std::int64_t{0}}});
  const ValueId loss = graph.node(sum).output(0);
  graph.mutableOutputs() = {loss};
  for (const NodeId id : {product, sum}) graph.mutableNode(id).sinceVersion = kInternalOpset;
  Inference again(graph, builtInOperators(), {.foldElements = -1});
  SS_TRY(again.run());
  graph.setPass("gradient");
  SS_ASSIGN(const GradientReport report, buildGradient(graph, again, {loss, leaves}));
  Interpreter interpreter(graph, builtInOperators(), type == DType::kF64 ? Backend::kReference : Backend::kCpu, {.seed = 7});
  for (std::size_t i = 0; i < leaves.size(); ++i) SS_TRY(interpreter.feed(leaves[i], contents[i]));
  SS_TRY(interpreter.run());
  std::vector<std::vector<double>> gradients;
  for (const ValueId gradient : report.gradients) {
    gradients.emplace_back();
    const Tensor* tensor = gradient ? interpreter.value(gradient) : nullptr;
    for (std::int64_t k = 0; tensor != nullptr && k < tensor->elements(); ++k)
      gradients.back().push_back(elementAsDouble(tensor->view(), k));
  }
  return gradients;
}

void addAttribute(onnx::NodeProto& node, const std::string& name, const Json& value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  if (value.is_array()) {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const Json& v : value) attribute.add_ints(v.get<std::int64_t>());
  } else if (value.is_string()) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value.get<std::string>());
  } else if (value.is_number_integer()) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value.get<std::int64_t>());
  } else {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value.get<float>());
  }
}

void addInitializer(onnx::GraphProto& graph, const std::string& name, const Tensor& tensor) {
  onnx::TensorProto& proto = *graph.add_initializer();
  proto.set_name(name);
  proto.set_data_type(static_cast<int>(tensor.dtype()));
  for (const std::int64_t dim : tensor.dims()) proto.add_dims(dim);
  for (std::int64_t k = 0; k < tensor.elements(); ++k) {
    const double value = elementAsDouble(tensor.view(), k);
    if (tensor.dtype() == DType::kF32)
      proto.add_float_data(static_cast<float>(value));
    else if (tensor.dtype() == DType::kI64)
      proto.add_int64_data(static_cast<std::int64_t>(value));
    else
      proto.add_int32_data(static_cast<std::int32_t>(value));
  }
}

// The same as a file, in float32: built with all passes, run by the executor.
Result<SmallStep> stepped(const Json& row, const Json& dy) {
  onnx::GraphProto graph;
  google::protobuf::RepeatedPtrField<onnx::NodeProto> negations;
  onnx::NodeProto node;
  node.set_op_type(row.at("op").get<std::string>());
  node.set_domain(row.at("domain").get<std::string>());
  for (const auto& [name, value] : row.at("attrs").items())
    addAttribute(node, name, row.at("op") == "Cast" ? Json(static_cast<std::int64_t>(DType::kF32)) : value);
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < row.at("inputs").size(); ++i) {
    const Json& input = row.at("inputs")[i];
    if (input.is_null()) {
      node.add_input("");
      continue;
    }
    const std::string name = (trained(row, i) ? "t" : "c") + std::to_string(i);
    if (row.at("op") == "BatchNormalization" && i > 2 && trained(row, i)) {
      // Statistics are not trained; computed ones lead to what is.
      for (const auto& [from, to] : {std::pair(name, name + "_less"), std::pair(name + "_less", name + "_again")}) {
        onnx::NodeProto& negated = *negations.Add();
        negated.set_op_type("Neg");
        negated.add_input(from);
        negated.add_output(to);
      }
      node.add_input(name + "_again");
    } else {
      node.add_input(name);
    }
    if (trained(row, i)) parameters.push_back(name);
    const DType dtype = floatAs(*dtypeFromName(input.at("dtype").get<std::string>()), DType::kF32);
    addInitializer(graph, name, tensorOf(input.at("data"), dtype, input.at("dims").get<Dims>()));
  }
  for (std::size_t i = 0; i < row.at("outputs").get<std::size_t>(); ++i) node.add_output("y" + std::to_string(i));
  for (const onnx::NodeProto& negated : negations) *graph.add_node() = negated;
  *graph.add_node() = node;
  addInitializer(graph, "upstream", tensorOf(dy, DType::kF32, row.at("dims").get<Dims>()));
  onnx::NodeProto& product = *graph.add_node();
  product.set_op_type("Mul");
  product.add_input("y" + row.at("output").dump());
  product.add_input("upstream");
  product.add_output("weighted");
  onnx::NodeProto& sum = *graph.add_node();
  sum.set_op_type("ReduceSum");
  sum.add_input("weighted");
  sum.add_output("loss");
  addAttribute(sum, "keepdims", 0);
  std::string text;
  google::protobuf::TextFormat::PrintToString(graph, &text);
  return smallStep(text, 21, parameters, {1, {{"train", "^t[0-9]+$"}, {"freeze", "^(c[0-9]+|upstream)$"}, {"lr", "0"}}, {}});
}

std::string caseName(const Json& row, const Json& oneCase) {
  return row.at("name").get<std::string>() + " with upstream " + oneCase.at("dy").dump();
}

TEST(UpstreamGradients, AgreeWithPyTorchInDouble) {
  for (const Json& row : table())
    for (const Json& oneCase : row.at("cases")) {
      SCOPED_TRACE(caseName(row, oneCase));
      if (kDifferent.contains(row.at("name"))) continue;
      const auto found = interpreted(row, oneCase.at("dy"), DType::kF64);
      ASSERT_TRUE(found.has_value()) << found.error().message;
      expectGradients(row, oneCase.at("dx"), *found, 1e-6);
    }
}

TEST(UpstreamGradients, AgreeWithPyTorchOnTheFastKernels) {
  for (const Json& row : table())
    for (const Json& oneCase : row.at("cases")) {
      SCOPED_TRACE(caseName(row, oneCase));
      if (kDifferent.contains(row.at("name"))) continue;
      const auto found = interpreted(row, oneCase.at("dy"), DType::kF32);
      ASSERT_TRUE(found.has_value()) << found.error().message;
      expectGradients(row, oneCase.at("dx"), *found, 1e-4);
    }
}

TEST(UpstreamGradients, AgreeWithPyTorchAfterAllPasses) {
  for (const Json& row : table())
    for (const Json& oneCase : row.at("cases")) {
      SCOPED_TRACE(caseName(row, oneCase));
      if (kDifferent.contains(row.at("name"))) continue;
      const auto step = stepped(row, oneCase.at("dy"));
      ASSERT_TRUE(step.has_value()) << step.error().message;
      std::vector<std::vector<double>> found;
      for (const auto& input : row.at("trained")) found.push_back(step->gradients.at("t" + input.dump()));
      expectGradients(row, oneCase.at("dx"), found, 1e-4);
    }
}

TEST(UpstreamGradients, CoverEveryOpWithAGradient) {
  const std::set<std::string> without{
      "com.microsoft.SoftmaxCrossEntropyLossInternal",  // the rule of SoftmaxCrossEntropyLoss
      "com.microsoft.NegativeLogLikelihoodLossInternal",
      "com.microsoft.MatMulBnb4",  // MatMul with a matrix that is frozen
      "stepscope.DropoutPart",     // the rule of Dropout
      "stepscope.CustomGradient",  // what the model writes down: custom_gradient_test.cpp
      "stepscope.AllReduce",       // what other ranks give back: model_collectives_test.cpp
      "stepscope.AllGatherRows",
      "stepscope.AllToAll",
      "stepscope.Broadcast",
      "stepscope.Recv",
      "stepscope.Reduce",
      "stepscope.ReduceScatterRows",
      "stepscope.Send",
      ".RoiAlign",  // torchvision's; sampling as in GridSample
  };
  std::set<std::string> covered(without);
  for (const Json& row : table())
    covered.insert(row.at("domain").get<std::string>() + "." + row.at("op").get<std::string>());
  for (const OpDef* op : allOps())
    if (op->gradient && !op->sequences)
      EXPECT_TRUE(covered.contains(std::string(op->domain) + "." + std::string(op->name))) << op->domain << "." << op->name;
}

}  // namespace
}  // namespace stepscope::testing
