// Which node and value of a graph a key means, and what became of those that passes took.
#include "engine/ir/key_index.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/ir/place_key.h"

namespace stepscope {
namespace {

const ValueType kFloats{ValueKind::kTensor, DType::kF32, Shape{Dim(2)}};

// x → Div → Erf → Add → Mul (with x) → y, beside it a copy of Div that only y2 reads, and a node that nothing needs.
struct Small {
  Graph graph;
  ValueId x, w;
  NodeId div, erf, add, mul, again, last, unused;

  Small() {
    x = graph.addValue("x", kFloats, ValueRole::kInput);
    w = graph.addValue("w", kFloats, ValueRole::kInitializer);
    graph.mutableInputs() = {x};
    div = make("div", "Div", {x, w});
    erf = make("erf", "Erf", {out(div)});
    add = make("add", "Add", {out(erf), w});
    mul = make("mul", "Mul", {out(add), x});
    again = make("again", "Div", {x, w});
    last = make("last", "Sub", {out(mul), out(again)});
    unused = make("unused", "Neg", {x});
    graph.mutableOutputs() = {out(last)};
    graph.markImported();
  }
  NodeId make(const std::string& name, const std::string& op, std::vector<ValueId> inputs) {
    const NodeId id = graph.addNode(name, "", op, std::move(inputs), {name + "_out"});
    graph.mutableValue(out(id)).type = kFloats;
    return id;
  }
  ValueId out(NodeId id, std::size_t o = 0) const { return graph.node(id).output(o); }

  // As pass cse does.
  void merge(NodeId from, NodeId into, const std::string& pass = "cse") {
    graph.setPass(pass);
    graph.replaceAllUses(out(from), out(into));
    graph.removeNode(from);
  }
  // As pass fuse_gelu does: mul becomes the function of x, what led to it dies.
  void fuse() {
    graph.setPass("fuse_gelu");
    graph.mutableNode(mul).op = "Gelu";
    graph.mutableNode(mul).inputs = {x};
    graph.logChange(mul);
    graph.removeDeadNodes();
  }
};

NodeKey node(const char* text) { return *NodeKey::parse(text); }
ValueKey value(const char* text) { return *ValueKey::parse(text); }

// Every live node and value has a key that finds it, and no two have the same.
void expectSound(const KeyIndex& index) {
  const Graph& graph = index.graph();
  std::set<std::string> seen;
  for (const NodeId id : graph.order()) {
    const auto keys = index.keysOf(id);
    ASSERT_FALSE(keys.empty()) << graph.node(id).label();
    EXPECT_EQ(keys.front(), index.keyOf(id));
    for (const NodeKey& key : keys) {
      EXPECT_EQ(index.find(key), id) << key.text();
      EXPECT_TRUE(seen.insert(key.text()).second) << key.text();
      EXPECT_EQ(index.absence(key), "") << key.text();
      EXPECT_EQ(index.carrier(key), id) << key.text();
    }
    for (const ValueId out : graph.node(id).outputs)
      if (out) {
        EXPECT_EQ(index.find(index.keyOf(out)), out) << graph.value(out).name;
      }
  }
}

TEST(KeyIndex, NamesImportedNodesAndValuesAsTheFileDoes) {
  const Small s;
  const KeyIndex index(s.graph);
  expectSound(index);
  EXPECT_EQ(index.keyOf(s.erf).text(), "erf");
  EXPECT_EQ(index.find(node("erf")), s.erf);
  EXPECT_EQ(index.find(value("erf_out")), s.out(s.erf));
  EXPECT_EQ(index.find(value("erf :0")), s.out(s.erf));
  EXPECT_EQ(index.find(value("w")), s.w);
  EXPECT_EQ(index.keyOf(s.x).text(), "x");
  EXPECT_EQ(index.absence(node("nobody")), "no node of this name in the imported model");
  EXPECT_FALSE(index.carrier(node("nobody")).valid());
  EXPECT_NE(index.absence(value("erf :7")), "");
}

TEST(KeyIndex, ValueThatReplacedAnotherCarriesItsKeys) {
  Small s;
  s.merge(s.again, s.div);
  const KeyIndex index(s.graph);
  expectSound(index);
  EXPECT_EQ(index.find(node("again")), s.div);
  EXPECT_EQ(index.keyOf(s.div).text(), "div");
  ASSERT_EQ(index.keysOf(s.div).size(), 2u);
  EXPECT_EQ(index.keysOf(s.div)[1].text(), "again");
  EXPECT_EQ(index.find(value("again_out")), s.out(s.div));
  EXPECT_EQ(index.keyOf(s.out(s.div)).text(), "div_out");
}

TEST(KeyIndex, NodesOfAFusedChainNameTheNodeThatTookThem) {
  Small s;
  s.merge(s.again, s.div);  // what the chain lost before it was fused is found behind it
  s.graph.setPass("hand_on");
  s.graph.setInput(s.last, 1, s.x);
  s.fuse();
  const KeyIndex index(s.graph);
  expectSound(index);
  EXPECT_EQ(index.find(node("mul")), s.mul);
  for (const char* gone : {"div", "erf", "add", "again"}) {
    EXPECT_FALSE(index.find(node(gone)).valid()) << gone;
    EXPECT_EQ(index.carrier(node(gone)), s.mul) << gone;
    EXPECT_EQ(index.absence(node(gone)), "fused into Gelu 'mul' by fuse_gelu") << gone;
    EXPECT_EQ(index.carrier(value((std::string(gone) + "_out").c_str())), s.mul) << gone;
  }
  EXPECT_EQ(index.absence(value("erf_out")), "fused into Gelu 'mul' by fuse_gelu");
}

TEST(KeyIndex, FusedNodeThatIsFusedAgainIsFollowed) {
  Small s;
  s.graph.setPass("hand_on");
  s.graph.setInput(s.last, 1, s.x);
  s.fuse();
  s.graph.setPass("fuse_epilogue");
  s.graph.mutableNode(s.last).inputs = {s.x};
  s.graph.mutableNode(s.last).op = "Product";
  s.graph.mutableNode(s.last).provenance.sources = {s.mul};
  s.graph.logChange(s.last);
  s.graph.removeDeadNodes();
  const KeyIndex index(s.graph);
  expectSound(index);
  EXPECT_EQ(index.carrier(node("erf")), s.last);
  EXPECT_EQ(index.absence(node("mul")), "fused into Product 'last' by fuse_epilogue");
}

TEST(KeyIndex, FoldedNodeIsAConstantNow) {
  Small s;
  s.graph.setPass("fold_constants");
  const ValueId constant = s.graph.addConstant("again_out_folded", Tensor::scalar(DType::kF32, 1));
  s.graph.replaceAllUses(s.out(s.again), constant);
  s.graph.removeDeadNodes();
  const KeyIndex index(s.graph);
  expectSound(index);
  EXPECT_FALSE(index.find(node("again")).valid());
  EXPECT_EQ(index.find(value("again_out")), constant);
  EXPECT_EQ(index.keyOf(constant).text(), "again_out");
  EXPECT_EQ(index.absence(node("again")), "constant 'again_out_folded' since fold_constants");
  EXPECT_EQ(index.absence(node("unused")), "removed by fold_constants: nothing that is left reads it");
}

TEST(KeyIndex, WhatTheLossDoesNotNeedSaysSo) {
  Small s;
  s.graph.setPass("attach loss");
  s.graph.removeDeadNodes();
  const KeyIndex index(s.graph);
  EXPECT_EQ(index.absence(node("unused")), "not needed for the loss: removed by attach loss");
  EXPECT_EQ(index.absence(value("unused_out")), "not needed for the loss: removed by attach loss");
}

TEST(KeyIndex, ResultsThatChangedTheirProducerAreFoundThere) {
  Small s;
  s.graph.setPass("group_updates");
  const NodeId made = s.graph.addNode("both", "", "Both", {s.x, s.w}, {});
  for (const NodeId id : {s.div, s.again}) {
    const ValueId out = s.out(id);
    s.graph.mutableNode(made).outputs.push_back(out);
    s.graph.mutableValue(out).producer = made;
    s.graph.mutableValue(out).outputIndex = id == s.div ? 0 : 1;
    s.graph.mutableNode(id).outputs = {ValueId{}};
  }
  s.graph.removeNodes({s.div, s.again});
  ASSERT_TRUE(s.graph.sortTopologically().has_value());
  const KeyIndex index(s.graph);
  expectSound(index);
  EXPECT_EQ(index.find(node("div")), made);
  EXPECT_EQ(index.find(node("again")), made);
  EXPECT_EQ(index.find(value("again_out")), s.out(made, 1));
}

TEST(KeyIndex, NodesThatAPassMakesBelongToTheNodeBesideThem) {
  Small s;
  s.graph.setPass("assign_layouts");
  for (int i = 0; i < 2; ++i) {
    const NodeId made = s.make("erf/Reorder", "Reorder", {s.out(s.erf)});
    s.graph.mutableNode(made).provenance.sources = {s.erf};
  }
  const KeyIndex index(s.graph);
  expectSound(index);
  EXPECT_TRUE(index.find(node("erf by:assign_layouts.0")).valid());
  EXPECT_TRUE(index.find(node("erf by:assign_layouts.1")).valid());
  EXPECT_EQ(index.absence(node("erf by:assign_layouts.2")), "pass assign_layouts made no such node here");
}

// The nodes that phases make, by hand.
struct Step : Small {
  NodeId loss, erfGradient, sum, update, copy;

  explicit Step(bool merged = false) {
    if (merged) merge(again, div);
    graph.setPass("attach loss");
    loss = make("loss/Sub", "Sub", {out(last), x});
    origin(loss, {.kind = Origin::Kind::kRoot, .detail = InternedText("loss/Sub")});
    graph.recordBirths();
    graph.setPass("gradient");
    erfGradient = make("erf_Grad/Mul", "Mul", {out(loss), w});
    origin(erfGradient, {.kind = Origin::Kind::kGradient, .ordinal = 1, .node = erf});
    graph.gradients.edit().push_back({out(div), out(erfGradient)});
    sum = make("div_Grad/Add", "Add", {out(erfGradient), x});
    origin(sum, {.kind = Origin::Kind::kSum, .value = w});
    graph.gradients.edit().push_back({w, out(sum)});
    graph.recordBirths();
    graph.setPass("optimizer");
    update = make("w/sgd", "SgdUpdate", {w, out(sum)});
    origin(update, {.kind = Origin::Kind::kUpdate, .value = w});
    graph.stateUpdates.push_back({w, out(update)});
    graph.recordBirths();
    graph.setPass("recompute");
    copy = make("erf_recompute", "Erf", {out(div)});
    origin(copy, {.kind = Origin::Kind::kRecomputed, .node = erf});
  }
  void origin(NodeId id, Origin origin) { graph.mutableNode(id).origin = origin; }
};

TEST(KeyIndex, NamesWhatPhasesMakeByItsRole) {
  const Step s;
  const KeyIndex index(s.graph);
  expectSound(index);
  EXPECT_EQ(index.keyOf(s.loss).text(), "=loss/Sub");
  EXPECT_EQ(index.keyOf(s.erfGradient).text(), "div_out grad");
  EXPECT_EQ(index.find(node("erf ∂0.1")), s.erfGradient);
  EXPECT_EQ(index.keyOf(s.sum).text(), "w grad");
  EXPECT_EQ(index.keyOf(s.out(s.sum)).text(), "w grad");
  EXPECT_EQ(index.keyOf(s.update).text(), "w update");
  EXPECT_EQ(index.keyOf(s.out(s.update)).text(), "w next");
  EXPECT_EQ(index.keyOf(s.copy).text(), "erf again");
  EXPECT_EQ(index.keyOf(s.out(s.copy)).text(), "erf_out again");
  EXPECT_EQ(index.find(value("=loss/Sub :0")), s.out(s.loss));
  EXPECT_NE(index.absence(node("mul ∂0")), "");
  EXPECT_NE(index.absence(node("mul again")), "");
  EXPECT_NE(index.absence(value("mul_out grad")), "");
}

TEST(KeyIndex, GradientOfAMergedValueIsNotThatOfTheValue) {
  const Step s(true);
  const KeyIndex index(s.graph);
  expectSound(index);
  // div computes what again did too: what arrives there is the sum of both gradients.
  EXPECT_FALSE(index.find(value("div_out grad")).valid());
  EXPECT_EQ(index.find(value("div_out grad:cse")), s.out(s.erfGradient));
  EXPECT_EQ(index.find(value("w grad")), s.out(s.sum));
}

TEST(PlaceKey, EqualPlansKeepEveryPosition) {
  const Step s;
  const KeyIndex index(s.graph);
  const auto& order = s.graph.order();
  for (int p = 0; p <= static_cast<int>(order.size()); ++p) {
    EXPECT_EQ(mapPosition(index, order, p, index, order), p);
    EXPECT_EQ(findPlace(placeOf(index, order, p), index, order), p);
  }
}

TEST(PlaceKey, InstructionsWithoutAKeyBelongToTheNextOne) {
  const Small s;
  const KeyIndex index(s.graph);
  std::vector<NodeId> order{NodeId{}};
  for (const NodeId id : s.graph.order()) order.insert(order.end(), {id, NodeId{}, NodeId{}});
  for (int p = 0; p <= static_cast<int>(order.size()); ++p) EXPECT_EQ(findPlace(placeOf(index, order, p), index, order), p);
}

TEST(PlaceKey, PositionWithinAFusedChainIsBeforeTheFusedNode) {
  const Small before;
  Small after;
  after.fuse();
  const KeyIndex from(before.graph), to(after.graph);
  const auto &old = before.graph.order(), &now = after.graph.order();  // div erf add mul again last; mul again last
  ASSERT_EQ(now.size(), 3u);
  const std::vector<int> expected{0, 0, 0, 0, 1, 2, 3, 3};
  EXPECT_EQ(mapPositions(from, old, to, now), expected);
  for (int p = 0; p <= 3; ++p) EXPECT_EQ(findPlace(placeOf(from, old, p), to, now), 0);
  // And back: `unused` is not there, so the way leads over what the caller remembers.
  for (int p = 0; p <= static_cast<int>(old.size()); ++p) EXPECT_EQ(findPlace(placeOf(from, old, p), from, old), p);
  EXPECT_EQ(findPlace(placeOf(to, now, 1), from, old), 4);
}

TEST(PlaceKey, OneInstructionThatRunsMuchLaterLeavesTheOthers) {
  const Small s;
  const KeyIndex index(s.graph);
  const std::vector<NodeId> old{s.again, s.div, s.erf, s.add, s.mul, s.last},
      now{s.div, s.erf, s.add, s.mul, s.again, s.last};
  EXPECT_EQ(mapPositions(index, old, index, now), (std::vector<int>{0, 0, 1, 2, 3, 5, 6}));
  EXPECT_EQ(mapPositions(index, now, index, old), (std::vector<int>{0, 2, 3, 4, 5, 5, 6}));
}

TEST(PlaceKey, NeighboursSayWhereAPlaceIsThatThePlanDoesNotHave) {
  const Small before;
  Small after;
  after.graph.setPass("hand_on");
  after.graph.setInput(after.last, 1, after.x);
  after.graph.setPass("attach loss");
  after.graph.removeDeadNodes();  // without `again` and `unused`
  const KeyIndex from(before.graph), to(after.graph);
  const auto &old = before.graph.order(), &now = after.graph.order();
  ASSERT_EQ(now.size(), 5u);
  EXPECT_EQ(findPlace(placeOf(from, old, 4), to, now), 4);  // after mul
  PlaceKey place = placeOf(from, old, 4);
  place.before.clear();
  EXPECT_EQ(findPlace(place, to, now), 4);  // before last
  place.after.clear();
  EXPECT_EQ(findPlace(place, to, now), 0);
  EXPECT_EQ(findPlace(placeOf(from, old, static_cast<int>(old.size())), to, now), 5);
}

}  // namespace
}  // namespace stepscope
