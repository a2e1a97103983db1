// The runner of passes: rounds, reports, what the observer is told, and that a broken graph is named with its pass.
#include "engine/passes/run_passes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/passes/sketch.h"

namespace stepscope::testing {
namespace {

// A graph x → Relu → y with its inference.
Sketch relu() {
  Sketch s;
  s.finish({s.op("Relu", {s.input("x", {2, 3})})});
  return s;
}

// Puts a Neg before the last node, at most three of them: work for several rounds.
Status addNeg(Graph& graph, PassContext& context) {
  if (graph.order().size() > 3) return {};
  const NodeId last = graph.order().back();
  const NodeId made = graph.addNode("", "", "Neg", {graph.node(last).input(0)}, {"n"});
  graph.setInput(last, 0, graph.node(made).output(0));
  context.match();
  context.note("one more");
  return {};
}
Status doNothing(Graph&, PassContext&) { return {}; }
Status isBlocked(Graph&, PassContext& context) {
  context.block("Loop 'l': the count is not known");
  context.block("a later reason");
  return {};
}
Status breakOrder(Graph& graph, PassContext&) {
  const NodeId made = graph.addNode("late", "", "Neg", {graph.inputs()[0]}, {"late"});
  graph.setInput(graph.order().front(), 0, graph.node(made).output(0));
  return {};
}
Status refuse(Graph&, PassContext& context) {
  context.miss({}, "nothing fits");
  return unsupported("Foo 'f': not here");
}

struct Told {
  std::vector<std::string> begun, ended;
  std::vector<int> rounds;
  std::vector<std::size_t> matches;
  std::string error;
  RunOptions options() {
    RunOptions run;
    run.begin = [this](const Pass& pass) { begun.emplace_back(pass.name); };
    run.end = [this](const PassRun& ran) {
      ended.emplace_back(ran.pass.name);
      rounds.push_back(ran.round);
      matches.push_back(ran.result.matches);
      EXPECT_GE(ran.ns, 0);
      if (ran.error) error = ran.error->message;
    };
    return run;
  }
};

TEST(RunPasses, RoundsGoOnUntilOneMatchesNothing) {
  Sketch s = relu();
  PassContext context(*s.inference);
  Told told;
  const PassList list{
      "test", {{"add", "", addNeg, PassSwitch::kMandatory}, {"after", "", doNothing, PassSwitch::kMandatory}}, 1};
  ASSERT_TRUE(runPasses(list, s.graph, context, told.options()));
  EXPECT_EQ(told.begun, (std::vector<std::string>{"add", "add", "add", "add", "after"}));
  EXPECT_EQ(told.ended, told.begun);
  EXPECT_EQ(told.rounds, (std::vector{0, 1, 2, 3, 0}));
  EXPECT_EQ(told.matches, (std::vector<std::size_t>{1, 1, 1, 0, 0}));
  EXPECT_EQ(s.graph.order().size(), 4U);
  EXPECT_TRUE(s.graph.verify().empty());
}

TEST(RunPasses, EditsAndNewNodesBearTheNameOfThePass) {
  Sketch s = relu();
  s.graph.setPass("phase");
  PassContext context(*s.inference);
  ASSERT_TRUE(runPasses({"test", {{"add", "", addNeg, PassSwitch::kMandatory}}, 0}, s.graph, context));
  EXPECT_EQ(s.only("Neg").provenance.pass, "add");
  EXPECT_EQ(s.graph.edits().back().pass.view(), "add");
  EXPECT_EQ(s.graph.pass(), "phase");
  EXPECT_EQ(context.result.notes, std::vector<std::string>{"one more"});
}

TEST(RunPasses, BlockedLoweringIsTheErrorOnceNothingMoves) {
  Sketch s = relu();
  PassContext context(*s.inference);
  const PassList list{
      "test", {{"add", "", addNeg, PassSwitch::kMandatory}, {"stuck", "", isBlocked, PassSwitch::kMandatory}}, 2};
  const Status status = runPasses(list, s.graph, context);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().message, "Loop 'l': the count is not known");
  EXPECT_EQ(s.graph.order().size(), 4U) << "the other lowering had its rounds";
}

TEST(RunPasses, BrokenGraphIsNamedWithThePassThatLeftIt) {
  ASSERT_TRUE(verifiesPasses()) << "tests verify after every pass";
  Sketch s = relu();
  PassContext context(*s.inference);
  Told told;
  const Status status = runPasses({"test", {{"breaks", "", breakOrder}}, 0}, s.graph, context, told.options());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInternal);
  EXPECT_NE(status.error().message.find("pass 'breaks' left a broken graph"), std::string::npos) << status.error().message;
  EXPECT_NE(status.error().message.find("is not computed before it"), std::string::npos) << status.error().message;
  EXPECT_EQ(told.error, status.error().message);
}

TEST(RunPasses, MandatoryPassMayLeaveItsNodesAtTheEnd) {
  Sketch s = relu();
  PassContext context(*s.inference);
  ASSERT_TRUE(runPasses({"test", {{"sorted", "", breakOrder, PassSwitch::kMandatory}}, 0}, s.graph, context));
  EXPECT_EQ(s.graph.node(s.graph.order().front()).op, "Neg");
}

TEST(RunPasses, FailedPassIsToldWithWhatItReported) {
  Sketch s = relu();
  PassContext context(*s.inference);
  Told told;
  const Status status =
      runPasses({"test", {{"first", "", refuse}, {"second", "", doNothing}}, 0}, s.graph, context, told.options());
  ASSERT_FALSE(status);
  EXPECT_EQ(told.ended, std::vector<std::string>{"first"});
  EXPECT_EQ(told.error, "Foo 'f': not here");
  ASSERT_EQ(context.result.nearMisses.size(), 1U);
}

// Reads x instead of Neg(Neg(x)).
Status dropTwoNegs(Graph& graph, PassContext& context) {
  const ValueId x = graph.inputs()[0];
  graph.setInput(graph.order().back(), 0, x);
  context.match();
  graph.removeDeadNodes();
  return {};
}

TEST(RunPasses, WhatAPassSavesIsCountedWhereExtentsAreKnown) {
  const PassList list{"test", {{"drop", "", dropTwoNegs}, {"after", "", doNothing}}, 0};
  const auto saved = [&](std::optional<std::map<std::string, Dim>> extents, Roof roof) {
    Sketch s;
    const ValueId x = s.input("x", {Dim::symbol("batch"), 8});
    s.finish({s.op("Relu", {s.op("Neg", {s.op("Neg", {x})})})});
    PassContext context(*s.inference);
    context.extents = std::move(extents);
    context.target.roof = roof;
    std::vector<std::optional<GraphCost>> all;
    RunOptions run;
    run.end = [&](const PassRun& ran) { all.push_back(ran.result.saved); };
    EXPECT_TRUE(runPasses(list, s.graph, context, run));
    EXPECT_EQ(all.size(), 2u);
    EXPECT_FALSE(all.back()) << "a pass that changes nothing saves nothing";
    return all.front();
  };
  const std::map<std::string, Dim> four{{"batch", Dim(4)}};
  const auto known = saved(four, {.operationsPerSecond = 1e9, .bytesPerSecond = 1e9});
  ASSERT_TRUE(known);
  EXPECT_EQ(known->bytes, 2 * (2 * 4 * 8 * 4)) << "each Neg read 32 numbers and wrote 32";
  EXPECT_EQ(known->flops, 2 * 4 * 8);
  EXPECT_DOUBLE_EQ(known->ns, 512);
  EXPECT_EQ(saved(four, {})->ns, 0) << "no roof was measured";
  EXPECT_FALSE(saved(std::nullopt, {})) << "before a batch is there";
  EXPECT_FALSE(saved(std::map<std::string, Dim>{}, {})) << "nobody knows 'batch'";
}

TEST(RunPasses, SwitchesDecideExceptForMandatoryOnes) {
  Sketch s = relu();
  PassContext context(*s.inference);
  const PassList list{
      "test",
      {{"on", "", doNothing}, {"off", "", doNothing, PassSwitch::kOff}, {"always", "", doNothing, PassSwitch::kMandatory}},
      0};
  Told told;
  ASSERT_TRUE(runPasses(list, s.graph, context, told.options()));
  EXPECT_EQ(told.ended, (std::vector<std::string>{"on", "always"}));
  told = {};
  RunOptions run = told.options();
  run.enabled = [](const Pass& pass) { return pass.name == "off"; };
  ASSERT_TRUE(runPasses(list, s.graph, context, run));
  EXPECT_EQ(told.ended, (std::vector<std::string>{"off", "always"}));
}

TEST(Pipeline, ImportAndLoweringStandInTheListWithoutASwitch) {
  std::vector<std::string_view> phases, mandatory;
  for (const PassList& list : pipeline()) {
    phases.push_back(list.phase);
    EXPECT_LE(list.repeated, list.passes.size());
    for (const Pass& pass : list.passes) {
      EXPECT_NE(pass.run, nullptr) << pass.name;
      EXPECT_FALSE(pass.doc.empty()) << pass.name;
      if (pass.enabled == PassSwitch::kMandatory &&
          std::find(mandatory.begin(), mandatory.end(), pass.name) == mandatory.end())
        mandatory.push_back(pass.name);
    }
  }
  EXPECT_EQ(phases, (std::vector<std::string_view>{"inline", "infer", "pre-grad passes", "post-grad passes", "fold"}));
  EXPECT_EQ(mandatory,
            (std::vector<std::string_view>{
                "inline_calls",      "raise_microsoft",   "raise_early",       "raise_opset",      "lower_if",
                "constant_weights",  "pair_messages",     "infer_types",       "unroll_loops",     "lower_signal",
                "lower_attention",   "lower_deform_conv", "lower_soft_labels", "straight_through", "drop_zero_bias",
                "settle_norm_types", "lower_sequences",   "check_declared",    "assign_precision", "select_dead_rows"}));
}

TEST(InferTypes, RunsAgainOnlyAfterAnEdit) {
  Sketch s = relu();
  Inference inference(s.graph, builtInOperators());
  PassContext context(inference);
  const PassList& list = passesOf("infer");
  const Pass& infer = list.passes.front();
  ASSERT_TRUE(infer.run(s.graph, context));
  EXPECT_TRUE(inference.isCurrent());
  const ValueId y = s.graph.outputs()[0];
  s.graph.mutableValue(y).type = {};
  ASSERT_TRUE(infer.run(s.graph, context));
  EXPECT_FALSE(s.graph.value(y).type.shape) << "nothing was edited, so it did nothing";
  s.graph.logChange(s.graph.order().back());
  EXPECT_FALSE(inference.isCurrent());
  ASSERT_TRUE(infer.run(s.graph, context));
  EXPECT_TRUE(s.graph.value(y).type.shape);
}

}  // namespace
}  // namespace stepscope::testing
