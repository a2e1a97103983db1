// Models whose file has collectives: two ranks train them as one process trains the same computation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/plan/plan_collectives.h"
#include "tests/engine/train/two_ranks.h"
#include "tests/support/rank_model.h"

namespace stepscope::testing {
namespace {

const std::map<std::string, std::string> kSgd{{"optimizer", "sgd"}, {"lr", "0.3"}, {"threads", "1"}};

double difference(const Parameters& a, const Parameters& b) {
  double worst = 0;
  for (const auto& [name, tensor] : a)
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      worst = std::max(worst, std::abs(elementAsDouble(tensor.view(), i) - elementAsDouble(b.at(name).view(), i)));
  return worst;
}

Status oneStep(Session& session) {
  SS_TRY(session.step());
  return {};
}

class ModelCollectivesTest : public ::testing::TestWithParam<const char*> {};  // what ranks keep parts of
INSTANTIATE_TEST_SUITE_P(Parts, ModelCollectivesTest, ::testing::Values("off", "optimizer", "gradients", "parameters"));

TEST_P(ModelCollectivesTest, TwoRanksTrainAsOneProcessThatHasBothInputs) {
  const TemporaryFolder folder;
  const RankModels models = writeRankModels(folder, 3);
  std::map<std::string, std::string> frozen = kSgd;
  frozen["freeze"] = kRankModelFrozen;
  const auto alone = openSession(models.one, frozen);
  ASSERT_TRUE(alone);
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(alone->step().has_value());
  Parameters expected;
  for (const auto& [name, view] : alone->trained().named(false)) {
    if (name != "w") continue;
    Tensor& copy = expected[name] = Tensor(view.dtype, view.dims);
    std::memcpy(copy.data(), view.data, view.bytes());
  }
  for (const char* beside : {"on", "off"}) {
    std::map<std::string, std::string> settings = kSgd;
    settings.insert({{"ranks.overlap", beside}, {"ranks.prefetch", beside}});
    std::set<std::string> ran;
    const auto together = firstOfTwo(
        [&](Session& session) -> Status {
          for (const Instruction& instruction : session.stepper().plan().instructions)
            ran.insert(session.stepper().graph().node(instruction.node).name);
          return oneStep(session);
        },
        nullptr, GetParam(), settings, models.ranks);
    ASSERT_TRUE(together.has_value()) << together.error().message;
    ASSERT_EQ(together->size(), 1U);
    EXPECT_LT(difference(*together, expected), 5e-6) << beside;  // rounding: 4.2e-6 with AVX2, less with AVX-512
    EXPECT_TRUE(ran.contains("constant")) << "what is sent of a constant was folded away";
  }
}

TEST_P(ModelCollectivesTest, AStepThatIsWalkedAndReplayedSendsNothingTwice) {
  const TemporaryFolder folder;
  const RankModels models = writeRankModels(folder, 3);
  std::int64_t plainCount = 0, walkedCount = 0;
  const auto plain = firstOfTwo(oneStep, &plainCount, GetParam(), kSgd, models.ranks);
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  const auto walked = firstOfTwo(
      [](Session& session) -> Status {
        SS_TRY(session.beginStep());
        const int count = session.stepper().count();
        for (const int place : {count - 1, 0, count / 2, count - 1, 1}) SS_TRY(session.runTo(place));
        SS_TRY(session.finishStep());
        return {};
      },
      &walkedCount, GetParam(), kSgd, models.ranks);
  ASSERT_TRUE(walked.has_value()) << walked.error().message;
  EXPECT_EQ(difference(*plain, *walked), 0);
  EXPECT_EQ(plainCount, walkedCount);
}

TEST(ModelCollectives, GradientsOfAllAreExactInHalfPrecisionToo) {
  const TemporaryFolder folder;
  const RankModels models = writeRankModels(folder, 3);
  std::map<std::string, std::string> settings = kSgd;
  settings["lr"] = "0.05";
  const auto full = firstOfTwo(oneStep, nullptr, "off", settings, models.ranks);
  ASSERT_TRUE(full.has_value()) << full.error().message;
  settings["precision"] = "bf16";
  const auto low = firstOfTwo(oneStep, nullptr, "off", settings, models.ranks);
  ASSERT_TRUE(low.has_value()) << low.error().message;
  EXPECT_LT(difference(*low, *full), 0.005);
  EXPECT_GT(difference(*low, *full), 0);
}

// Trials and proofs run this rank alone, with what it has itself.
TEST(ModelCollectives, ATrialSendsNothing) {
  const TemporaryFolder folder;
  const RankModels models = writeRankModels(folder, 3);
  std::int64_t plain = 0, tried = 0;
  ASSERT_TRUE(firstOfTwo(oneStep, &plain, "off", kSgd, models.ranks).has_value());
  const auto ran = firstOfTwo(
      [](Session& session) -> Status {
        SS_TRY(session.compareBits());
        return oneStep(session);
      },
      &tried, "off", kSgd, models.ranks);
  ASSERT_TRUE(ran.has_value()) << ran.error().message;
  EXPECT_EQ(plain, tried);
}

// The order of the file, in every plan; what goes back comes in the opposite one, and gradients of parameters come last.
TEST(ModelCollectives, AreMetInTheOrderOfTheFile) {
  const TemporaryFolder folder;
  const RankModels models = writeRankModels(folder, 3);
  std::vector<std::string> forward, backward;
  const auto ran = firstOfTwo(
      [&](Session& session) -> Status {
        const Graph& graph = session.stepper().graph();
        const auto all = collectivesOf(graph, session.stepper().plan(), session.registry().operators().ops, 0, 2);
        forward.clear(), backward.clear();
        for (const PlannedCollective& c : all)
          if (graph.node(c.node).phase == Phase::kForward)
            forward.push_back(graph.node(c.node).name);
          else
            backward.push_back(graph.node(c.node).op);
        return oneStep(session);
      },
      nullptr, "off", kSgd, models.ranks);
  ASSERT_TRUE(ran.has_value()) << ran.error().message;
  EXPECT_EQ(forward, (std::vector<std::string>{"b", "r", "a", "v", "u", "m", "all", "rows", "constant"}));
  EXPECT_EQ(backward, (std::vector<std::string>{"AllGatherRows", "ReduceScatterRows", "AllReduce", "Recv", "Recv",
                                                "AllToAll", "Broadcast", "Reduce", "AllReduce"}));
}

// --- what cannot be run says so before anything runs

std::string refusal(onnx::ModelProto model, const std::string& ranks = "1") {
  const TemporaryFolder folder;
  RankModels models = writeRankModels(folder, 3);
  models.ranks.model = folder.write("other.onnx", model.SerializeAsString());
  if (ranks == "1") {
    const auto session = openedSession(models.ranks, kSgd);
    if (!session) return session.error().message;
    const Status built = (*session)->build();
    return built ? "" : built.error().message;
  }
  const auto ran = firstOfTwo(oneStep, nullptr, "off", kSgd, models.ranks);
  return ran ? "" : ran.error().message;
}

onnx::NodeProto& nodeOf(onnx::ModelProto& model, const std::string& name) {
  return *std::ranges::find(*model.mutable_graph()->mutable_node(), name, &onnx::NodeProto::name);
}

void setNumber(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  std::ranges::find(*node.mutable_attribute(), name, &onnx::AttributeProto::name)->set_i(value);
}

void expectSays(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(ModelCollectives, ARankThatTheRunDoesNotHaveIsNamed) {
  expectSays(refusal(rankModel()), {"attribute to is rank 1", "expected 0 to 0", "--distributed"});
  onnx::ModelProto model = rankModel();
  setNumber(nodeOf(model, "b"), "root", 2);
  expectSays(refusal(model, "2"), {"Broadcast 'b'", "attribute root is rank 2", "expected 0 to 1"});
}

TEST(ModelCollectives, AMessageWithOneEndIsNamed) {
  onnx::ModelProto model = rankModel();
  setNumber(nodeOf(model, "v"), "tag", 5);
  expectSays(refusal(model), {"Recv 'v'", "no Send from rank 0 to rank 1 with tag 5"});
  model = rankModel();
  model.mutable_graph()->mutable_node()->erase(
      std::ranges::find(*model.mutable_graph()->mutable_node(), "v", &onnx::NodeProto::name));
  nodeOf(model, "vh").set_input(0, "h");
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node())
    for (std::string& input : *node.mutable_input())
      if (input == "v") input = "h";
  expectSays(refusal(model), {"Send 'first'", "no Recv from rank 0 to rank 1 with tag 4"});
}

TEST(ModelCollectives, AMessageOfAnotherTypeOrOtherExtentsIsNamed) {
  onnx::ModelProto model = rankModel();
  setNumber(nodeOf(model, "v"), "dtype", onnx::TensorProto::DOUBLE);
  expectSays(refusal(model), {"Recv 'v'", "a message of float32; expected float64"});
  model = rankModel();
  auto& shape = *std::ranges::find(*nodeOf(model, "v").mutable_attribute(), "shape", &onnx::AttributeProto::name);
  shape.set_ints(0, 7);
  expectSays(refusal(model), {"Recv 'v'", "message and attribute shape"});
}

TEST(ModelCollectives, ASendThatWaitsForItsOwnMessageIsNamed) {
  onnx::ModelProto model = rankModel();
  nodeOf(model, "hh").set_input(0, "v");
  auto* nodes = model.mutable_graph()->mutable_node();
  // A file in an order in which everything stands behind what it reads: only the message goes round.
  const auto at = [&](const char* name) {
    return static_cast<int>(std::ranges::find(*nodes, name, &onnx::NodeProto::name) - nodes->begin());
  };
  for (int i = at("v"); i > at("hh"); --i) nodes->SwapElements(i, i - 1);
  expectSays(refusal(model), {"messages between ranks", "needs its own Recv"});
}

TEST(ModelCollectives, AnAxisThatRanksCannotShareOutIsNamed) {
  onnx::ModelProto model;
  RankModelGraph g(model);
  addInput(g.graph(), "x", {kRankModelRows, kRankModelColumns});
  addOutput(g.graph(),
            g.loss("", g.collective("a", "AllToAll", {g.node("h", "Transpose", {g.node("y", "MatMul", {"x", "w"})})}), {}));
  expectSays(refusal(model, "2"), {"AllToAll 'a'", "float32[3, 2]", "multiple of 2"});
}

TEST(ModelCollectives, ExtentsThatFollowFromDataAreRefused) {
  onnx::ModelProto model;
  RankModelGraph g(model);
  addInput(g.graph(), "x", {kRankModelRows, kRankModelColumns});
  const std::string h = g.node("h", "MatMul", {"x", "w"});
  const std::string places = g.collective("places", "Broadcast", {g.node("nz", "NonZero", {h})});
  g.node("cast", "Cast", {places});
  g.number("to", onnx::TensorProto::FLOAT);
  g.node("most", "ReduceMax", {"cast"});
  g.number("keepdims", 0);
  addOutput(g.graph(), g.loss("", h, {g.node("scaled", "Mul", {h, "most"})}));
  expectSays(refusal(model, "2"), {"Broadcast 'places'", "follow from data"});
}

// Alone a process is rank 0 of 1.
TEST(ModelCollectives, OneProcessSendsToItself) {
  const auto build = [](bool collectives) {
    onnx::ModelProto model;
    RankModelGraph g(model);
    addInput(g.graph(), "x", {kRankModelRows, kRankModelColumns});
    const std::string h = g.node("h", "MatMul", {"x", "w"});
    std::vector<std::string> came{h, h, h, h};
    if (collectives) {
      const std::map<std::string, std::vector<std::int64_t>> ends{{"from", {0}}, {"to", {0}}, {"tag", {1}}};
      came = {g.collective("b", "Broadcast", {h}), g.collective("r", "Reduce", {h}), g.collective("a", "AllToAll", {h}),
              g.collective("v", "Recv", {g.collective("s", "Send", {h}, ends)}, ends)};
    }
    addOutput(g.graph(), g.loss("", h, came));
    return model;
  };
  const TemporaryFolder folder;
  RankModels models = writeRankModels(folder, 3);
  std::vector<Parameters> trained;
  for (const bool collectives : {true, false}) {
    models.ranks.model = folder.write("alone.onnx", build(collectives).SerializeAsString());
    const auto session = openSession(models.ranks, kSgd);
    ASSERT_TRUE(session);
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(session->step().has_value());
    for (const auto& [name, view] : session->trained().named(false)) {
      if (name == "w") trained.push_back({{name, Tensor(view.dtype, view.dims)}});
      if (name == "w") std::memcpy(trained.back()[name].data(), view.data, view.bytes());
    }
  }
  ASSERT_EQ(trained.size(), 2U);
  EXPECT_LT(difference(trained[0], trained[1]), 1e-6);
}

}  // namespace
}  // namespace stepscope::testing
