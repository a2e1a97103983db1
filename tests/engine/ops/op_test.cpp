// Driven by the list of ops and their examples: an op is tested because it is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "engine/autodiff/gradient.h"
#include "engine/exec/interpreter.h"
#include "engine/ops/operators.h"
#include "engine/ops/stop_inputs.h"
#include "engine/passes/check_operands.h"
#include "tests/engine/ops/examples.h"

namespace stepscope {
namespace {

using testing::allExamples;
using testing::ExampleGraph;
using testing::makeGraph;
using testing::OpExample;

class OpExamples : public ::testing::TestWithParam<OpExample> {};

Result<std::vector<Tensor>> evaluate(const ExampleGraph& example, const std::vector<Tensor>& contents, Backend backend) {
  Interpreter interpreter(example.graph, builtInOperators(), backend, {.seed = 7});
  for (std::size_t i = 0; i < example.inputs.size(); ++i)
    if (example.inputs[i] && example.graph.value(example.inputs[i]).role == ValueRole::kInput)
      SS_TRY(interpreter.feed(example.inputs[i], contents[i]));
  SS_TRY(interpreter.run());
  std::vector<Tensor> outputs;
  for (const ValueId out : example.graph.node(example.node).outputs) outputs.push_back(*interpreter.value(out));
  return outputs;
}

TEST_P(OpExamples, ShapeRuleAgreesWithKernel) {
  ExampleGraph example = makeGraph(GetParam(), DType::kF64);
  const OpDef* op = builtInOperators().ops.find(GetParam().domain, GetParam().op);
  ASSERT_NE(op, nullptr) << "no op " << GetParam().op;
  Graph symbolic = example.graph;  // what is known without contents
  Inference inference(symbolic, builtInOperators(), {.foldElements = -1});
  const Status status = inference.run();
  ASSERT_TRUE(status.has_value()) << status.error().message;
  const auto outputs = evaluate(example, example.contents, Backend::kReference);
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
  for (std::size_t o = 0; o < outputs->size(); ++o) {
    const ValueType& type = symbolic.value(symbolic.node(example.node).outputs[o]).type;
    EXPECT_EQ(dtypeName(type.dtype), dtypeName((*outputs)[o].dtype())) << "output " << o;
    if (!type.shape) continue;
    ASSERT_EQ(type.shape->size(), (*outputs)[o].dims().size()) << "output " << o << " " << type.text();
    for (std::size_t axis = 0; axis < type.shape->size(); ++axis)
      if ((*type.shape)[axis].known()) EXPECT_EQ((*type.shape)[axis].value(), (*outputs)[o].dims()[axis]) << "output " << o;
  }
}

TEST_P(OpExamples, SymbolicShapesDoNotFail) {
  ExampleGraph example = makeGraph(GetParam(), DType::kF32);
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    if (!example.inputs[i] || example.graph.value(example.inputs[i]).role != ValueRole::kInput) continue;
    Value& value = example.graph.mutableValue(example.inputs[i]);
    // Equal numbers get equal symbols, so equations between inputs still hold.
    Shape shape = *value.type.shape;
    for (Dim& dim : shape)
      if (!(dim == Dim(1))) dim = Dim::symbol("d" + dim.text());
    value.type.shape = std::move(shape);
  }
  Inference inference(example.graph, builtInOperators(), {.foldElements = -1});
  const Status status = inference.run();
  EXPECT_TRUE(status.has_value()) << status.error().message;
}

// d(sum of outputs weighted by fixed numbers) / d(input) by the gradient rule against central differences, all in f64.
TEST_P(OpExamples, GradientAgreesWithFiniteDifferences) {
  const OpExample& parameter = GetParam();
  const OpDef* op = builtInOperators().ops.find(parameter.domain, parameter.op);
  ASSERT_NE(op, nullptr);
  if (!op->gradient) GTEST_SKIP() << "not differentiable: " << op->noGradientReason;
  if (!parameter.differentiate) GTEST_SKIP() << "the example is for values only";
  const ExampleGraph example = makeGraph(parameter, DType::kF64);
  const auto outputs = evaluate(example, example.contents, Backend::kReference);
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;

  bool checked = false;
  for (std::size_t o = 0; o < outputs->size(); ++o) {
    if (!maskHas(op->differentiableOutputs, o) || !isFloating((*outputs)[o].dtype()) || (*outputs)[o].elements() == 0)
      continue;
    Tensor weights(DType::kF64, (*outputs)[o].dims());
    for (std::int64_t k = 0; k < weights.elements(); ++k)
      storeElement(weights.view(), k, std::sin(1.0 + 1.7 * static_cast<double>(k)));
    // loss = ReduceSum(out * weights)
    Graph graph = example.graph;
    const ValueId out = graph.node(example.node).outputs[o];
    const ValueId w = graph.addConstant("weights", weights);
    const NodeId product = graph.addNode("product", "", "Mul", {out, w}, {"weighted"});
    const NodeId sum =
        graph.addNode("sum", "", "ReduceSum", {graph.node(product).outputs[0]}, {"loss"}, {{"keepdims", std::int64_t{0}}});
    const ValueId loss = graph.node(sum).outputs[0];
    graph.mutableOutputs() = {loss};
    Inference inference(graph, builtInOperators(), {.foldElements = -1});
    ASSERT_TRUE(inference.run().has_value());
    GradientRequest request{loss, {}};
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < example.inputs.size(); ++i) {
      if (!example.inputs[i] || example.graph.value(example.inputs[i]).role != ValueRole::kInput) continue;
      if (!maskHas(op->differentiableInputs, i) || !isFloating(example.contents[i].dtype())) continue;
      request.trained.push_back(example.inputs[i]);
      which.push_back(i);
    }
    if (which.empty()) continue;
    graph.setPass("gradient");
    const auto report = buildGradient(graph, inference, request);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    for (const std::string& problem : graph.verify()) FAIL() << problem;
    Interpreter interpreter(graph, builtInOperators(), Backend::kReference, {.seed = 7});
    for (std::size_t i = 0; i < example.inputs.size(); ++i)
      if (example.inputs[i] && example.graph.value(example.inputs[i]).role == ValueRole::kInput)
        ASSERT_TRUE(interpreter.feed(example.inputs[i], example.contents[i]).has_value());
    const Status ran = interpreter.run();
    ASSERT_TRUE(ran.has_value()) << ran.error().message;
    const auto weighted = [&](const std::vector<Tensor>& contents) {
      const auto values = evaluate(example, contents, Backend::kReference);
      EXPECT_TRUE(values.has_value());
      double total = 0;
      for (std::int64_t k = 0; values && k < weights.elements(); ++k)
        total += elementAsDouble((*values)[o].view(), k) * elementAsDouble(weights.view(), k);
      return total;
    };
    for (std::size_t t = 0; t < which.size(); ++t) {
      const std::size_t i = which[t];
      ASSERT_TRUE(report->gradients[t].valid()) << "no gradient for input " << i;
      const Tensor* gradient = interpreter.value(report->gradients[t]);
      ASSERT_NE(gradient, nullptr);
      ASSERT_EQ(gradient->dims(), example.contents[i].dims()) << "gradient of input " << i;
      ASSERT_EQ(gradient->dtype(), DType::kF64) << "gradient of input " << i;
      for (std::int64_t k = 0; k < gradient->elements(); ++k) {
        const double h = 1e-6;
        std::vector<Tensor> moved = example.contents;
        moved[i] = example.contents[i].clone();
        const double center = elementAsDouble(moved[i].view(), k);
        storeElement(moved[i].view(), k, center + h);
        const double up = weighted(moved);
        storeElement(moved[i].view(), k, center - h);
        const double down = weighted(moved);
        const double expected = (up - down) / (2 * h), found = elementAsDouble(gradient->view(), k);
        // Central differences in f64 are good to about 1e-9 of the loss's size.
        EXPECT_NEAR(found, expected, parameter.tolerance * 50 * (1 + std::abs(expected)))
            << "output " << o << ", input " << i << ", element " << k;
      }
      checked = true;
    }
  }
  EXPECT_TRUE(checked) << "no (output, input) pair of the differentiability table was checked";
}

TEST_P(OpExamples, CpuKernelAgreesWithReferenceInF64) {
  const ExampleGraph single = makeGraph(GetParam(), DType::kF32), twice = makeGraph(GetParam(), DType::kF64);
  const auto fast = evaluate(single, single.contents, Backend::kCpu);
  const auto exact = evaluate(twice, twice.contents, Backend::kReference);
  ASSERT_TRUE(fast.has_value()) << fast.error().message;
  ASSERT_TRUE(exact.has_value()) << exact.error().message;
  for (std::size_t o = 0; o < fast->size(); ++o) {
    const Tensor &a = (*fast)[o], &b = (*exact)[o];
    ASSERT_EQ(a.dims(), b.dims());
    if (a.dtype() == DType::kString) continue;
    for (std::int64_t k = 0; k < a.elements(); ++k) {
      const double x = elementAsDouble(a.view(), k), y = elementAsDouble(b.view(), k);
      if (std::isnan(y) || std::isinf(y)) {
        EXPECT_TRUE(std::isnan(y) ? std::isnan(x) : x == y)
            << "output " << o << " element " << k << " found " << x << " expected " << y;
        continue;
      }
      EXPECT_NEAR(x, y, 2e-5 * (1 + std::abs(y))) << "output " << o << " element " << k;
    }
  }
}

// The element of `operand` that is broadcast to place `at` of `dims`, as a tensor of one element and the same rank.
Tensor elementAt(const Tensor& operand, const Dims& dims, std::int64_t at) {
  std::int64_t offset = 0, stride = 1;
  for (std::size_t axis = dims.size(), own = operand.dims().size(); axis-- > 0;) {
    const std::int64_t place = at % dims[axis];
    at /= dims[axis];
    if (own == 0) continue;
    if (operand.dims()[--own] != 1) offset += place * stride;
    stride *= operand.dims()[own];
  }
  Tensor element(operand.dtype(), Dims(operand.dims().size(), 1));
  std::memcpy(element.data(),
              static_cast<const std::byte*>(operand.data()) + static_cast<std::size_t>(offset) * dtypeSize(operand.dtype()),
              dtypeSize(operand.dtype()));
  return element;
}

// What OpDef::pointwise promises to passes that leave out tokens and places.
TEST_P(OpExamples, APointwiseOpComputesEveryElementAlone) {
  const OpDef* op = builtInOperators().ops.find(GetParam().domain, GetParam().op);
  ASSERT_NE(op, nullptr);
  if (!op->pointwise) GTEST_SKIP() << "not pointwise";
  EXPECT_EQ(op->outputs.most, 1u);
  EXPECT_FALSE(op->random);
  const ExampleGraph whole = makeGraph(GetParam(), DType::kF64);
  const auto all = evaluate(whole, whole.contents, Backend::kReference);
  ASSERT_TRUE(all.has_value()) << all.error().message;
  const Tensor& y = all->front();
  const auto isText = [](const Tensor& tensor) { return tensor.dtype() == DType::kString; };
  if (isText(y) || std::ranges::any_of(whole.contents, isText)) GTEST_SKIP() << "strings are no bytes to compare";
  for (std::int64_t at = 0; at < y.elements(); ++at) {
    OpExample one = GetParam();
    for (std::size_t i = 0; i < one.inputs.size(); ++i)
      if (!one.inputs[i].absent) one.inputs[i] = testing::ExampleInput::of(elementAt(whole.contents[i], y.dims(), at));
    const ExampleGraph single = makeGraph(one, DType::kF64);
    const auto alone = evaluate(single, single.contents, Backend::kReference);
    ASSERT_TRUE(alone.has_value()) << alone.error().message;
    ASSERT_EQ(alone->front().elements(), 1);
    EXPECT_EQ(std::memcmp(alone->front().data(), elementAt(y, y.dims(), at).data(), dtypeSize(y.dtype())), 0)
        << "element " << at;
  }
}

// Too few, too many or absent operands are found before anything looks at them.
TEST_P(OpExamples, ItsOperandsAreAsManyAsTheOpTakes) {
  const ExampleGraph example = makeGraph(GetParam(), DType::kF32);
  const OpDef* op = builtInOperators().ops.find(GetParam().domain, GetParam().op);
  ASSERT_NE(op, nullptr);
  const auto problems = [&](auto change) {
    Graph graph = example.graph;
    change(graph.mutableNode(example.node));
    std::vector<OperandProblem> found;
    checkOperands(
        graph, kInternalOpset, [](const Node&) { return false; }, found, builtInOperators().ops);
    return found;
  };
  for (const OperandProblem& problem : problems([](Node&) {})) ADD_FAILURE() << problem.where << ": " << problem.message;
  for (std::size_t i = 0; i < op->inputs.least; ++i) {
    EXPECT_EQ(problems([&](Node& node) { node.inputs.resize(i); }).size(), 1u) << "cut to " << i << " inputs";
    if (!maskHas(op->absentInputs, i))
      EXPECT_EQ(problems([&](Node& node) { node.inputs[i] = {}; }).size(), 1u) << "without input " << i;
  }
  const ValueId any = example.graph.node(example.node).outputs.front();
  if (op->inputs.most != kMany)
    EXPECT_EQ(problems([&](Node& node) { node.inputs.resize(op->inputs.most + 1, any); }).size(), 1u);
  if (op->outputs.most != kMany)
    EXPECT_EQ(problems([&](Node& node) { node.outputs.resize(op->outputs.most + 1); }).size(), 1u);
  if (op->outputs.least > 0) EXPECT_EQ(problems([&](Node& node) { node.outputs.resize(op->outputs.least - 1); }).size(), 1u);
}

TEST_P(OpExamples, SecondRunGivesTheSameBits) {
  const ExampleGraph example = makeGraph(GetParam(), DType::kF32);
  const auto first = evaluate(example, example.contents, Backend::kCpu),
             second = evaluate(example, example.contents, Backend::kCpu);
  ASSERT_TRUE(first.has_value() && second.has_value());
  for (std::size_t o = 0; o < first->size(); ++o)
    if ((*first)[o].dtype() != DType::kString && (*first)[o].bytes() > 0)
      EXPECT_EQ(std::memcmp((*first)[o].data(), (*second)[o].data(), (*first)[o].bytes()), 0) << "output " << o;
}

INSTANTIATE_TEST_SUITE_P(Ops, OpExamples, ::testing::ValuesIn(allExamples()),
                         [](const ::testing::TestParamInfo<OpExample>& info) { return info.param.name; });

TEST(OpList, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpDef* op : allOps())
    EXPECT_TRUE(names.insert(std::string(op->domain) + "." + std::string(op->name)).second)
        << op->name << " is listed twice";
}

TEST(OpList, EveryInternalOpStandsInTheReadme) {
  std::ifstream file(SS_SOURCE_DIR "/engine/ops/README.md");
  std::ostringstream text;
  text << file.rdbuf();
  std::set<std::string> words;
  std::string word;
  for (const char c : text.str() + " ")
    if (std::isalnum(static_cast<unsigned char>(c)))
      word += c;
    else if (!word.empty())
      words.insert(std::exchange(word, {}));
  for (const OpDef* op : allOps())
    if (op->domain == kInternalDomain) EXPECT_TRUE(words.contains(std::string(op->name))) << op->name;
}

TEST(OpList, EveryOpHasAnExample) {
  std::set<std::string> covered;
  for (const OpExample& example : allExamples()) covered.insert(example.domain + "." + example.op);
  for (const OpDef* op : allOps())
    if (!op->sequences)
      EXPECT_TRUE(covered.contains(std::string(op->domain) + "." + std::string(op->name))) << op->domain << "." << op->name;
}

TEST(OpList, EveryOpSaysHowManyOperandsItTakes) {
  for (const OpDef* op : allOps()) {
    EXPECT_LE(op->inputs.least, op->inputs.most) << op->name;
    EXPECT_GE(op->outputs.most, 1u) << op->name;
    EXPECT_LE(op->outputs.least, op->outputs.most) << op->name;
    // What it says about single operands is about operands that it has.
    const auto within = [](std::uint32_t mask, std::uint32_t most) {
      return mask == kAllInputs || most >= 31 || (mask >> most) == 0;
    };
    EXPECT_TRUE(within(op->differentiableInputs, op->inputs.most)) << op->name;
    EXPECT_TRUE(within(op->differentiableOutputs, op->outputs.most)) << op->name;
    EXPECT_TRUE(within(op->inPlaceInputs, op->inputs.most)) << op->name;
    EXPECT_TRUE(within(op->absentInputs, op->inputs.least)) << op->name;
  }
}

// Finite differences cover the whole table: every (output, input) of every op stands in an example that differentiates it.
TEST(OpList, EveryPairOfTheDifferentiabilityTableIsChecked) {
  const auto pair = [](const OpDef& op, std::size_t output, std::size_t input) {
    return std::string(op.domain) + "." + std::string(op.name) + ": output " + std::to_string(output) + ", input " +
           std::to_string(input);
  };
  std::set<std::string> covered{
      "com.microsoft.FakeQuant: output 0, input 0",   // straight through on purpose: not the slope of the steps
      "stepscope.CustomGradient: output 0, input 0",  // what the model says it is, not the slope
      "stepscope.CustomGradient: output 0, input 2",
      "stepscope.StraightThrough: output 0, input 1",
      // The table has inputs by outputs; the sum (output 3) does not depend on scale and beta.
      "com.microsoft.SkipLayerNormalization: output 3, input 2",
      "com.microsoft.SkipLayerNormalization: output 3, input 3",
      "com.microsoft.SkipSimplifiedLayerNormalization: output 3, input 2",
  };
  // Nor do mean and inverse deviation.
  for (const char* statistic : {"LayerNormalization: output 1", "LayerNormalization: output 2", "RMSNormalization: output 1",
                                "SimplifiedLayerNormalization: output 1"})
    for (const char* input : {", input 1", ", input 2"})
      for (const char* domain : {".", "com.microsoft."}) covered.insert(std::string(domain) + statistic + input);
  for (const OpExample& example : allExamples()) {
    const OpDef* op = builtInOperators().ops.find(example.domain, example.op);
    if (op == nullptr || !op->gradient || !example.differentiate) continue;
    for (std::size_t o = 0; o < example.outputs; ++o)
      for (std::size_t i = 0; i < example.inputs.size(); ++i) {
        const testing::ExampleInput& input = example.inputs[i];
        if (!input.absent && !input.constant.valid() && isFloating(input.dtype)) covered.insert(pair(*op, o, i));
      }
  }
  for (const OpDef* op : allOps()) {
    if (!op->gradient || op->sequences) continue;
    // Of a variadic list the first two stand for the rest.
    const std::size_t inputs = op->inputs.most == kMany ? 2 : op->inputs.most,
                      outputs = op->outputs.most == kMany ? 2 : op->outputs.most;
    for (std::size_t o = 0; o < outputs; ++o)
      for (std::size_t i = 0; i < inputs; ++i)
        if (maskHas(op->differentiableOutputs, o) && maskHas(op->differentiableInputs, i))
          EXPECT_TRUE(covered.contains(pair(*op, o, i))) << pair(*op, o, i);
  }
}

TEST(OpList, EveryFloatingInputHasAGradientOrAReasonWhyNot) {
  for (const OpExample& example : allExamples()) {
    const OpDef* op = builtInOperators().ops.find(example.domain, example.op);
    if (op == nullptr || !op->gradient) continue;  // the op as a whole has its reason
    for (std::size_t i = 0; i < example.inputs.size(); ++i)
      if (!example.inputs[i].absent && isFloating(example.inputs[i].dtype) && !maskHas(op->differentiableInputs, i))
        EXPECT_NE(findStopInput(*op, i), nullptr) << example.name << ": input " << i << " needs a line in stop_inputs.cpp";
  }
}

TEST(OpList, EveryOpHasShapeRuleKernelAndAWordAboutGradients) {
  for (const OpDef* op : allOps()) {
    EXPECT_NE(op->inferShape, nullptr) << op->name;
    EXPECT_TRUE(op->gradient || !op->noGradientReason.empty()) << op->name << ": neither gradient nor reason";
    if (!op->sequences) EXPECT_TRUE(builtInOperators().kernels.has(kReferenceDevice, op->domain, op->name)) << op->name;
  }
}

}  // namespace
}  // namespace stepscope
