// Gradient rules beside finite differences: right ones agree on whole models, and a wrong one is named.
#include "engine/lab/gradcheck.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/build/registry.h"
#include "engine/ops/gradient_context.h"
#include "engine/ops/shape_context.h"
#include "kernels/dispatch.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::TestModel;

snapshot::GetGradcheck only(const std::string& pattern) {
  snapshot::GetGradcheck question;
  question.set_only(pattern);
  return question;
}

class GradcheckOf : public ::testing::TestWithParam<TestModel> {};

TEST_P(GradcheckOf, EveryRuleAgrees) {
  auto session = openSession(GetParam());
  ASSERT_TRUE(session);
  const std::string before = testing::stateBits(*session);
  const auto report = session->lab().gradcheck({});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  int checked = 0, probes = 0;
  for (const auto& node : report->nodes()) {
    EXPECT_NE(node.verdict(), "differs") << node.op() << " '" << node.name() << "' " << node.ShortDebugString();
    checked += node.verdict() == "agrees";
    for (const auto& input : node.inputs()) probes += input.probes();
  }
  EXPECT_EQ(report->differed(), 0);
  EXPECT_EQ(report->agreed(), checked);
  EXPECT_GT(checked * 2, report->nodes_size()) << report->ShortDebugString();
  EXPECT_GE(probes, 4 * checked);
  EXPECT_EQ(testing::stateBits(*session) == before, true);
  EXPECT_EQ(session->nextStep(), 0);
}

std::vector<TestModel> models() {
  std::vector<TestModel> list{testing::digits()};
  for (TestModel& model : testing::corpusCases({"activations", "bert_mlm", "gpt2_lm"})) list.push_back(std::move(model));
  return list;
}

INSTANTIATE_TEST_SUITE_P(Models, GradcheckOf, ::testing::ValuesIn(models()),
                         [](const auto& info) { return info.param.name; });

TEST(Gradcheck, TakesOneNodeOfThePlanOrThoseThatMatch) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session);
  const auto some = session->lab().gradcheck(only("Relu|MaxPool"));
  ASSERT_TRUE(some.has_value()) << some.error().message;
  ASSERT_GT(some->nodes_size(), 0);
  for (const auto& node : some->nodes())
    EXPECT_TRUE(node.op() == "Relu" || node.op() == "MaxPool" || node.name().find("Relu") != std::string::npos) << node.op();
  for (const Instruction& instruction : session->stepper().plan().instructions) {
    if (instruction.phase != Phase::kBackward || !instruction.node) continue;
    snapshot::GetGradcheck question;
    question.add_nodes(instruction.node.index);
    const auto one = session->lab().gradcheck(question);
    if (!one) continue;  // the loss's own seed
    EXPECT_EQ(one->nodes_size(), 1) << "a gradient's node stands for its forward node";
    return;
  }
  FAIL() << "no node of the backward phase leads to a node of the model";
}

// --- a planted rule: y = x^2, whose gradient is said to be 2.1 x

Status squareGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.mul(g.dy(0), g.x(0)), 2.1));
  return {};
}

class SquareKernel final : public Kernel {
 public:
  Status run(const KernelCall& call) override {
    for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
      const double x = elementAsDouble(call.inputs[0], i);
      storeElement(call.outputs[0], i, x * x);
    }
    return {};
  }
  std::string implementation() const override { return "planted"; }
  Determinism determinism() const override { return Determinism::oneThread(); }
};

Result<std::unique_ptr<Kernel>> makeSquare(const KernelSpec&) { return std::make_unique<SquareKernel>(); }

const OpDef kSquare = {.name = "Square",
                       .domain = "acme",
                       .sinceVersion = 1,
                       .doc = "y = x^2",
                       .inputs = {1, 1},
                       .outputs = {1, 1},
                       .category = OpCategory::kElementwise,
                       .precision = Precision::kFollows,
                       .hostInputs = kNoInputs,
                       .inferShape = shape_rules::sameAsInput0,
                       .gradient = squareGradient,
                       .differentiableInputs = bit(0),
                       .inPlaceInputs = bit(0)};
const OpDef* const kOps[] = {&kSquare};
const KernelEntry kKernels[] = {{"acme", "Square", makeSquare, false, kAnyDType, nullptr}};

TEST(Gradcheck, NamesAWrongRule) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto* acme = model.add_opset_import();
  acme->set_domain("acme");
  acme->set_version(1);
  auto& graph = *model.mutable_graph();
  graph.set_name("square");
  testing::addInput(graph, "x", {4, 3});
  auto* w = testing::addFloats(graph, "w", {3, 3});
  w->clear_float_data();
  for (int i = 0; i < 9; ++i) w->add_float_data(0.1F * static_cast<float>(i) - 0.3F);
  testing::addNode(graph, "MatMul", {"x", "w"}, {"product"}, "matmul");
  testing::addNode(graph, "Square", {"product"}, {"y"}, "square")->set_domain("acme");
  auto* keep = testing::addNode(graph, "ReduceMean", {"y"}, {"loss"}, "mean")->add_attribute();
  keep->set_name("keepdims");
  keep->set_type(onnx::AttributeProto::INT);
  keep->set_i(0);
  testing::addOutput(graph, "loss");

  RegistryBuilder builder;
  ASSERT_TRUE(builder.addOps(kOps).has_value());
  ASSERT_TRUE(builder.addKernels(kReferenceDevice, kKernels).has_value());
  ASSERT_TRUE(builder.addKernels("cpu", kKernels).has_value());
  const testing::TemporaryFolder folder;
  auto session =
      Session::open(folder.write("square.onnx", model.SerializeAsString()), {}, {}, nullptr, std::move(builder).build());
  ASSERT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "loss", "loss", "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  ASSERT_TRUE((*session)->build().has_value());
  const auto report = (*session)->lab().gradcheck({});
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_GE(report->nodes_size(), 2);
  EXPECT_EQ(report->differed(), 1);
  for (const auto& node : report->nodes()) {
    EXPECT_EQ(node.verdict(), node.op() == "Square" ? "differs" : "agrees") << node.ShortDebugString();
    if (node.op() == "Square") EXPECT_NEAR(node.inputs(0).error(), 0.1 / 2.1, 1e-3) << "of the larger slope";
  }
}

TEST(Gradcheck, SaysWhatIsWrong) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session);
  const auto malformed = session->lab().gradcheck(only("("));
  ASSERT_FALSE(malformed.has_value());
  EXPECT_NE(malformed.error().message.find("node"), std::string::npos) << malformed.error().message;
  const auto none = session->lab().gradcheck(only("no such node"));
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  snapshot::GetGradcheck question;
  question.add_nodes(1 << 30);
  EXPECT_FALSE(session->lab().gradcheck(question).has_value());
}

}  // namespace
}  // namespace stepscope
