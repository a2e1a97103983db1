// The registry of ops: what it refuses, which version it finds, and that every built-in op says what its users ask for.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "engine/ops/operators.h"
#include "engine/passes/infer.h"
#include "tests/engine/ops/examples.h"

namespace stepscope {
namespace {

Status noShape(ShapeContext&) { return {}; }

OpDef complete(std::string_view name, int sinceVersion = 1) {
  return {.name = name,
          .domain = "test.ops",
          .sinceVersion = sinceVersion,
          .category = OpCategory::kOther,
          .precision = Precision::kFollows,
          .hostInputs = kNoInputs,
          .inferShape = noShape,
          .noGradientReason = "a test"};
}

Status add(OpRegistry& registry, const OpDef& op) {
  const OpDef* list[] = {&op};
  return registry.add(list);
}

TEST(OpRegistry, FindsTheNewestDefinitionThatIsNotNewerThanTheNode) {
  const OpDef third = complete("Op", 3), first = complete("Op", 1), seventh = complete("Op", 7);
  OpRegistry registry;
  for (const OpDef* op : {&third, &first, &seventh}) ASSERT_TRUE(add(registry, *op).has_value());
  EXPECT_EQ(registry.find("test.ops", "Op", 1), &first);
  EXPECT_EQ(registry.find("test.ops", "Op", 2), &first);
  EXPECT_EQ(registry.find("test.ops", "Op", 3), &third);
  EXPECT_EQ(registry.find("test.ops", "Op", 6), &third);
  EXPECT_EQ(registry.find("test.ops", "Op"), &seventh);
  EXPECT_EQ(registry.find("test.ops", "Op", 0), nullptr);
  EXPECT_EQ(registry.find("", "Op"), nullptr);
  Node node;
  node.domain = "test.ops";
  node.op = "Op";
  EXPECT_EQ(registry.find(node), &seventh) << "a node that a pass made has no version";
  node.sinceVersion = 4;
  EXPECT_EQ(registry.find(node), &third);
}

TEST(OpRegistry, RefusesWhatIsIncompleteOrListedTwice) {
  OpRegistry registry;
  const OpDef good = complete("Op");
  ASSERT_TRUE(add(registry, good).has_value());
  const auto refused = [&](auto change, const char* what) {
    OpDef op = complete("Other");
    change(op);
    const Status status = add(registry, op);
    ASSERT_FALSE(status.has_value()) << what;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find(what), std::string::npos) << status.error().message;
  };
  refused([](OpDef& op) { op.category = OpCategory::kUnset; }, "op 'test.ops.Other': found no category");
  refused([](OpDef& op) { op.precision = Precision::kUnset; }, "no precision class");
  refused([](OpDef& op) { op.hostInputs.reset(); }, "read on the host");
  refused([](OpDef& op) { op.inferShape = nullptr; }, "no shape rule");
  refused([](OpDef& op) { op.noGradientReason = ""; }, "neither a gradient");
  refused([](OpDef& op) { op.sideEffect = SideEffect::kCollective; }, "recompute would repeat");
  refused([](OpDef& op) { op.name = "Op"; }, "a second definition since version 1");
  EXPECT_EQ(registry.all().size(), 1u);
}

TEST(OpRegistry, TakesEveryBuiltInOp) {
  OpRegistry registry;
  const Status added = registry.add(allOps());
  ASSERT_TRUE(added.has_value()) << added.error().message;
  for (const OpDef* op : allOps()) {
    EXPECT_NE(op->category, OpCategory::kUnset) << op->name;
    EXPECT_NE(op->precision, Precision::kUnset) << op->name;
    ASSERT_TRUE(op->hostInputs.has_value()) << op->name;
    const auto within = [&](std::uint32_t mask) { return op->inputs.most >= 31 || (mask >> op->inputs.most) == 0; };
    EXPECT_TRUE(within(*op->hostInputs)) << op->name;
    EXPECT_TRUE(within(op->traffic.picked)) << op->name;
    for (const int input : {int{op->traffic.base}, int{op->traffic.updates}, op->gradients.first})
      EXPECT_LT(input, static_cast<std::int64_t>(op->inputs.most)) << op->name;
    EXPECT_EQ(op->traffic.base < 0, op->traffic.updates < 0) << op->name;
    EXPECT_EQ(op->gradients.first >= 0, op->category == OpCategory::kOptimizer || op->name == "Accumulate") << op->name;
    if (op->domain.empty()) EXPECT_LE(op->sinceVersion, kInternalOpset) << op->name;
  }
}

// Taken from the lists of names that decided before ops said it themselves; later ops need not stand there.
TEST(OpRegistry, CategoriesAreThoseOfTheGoldenList) {
  std::ifstream file(SS_SOURCE_DIR "/tests/engine/ops/op_categories.txt");
  std::map<std::string, std::string> golden;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string domain, op, category;
    words >> domain >> op >> category;
    golden[(domain == "-" ? "" : domain) + "." + op] = category;
  }
  EXPECT_GT(golden.size(), 250u);
  std::map<std::string, std::string> found;
  for (const OpDef* op : allOps()) found[std::string(op->domain) + "." + std::string(op->name)] = categoryName(op->category);
  for (const auto& [op, category] : golden) EXPECT_EQ(found[op], category) << op;
}

// An op whose class must be known for mixed precision: those that PyTorch's autocast names.
TEST(OpRegistry, PrecisionClassesAreThoseOfAutocast) {
  const auto of = [](std::string_view name, std::string_view domain = "") {
    return builtInOperators().ops.find(domain, name)->precision;
  };
  for (const char* op : {"MatMul", "Gemm", "Conv", "ConvTranspose", "LSTM", "GRU", "PRelu", "Einsum"})
    EXPECT_EQ(of(op), Precision::kLow) << op;
  for (const char* op :
       {"Softmax", "LogSoftmax", "LayerNormalization", "GroupNormalization", "SoftmaxCrossEntropyLoss", "Pow", "Exp", "Log",
        "CumSum", "CumProd", "ReduceProd", "ReduceSum", "Softplus", "Tan", "Acos", "Cosh"})
    EXPECT_EQ(of(op), Precision::kF32) << op;
  for (const char* op : {"Relu", "Add", "Mul", "Concat", "Where", "Reshape", "Gather", "MaxPool", "Sigmoid", "Tanh", "Gelu"})
    EXPECT_EQ(of(op), Precision::kFollows) << op;
  for (const char* op : {"BatchNormalization", "ReduceMean", "AveragePool"}) EXPECT_EQ(of(op), Precision::kWide) << op;
  for (const char* op : {"AdamUpdate", "SgdUpdates", "SquareSum"}) EXPECT_EQ(of(op, kInternalDomain), Precision::kF32) << op;
  // A gradient has the class of its op.
  for (const OpDef* op : allOps()) {
    if (!op->name.ends_with("Grad")) continue;
    const std::string_view base = op->name.substr(0, op->name.size() - 4);
    for (const char* domain : {"", "stepscope", "com.microsoft"})
      if (const OpDef* forward = builtInOperators().ops.find(domain, base);
          forward != nullptr && (forward->precision == Precision::kLow || forward->precision == Precision::kF32))
        EXPECT_EQ(op->precision, forward->precision) << op->name;
  }
}

class HostInputs : public ::testing::TestWithParam<testing::OpExample> {};

// Shapes follow from the inputs that the op reads on the host, and from the types of the others: whoever runs the op on
// another device copies no more than these before it knows the extents of the results.
TEST_P(HostInputs, DecideTheShapes) {
  const testing::ExampleGraph example = testing::makeGraph(GetParam(), DType::kF32);
  const OpDef* op = builtInOperators().ops.find(GetParam().domain, GetParam().op);
  ASSERT_NE(op, nullptr);
  Graph all = example.graph, host = example.graph;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    if (!example.inputs[i] || maskHas(*op->hostInputs, i)) continue;
    Value& value = host.mutableValue(example.inputs[i]);
    value.type = {ValueKind::kTensor, example.contents[i].dtype(), shapeOf(example.contents[i].dims())};
    value.role = ValueRole::kInput;
    value.data = nullptr;
  }
  Inference known(all, builtInOperators(), {.foldElements = -1}), less(host, builtInOperators(), {.foldElements = -1});
  ASSERT_TRUE(known.run().has_value());
  const Status status = less.run();
  ASSERT_TRUE(status.has_value()) << status.error().message;
  for (const ValueId out : example.graph.node(example.node).outputs)
    EXPECT_EQ(host.value(out).type.text(), all.value(out).type.text());
}

INSTANTIATE_TEST_SUITE_P(Ops, HostInputs, ::testing::ValuesIn(testing::allExamples()),
                         [](const ::testing::TestParamInfo<testing::OpExample>& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
