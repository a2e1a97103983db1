// Operations, bytes and roofs of instructions against numbers computed by hand.
#include "engine/profile/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/train/session.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

using Ints = std::vector<std::int64_t>;

// A machine with round numbers: 100 operations, 40, 10 and 1 bytes per nanosecond.
cpu::MachinePeak machine() {
  cpu::MachinePeak peak;
  peak.threads = 2;
  peak.operationsPerSecond = 100e9;
  peak.levels = {{"core caches", 10'000, 5'000, 40e9}, {"shared cache", 100'000, 50'000, 10e9}, {"memory", 0, 1 << 20, 1e9}};
  return peak;
}

class Sketch {
 public:
  ValueId value(std::string name, Ints dims, ValueRole role, DType dtype = DType::kF32) {
    const ValueId id = graph.addValue(std::move(name), {ValueKind::kTensor, dtype, shapeOf(dims)}, role);
    if (role == ValueRole::kInput) graph.mutableInputs().push_back(id);
    return id;
  }
  ValueId input(std::string name, Ints dims, DType dtype = DType::kF32) {
    return value(std::move(name), std::move(dims), ValueRole::kInput, dtype);
  }
  ValueId parameter(std::string name, Ints dims) { return value(std::move(name), std::move(dims), ValueRole::kInitializer); }
  ValueId ints(Ints values) { return graph.addConstant("i", Tensor::ints(values)); }
  ValueId op(std::string name, std::vector<ValueId> inputs, Attributes attrs = {}, std::string domain = "") {
    const NodeId node = graph.addNode("", std::move(domain), std::move(name), std::move(inputs),
                                      {std::string("v") + std::to_string(graph.valueCapacity())}, std::move(attrs));
    return graph.node(node).output(0);
  }
  ExecutionPlan plan(std::vector<ValueId> outputs, bool inPlace = false) {
    graph.mutableOutputs() = std::move(outputs);
    inference = std::make_unique<Inference>(graph, builtInOperators());
    const Status status = inference->run();
    EXPECT_TRUE(status.has_value()) << status.error().message;
    PlanOptions options;
    options.inPlace = inPlace;
    auto made = makePlan(graph, *inference, options);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return std::move(*made);
  }
  Graph graph;
  std::unique_ptr<Inference> inference;
};

TEST(InstructionCost, OfAMatrixProduct) {
  Sketch s;
  const ValueId y = s.op("MatMul", {s.input("a", {2, 5, 7}), s.input("b", {7, 3})});
  const ExecutionPlan plan = s.plan({y});
  EXPECT_EQ(plan.instructions[0].flops, 2.0 * 2 * 5 * 3 * 7);
  EXPECT_EQ(plan.instructions[0].bytesRead, 4 * (2 * 5 * 7 + 7 * 3));
  EXPECT_EQ(plan.instructions[0].bytesWritten, 4 * 2 * 5 * 3);
}

TEST(Roofline, ProductsOfBfloat16HaveAPeakOfTheirOwn) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    Sketch s;
    const ValueId y = s.op("MatMul", {s.input("a", {64, 512}, dtype), s.input("b", {512, 64}, dtype)});
    const ExecutionPlan plan = s.plan({y});
    cpu::MachinePeak peak = machine();
    for (cpu::MemoryLevel& level : peak.levels) level.bytesPerSecond = 1e15;
    peak.bfloat16PerSecond = 400e9;
    const double flops = 2.0 * 64 * 512 * 64;
    EXPECT_DOUBLE_EQ(rooflineOf(plan, peak)[0].ns, flops / (dtype == DType::kBF16 ? 400 : 100)) << dtypeName(dtype);
    peak.bfloat16PerSecond = 0;
    EXPECT_DOUBLE_EQ(rooflineOf(plan, peak)[0].ns, flops / 100) << "computed in float32";
  }
}

TEST(InstructionCost, OfATransposedProductSumsOverTheOtherAxis) {
  Sketch s;
  const ValueId y =
      s.op("FusedMatMul", {s.input("a", {7, 5}), s.input("b", {7, 3})}, {{"transA", std::int64_t{1}}}, "com.microsoft");
  EXPECT_EQ(s.plan({y}).instructions[0].flops, 2.0 * 5 * 3 * 7);
}

TEST(InstructionCost, OfAnEinsumCountsEveryLetterOnce) {
  const auto flops = [](const std::string& equation, const std::vector<Ints>& operands) {
    Sketch s;
    std::vector<ValueId> inputs;
    for (const Ints& dims : operands) inputs.push_back(s.input("x" + std::to_string(inputs.size()), dims));
    return s.plan({s.op("Einsum", inputs, {{"equation", equation}})}).instructions[0].flops;
  };
  EXPECT_EQ(flops("ij,jk->ik", {{5, 7}, {7, 3}}), 2.0 * 5 * 7 * 3);
  EXPECT_EQ(flops("bhqd,bhkd->bhqk", {{2, 3, 5, 7}, {2, 3, 11, 7}}), 2.0 * (2 * 3 * 5 * 7 * 11));
  EXPECT_EQ(flops("...ij,...jk->...ik", {{4, 5, 7}, {1, 7, 3}}), 2.0 * (4 * 5 * 7 * 3));
  EXPECT_EQ(flops("ij->j", {{5, 7}}), 5 * 7);
  EXPECT_EQ(flops("i,j,k->ijk", {{2}, {3}, {5}}), 3.0 * 2 * 3 * 5);
}

TEST(InstructionCost, OfTheGradientOfAnEinsum) {
  Sketch s;
  const ValueId dx =
      s.op("EinsumGrad", {s.input("dy", {5, 3}), s.ints({5, 7, 7}), s.input("b", {7, 3})},
           {{"equation", std::string("ijj,jk->ik")}, {"operand", std::int64_t{0}}}, std::string(kInternalDomain));
  EXPECT_EQ(s.plan({dx}).instructions[0].flops, 2.0 * 5 * 7 * 3);
}

// Each product of the layer has two in its gradient.
TEST(InstructionCost, OfARecurrentLayerAndItsGradient) {
  constexpr std::int64_t kSteps = 6, kBatch = 2, kIn = 5, kHidden = 3;
  for (const auto& [op, gates] : {std::pair{"LSTM", std::int64_t{4}}, {"GRU", 3}, {"RNN", 1}}) {
    Sketch s;
    const Ints state{kSteps, 1, kBatch, kHidden};
    const ValueId x = s.input("x", {kSteps, kBatch, kIn}), w = s.parameter("w", {1, gates * kHidden, kIn}),
                  r = s.parameter("r", {1, gates * kHidden, kHidden});
    const ValueId y = s.op(op, {x, w, r}, {{"hidden_size", kHidden}, {"linear_before_reset", std::int64_t{1}}});
    const double forward = 2.0 * (kSteps * kBatch * gates * kHidden * (kIn + kHidden));
    std::vector<ValueId> inputs{s.input("dy", state), {}, {}, x, w, r, {}, {}, {}, {}, {}, s.input("y", state)};
    if (gates > 1)
      for (const std::int64_t width : {gates * kHidden, kHidden})
        inputs.push_back(s.input("kept" + std::to_string(width), {1, kSteps, kBatch, width}));
    const NodeId gradient = s.graph.addNode("", std::string(kInternalDomain), std::string(op) + "Grad", inputs,
                                            {"dx", "dw", "dr", "db", "dh", "dc"}, {{"hidden_size", kHidden}});
    const ExecutionPlan plan = s.plan({y, s.graph.node(gradient).output(0)});
    ASSERT_EQ(plan.instructions.size(), 2U) << op;
    EXPECT_EQ(plan.instructions[0].flops, forward) << op;
    EXPECT_EQ(plan.instructions[1].flops, 2 * forward) << op;
  }
}

TEST(InstructionCost, OfAConvolutionCountsTheChannelsOfItsGroup) {
  Sketch s;
  const ValueId y = s.op("Conv", {s.input("x", {2, 6, 9, 9}), s.parameter("w", {4, 3, 3, 3})},
                         {{"group", std::int64_t{2}}, {"strides", Ints{2, 2}}});
  const ExecutionPlan plan = s.plan({y});
  // 2 images of 4 channels of 4 x 4 places, each a product of 3 x 3 x 3.
  EXPECT_EQ(plan.instructions[0].flops, 2.0 * (2 * 4 * 4 * 4) * (3 * 3 * 3));
  EXPECT_EQ(plan.instructions[0].bytesRead, 4 * (2 * 6 * 9 * 9 + 4 * 3 * 3 * 3));
  EXPECT_EQ(plan.instructions[0].bytesWritten, 4 * 2 * 4 * 4 * 4);
}

TEST(InstructionCost, OfAWinogradConvolutionCountsTheProductsOfItsTiles) {
  Sketch s;
  const ValueId y = s.op("Conv", {s.input("x", {2, 32, 9, 8}), s.parameter("w", {16, 32, 3, 3})},
                         {{"pads", Ints{1, 1, 1, 1}}, {"winograd", std::int64_t{1}}});
  // 2 images of 3 x 2 tiles, the last row of tiles cut off.
  EXPECT_EQ(s.plan({y}).instructions[0].flops, 2.0 * 36 * (2 * 3 * 2) * 16 * 32);
}

TEST(InstructionCost, OfElementwiseWorkIsOnePerStepAndElement) {
  Sketch s;
  const ValueId a = s.input("a", {4, 6}), b = s.input("b", {6});
  const ValueId sum = s.op("Add", {a, b});
  const ValueId chain =
      s.op("Pointwise", {sum, b}, {{"steps", std::vector<std::string>{"Mul 0 1", "Tanh 2"}}}, std::string(kInternalDomain));
  const ExecutionPlan plan = s.plan({chain});
  EXPECT_EQ(plan.instructions[0].flops, 24);
  EXPECT_EQ(plan.instructions[1].flops, 48);
  EXPECT_EQ(plan.instructions[1].bytesRead, 4 * (24 + 6));
}

TEST(InstructionCost, MovementHasNoOperationsAndPickingReadsWhatItPicks) {
  Sketch s;
  const ValueId table = s.parameter("table", {1000, 8});
  const ValueId rows = s.op("Gather", {table, s.input("ids", {3}, DType::kI64)});
  const ValueId turned = s.op("Transpose", {rows}, {{"perm", Ints{1, 0}}});
  const ExecutionPlan plan = s.plan({turned});
  EXPECT_EQ(plan.instructions[0].bytesRead, 3 * 8 * 4 + 3 * 8) << "three rows and three indices, not the table";
  EXPECT_EQ(plan.instructions[0].flops, 0);
  EXPECT_EQ(plan.instructions[1].flops, 0);
}

TEST(InstructionCost, AGradientAddedInPlaceTouchesItsRowsOnly) {
  for (const bool inPlace : {false, true}) {
    Sketch s;
    const ValueId before = s.op("Relu", {s.input("before", {1000, 8})});
    const ValueId dy = s.input("dy", {3, 8}), ids = s.input("ids", {3}, DType::kI64);
    const ValueId dx = s.op("GatherGrad", {dy, ids, s.ints({1000, 8}), before}, {}, std::string(kInternalDomain));
    const Instruction i = s.plan({dx}, inPlace).instructions[1];
    const std::int64_t table = 1000 * 8 * 4, rows = 3 * 8 * 4, indices = 3 * 8, shape = 2 * 8;
    EXPECT_EQ(i.bytesRead, rows + indices + shape + (inPlace ? rows : table));
    EXPECT_EQ(i.bytesWritten, inPlace ? rows : table);
  }
}

TEST(InstructionCost, AnOperandThatComesTwiceIsReadOnce) {
  Sketch s;
  const ValueId x = s.input("x", {16});
  EXPECT_EQ(s.plan({s.op("Mul", {x, x})}).instructions[0].bytesRead, 64);
}

TEST(Roofline, IsTheLongerOfArithmeticAndTraffic) {
  Sketch s;
  // 2 x 64^3 operations take 5,243 ns; 3 x 16,384 bytes from the shared cache 4,915 ns. The batch was copied just before.
  const ValueId y = s.op("MatMul", {s.input("a", {64, 64}), s.input("b", {64, 64})});
  // 16 x 4 bytes each: 192 bytes, which the core's cache holds; 16 operations take 0.16 ns.
  const ValueId small = s.op("Add", {s.input("c", {16}), s.input("d", {16})});
  const ExecutionPlan plan = s.plan({y, small});
  const auto roofs = rooflineOf(plan, machine());
  EXPECT_NEAR(roofs[0].ns, 2.0 * 64 * 64 * 64 / 100, 1e-9);
  EXPECT_EQ(roofs[0].boundBy, "compute");
  EXPECT_EQ(roofs[0].levelBytes, (Ints{0, 3 * 16'384, 0}));
}

TEST(Roofline, AnOperandComesFromTheLevelThatStillHoldsIt) {
  Sketch s;
  const ValueId x = s.input("x", {500});  // 2,000 bytes
  const ValueId weight = s.parameter("w", {500});
  const ValueId big = s.parameter("big", {40'000});  // 160,000 bytes: more than both caches
  const ValueId a = s.op("Relu", {x});               // 0: reads what was copied just before
  const ValueId b = s.op("Add", {a, weight});        // 1: reads what 0 left in the core's cache, and w
  const ValueId c = s.op("Relu", {big});             // 2: nothing can hold it
  const ValueId d = s.op("Add", {b, a});             // 3: 2 has swept both caches
  const ValueId e = s.op("Mul", {d, b});             // 4: both were touched by 3
  const ExecutionPlan plan = s.plan({e, c});
  ASSERT_EQ(plan.instructions.size(), 5u);
  const auto roofs = rooflineOf(plan, machine());
  EXPECT_EQ(roofs[0].levelBytes, (Ints{4'000, 0, 0}));
  EXPECT_NEAR(roofs[0].ns, 4'000 / 40.0, 1e-9);
  EXPECT_EQ(roofs[0].boundBy, "core caches");
  // w was touched a step ago: 160,000 x 2 bytes and more lie between.
  EXPECT_EQ(roofs[1].levelBytes, (Ints{4'000, 0, 2'000}));
  EXPECT_NEAR(roofs[1].ns, 4'000 / 40.0 + 2'000 / 1.0, 1e-9);
  EXPECT_EQ(roofs[1].boundBy, "memory");
  EXPECT_EQ(roofs[2].levelBytes, (Ints{0, 0, 320'000}));
  EXPECT_EQ(roofs[3].levelBytes, (Ints{2'000, 0, 4'000}));
  EXPECT_EQ(roofs[4].levelBytes, (Ints{6'000, 0, 0}));
}

TEST(Roofline, AParameterOfASmallModelStaysInTheCache) {
  Sketch s;
  const ValueId y = s.op("Add", {s.input("x", {500}), s.parameter("w", {500})});
  const auto roofs = rooflineOf(s.plan({y}), machine());
  EXPECT_EQ(roofs[0].levelBytes, (Ints{6'000, 0, 0})) << "the step before left it there";
}

TEST(Roofline, AViewHasNone) {
  Sketch s;
  const ValueId y = s.op("Relu", {s.op("Reshape", {s.op("Exp", {s.input("x", {4, 4})}), s.ints({16})})});
  const ExecutionPlan plan = s.plan({y});
  const auto roofs = rooflineOf(plan, machine());
  ASSERT_EQ(roofs.size(), 3u);
  ASSERT_TRUE(plan.instructions[1].view);
  EXPECT_EQ(roofs[1].ns, 0);
  EXPECT_TRUE(roofs[1].boundBy.empty());
  EXPECT_GT(roofs[2].ns, 0);
}

TEST(Roofline, SnapshotOfAPlanHasItWhereTheOptionAsksForIt) {
  for (const char* wanted : {"off", "on"}) {
    const auto model = testing::testModels().front();
    auto session = Session::open(model.model, {}, {});
    ASSERT_TRUE(session.has_value()) << session.error().message;
    TrainOptions options;
    for (const auto& [name, value] : {std::pair<std::string, std::string>{"data", model.data.string()},
                                      {"loss", model.loss},
                                      {"optimizer", "adamw"},
                                      {"threads", "1"},
                                      {"roofline", wanted}})
      ASSERT_TRUE(applySetting(options, name, value, "test").has_value()) << name;
    ASSERT_TRUE((*session)->setOptions(options).has_value());
    ASSERT_TRUE((*session)->build().has_value());
    const auto plan = (*session)->planSnapshot();
    ASSERT_TRUE(plan.has_value());
    const bool on = std::string(wanted) == "on";
    EXPECT_EQ(plan->has_peak(), on);
    int roofs = 0, working = 0;
    for (const auto& i : plan->instructions()) {
      roofs += i.has_roof();
      working += !i.view() && i.bytes_read() + i.bytes_written() > 0;
      if (!i.has_roof()) continue;
      std::int64_t bytes = 0;
      double traffic = 0;
      for (int level = 0; level < i.roof().level_bytes_size(); ++level) {
        bytes += i.roof().level_bytes(level);
        traffic += static_cast<double>(i.roof().level_bytes(level)) / plan->peak().levels(level).bytes_per_second();
      }
      EXPECT_EQ(bytes, i.bytes_read() + i.bytes_written()) << i.label();
      const double compute = i.flops() / plan->peak().operations_per_second();
      EXPECT_EQ(i.roof().bound_by() == "compute", compute >= traffic) << i.label();
      EXPECT_NEAR(i.roof().ns(), 1e9 * std::max(compute, traffic), 1e-3) << i.label();
    }
    EXPECT_EQ(roofs, on ? working : 0);
    const auto effects = (*session)->optionList();
    const auto option = std::find_if(effects.begin(), effects.end(), [](const auto& o) { return o.name() == "roofline"; });
    ASSERT_NE(option, effects.end());
    EXPECT_EQ(option->effect().find("GF/s") != std::string::npos, on) << option->effect();
  }
}

}  // namespace
}  // namespace stepscope
