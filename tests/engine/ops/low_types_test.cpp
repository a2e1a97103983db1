// Every op in float16 and bfloat16, driven by the examples: values of the fast kernel against the reference kernel in f64,
// gradients against finite differences in f64, and which ops have no fast kernel. An op is tested because it is there.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/autodiff/gradient.h"
#include "engine/exec/interpreter.h"
#include "engine/ops/operators.h"
#include "tests/engine/ops/examples.h"

namespace stepscope {
namespace {

using testing::allExamples;
using testing::ExampleGraph;
using testing::makeGraph;
using testing::OpExample;

const OpDef* definitionOf(const OpExample& example) { return builtInOperators().ops.find(example.domain, example.op); }

// Half of the distance between two neighbours of the type at 1.
constexpr double kRoundings = 4;

double roundingOf(DType low) { return low == DType::kBF16 ? 0x1p-8 : 0x1p-11; }

// Whether a low type has something to do with the example: an operand of it becomes one.
bool takesLow(const OpExample& example) {
  for (const testing::ExampleInput& input : example.inputs)
    if (!input.absent && input.dtype == DType::kF32) return true;
  return false;
}

// The same numbers as `low`, in f64.
ExampleGraph widened(const OpExample& example, const ExampleGraph& low) {
  ExampleGraph wide = makeGraph(example, DType::kF64);
  for (std::size_t i = 0; i < wide.inputs.size(); ++i) {
    if (!wide.inputs[i] || wide.contents[i].dtype() != DType::kF64 || !isLow(low.contents[i].dtype())) continue;
    wide.contents[i] = convertTensor(low.contents[i].view(), DType::kF64);
    if (Value& value = wide.graph.mutableValue(wide.inputs[i]); value.role == ValueRole::kConstant)
      value.data = std::make_shared<const Tensor>(wide.contents[i]);
  }
  return wide;
}

Result<std::vector<Tensor>> evaluate(const ExampleGraph& example, const std::vector<Tensor>& contents, Backend backend) {
  Interpreter interpreter(example.graph, builtInOperators(), backend, {.seed = 7}, 2);
  for (std::size_t i = 0; i < example.inputs.size(); ++i)
    if (example.inputs[i] && example.graph.value(example.inputs[i]).role == ValueRole::kInput)
      SS_TRY(interpreter.feed(example.inputs[i], contents[i]));
  SS_TRY(interpreter.run());
  std::vector<Tensor> outputs;
  for (const ValueId out : example.graph.node(example.node).outputs) outputs.push_back(*interpreter.value(out));
  return outputs;
}

// As the README names it.
std::string opOf(const OpExample& example) { return (example.domain.empty() ? "" : example.domain + ".") + example.op; }

class LowExamples : public ::testing::TestWithParam<std::tuple<OpExample, DType>> {
 protected:
  const OpExample& example() const { return std::get<0>(GetParam()); }
  DType low() const { return std::get<1>(GetParam()); }
};

TEST_P(LowExamples, FastKernelAgreesWithReferenceInF64) {
  const ExampleGraph narrow = makeGraph(example(), low()), wide = widened(example(), narrow);
  const auto fast = evaluate(narrow, narrow.contents, Backend::kCpu);
  const auto exact = evaluate(wide, wide.contents, Backend::kReference);
  ASSERT_TRUE(fast.has_value()) << fast.error().message;
  ASSERT_TRUE(exact.has_value()) << exact.error().message;
  for (std::size_t o = 0; o < fast->size(); ++o) {
    const Tensor &a = (*fast)[o], &b = (*exact)[o];
    ASSERT_EQ(a.dims(), b.dims());
    if (a.dtype() == DType::kString) continue;
    for (std::int64_t k = 0; k < a.elements(); ++k) {
      const double x = elementAsDouble(a.view(), k), y = elementAsDouble(b.view(), k);
      if (!std::isfinite(y)) {
        EXPECT_TRUE(std::isnan(y) ? std::isnan(x) : x == y) << "output " << o << " element " << k << " found " << x;
        continue;
      }
      const double rounded = isLow(a.dtype()) ? roundingOf(a.dtype()) * std::abs(y) : 0;
      EXPECT_NEAR(x, y, rounded + 2e-5 * (1 + std::abs(y))) << "output " << o << " element " << k;
    }
  }
}

// d(sum of outputs weighted by fixed numbers) / d(input): the gradient's nodes in the low type with the fast kernels,
// against central differences of the op in f64 at the same numbers.
TEST_P(LowExamples, GradientAgreesWithFiniteDifferences) {
  const OpDef* op = definitionOf(example());
  ASSERT_NE(op, nullptr);
  if (!op->gradient) GTEST_SKIP() << "not differentiable: " << op->noGradientReason;
  if (!example().differentiate) GTEST_SKIP() << "the example is for values only";
  const ExampleGraph narrow = makeGraph(example(), low()), wide = widened(example(), narrow);
  const auto outputs = evaluate(narrow, narrow.contents, Backend::kCpu);
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
  bool checked = false;
  for (std::size_t o = 0; o < outputs->size(); ++o) {
    const DType type = (*outputs)[o].dtype();
    if (!maskHas(op->differentiableOutputs, o) || !isFloating(type) || (*outputs)[o].elements() == 0) continue;
    Tensor weights(type, (*outputs)[o].dims());
    for (std::int64_t k = 0; k < weights.elements(); ++k)
      storeElement(weights.view(), k, std::sin(1.0 + 1.7 * static_cast<double>(k)));
    Graph graph = narrow.graph;
    const ValueId w = graph.addConstant("weights", weights);
    const NodeId product = graph.addNode("product", "", "Mul", {graph.node(narrow.node).outputs[o], w}, {"weighted"});
    const NodeId sum =
        graph.addNode("sum", "", "ReduceSum", {graph.node(product).output(0)}, {"loss"}, {{"keepdims", std::int64_t{0}}});
    const ValueId loss = graph.node(sum).output(0);
    graph.mutableOutputs() = {loss};
    Inference inference(graph, builtInOperators(), {.foldElements = -1});
    const Status inferred = inference.run();
    ASSERT_TRUE(inferred.has_value()) << inferred.error().message;
    GradientRequest request{loss, {}};
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < narrow.inputs.size(); ++i) {
      if (!narrow.inputs[i] || graph.value(narrow.inputs[i]).role != ValueRole::kInput) continue;
      if (!maskHas(op->differentiableInputs, i) || !isFloating(narrow.contents[i].dtype())) continue;
      request.trained.push_back(narrow.inputs[i]);
      which.push_back(i);
    }
    if (which.empty()) continue;
    graph.setPass("gradient");
    const auto report = buildGradient(graph, inference, request);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    Interpreter interpreter(graph, builtInOperators(), Backend::kCpu, {.seed = 7}, 2);
    for (std::size_t i = 0; i < narrow.inputs.size(); ++i)
      if (narrow.inputs[i] && graph.value(narrow.inputs[i]).role == ValueRole::kInput)
        ASSERT_TRUE(interpreter.feed(narrow.inputs[i], narrow.contents[i]).has_value());
    const Status ran = interpreter.run();
    ASSERT_TRUE(ran.has_value()) << ran.error().message;
    const auto weighted = [&](const std::vector<Tensor>& contents) {
      const auto values = evaluate(wide, contents, Backend::kReference);
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
      ASSERT_EQ(gradient->dims(), narrow.contents[i].dims()) << "gradient of input " << i;
      EXPECT_EQ(gradient->dtype(), narrow.contents[i].dtype()) << "gradient of input " << i;
      std::vector<double> expected;
      double largest = 0;
      for (std::int64_t k = 0; k < gradient->elements(); ++k) {
        const double h = 1e-6;
        std::vector<Tensor> moved = wide.contents;
        moved[i] = wide.contents[i].clone();
        const double center = elementAsDouble(moved[i].view(), k);
        storeElement(moved[i].view(), k, center + h);
        const double up = weighted(moved);
        storeElement(moved[i].view(), k, center - h);
        expected.push_back((up - weighted(moved)) / (2 * h));
        largest = std::max(largest, std::abs(expected.back()));
      }
      // A rule is a few nodes, each of which rounds; what they cancel is as large as the largest.
      for (std::int64_t k = 0; k < gradient->elements(); ++k)
        EXPECT_NEAR(elementAsDouble(gradient->view(), k), expected[static_cast<std::size_t>(k)],
                    kRoundings * roundingOf(low()) * (1 + largest))
            << "output " << o << ", input " << i << ", element " << k;
      checked = true;
    }
  }
  EXPECT_TRUE(checked) << "no (output, input) pair of the differentiability table was checked";
}

std::vector<std::tuple<OpExample, DType>> lowExamples() {
  std::vector<std::tuple<OpExample, DType>> all;
  for (const OpExample& example : allExamples())
    if (takesLow(example))
      for (const DType low : {DType::kBF16, DType::kF16}) all.emplace_back(example, low);
  return all;
}

// What makes the kernel of the example in the low type.
std::string implementationOf(const OpExample& example, DType low) {
  const ExampleGraph narrow = makeGraph(example, low);
  const auto outputs = evaluate(narrow, narrow.contents, Backend::kCpu);
  if (!outputs) return {};
  KernelSpec spec{.domain = example.domain, .op = example.op, .attrs = example.attrs, .threads = 2};
  for (const Tensor& input : narrow.contents)
    spec.inputs.push_back(input.valid() ? OperandSpec{.dtype = input.dtype(), .dims = input.dims(), .constant = input}
                                        : OperandSpec{});
  const OpDef* op = definitionOf(example);
  for (const Tensor& output : *outputs)
    spec.outputs.push_back({.dtype = output.dtype(), .dims = output.dims(), .dynamic = op->dataDependentShape});
  const auto kernel = builtInKernels().make("cpu", spec);
  return kernel ? (*kernel)->implementation() : std::string();
}

bool isReference(const std::string& implementation) { return implementation.find("reference") != std::string::npos; }

// The README lists the ops that have none in either type, and no other.
TEST(LowTypes, PairsWithoutAFastKernelStandInTheReadme) {
  std::ifstream file(SS_SOURCE_DIR "/kernels/cpu/README.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string readme = text.str(), begin = "Without a fast kernel in float16 and bfloat16: ";
  const std::size_t from = readme.find(begin), to = readme.find(".\n", from);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos) << "no sentence begins with '" << begin << "'";
  std::set<std::string> listed, without;
  std::istringstream words(readme.substr(from + begin.size(), to - from - begin.size()));
  for (std::string word; words >> word;) listed.insert(word.substr(0, word.find(',')));
  std::string line;
  for (const OpExample& example : allExamples())
    if (takesLow(example) && !builtInKernels().has("cpu", example.domain, example.op) &&
        without.insert(opOf(example)).second)
      line += (line.empty() ? "" : ", ") + opOf(example);
  EXPECT_EQ(without, listed) << "the sentence should read: " << line;
}

// So the types in which a model computes do not decide whether its kernels are fast.
TEST(LowTypes, WhatIsFastInFloat32IsFastInThem) {
  std::set<std::string> slower;
  std::size_t fast = 0;
  for (const OpExample& example : allExamples())
    for (const DType low : {DType::kBF16, DType::kF16}) {
      if (!takesLow(example)) continue;
      const std::string wide = implementationOf(example, DType::kF32), narrow = implementationOf(example, low);
      ASSERT_FALSE(wide.empty() || narrow.empty()) << example.name;
      if (isReference(wide)) {
        EXPECT_TRUE(isReference(narrow)) << example.name;
        continue;
      }
      ++fast;
      if (isReference(narrow)) slower.insert(example.name);
    }
  EXPECT_GT(fast, 500u);
  // Casts that no training step makes, and what reads float32 to make low numbers of it.
  EXPECT_EQ(slower, (std::set<std::string>{"Cast_float_to_bool", "Cast_float_to_double", "Cast_float_to_half",
                                           "Cast_to_double", "StochasticRound_bfloat", "StochasticRound_half"}));
}

// Every op with floating operands is in the list above: nothing is left out because its examples have none.
TEST(LowTypes, EveryOpThatTakesFloatsHasAnExampleInThem) {
  std::set<std::string> covered;
  for (const OpExample& example : allExamples())
    if (takesLow(example)) covered.insert(opOf(example));
  std::set<std::string> without;
  for (const OpDef* op : allOps()) {
    const std::string name = (op->domain.empty() ? "" : std::string(op->domain) + ".") + std::string(op->name);
    if (!op->sequences && !covered.contains(name)) without.insert(name);
  }
  EXPECT_EQ(without, (std::set<std::string>{"And", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor",
                                            "ConvInteger", "MatMulInteger", "Not", "Or", "StringConcat", "StringNormalizer",
                                            "Xor",  // integers, bools, strings
                                            "Constant", "ConstantOfShape", "RandomNormal", "RandomUniform",
                                            "RandomUniformLike", "Range"}));  // no tensor that is computed with
}

INSTANTIATE_TEST_SUITE_P(Ops, LowExamples, ::testing::ValuesIn(lowExamples()), [](const auto& info) {
  return std::get<0>(info.param).name + (std::get<1>(info.param) == DType::kBF16 ? "_bf16" : "_fp16");
});

}  // namespace
}  // namespace stepscope
