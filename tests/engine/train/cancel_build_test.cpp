// A build ends where it is cancelled, within its long phases too. Operator acme.Probe counts how often it is visited: one
// that cancels at a visit is visited no more.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/ops/gradient_context.h"
#include "engine/ops/shape_context.h"
#include "engine/state/random_weights.h"
#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::addFloats;
using testing::addInput;
using testing::addNode;
using testing::addOutput;

constexpr int kProbes = 30, kAt = 7;

// Who looks at the operator.
enum class Visit { kShapeRule, kGradientRule, kKernel };

// What is waited for: the visit of that kind in that phase whose number is kAt.
struct Watch {
  std::string phase;
  Visit kind = Visit::kShapeRule;
  std::function<void()> cancel;
  std::string now;  // the phase that runs
  int seen = 0;
} watch;

void visited(Visit kind) {
  if (watch.now != watch.phase || watch.kind != kind) return;
  if (++watch.seen == kAt && watch.cancel) watch.cancel();
}

Status probeShape(ShapeContext& c) {
  visited(Visit::kShapeRule);
  return shape_rules::sameAsInput0(c);
}

Status probeGradient(GradientContext& g) {
  visited(Visit::kGradientRule);
  g.setGradient(0, g.mul(g.dy(0), 2.0));
  return {};
}

class Doubling final : public Kernel {
 public:
  Status run(const KernelCall& call) override {
    for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i)
      storeElement(call.outputs[0], i, 2 * elementAsDouble(call.inputs[0], i));
    return {};
  }
  std::string implementation() const override { return "acme"; }
  Determinism determinism() const override { return Determinism::oneThread(); }
};

Result<std::unique_ptr<Kernel>> makeDoubling(const KernelSpec&) {
  visited(Visit::kKernel);
  return std::make_unique<Doubling>();
}

const OpDef kProbe{.name = "Probe",
                   .domain = "acme",
                   .sinceVersion = 1,
                   .doc = "y = 2 x",
                   .inputs = {1, 1},
                   .outputs = {1, 1},
                   .category = OpCategory::kElementwise,
                   .precision = Precision::kFollows,
                   .hostInputs = kNoInputs,
                   .inferShape = probeShape,
                   .gradient = probeGradient,
                   .differentiableInputs = bit(0)};
const OpDef* const kOps[] = {&kProbe};
const KernelEntry kKernels[] = {{"acme", "Probe", makeDoubling, false, kAnyDType, nullptr}};

std::shared_ptr<const Registry> registryWithProbe() {
  RegistryBuilder builder;
  EXPECT_TRUE(builder.addOps(kOps).has_value());
  EXPECT_TRUE(builder.addKernels(kReferenceDevice, kKernels).has_value());
  return std::move(builder).build();
}

// loss = mean of kProbes probes, one behind the other, over x w.
onnx::ModelProto chain() {
  onnx::ModelProto model = testing::acmeModel("chain");
  auto& graph = *model.mutable_graph();
  addInput(graph, "x", {4, 3});
  auto* w = addFloats(graph, "w", {3, 3});
  w->clear_float_data();
  for (int i = 0; i < 9; ++i) w->add_float_data(0.01F * static_cast<float>(i + 1));
  addNode(graph, "MatMul", {"x", "w"}, {"y0"}, "matmul");
  for (int i = 0; i < kProbes; ++i)
    addNode(graph, "Probe", {"y" + std::to_string(i)}, {"y" + std::to_string(i + 1)}, "probe" + std::to_string(i))
        ->set_domain("acme");
  auto* mean = addNode(graph, "ReduceMean", {"y" + std::to_string(kProbes)}, {"loss"}, "mean")->add_attribute();
  mean->set_name("keepdims");
  mean->set_type(onnx::AttributeProto::INT);
  mean->set_i(0);
  addOutput(graph, "loss");
  return model;
}

class CancelledBuild : public ::testing::Test {
 protected:
  CancelledBuild() : path_(folder_.write("m.onnx", chain().SerializeAsString())) { watch = {}; }

  Result<std::unique_ptr<Session>> open(const LoadOptions& load = {}) {
    Observer observer;
    observer.begins = [](const snapshot::PhaseSpan& span) {
      if (span.depth() == 0) watch.now = span.name();
    };
    return Session::open(path_, load, observer, nullptr, registryWithProbe());
  }
  std::unique_ptr<Session> built() {
    auto session = open();
    EXPECT_TRUE(session.has_value()) << session.error().message;
    TrainOptions options;
    for (const auto& [name, value] : {std::pair{"lr", "0.1"}, std::pair{"threads", "1"}, std::pair{"seed", "3"}})
      EXPECT_TRUE(applySetting(options, name, value, "test").has_value()) << name;
    EXPECT_TRUE((*session)->setOptions(options).has_value());
    const Status made = (*session)->build();
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return std::move(*session);
  }

  testing::TemporaryFolder folder_;
  const std::filesystem::path path_;
};

TEST_F(CancelledBuild, ALongPhaseIsLeftBetweenTwoNodes) {
  const auto session = built(), other = built();
  const std::vector<std::pair<const char*, Visit>> places{
      {"gradient", Visit::kGradientRule}, {"specialise", Visit::kShapeRule}, {"bind", Visit::kKernel}};
  for (const auto& [phase, kind] : places) {
    SCOPED_TRACE(phase);
    watch = {phase, kind, [&] { session->cancel(); }};
    const std::string plan = session->planSnapshot()->SerializeAsString();
    const Status cancelled = session->build();
    ASSERT_FALSE(cancelled.has_value());
    EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled) << cancelled.error().message;
    EXPECT_EQ(watch.seen, kAt);
    EXPECT_EQ(watch.now, phase) << "no phase after it begins";
    EXPECT_EQ(session->planSnapshot()->SerializeAsString(), plan) << "what was built before is there";
    // It trains on, and the cancel is spent.
    watch = {};
    const auto step = session->step(), expected = other->step();
    ASSERT_TRUE(step && expected);
    EXPECT_EQ(step->loss(), expected->loss());
    EXPECT_EQ(testing::stateBits(*session), testing::stateBits(*other));
  }
}

TEST_F(CancelledBuild, AModelIsReadNoFurther) {
  std::atomic<bool> flag = false;
  LoadOptions load;
  load.cancel = Cancel(&flag);
  watch = {"infer", Visit::kShapeRule, [&] { flag = true; }};
  const auto session = open(load);
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().code, ErrorCode::kCancelled) << session.error().message;
  EXPECT_EQ(watch.seen, kAt);
  EXPECT_FALSE(flag) << "it is taken back";
  flag = true;
  std::vector<Problem> problems;
  const auto weights = Session::open(path_, load, {}, &problems, registryWithProbe());
  ASSERT_FALSE(weights.has_value());
  EXPECT_EQ(weights.error().message, "load: cancelled");
  EXPECT_TRUE(problems.empty()) << "the file is not at fault";
}

// A first build has no plan to give up: it is left after its memory was taken, too. What it put into the state is gone,
// weights that were filled among them, and another build begins as a first one does.
TEST(Cancel, AFirstBuildIsLeftWhileItTakesMemory) {
  const testing::TemporaryFolder folder;
  onnx::ModelProto model = chain();
  testing::setExternal(*model.mutable_graph()->mutable_initializer(0), "not_there.bin");
  const auto path = folder.write("m.onnx", model.SerializeAsString());
  LoadOptions load;
  load.missingWeights = LoadOptions::MissingWeights::kRandom;
  std::function<void()> filled;
  Observer observer;
  observer.alert = [&](const snapshot::Alert& alert) {
    if (alert.code() == "missing_weights" && filled) std::exchange(filled, nullptr)();
  };
  watch = {};
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 2; ++i) {
    auto opened = Session::open(path, load, observer, nullptr, registryWithProbe());
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    TrainOptions options;
    for (const auto& [name, value] : {std::pair{"missing-weights", "random"}, std::pair{"optimizer", "adamw"}})
      ASSERT_TRUE(applySetting(options, name, value, "test").has_value()) << name;
    ASSERT_TRUE((*opened)->setOptions(options).has_value());
    sessions.push_back(std::move(*opened));
  }
  Session &cancelled = *sessions[0], &other = *sessions[1];
  filled = [&] { cancelled.cancel(); };
  const Status built = cancelled.build();
  ASSERT_FALSE(built.has_value());
  EXPECT_EQ(built.error().code, ErrorCode::kCancelled) << built.error().message;
  EXPECT_FALSE(cancelled.built());
  EXPECT_EQ(testing::stateBits(cancelled), "");
  for (Session* session : {&cancelled, &other}) {
    const Status again = session->build();
    ASSERT_TRUE(again.has_value()) << again.error().message;
    ASSERT_TRUE(session->step().has_value());
  }
  EXPECT_EQ(testing::stateBits(cancelled), testing::stateBits(other));
}

// While one weight is filled: it is looked at within it.
TEST(Cancel, TheFillingOfWeightsEnds) {
  Graph graph;
  ValueType type;
  type.dtype = DType::kF32;
  type.shape = shapeOf({3, 5});
  graph.addValue("w", type, ValueRole::kInitializer);
  State state;
  std::atomic<bool> flag = true;
  const auto filled = fillMissingWeights(graph, 3, 1, state, Cancel(&flag));
  ASSERT_FALSE(filled.has_value());
  EXPECT_EQ(filled.error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(flag) << "it is taken back";
  state.putBack(State().hold());
  EXPECT_TRUE(lacksWeights(graph, state));
  ASSERT_TRUE(fillMissingWeights(graph, 3, 1, state).has_value());
  EXPECT_FALSE(lacksWeights(graph, state));
}

// Wherever a phase or pass begins: the build ends there, unless the plan before has given up its memory already.
TEST(Cancel, ABuildEndsAtThePhaseOrPassThatBegins) {
  std::vector<std::string> begun;
  std::function<void()> cancel;
  std::size_t at = SIZE_MAX;
  Observer observer;
  observer.begins = [&](const snapshot::PhaseSpan& span) {
    begun.push_back(span.name());
    if (begun.size() == at + 1) cancel();
  };
  const auto session = testing::openSession(testing::testModels().at(1), {{"accumulate", "2"}}, observer);
  const auto other = testing::openSession(testing::testModels().at(1), {{"accumulate", "2"}});
  ASSERT_TRUE(session && other);
  cancel = [&] { session->cancel(); };
  begun.clear();
  ASSERT_TRUE(session->build().has_value());
  const std::vector<std::string> all = begun;
  ASSERT_GT(all.size(), 30u);
  const std::string plan = session->planSnapshot()->SerializeAsString();
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i]);
    at = i;
    begun.clear();
    const Status cancelled = session->build();
    ASSERT_FALSE(cancelled.has_value());
    EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled) << cancelled.error().message;
    EXPECT_LE(begun.size(), i + 2) << "after " << begun.back();
    EXPECT_EQ(session->planSnapshot()->SerializeAsString(), plan);
  }
  at = SIZE_MAX;
  ASSERT_TRUE(session->step() && other->step());
  EXPECT_EQ(testing::stateBits(*session), testing::stateBits(*other));
}

}  // namespace
}  // namespace stepscope
