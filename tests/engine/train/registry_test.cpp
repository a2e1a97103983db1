// A registry of its own: a session that knows an operator, a pass and an option which no built-in list has.
#include "engine/build/registry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "engine/ops/gradient_context.h"
#include "engine/ops/shape_context.h"
#include "engine/train/session.h"
#include "kernels/dispatch.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope {
namespace {

using testing::addFloats;
using testing::addInput;
using testing::addNode;
using testing::addOutput;

// acme.Ripple: y = x + a sin(x). The factor a is the user data of the definition and of the kernels, as a shared library
// would have it.
double factor = 0.5;
double wrongFactor = 7;
bool ordered = true;  // what the kernels say of themselves

double factorOf(const void* user) { return *static_cast<const double*>(user); }

Status rippleShape(ShapeContext& c) {
  if (c.op().user == nullptr) return c.error("no user data");
  return shape_rules::sameAsInput0(c);
}

Status rippleGradient(GradientContext& g) {
  const ValueId slope = g.add(g.mul(g.op("Cos", {g.x(0)}), factorOf(g.definition().user)), 1.0);
  g.setGradient(0, g.mul(g.dy(0), slope));
  return {};
}

OpDef ripple(int sinceVersion, double* user) {
  return {.name = "Ripple",
          .domain = "acme",
          .sinceVersion = sinceVersion,
          .doc = "y = x + a sin(x)",
          .inputs = {1, 1},
          .outputs = {1, 1},
          .category = OpCategory::kElementwise,
          .precision = Precision::kFollows,
          .hostInputs = kNoInputs,
          .inferShape = rippleShape,
          .gradient = rippleGradient,
          .differentiableInputs = bit(0),
          .inPlaceInputs = bit(0),
          .user = user};
}

class RippleKernel final : public Kernel {
 public:
  RippleKernel(const KernelSpec& spec, std::string name) : factor_(factorOf(spec.user)), name_(std::move(name)) {}
  Status run(const KernelCall& call) override {
    const TensorView &x = call.inputs[0], &y = call.outputs[0];
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const double v = elementAsDouble(x, i);
      storeElement(y, i, v + factor_ * std::sin(v));
    }
    return {};
  }
  std::string implementation() const override { return name_; }
  Determinism determinism() const override {
    return ordered ? Determinism::oneThread()
                   : Determinism{Determinism::Order::kUnordered, "additions in the order in which threads arrive"};
  }

 private:
  double factor_;
  std::string name_;
};

Result<std::unique_ptr<Kernel>> makePlain(const KernelSpec& spec) {
  return std::make_unique<RippleKernel>(spec, "acme reference");
}
Result<std::unique_ptr<Kernel>> makeFast(const KernelSpec& spec) {
  return std::make_unique<RippleKernel>(spec, "acme fast");
}

const OpDef kRipple = ripple(1, &factor), kLaterRipple = ripple(3, &wrongFactor);
const OpDef* const kOps[] = {&kLaterRipple, &kRipple};
const KernelEntry kPlain[] = {{"acme", "Ripple", makePlain, false, kAnyDType, &factor}};
const KernelEntry kFast[] = {{"acme", "Ripple", makeFast, false, dtypeBit(DType::kF32), &factor}};

RegistryBuilder builderWithRipple() {
  RegistryBuilder builder;
  EXPECT_TRUE(builder.addOps(kOps).has_value());
  EXPECT_TRUE(builder.addKernels(kReferenceDevice, kPlain).has_value());
  EXPECT_TRUE(builder.addKernels("cpu", kFast).has_value());
  return builder;
}

// loss = mean(f(x w)) with x [4, 3] and w [3, 3] of float or double; f as one node, or as the nodes it stands for.
onnx::ModelProto model(bool asOneNode, bool twice) {
  onnx::ModelProto model = testing::acmeModel("ripple", 2);
  auto& graph = *model.mutable_graph();
  addInput(graph, "x", {4, 3});
  auto* w = addFloats(graph, "w", {3, 3});
  w->clear_float_data();
  for (int i = 0; i < 9; ++i) w->add_float_data(0.1F * static_cast<float>(i) - 0.3F);
  addNode(graph, "MatMul", {"x", "w"}, {"product"}, "matmul");
  std::string y = "product";
  if (twice) {
    auto* cast = addNode(graph, "Cast", {"product"}, {"wide"}, "cast")->add_attribute();
    cast->set_name("to");
    cast->set_type(onnx::AttributeProto::INT);
    cast->set_i(onnx::TensorProto::DOUBLE);
    y = "wide";
  }
  if (asOneNode) {
    addNode(graph, "Ripple", {y}, {"y"}, "ripple")->set_domain("acme");
  } else {
    auto* a = graph.add_initializer();
    a->set_name("a");
    a->set_data_type(twice ? onnx::TensorProto::DOUBLE : onnx::TensorProto::FLOAT);
    if (twice)
      a->add_double_data(factor);
    else
      a->add_float_data(static_cast<float>(factor));
    addNode(graph, "Sin", {y}, {"sine"}, "sin");
    addNode(graph, "Mul", {"sine", "a"}, {"scaled"}, "scale");
    addNode(graph, "Add", {y, "scaled"}, {"y"}, "add");
  }
  auto* mean = addNode(graph, "ReduceMean", {"y"}, {"loss"}, "mean")->add_attribute();
  mean->set_name("keepdims");
  mean->set_type(onnx::AttributeProto::INT);
  mean->set_i(0);
  addOutput(graph, "loss");
  return model;
}

class RegistryOfASession : public ::testing::Test {
 protected:
  std::unique_ptr<Session> open(const onnx::ModelProto& proto, const std::shared_ptr<const Registry>& registry) {
    const auto path = folder_.write("m.onnx", proto.SerializeAsString());
    auto session = Session::open(path, {}, {}, nullptr, registry);
    EXPECT_TRUE(session.has_value()) << (session ? "" : session.error().message);
    if (!session) return nullptr;
    TrainOptions options;
    for (const auto& [name, value] :
         {std::pair{"lr", "0.1"}, std::pair{"train", "^w$"}, std::pair{"threads", "1"}, std::pair{"seed", "3"}})
      EXPECT_TRUE(applySetting(options, name, value, "test", registry->options()).has_value()) << name;
    EXPECT_TRUE((*session)->setOptions(options).has_value());
    return std::move(*session);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(RegistryOfASession, AnAddedOpTrainsInBothTypesAsTheNodesItStandsFor) {
  const auto registry = builderWithRipple().build();
  for (const bool twice : {false, true}) {
    auto added = open(model(true, twice), registry), known = open(model(false, twice), Registry::builtIn());
    ASSERT_TRUE(added && known);
    for (auto* session : {added.get(), known.get()}) {
      const Status built = session->build();
      ASSERT_TRUE(built.has_value()) << built.error().message;
    }
    for (int step = 0; step < 3; ++step) {
      const auto a = added->step(), b = known->step();
      ASSERT_TRUE(a && b);
      EXPECT_NEAR(a->loss(), b->loss(), 1e-6) << "step " << step;
    }
    const auto a = added->trained().named(false), b = known->trained().named(false);
    for (std::int64_t i = 0; i < 9; ++i)
      EXPECT_NEAR(elementAsDouble(a.at("w"), i), elementAsDouble(b.at("w"), i), 1e-6) << "element " << i;
    EXPECT_NE(elementAsDouble(a.at("w"), 0), -0.3F) << "it was trained";
    // The device's own kernel takes float32 and nothing else.
    const auto plan = added->planSnapshot();
    ASSERT_TRUE(plan.has_value());
    int found = 0;
    for (const auto& instruction : plan->instructions())
      if (instruction.op() == "Ripple") {
        ++found;
        EXPECT_EQ(instruction.implementation(), twice ? "acme reference" : "acme fast");
      }
    EXPECT_EQ(found, 1);
    const snapshot::ModelInfo info = added->inspect();
    for (const auto& op : info.ops())
      if (op.op() == "Ripple") EXPECT_TRUE(op.has_gradient() && op.has_kernel() && op.has_fast_kernel());
  }
}

TEST_F(RegistryOfASession, TheBuiltInOneKnowsNothingOfIt) {
  EXPECT_EQ(Registry::builtIn()->operators().ops.find("acme", "Ripple"), nullptr);
  EXPECT_EQ(builtInOperators().ops.find("acme", "Ripple"), nullptr);
  auto session = open(model(true, false), Registry::builtIn());
  ASSERT_NE(session, nullptr);
  const Status built = session->build();
  ASSERT_FALSE(built.has_value());
  EXPECT_NE(built.error().message.find("domain 'acme' has no such operator"), std::string::npos) << built.error().message;
}

int graphsSeen = 0;
Status countGraphs(Graph&, PassContext& context) {
  ++*static_cast<int*>(context.user);
  return {};
}

TEST_F(RegistryOfASession, AnAddedPassRunsWithItsDataAndHasASwitch) {
  RegistryBuilder builder = builderWithRipple();
  const Pass count{"count_graphs", "counts graphs", countGraphs, PassSwitch::kOn, &graphsSeen};
  ASSERT_TRUE(builder.addPass("pre-grad passes", count).has_value());
  const Status twice = builder.addPass("pre-grad passes", count), nowhere = builder.addPass("never", count);
  ASSERT_FALSE(twice.has_value() || nowhere.has_value());
  EXPECT_NE(nowhere.error().message.find("pass 'count_graphs': found phase 'never'; expected one of "), std::string::npos)
      << nowhere.error().message;
  const auto registry = std::move(builder).build();
  auto session = open(model(true, false), registry);
  ASSERT_NE(session, nullptr);
  graphsSeen = 0;
  ASSERT_TRUE(session->build().has_value());
  EXPECT_EQ(graphsSeen, 1);
  TrainOptions options = session->options();
  EXPECT_FALSE(applySetting(options, "pass.count_graphs", "off", "test").has_value()) << "not an option of other sessions";
  ASSERT_TRUE(applySetting(options, "pass.count_graphs", "off", "test", registry->options()).has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  ASSERT_TRUE(session->build().has_value());
  EXPECT_EQ(graphsSeen, 1);
}

TEST_F(RegistryOfASession, AnAddedOptionIsKeptAndListed) {
  RegistryBuilder builder = builderWithRipple();
  ASSERT_TRUE(builder.addOption({"acme.mode", "calm", "how it ripples", {"calm", "wild"}}).has_value());
  EXPECT_FALSE(builder.addOption({"lr", "1", "taken", {}}).has_value());
  const auto registry = std::move(builder).build();
  auto session = open(model(true, false), registry);
  ASSERT_NE(session, nullptr);
  TrainOptions options = session->options();
  EXPECT_FALSE(applySetting(options, "acme.mode", "wild", "test").has_value());
  EXPECT_FALSE(applySetting(options, "acme.mode", "loud", "test", registry->options()).has_value());
  ASSERT_TRUE(applySetting(options, "acme.mode", "wild", "test", registry->options()).has_value());
  EXPECT_EQ(options.added.at("acme.mode"), "wild");
  ASSERT_TRUE(session->setOptions(options).has_value());
  bool listed = false;
  for (const snapshot::Option& option : session->optionList())
    if (option.name() == "acme.mode") listed = option.value() == "wild" && option.default_value() == "calm";
  EXPECT_TRUE(listed);
}

TEST_F(RegistryOfASession, WhatDiffersFromRunToRunIsToldBeforeAStepAndOnce) {
  const auto registry = builderWithRipple().build();
  ordered = false;
  auto session = open(model(true, false), registry);
  ASSERT_TRUE(session);
  const auto told = [&] {
    return std::ranges::count_if(session->alerts(), [](const auto& alert) { return alert.code() == "not_deterministic"; });
  };
  ASSERT_TRUE(session->build().has_value());
  EXPECT_EQ(told(), 1);
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(session->step().has_value());
  ASSERT_TRUE(session->build().has_value());
  EXPECT_EQ(told(), 1);
  for (const auto& alert : session->alerts())
    if (alert.code() == "not_deterministic")
      EXPECT_EQ(alert.message(),
                "option 'deterministic': acme.Ripple 'ripple' differs from run to run: additions in the order in which "
                "threads arrive");
  ordered = true;
  session = open(model(true, false), registry);
  ASSERT_TRUE(session && session->build().has_value());
  EXPECT_EQ(told(), 0);
}

// What the window says of determinism is what the kernels say.
TEST_F(RegistryOfASession, DeterminismIsWhatTheKernelsSay) {
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(17);
  auto& graph = *proto.mutable_graph();
  graph.set_name("norm");
  addInput(graph, "x", {256, 256});
  addFloats(graph, "w", {256});
  addFloats(graph, "scale", {256});
  addNode(graph, "Mul", {"x", "w"}, {"product"}, "mul");
  addNode(graph, "LayerNormalization", {"product", "scale"}, {"y"}, "norm");
  auto* mean = addNode(graph, "ReduceMean", {"y"}, {"loss"}, "mean")->add_attribute();
  mean->set_name("keepdims");
  mean->set_type(onnx::AttributeProto::INT);
  mean->set_i(0);
  addOutput(graph, "loss");
  const auto path = folder_.write("norm.onnx", proto.SerializeAsString());
  auto session = Session::open(path, {}, {});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  ASSERT_TRUE((*session)->build().has_value());
  std::map<std::string, std::string> verdicts;
  for (const snapshot::Determinism& verdict : (*session)->determinism()) {
    verdicts[(*session)->runningGraph().node(NodeId{verdict.node()}).op] = verdict.verdict();
    EXPECT_FALSE(verdict.reason().empty());
  }
  EXPECT_EQ(verdicts.at("LayerNormalization"), "deterministic");
  EXPECT_EQ(verdicts.at("LayerNormalizationGrad"), "depends on thread count");
}

}  // namespace
}  // namespace stepscope
