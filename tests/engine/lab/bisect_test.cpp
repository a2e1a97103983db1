// Faults planted into passes and kernels: the smallest set of options names them, and a file shows them alone.
#include "engine/lab/bisect.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "engine/data/safetensors.h"
#include "engine/lab/delta_debugging.h"
#include "engine/lab/noise_bounds.h"
#include "engine/ops/gradient_context.h"
#include "engine/ops/shape_context.h"
#include "engine/passes/beside.h"
#include "engine/train/forward.h"
#include "kernels/dispatch.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::stateBits;
using testing::TestModel;

// --- the smallest set

std::vector<std::size_t> found(std::size_t count, const std::vector<std::size_t>& planted, int* calls = nullptr) {
  const auto set = smallestSet(count, [&](const std::vector<std::size_t>& some) -> Result<bool> {
    if (calls) ++*calls;
    return std::ranges::includes(some, planted);
  });
  EXPECT_TRUE(set.has_value());
  return *set;
}

TEST(SmallestSet, IsThePlantedOne) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 1 + random() % 60;
    std::set<std::size_t> planted;
    for (std::size_t k = 1 + random() % std::min<std::size_t>(count, 5); k > 0; --k) planted.insert(random() % count);
    const std::vector<std::size_t> expected(planted.begin(), planted.end());
    EXPECT_EQ(found(count, expected), expected) << count;
  }
}

TEST(SmallestSet, FindsOneCauseInFewSteps) {
  for (std::size_t cause = 0; cause < 64; ++cause) {
    int calls = 0;
    EXPECT_EQ(found(64, {cause}, &calls), std::vector<std::size_t>{cause});
    EXPECT_LE(calls, 12);
  }
}

TEST(SmallestSet, HandsErrorsOn) {
  const auto set =
      smallestSet(4, [](const std::vector<std::size_t>&) -> Result<bool> { return fail(ErrorCode::kCancelled, "enough"); });
  ASSERT_FALSE(set.has_value());
  EXPECT_EQ(set.error().message, "enough");
}

TEST(NoiseBounds, AreWidestWhereTheReferenceDiffersFromItself) {
  NoiseBounds bounds;
  bounds.add("gradient of 'w'", 1e-6);
  bounds.add("gradient of 'w'", 2e-6);
  bounds.add("gradient of 'bias'", 0.5);
  bounds.add("gradient of 'nan'", std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(bounds.boundOf("gradient of 'w'"), kNoiseFactor * 2e-6);
  EXPECT_DOUBLE_EQ(bounds.boundOf("gradient of 'bias'"), kNoiseFactor * 0.5);
  EXPECT_DOUBLE_EQ(bounds.boundOf("gradient of 'nan'"), kLeastBound);
  EXPECT_DOUBLE_EQ(bounds.boundOf("loss"), kLeastBound);
  EXPECT_DOUBLE_EQ(bounds.boundOf("new value of 'w'"), kLeastBoundOfUpdates);
  EXPECT_DOUBLE_EQ(NoiseBounds(0.01).boundOf("loss"), 0.01);
  EXPECT_DOUBLE_EQ(bounds.medianNoise("gradient of "), 0.250001);
}

// --- planted passes

// Multiplies what a node computes by 1.01.
Status spoil(Graph& graph, PassContext& context, NodeId id) {
  if (!id) return {};
  const ValueId y = graph.node(id).output(0);
  const ValueId factor = graph.addConstant("planted", Tensor::scalar(DType::kF32, 1.01));
  const ValueId scaled = emitBeside(graph, id, "Mul", {y, factor});
  const NodeId made = graph.value(scaled).producer;
  putBehind(graph, y, made, "unspoiled");
  SS_TRY(graph.sortTopologically());
  SS_TRY(context.inference.inferNode(made));
  context.match();
  return {};
}

// The last product of a phase whose first output is float.
NodeId lastProduct(const Graph& graph, Phase phase) {
  NodeId last;
  for (const NodeId id : graph.order())
    if (const Node& node = graph.node(id); node.phase == phase && (node.op.ends_with("MatMul") || node.op == "Gemm"))
      last = id;
  return last;
}

Status spoilForward(Graph& graph, PassContext& context) {
  return spoil(graph, context, lastProduct(graph, Phase::kForward));
}
Status spoilBackward(Graph& graph, PassContext& context) {
  return spoil(graph, context, lastProduct(graph, Phase::kBackward));
}

// Spoils what another pass has marked.
Status mark(Graph& graph, PassContext& context) {
  const NodeId id = lastProduct(graph, Phase::kForward);
  if (!id) return {};
  graph.mutableNode(id).provenance.sourceCode = InternedText("marked");
  context.match();
  return {};
}
Status spoilMarked(Graph& graph, PassContext& context) {
  const NodeId id = lastProduct(graph, Phase::kForward);
  return id && graph.node(id).provenance.sourceCode == "marked" ? spoil(graph, context, id) : Status();
}

struct Bisect : ::testing::Test {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("stepscope_bisect_" + std::to_string(getpid()));
  Bisect() { std::filesystem::create_directories(folder); }
  ~Bisect() override { std::filesystem::remove_all(folder); }

  BisectQuestion question() const {
    BisectQuestion asked;
    asked.file = folder / "part.onnx";
    return asked;
  }

  static std::unique_ptr<Session> open(const TestModel& model, std::shared_ptr<const Registry> registry,
                                       const std::map<std::string, std::string>& settings = {}) {
    auto session = Session::open(model.model, {}, {}, nullptr, registry);
    EXPECT_TRUE(session.has_value()) << session.error().message;
    std::map<std::string, std::string> all = settings;
    all.insert({{"data", model.data.string()}, {"loss", model.loss}, {"optimizer", "adamw"}, {"threads", "1"}});
    TrainOptions options;
    for (const auto& [name, value] : all)
      EXPECT_TRUE(applySetting(options, name, value, "test", registry->options()).has_value()) << name;
    EXPECT_TRUE((*session)->setOptions(options).has_value());
    const Status built = (*session)->build();
    EXPECT_TRUE(built.has_value()) << built.error().message;
    return std::move(*session);
  }

  static std::shared_ptr<const Registry> with(std::initializer_list<std::pair<std::string_view, Pass>> passes) {
    RegistryBuilder builder;
    for (const auto& [phase, pass] : passes) EXPECT_TRUE(builder.addPass(phase, pass).has_value());
    return std::move(builder).build();
  }

  // What the written file computes of its data.
  Tensor outputOf(std::shared_ptr<const Registry> registry, const std::map<std::string, std::string>& settings) const {
    auto session = Session::open(folder / "part.onnx", {}, {}, nullptr, registry);
    EXPECT_TRUE(session.has_value()) << session.error().message;
    TrainOptions options;
    EXPECT_TRUE(applySetting(options, "data", (folder / "part.safetensors").string(), "test").has_value());
    for (const auto& [name, value] : settings)
      EXPECT_TRUE(applySetting(options, name, value, "test", registry->options()).has_value());
    EXPECT_TRUE((*session)->setOptions(options).has_value());
    const auto outputs = runForward(**session, {});
    EXPECT_TRUE(outputs.has_value()) << outputs.error().message;
    return outputs ? outputs->front().second : Tensor();
  }
};

std::vector<std::string> names(const BisectReport& report) {
  std::vector<std::string> list;
  for (const BisectOption& option : report.options) list.push_back(option.name);
  return list;
}

double ratioOf(const Tensor& a, const Tensor& b) {
  double x = 0, y = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    x += std::abs(elementAsDouble(a.view(), i));
    y += std::abs(elementAsDouble(b.view(), i));
  }
  return x / y;
}

TEST_F(Bisect, FindsNothingInWhatIsRight) {
  for (const TestModel& model : {testing::languageModel(), testing::digits()}) {
    SCOPED_TRACE(model.name);
    auto session = open(model, Registry::builtIn());
    ASSERT_TRUE(session->step().has_value());
    const std::string before = stateBits(*session);
    const auto report = session->lab().bisect(question());
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_FALSE(report->differs) << report->all.error << " " << report->all.what << ", bound " << report->all.bound;
    EXPECT_GE(report->pairs, 4);
    EXPECT_GT(report->noise, 0) << "another number of threads, or weights rounded once more, change some bit";
    EXPECT_LT(report->noise, 1e-4);
    EXPECT_GT(report->candidates, 10u);
    EXPECT_EQ(report->step, 1);
    EXPECT_TRUE(report->options.empty());
    EXPECT_FALSE(std::filesystem::exists(folder / "part.onnx"));
    EXPECT_EQ(stateBits(*session), before);
    EXPECT_EQ(session->nextStep(), 1);
  }
}

TEST_F(Bisect, NamesAPassThatSpoilsTheForwardPass) {
  const auto registry = with({{"pre-grad passes", {"planted", "multiplies by 1.01", spoilForward}}});
  for (const TestModel& model : {testing::languageModel(), testing::digits()}) {
    SCOPED_TRACE(model.name);
    auto session = open(model, registry);
    const auto report = session->lab().bisect(question());
    ASSERT_TRUE(report.has_value()) << report.error().message;
    ASSERT_TRUE(report->differs);
    EXPECT_EQ(names(*report), std::vector<std::string>{"pass.planted"});
    ASSERT_TRUE(report->shown) << report->note;
    ASSERT_EQ(report->nodes.size(), 1u);
    EXPECT_TRUE(report->nodes[0].starts_with("MatMul") || report->nodes[0].starts_with("Gemm")) << report->nodes[0];
    EXPECT_NEAR(report->shownError, 0.01, 1e-4);
    // Whoever gets the file sees the same.
    const Tensor wrong = outputOf(registry, {}), right = outputOf(registry, {{"pass.planted", "off"}});
    ASSERT_TRUE(wrong.valid() && right.valid());
    EXPECT_NEAR(ratioOf(wrong, right), 1.01, 1e-4);
  }
}

TEST_F(Bisect, NamesAPassThatSpoilsTheBackwardPass) {
  const auto registry = with({{"post-grad passes", {"planted", "multiplies by 1.01", spoilBackward}}});
  auto session = open(testing::languageModel(), registry);
  const auto report = session->lab().bisect(question());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  ASSERT_TRUE(report->differs);
  EXPECT_EQ(names(*report), std::vector<std::string>{"pass.planted"});
  ASSERT_TRUE(report->shown) << report->note;
  EXPECT_EQ(report->nodes.size(), 1u);
  const Tensor wrong = outputOf(registry, {}), right = outputOf(registry, {{"pass.planted", "off"}});
  EXPECT_NEAR(ratioOf(wrong, right), 1.01, 1e-4);
}

TEST_F(Bisect, NamesBothPassesThatAreWrongTogether) {
  const auto registry = with({{"pre-grad passes", {"planted_mark", "marks", mark}},
                              {"pre-grad passes", {"planted_spoil", "spoils what is marked", spoilMarked}}});
  auto session = open(testing::digits(), registry);
  const auto report = session->lab().bisect(question());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(names(*report), (std::vector<std::string>{"pass.planted_mark", "pass.planted_spoil"}));
}

TEST_F(Bisect, NamesALowPrecision) {
  auto session = open(testing::digits(), Registry::builtIn(), {{"precision", "bf16"}});
  const auto report = session->lab().bisect(question());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(names(*report), std::vector<std::string>{"precision"});
  EXPECT_EQ(report->options[0].value, "bf16");
}

// Kernels of reference are functions of the host, which cannot reach the memory of these devices.
TEST_F(Bisect, RunsItsReferenceBesideAnyDevice) {
  std::vector<TestModel> models = testing::corpusCases({"indexing"});
  models.push_back(testing::digits());
  for (const TestModel& model : models)
    for (const char* device : {"mirror", "mirror:Relu,Gather", "emulated"}) {
      SCOPED_TRACE(model.name + " on " + device);
      auto session = open(model, Registry::builtIn(), {{"device", device}});
      const auto right = session->lab().bisect(question());
      ASSERT_TRUE(right.has_value()) << right.error().message;
      EXPECT_FALSE(right->differs) << right->all.error << " " << right->all.what << ", bound " << right->all.bound;
      session = open(model, Registry::builtIn(), {{"device", device}, {"precision", "bf16"}});
      const auto report = session->lab().bisect(question());
      ASSERT_TRUE(report.has_value()) << report.error().message;
      EXPECT_EQ(names(*report), std::vector<std::string>{"precision"});
    }
}

TEST_F(Bisect, RefusesReferencesThatChangeTheStep) {
  auto session = open(testing::digits(), Registry::builtIn());
  for (const auto& [name, message] :
       std::map<std::string, std::string>{{"optimizer", "changes what is computed"}, {"pass.none", "no such option"}}) {
    BisectQuestion asked = question();
    asked.reference = {{name, "off"}};
    const auto report = session->lab().bisect(asked);
    ASSERT_FALSE(report.has_value());
    EXPECT_NE(report.error().message.find(message), std::string::npos) << report.error().message;
  }
  BisectQuestion asked = question();
  asked.tolerance = -1;
  EXPECT_FALSE(session->lab().bisect(asked).has_value());
}

// --- a planted kernel: y = x + a sin(x), and the fast one has another a

double factor = 0.5, wrongFactor = 0.6;

Status rippleGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.dy(0), g.add(g.mul(g.op("Cos", {g.x(0)}), factor), 1.0)));
  return {};
}

class RippleKernel final : public Kernel {
 public:
  explicit RippleKernel(const KernelSpec& spec) : factor_(*static_cast<const double*>(spec.user)) {}
  Status run(const KernelCall& call) override {
    for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
      const double x = elementAsDouble(call.inputs[0], i);
      storeElement(call.outputs[0], i, x + factor_ * std::sin(x));
    }
    return {};
  }
  std::string implementation() const override { return "planted"; }
  Determinism determinism() const override { return Determinism::oneThread(); }

 private:
  double factor_;
};

Result<std::unique_ptr<Kernel>> makeRipple(const KernelSpec& spec) { return std::make_unique<RippleKernel>(spec); }

const OpDef kRipple = {.name = "Ripple",
                       .domain = "acme",
                       .sinceVersion = 1,
                       .doc = "y = x + a sin(x)",
                       .inputs = {1, 1},
                       .outputs = {1, 1},
                       .category = OpCategory::kElementwise,
                       .precision = Precision::kFollows,
                       .hostInputs = kNoInputs,
                       .inferShape = shape_rules::sameAsInput0,
                       .gradient = rippleGradient,
                       .differentiableInputs = bit(0),
                       .inPlaceInputs = bit(0)};
const OpDef* const kOps[] = {&kRipple};
const KernelEntry kPlain[] = {{"acme", "Ripple", makeRipple, false, kAnyDType, &factor}};
const KernelEntry kFast[] = {{"acme", "Ripple", makeRipple, false, kAnyDType, &wrongFactor}};

// loss = mean(ripple(x w + b))
onnx::ModelProto rippleModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto* acme = model.add_opset_import();
  acme->set_domain("acme");
  acme->set_version(1);
  auto& graph = *model.mutable_graph();
  graph.set_name("ripple");
  testing::addInput(graph, "x", {4, 3});
  auto* w = testing::addFloats(graph, "w", {3, 3});
  w->clear_float_data();
  for (int i = 0; i < 9; ++i) w->add_float_data(0.1F * static_cast<float>(i) - 0.3F);
  testing::addNode(graph, "MatMul", {"x", "w"}, {"product"}, "matmul");
  testing::addNode(graph, "Ripple", {"product"}, {"y"}, "ripple")->set_domain("acme");
  testing::addNode(graph, "ReduceMean", {"y"}, {"loss"}, "mean")->add_attribute()->CopyFrom([] {
    onnx::AttributeProto keep;
    keep.set_name("keepdims");
    keep.set_type(onnx::AttributeProto::INT);
    keep.set_i(0);
    return keep;
  }());
  testing::addOutput(graph, "loss");
  return model;
}

TEST_F(Bisect, NamesAKernelAndTheOneNodeItRuns) {
  RegistryBuilder builder;
  ASSERT_TRUE(builder.addOps(kOps).has_value());
  ASSERT_TRUE(builder.addKernels(kReferenceDevice, kPlain).has_value());
  ASSERT_TRUE(builder.addKernels("cpu", kFast).has_value());
  const auto registry = std::move(builder).build();
  const testing::TemporaryFolder models;
  const auto path = models.write("ripple.onnx", rippleModel().SerializeAsString());
  auto session = Session::open(path, {}, {}, nullptr, registry);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "loss", "loss", "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  ASSERT_TRUE((*session)->build().has_value());
  const auto report = (*session)->lab().bisect(question());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(names(*report), std::vector<std::string>{"kernels"});
  EXPECT_EQ(report->nodes, std::vector<std::string>{"acme.Ripple 'ripple'"});
  EXPECT_TRUE(report->shown) << report->note;
  const Tensor wrong = outputOf(registry, {}), right = outputOf(registry, {{"kernels", "reference"}});
  EXPECT_GT(std::abs(ratioOf(wrong, right) - 1), 1e-3);
}

}  // namespace
}  // namespace stepscope
