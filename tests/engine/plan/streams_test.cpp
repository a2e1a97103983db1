// Several streams: every two instructions that touch the same bytes are ordered, and a plan where they are not is found out.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/plan/order_streams.h"
#include "engine/plan/stream_partition.h"
#include "tests/engine/plan/step_graph.h"

namespace stepscope {
namespace {

using testing::StepGraph;

// Nodes that read values made long before, so that streams must wait for each other; some under conditions of If.
struct RandomGraph {
  explicit RandomGraph(unsigned seed) {
    std::mt19937 random(seed);
    const auto value = [&](std::string name, DType dtype, Shape shape) {
      const ValueId id = graph.addValue(std::move(name), {ValueKind::kTensor, dtype, std::move(shape)}, ValueRole::kInput);
      graph.mutableInputs().push_back(id);
      return id;
    };
    std::vector<ValueId> known{value("a", DType::kF32, shapeOf({8, 4})), value("b", DType::kF32, shapeOf({8, 4}))};
    const ValueId yes = value("condition", DType::kBool, {});
    const auto node = [&](std::string op, std::vector<ValueId> inputs) {
      const NodeId id =
          graph.addNode("", "", std::move(op), std::move(inputs), {"v" + std::to_string(graph.valueCapacity())});
      graph.mutableNode(id).sinceVersion = kInternalOpset;
      return id;
    };
    for (int i = 0; i < 60; ++i) {
      const auto any = [&] { return known[random() % known.size()]; };
      const unsigned kind = random() % 8;
      if (kind == 7) {
        const NodeId then = node("Exp", {any()}), otherwise = node("Tanh", {any()});
        graph.mutableNode(then).predicates = {{yes, true}};
        graph.mutableNode(otherwise).predicates = {{yes, false}};
        const NodeId joined = graph.addNode("", std::string(kInternalDomain), "Select",
                                            {yes, graph.node(then).output(0), graph.node(otherwise).output(0)},
                                            {"v" + std::to_string(graph.valueCapacity())});
        graph.mutableNode(joined).sinceVersion = kInternalOpset;
        known.push_back(graph.node(joined).output(0));
        continue;
      }
      known.push_back(
          graph.node(kind < 3    ? node("Relu", {any()})
                     : kind == 3 ? node("Identity", {any()})
                                 : node("Mul", {any(), any()}))
              .output(0));
    }
    graph.mutableOutputs() = {known.back(), known[known.size() / 2]};
    inference = std::make_unique<Inference>(graph, builtInOperators(), InferOptions{.foldElements = -1});
    const Status status = inference->run();
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
  ExecutionPlan plan(const char* device, int streams) const {
    PlanOptions options;
    options.device = *findDevice(device);
    options.streams = streams;
    auto made = makePlan(graph, *inference, options);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made ? std::move(*made) : ExecutionPlan();
  }
  Graph graph;
  std::unique_ptr<Inference> inference;
};

void addWorkspaces(ExecutionPlan& plan) {
  for (std::size_t i = 0; i < plan.instructions.size(); i += 3)
    if (plan.instructions[i].kind == InstructionKind::kKernel && !plan.instructions[i].view) addWorkspace(plan, i, 200);
}

bool severalStreams(const ExecutionPlan& plan) {
  return std::any_of(plan.instructions.begin(), plan.instructions.end(), [](const Instruction& i) { return i.stream > 0; });
}

class Streams : public ::testing::TestWithParam<const char*> {};

TEST_P(Streams, OfRandomGraphsOrderWhateverTouchesTheSameBytes) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const RandomGraph random(seed);
    for (const int streams : {1, 2, 3}) {
      ExecutionPlan plan = random.plan(GetParam(), streams);
      addWorkspaces(plan);
      packArena(plan, random.graph, true);
      EXPECT_EQ(checkStreams(plan, random.graph), std::vector<std::string>()) << "seed " << seed << ", " << streams;
      EXPECT_EQ(severalStreams(plan), streams > 1);
    }
  }
}

TEST_P(Streams, OfATrainingStepOrderItsUpdates) {
  const StepGraph step(8, 24);
  for (const int streams : {2, 3}) {
    PlanOptions options;
    options.device = *findDevice(GetParam());
    options.streams = streams;
    ExecutionPlan plan = step.plan(options);
    packArena(plan, step.graph, true);
    EXPECT_EQ(checkStreams(plan, step.graph), std::vector<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Streams, ::testing::Values("cpu", "mirror", "mirror:Relu,SgdUpdate"));

// Whoever chooses the streams: nodes run where they are told to, and whatever touches the same bytes is ordered.
TEST(ChosenStreams, AreTakenAndOrdered) {
  const StepGraph step(8, 24);
  for (unsigned seed = 0; seed < 8; ++seed) {
    PlanOptions options;
    options.device = *findDevice("mirror:SgdUpdate");
    options.streams = 3;
    std::mt19937 random(seed);
    auto partition = std::make_shared<StreamPartition>(streamsOf(step.plan(options), step.graph));
    ASSERT_GT(partition->nodes.size(), 20U);
    for (auto& [key, stream] : partition->nodes) stream = static_cast<int>(random() % 3);
    partition->nodes["loss:nothing"] = 1;
    const auto again = parseStreamPartition(streamPartitionText(*partition), "text");
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(again->nodes, partition->nodes);
    options.partition = partition;
    ExecutionPlan plan = step.plan(options);
    packArena(plan, step.graph, true);
    EXPECT_EQ(checkStreams(plan, step.graph), std::vector<std::string>()) << seed;
    EXPECT_EQ(assignStreams(plan, step.graph, *partition).unknown, std::vector<std::string>{"loss:nothing"});
    partition->nodes.erase("loss:nothing");
    EXPECT_EQ(streamsOf(plan, step.graph).nodes, partition->nodes) << seed;
  }
}

TEST(ChosenStreams, OfBadTextsAreRefusedWithThePlace) {
  const std::pair<const char*, const char*> texts[] = {
      {"{", "found no JSON; expected an object"},
      {"[1]", "found array; expected an object"},
      {"{}", "streams: found nothing; expected 1 to 8"},
      {R"({"streams": 9, "nodes": {}})", "streams: found 9; expected a whole number from 1 to 8"},
      {R"({"streams": 1.5, "nodes": {}})", "streams: found 1.5"},
      {R"({"streams": 2})", "nodes: found nothing; expected an object of keys and numbers"},
      {R"({"streams": 2, "nodes": [0]})", "nodes: found array"},
      {R"({"streams": 2, "nodes": {"": 0}})", "nodes: found an empty key; expected that of a node"},
      {R"({"streams": 2, "nodes": {}, "more": 1})", "found 'more'; expected streams and nodes"},
  };
  for (const auto& [text, why] : texts) {
    const auto read = parseStreamPartition(text, "x.json");
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_NE(read.error().message.find(why), std::string::npos) << read.error().message;
    EXPECT_TRUE(read.error().message.starts_with("streams 'x.json'")) << read.error().message;
  }
  EXPECT_EQ(readStreamPartition("/nowhere.json").error().code, ErrorCode::kNotFound);
}

TEST(BrokenStreams, AWaitThatIsTakenAwayIsMissed) {
  int waits = 0, missed = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    const RandomGraph random(seed);
    for (const char* device : {"cpu", "mirror:Relu"}) {
      ExecutionPlan plan = random.plan(device, 2);
      packArena(plan, random.graph, true);
      for (Instruction& instruction : plan.instructions.edit()) {
        if (instruction.waits.empty()) continue;
        const std::vector<Wait> kept = std::exchange(instruction.waits, {});
        ++waits;
        missed += !checkStreams(plan, random.graph).empty();
        instruction.waits = kept;
      }
    }
  }
  EXPECT_GT(waits, 40);
  EXPECT_EQ(missed, waits);
}

// Offsets that are right for one stream are wrong for two, whatever waits there are for data: who has memory next is not a
// reader of what lay there before.
TEST(BrokenStreams, MemoryThatIsReusedTooEarlyIsFound) {
  int found = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const RandomGraph random(seed);
    ExecutionPlan one = random.plan("cpu", 1), two = random.plan("cpu", 2);
    packArena(one, random.graph, true);
    ASSERT_EQ(one.buffers.size(), two.buffers.size());
    two.offsets = one.offsets;
    const std::vector<std::string> problems = checkStreams(two, random.graph);
    found += !problems.empty();
    for (const std::string& problem : problems) EXPECT_NE(problem.find("in the same bytes"), std::string::npos) << problem;
    packArena(two, random.graph, true);
    EXPECT_GE(two.arenaBytes, one.arenaBytes);
    EXPECT_EQ(checkStreams(two, random.graph).size(), 0u);
  }
  EXPECT_GT(found, 2);
}

}  // namespace
}  // namespace stepscope
