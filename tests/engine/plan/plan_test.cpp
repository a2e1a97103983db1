// What a plan decides: when memory is written by somebody else, which kernels may shorten fractions, and that large plans
// are made fast.
#include "engine/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "engine/ops/shape_context.h"
#include "engine/plan/reuse.h"
#include "tests/engine/plan/step_graph.h"
#include "tests/support/yardstick.h"

namespace stepscope {
namespace {

using testing::StepGraph;

// The rule itself: the first later instruction one of whose outputs, or whose workspace, overlaps the buffer's memory.
int slowlyOverwritten(const ExecutionPlan& plan, int producer, int buffer) {
  const Buffer& mine = plan.buffers[static_cast<std::size_t>(buffer)];
  for (std::size_t i = static_cast<std::size_t>(producer) + 1; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.view) continue;
    std::vector<int> written = instruction.outputs;
    written.push_back(plan.workspaceOf(i));
    for (const int b : written) {
      if (b < 0 || b == buffer) continue;
      const Buffer& other = plan.buffers[static_cast<std::size_t>(b)];
      if (plan.root(b) == plan.root(buffer)) return static_cast<int>(i);
      const std::int64_t begin = plan.offsets[static_cast<std::size_t>(buffer)],
                         otherBegin = plan.offsets[static_cast<std::size_t>(b)];
      if (other.home == Home::kArena && mine.home == Home::kArena && otherBegin < begin + mine.bytes &&
          begin < otherBegin + other.bytes)
        return static_cast<int>(i);
    }
  }
  return -1;
}

TEST(Overwritten, IsTheFirstInstructionThatWritesTheMemory) {
  const StepGraph step(20, 33);
  for (const bool inPlace : {true, false}) {
    ExecutionPlan plan = step.plan({.inPlace = inPlace});
    for (const std::size_t i : {3u, 30u, 70u}) addWorkspace(plan, i, 500);
    packArena(plan, step.graph, true);
    const std::vector<Overwritten> found = overwritten(plan);
    std::set<int> seen;
    for (std::size_t i = 0; i < plan.instructions.size(); ++i)
      for (const int b : plan.instructions[i].outputs) {
        const int expected = slowlyOverwritten(plan, static_cast<int>(i), b);
        EXPECT_EQ(found[static_cast<std::size_t>(b)].instruction, expected) << "buffer " << b;
        seen.insert(expected);
      }
    EXPECT_GT(seen.size(), 20u);  // values are written over at many places, so the comparison says something
    EXPECT_TRUE(seen.contains(-1));
  }
}

// A product is what its definition says is one, whoever added it; a node of a product's name is none by that.
TEST(Tf32, IsForFloatProductsByTheirCategory) {
  const auto added = [](std::string_view name, OpCategory category) {
    return OpDef{.name = name,
                 .domain = "acme",
                 .inputs = {1, 1},
                 .outputs = {1, 1},
                 .category = category,
                 .precision = Precision::kFollows,
                 .hostInputs = kNoInputs,
                 .inferShape = shape_rules::sameAsInput0,
                 .noGradientReason = "of a test"};
  };
  const OpDef square = added("Square", OpCategory::kMatmul), named = added("Product", OpCategory::kElementwise);
  const std::array<const OpDef*, 2> ops{&square, &named};
  Operators operators = builtInOperators();
  ASSERT_TRUE(operators.ops.add(ops).has_value());
  Graph graph;
  std::vector<ValueId> results;
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const ValueId x =
        graph.addValue(std::string(dtypeName(dtype)), {ValueKind::kTensor, dtype, shapeOf({4, 4})}, ValueRole::kInput);
    graph.mutableInputs().push_back(x);
    const auto emit = [&](const std::string& domain, const std::string& op, std::vector<ValueId> inputs) {
      const NodeId id = graph.addNode("", domain, op, std::move(inputs), {"v" + std::to_string(graph.valueCapacity())}, {});
      graph.mutableNode(id).phase = Phase::kForward;
      graph.mutableNode(id).sinceVersion = domain.empty() ? kInternalOpset : 1;
      results.push_back(graph.node(id).output(0));
    };
    emit("", "MatMul", {x, x});
    emit("acme", "Square", {x});
    emit("acme", "Product", {x});
    emit("", "Add", {x, x});
  }
  graph.mutableOutputs() = results;
  Inference inference(graph, operators, {.foldElements = -1});
  const Status inferred = inference.run();
  ASSERT_TRUE(inferred.has_value()) << inferred.error().message;
  for (const bool wanted : {false, true}) {
    PlanOptions options;
    options.tf32 = wanted;
    const auto plan = makePlan(graph, inference, options);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    std::set<std::string> shortened;
    for (const Instruction& instruction : plan->instructions) {
      const KernelSpec& spec = instruction.spec();
      if (spec.attrs.integer("tf32", 0) != 0) shortened.insert(spec.op + " " + std::string(dtypeName(spec.inputs[0].dtype)));
    }
    EXPECT_EQ(shortened, wanted ? (std::set<std::string>{"MatMul float32", "Square float32"}) : std::set<std::string>{});
  }
}

// CPU time of making a plan and packing it, in seconds; the best of three.
double planSeconds(const StepGraph& step) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const double start = testing::cpuSeconds();
    ExecutionPlan plan = step.plan();
    packArena(plan, step.graph, true);
    EXPECT_EQ(overwritten(plan).size(), plan.buffers.size());
    best = std::min(best, testing::cpuSeconds() - start);
  }
  return best;
}

// Eight times as many instructions take about nine times as long; a rule that looks at all pairs would take sixty-four.
TEST(LargePlans, TimeGrowsWithTheInstructions) {
  const StepGraph small(2000, 16), large(16000, 16);
  const double few = planSeconds(small), many = planSeconds(large);
  RecordProperty("seconds", std::to_string(many));
  EXPECT_LT(many, 24 * few) << few << " s and " << many << " s";
}

}  // namespace
}  // namespace stepscope
