// Graphs: each invariant broken by hand is told by verify, rewrite helpers keep them all, copies share until changed.
#include "engine/ir/graph.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>

#include "engine/ir/said_by.h"

namespace stepscope::testing {
namespace {

// x → Relu 'a' → Neg 'b' → output; state 'w' becomes what Add 'step' of w and w makes.
struct Small {
  Graph graph;
  ValueId x, w, y, z, next;
  NodeId a, b, step;

  Small() {
    x = graph.addValue("x", {ValueKind::kTensor, DType::kF32, Shape{2}}, ValueRole::kInput);
    graph.mutableInputs() = {x};
    w = graph.addValue("w", {ValueKind::kTensor, DType::kF32, Shape{3}}, ValueRole::kInitializer);
    a = graph.addNode("a", "", "Relu", {x}, {"y"});
    y = graph.node(a).output(0);
    b = graph.addNode("b", "", "Neg", {y}, {"z"});
    z = graph.node(b).output(0);
    step = graph.addNode("step", "", "Add", {w, w}, {"w.next"});
    next = graph.node(step).output(0);
    graph.mutableOutputs() = {z};
    graph.stateUpdates = {{w, next}};
  }
  // The one problem that verify finds, or all of them.
  std::string problem() const {
    std::string text;
    for (const std::string& found : graph.verify()) text += (text.empty() ? "" : "\n") + found;
    return text;
  }
};

#define EXPECT_TOLD(small, part) EXPECT_NE((small).problem().find(part), std::string::npos) << (small).problem()

TEST(GraphVerify, FindsNothingInAGraphThatIsWhole) {
  const Small small;
  EXPECT_EQ(small.problem(), "");
}

TEST(GraphVerify, ProducerOfAValueMakesIt) {
  Small small;
  small.graph.mutableValue(small.y).producer = small.b;
  EXPECT_TOLD(small, "Relu 'a': output 'y' names another producer or place");
  Small place;
  place.graph.mutableValue(place.y).outputIndex = 1;
  EXPECT_TOLD(place, "Relu 'a': output 'y' names another producer or place; expected output 0");
  Small lost;
  lost.graph.mutableNode(lost.a).outputs = {};
  EXPECT_TOLD(lost, "value 'y': no output of its producer Relu 'a'");
  Small input;
  input.graph.mutableValue(input.x).producer = input.a;
  EXPECT_TOLD(input, "value 'x': has a producer");
}

TEST(GraphVerify, ValueIsMadeOnceAndByANodeThatLives) {
  Small twice;
  twice.graph.mutableNode(twice.b).outputs.push_back(twice.y);
  EXPECT_TOLD(twice, "Neg 'b': output 'y' is made twice");
  Small gone;
  gone.graph.removeNode(gone.b);
  gone.graph.mutableValue(gone.y).producer = gone.b;
  EXPECT_TOLD(gone, "value 'y': its producer was removed");
  Small dead;
  dead.graph.removeNode(dead.a);
  dead.graph.setOrder({dead.a, dead.b, dead.step});
  EXPECT_TOLD(dead, "Relu 'a': removed but still in the order");
  EXPECT_TOLD(dead, "Relu 'a': output 'y' was removed");
  EXPECT_TOLD(dead, "Neg 'b': input 'y' was removed");
  Small role;
  role.graph.mutableNode(role.a).outputs = {role.x};
  EXPECT_TOLD(role, "Relu 'a': output 'x' is an input, a constant or state");
}

TEST(GraphVerify, OrderListsEveryLiveNodeOnceAfterWhatItReads) {
  Small late;
  late.graph.setOrder({late.b, late.a, late.step});
  EXPECT_TOLD(late, "Neg 'b': input 'y' is not computed before it");
  Small missing;
  missing.graph.setOrder({missing.a, missing.b});
  EXPECT_TOLD(missing, "Add 'step': not in the order");
  Small doubled;
  doubled.graph.setOrder({doubled.a, doubled.b, doubled.step, doubled.a});
  EXPECT_TOLD(doubled, "Relu 'a': listed twice in the order");
  Small unknown;
  unknown.graph.setOrder({unknown.a, unknown.b, unknown.step, NodeId{99}});
  EXPECT_TOLD(unknown, "the order lists an id that no node has");
}

TEST(GraphVerify, IdsAreOnesThatExist) {
  Small small;
  small.graph.mutableNode(small.b).inputs = {ValueId{99}};
  EXPECT_TOLD(small, "Neg 'b': input is an id that no value has");
  Small predicate;
  predicate.graph.mutableNode(predicate.b).predicates = {{ValueId{}, true}};
  EXPECT_TOLD(predicate, "Neg 'b': predicate is an id that no value has");
}

TEST(GraphVerify, NamesAreUniqueAndFound) {
  Small value;
  value.graph.mutableValue(value.y).name = "x";
  EXPECT_TOLD(value, "value 'x': not found by its name");
  Small node;
  node.graph.mutableNode(node.b).name = "a";
  EXPECT_TOLD(node, "Neg 'a': not found by its name");
}

TEST(GraphVerify, StateUpdatesWriteLiveStatesOnceFromValuesOfTheirType) {
  Small role;
  role.graph.stateUpdates = {{role.x, role.next}};
  EXPECT_TOLD(role, "state update of 'x': it is no state");
  Small twice;
  twice.graph.stateUpdates.push_back({twice.w, twice.y});
  EXPECT_TOLD(twice, "state update of 'w': written twice");
  Small type;
  type.graph.mutableValue(type.next).type = {ValueKind::kTensor, DType::kF16, Shape{3}};
  EXPECT_TOLD(type, "state update of 'w': float32[3], its next contents are float16[3]");
  Small shape;
  shape.graph.mutableValue(shape.next).type = {ValueKind::kTensor, DType::kF32, Shape{4}};
  EXPECT_TOLD(shape, "its next contents are float32[4]");
  Small removed;
  removed.graph.removeValue(removed.w);
  EXPECT_TOLD(removed, "state update of 'w': the state was removed");
  Small unmade;
  unmade.graph.removeNode(unmade.step);
  EXPECT_TOLD(unmade, "state update of 'w': its next contents 'w.next' are made by no node");
}

TEST(GraphVerify, EndsAreAlive) {
  Small output;
  output.graph.removeNode(output.b);
  EXPECT_TOLD(output, "graph output 'z' is made by no node");
  Small input;
  input.graph.removeValue(input.x);
  EXPECT_TOLD(input, "graph input 'x' was removed");
}

TEST(GraphVerify, SubgraphsToo) {
  Small small, body;
  body.graph.mutableNode(body.b).outputs.push_back(body.y);
  small.graph.mutableNode(small.b).subgraphs.edit()["then_branch"] = std::make_shared<const Graph>(body.graph);
  EXPECT_TOLD(small, "Neg 'b', then_branch: Neg 'b': output 'y' is made twice");
}

TEST(GraphRewrite, MoveOutputGivesAValueAnotherMaker) {
  Small small;
  Graph& graph = small.graph;
  const NodeId other = graph.addNode("other", "", "Identity", {}, {});
  graph.moveOutput(small.y, other, 2);
  EXPECT_EQ(graph.value(small.y).producer, other);
  EXPECT_EQ(graph.value(small.y).outputIndex, 2);
  EXPECT_EQ(graph.node(other).outputs, (std::vector{ValueId{}, ValueId{}, small.y}));
  EXPECT_FALSE(graph.node(small.a).output(0).valid());
  const ValueId fresh = graph.addOutput(small.a, "fresh", 0);
  EXPECT_EQ(graph.node(small.a).output(0), fresh);
  graph.setOrder({small.a, other, small.b, small.step});
  EXPECT_EQ(small.problem(), "");
}

TEST(GraphRewrite, SwapOutputsExchangesWhoMakesTwoValues) {
  Small small;
  small.graph.swapOutputs(small.y, small.next);
  EXPECT_EQ(small.graph.value(small.y).producer, small.step);
  EXPECT_EQ(small.graph.value(small.next).producer, small.a);
  small.graph.setOrder({small.a, small.step, small.b});
  EXPECT_EQ(small.problem(), "");
}

TEST(GraphRewrite, RemoveValueFreesNameAndPlace) {
  Small small;
  small.graph.addOutput(small.a, "mask");
  const ValueId mask = small.graph.findValue("mask");
  small.graph.removeValue(mask);
  EXPECT_FALSE(small.graph.findValue("mask").valid());
  EXPECT_FALSE(small.graph.node(small.a).output(1).valid());
  EXPECT_EQ(small.problem(), "");
}

TEST(GraphRewrite, ChainsOfReplacementsAreFollowedToTheirEnd) {
  Graph graph;
  const ValueId x = graph.addValue("x", {}, ValueRole::kInput);
  graph.mutableInputs() = {x};
  std::unordered_map<ValueId, ValueId> replacements;
  std::vector<NodeId> gone;
  ValueId last = x;
  for (int i = 0; i < 100'000; ++i) {  // quadratic work would take minutes
    gone.push_back(graph.addNode("", "", "Identity", {last}, {"i"}));
    replacements[graph.node(gone.back()).output(0)] = last;
    last = graph.node(gone.back()).output(0);
  }
  const NodeId reader = graph.addNode("reader", "", "Neg", {last}, {"y"});
  graph.mutableOutputs() = {graph.node(reader).output(0)};
  graph.replaceAllUses(replacements);
  graph.removeNodes(gone);
  EXPECT_EQ(graph.node(reader).input(0), x);
  EXPECT_TRUE(graph.verify().empty());
}

TEST(GraphCopies, ShareWhatNobodyChanged) {
  Small small;
  const Graph kept = small.graph;
  const std::size_t all = kept.nodeCapacity() + kept.valueCapacity();
  EXPECT_EQ(small.graph.sharedWith(kept), all);
  small.graph.mutableNode(small.a).op = "Gelu";
  EXPECT_EQ(small.graph.sharedWith(kept), all - 1);
  EXPECT_EQ(kept.node(small.a).op, "Relu");
  small.graph.mutableNode(small.a).op = "Swish";
  small.graph.replaceAllUses(small.y, small.x);  // b reads it
  EXPECT_EQ(small.graph.sharedWith(kept), all - 2);
  EXPECT_EQ(kept.node(small.b).input(0), small.y);
  small.graph.renameValue(small.z, "out");
  EXPECT_EQ(small.graph.sharedWith(kept), all - 3);
  EXPECT_EQ(kept.findValue("z"), small.z);
  EXPECT_FALSE(kept.findValue("out").valid());
  EXPECT_EQ(small.graph.findValue("out"), small.z);
  EXPECT_TRUE(kept.verify().empty());
  EXPECT_EQ(small.problem(), "");
}

TEST(GraphCopies, RemovingCopiesNothing) {
  Small small;
  const Graph kept = small.graph;
  small.graph.removeNode(small.b);
  small.graph.removeValue(small.w);
  EXPECT_EQ(small.graph.sharedWith(kept), kept.nodeCapacity() + kept.valueCapacity());
  for (const bool there : {true, false}) {
    const Graph& graph = there ? kept : small.graph;
    EXPECT_EQ(graph.alive(small.b), there);
    EXPECT_EQ(graph.alive(small.z), there) << "what the node made";
    EXPECT_EQ(graph.alive(small.w), there);
    EXPECT_EQ(graph.findNode("b").valid(), there);
    EXPECT_EQ(graph.findValue("z").valid(), there);
    EXPECT_EQ(graph.findValue("w").valid(), there);
  }
  EXPECT_TRUE(kept.verify().empty());
  // Names of what was removed are free, and belong to who takes them.
  const NodeId again = small.graph.addNode("b", "", "Neg", {small.y}, {"z"});
  EXPECT_EQ(small.graph.findNode("b"), again);
  EXPECT_EQ(small.graph.findValue("z"), small.graph.node(again).output(0));
  EXPECT_EQ(kept.findNode("b"), small.b);
}

TEST(GraphCopies, ReadingAndSortingChangeNothing) {
  Small small;
  const Graph kept = small.graph;
  ASSERT_TRUE(small.graph.sortTopologically());
  small.graph.removeDeadNodes();
  small.graph.setInput(small.b, 0, small.y);
  EXPECT_EQ(small.graph.sharedWith(kept), kept.nodeCapacity() + kept.valueCapacity());
}

TEST(EditLog, CopiesHaveTheirOwnEnd) {
  EditLog log;
  const std::int32_t many = static_cast<std::int32_t>(3 * EditLog::kBlock + 7);
  for (std::int32_t i = 0; i < many; ++i) log.push_back({Edit::Kind::kAddNode, {i}, {}, {}, {}});
  const std::size_t before = mallinfo2().uordblks;  // 0 where a sanitizer counts instead
  EditLog copy = log;
  EXPECT_LT(mallinfo2().uordblks - before, EditLog::kBlock) << "full blocks are shared";
  copy.push_back({Edit::Kind::kRemoveNode, {1}, {}, {}, InternedText("cse")});
  ASSERT_EQ(log.size(), static_cast<std::size_t>(many));
  ASSERT_EQ(copy.size(), static_cast<std::size_t>(many) + 1);
  EXPECT_EQ(copy.back().pass.view(), "cse");
  std::int32_t i = 0;
  for (const Edit& edit : log) EXPECT_EQ(edit.node.index, i++);
  EXPECT_EQ(i, many);
}

TEST(NameTable, FindsErasesAndGrows) {
  std::vector<std::string> names;
  NameTable table;
  const auto nameOf = [&](std::int32_t id) -> std::string_view { return names[static_cast<std::size_t>(id)]; };
  for (std::int32_t i = 0; i < 5000; ++i) {
    names.push_back("name" + std::to_string(i));
    table.insert(names.back(), i);
    if (i % 3 == 0) table.erase(names.back(), i);
  }
  EXPECT_EQ(table.size(), 5000U - 1667U);
  for (std::int32_t i = 0; i < 5000; ++i) EXPECT_EQ(table.find("name" + std::to_string(i), nameOf), i % 3 == 0 ? -1 : i);
  EXPECT_EQ(table.find("other", nameOf), -1);
}

TEST(Errors, NameTheirNodeOnce) {
  Small small;
  EXPECT_EQ(saidBy(small.graph.node(small.a), {ErrorCode::kInvalidArgument, "Relu: a text"}).message, "Relu 'a': a text");
  Node& node = small.graph.mutableNode(small.b);
  node.domain = "stepscope";
  EXPECT_EQ(saidBy(node, {ErrorCode::kInvalidArgument, "stepscope.Neg: a text"}).message, "stepscope.Neg 'b': a text");
  EXPECT_EQ(saidBy(node, {ErrorCode::kInvalidArgument, "Relu: a text"}).message, "stepscope.Neg 'b': Relu: a text");
}

TEST(GraphNames, TakenOnesGetTheNextFreeSuffix) {
  Graph graph;
  EXPECT_EQ(graph.value(graph.addValue("a", {}, ValueRole::kInput)).name, "a");
  EXPECT_EQ(graph.value(graph.addValue("a", {}, ValueRole::kInput)).name, "a_1");
  EXPECT_EQ(graph.value(graph.addValue("a_2", {}, ValueRole::kInput)).name, "a_2");
  EXPECT_EQ(graph.value(graph.addValue("a", {}, ValueRole::kInput)).name, "a_3");
  graph.removeValue(graph.findValue("a"));
  EXPECT_EQ(graph.value(graph.addValue("a", {}, ValueRole::kInput)).name, "a");
}

}  // namespace
}  // namespace stepscope::testing
