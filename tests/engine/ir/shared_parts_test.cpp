// What copies of a graph share, and that a change of one copy is seen in no other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/ir/edit_log.h"
#include "engine/ir/few.h"
#include "engine/ir/graph.h"
#include "engine/ir/rare.h"
#include "engine/ir/shared_shape.h"
#include "engine/ir/shared_text.h"
#include "kernels/attributes.h"
#include "kernels/shared_dims.h"

namespace stepscope {
namespace {

TEST(CopyOnWrite, AChangeIsSeenInThatCopyAlone) {
  CopyOnWrite<std::vector<int>> empty, one(std::vector<int>{1, 2});
  EXPECT_FALSE(empty.holds());
  EXPECT_TRUE(empty->empty());
  const CopyOnWrite<std::vector<int>> other = one;
  EXPECT_TRUE(other.isSame(one));
  one.edit().push_back(3);
  EXPECT_FALSE(other.isSame(one));
  EXPECT_EQ(*other, (std::vector<int>{1, 2}));
  EXPECT_EQ(*one, (std::vector<int>{1, 2, 3}));
  const std::vector<int>* const before = &*one;
  one.edit().push_back(4);
  EXPECT_EQ(&*one, before);  // nobody else has it: changed where it is
  empty.edit().push_back(5);
  EXPECT_EQ(*empty, std::vector<int>{5});
}

TEST(Rare, CopiesShareUntilOneIsChanged) {
  Rare<std::map<std::string, int>> one(std::map<std::string, int>{{"a", 1}});
  const Rare<std::map<std::string, int>> other = one;
  EXPECT_EQ(&one.get(), &other.get());
  one.edit()["b"] = 2;
  EXPECT_EQ(other.size(), 1U);
  EXPECT_EQ(one.size(), 2U);
  EXPECT_FALSE(one == other);
}

// Every change of a vector, short and long, beside a std::vector.
TEST(Few, IsChangedLikeAVector) {
  for (int length = 0; length < 12; ++length) {
    std::vector<int> expected;
    Few<int> few;
    for (int i = 0; i < length; ++i) {
      expected.push_back(i);
      few.push_back(i);
    }
    const Few<int> before = few;
    const auto same = [&] { return std::vector<int>(few) == expected && few.size() == expected.size(); };
    EXPECT_TRUE(same());
    for (int at = 0; at <= length; ++at) {
      expected.insert(expected.begin() + at, 100 + at);
      few.insert(few.begin() + at, 100 + at);
      EXPECT_TRUE(same());
    }
    expected.insert(expected.begin(), expected.begin(), expected.end() - 1);
    few.insert(few.begin(), few.begin(), few.end() - 1);
    EXPECT_TRUE(same());
    expected.erase(expected.begin());
    few.erase(few.begin());
    EXPECT_TRUE(same());
    for (const std::size_t size : {std::size_t{2}, std::size_t{0}, std::size_t{7}, std::size_t{3}}) {
      expected.resize(size);
      few.resize(size);
      EXPECT_TRUE(same());
      Few<int> copy = few;
      copy.push_back(1);
      EXPECT_TRUE(same());
      few = std::move(copy);
      expected.push_back(1);
      EXPECT_TRUE(same());
    }
    EXPECT_EQ(before.size(), static_cast<std::size_t>(length));
    for (int i = 0; i < length; ++i) EXPECT_EQ(before[static_cast<std::size_t>(i)], i);
  }
}

TEST(Few, HoldsAbsentIds) {
  Few<ValueId> few;
  few.resize(2);
  EXPECT_FALSE(few[1].valid());
  few = {ValueId{3}, ValueId{}, ValueId{5}, ValueId{7}};
  EXPECT_EQ(few, (std::vector<ValueId>{{3}, {}, {5}, {7}}));
}

TEST(SharedText, IsReadLikeAString) {
  SharedText name;
  EXPECT_TRUE(name.empty());
  EXPECT_EQ(name, "");
  name = std::string("block.0/scaled");
  const SharedText copy = name;
  EXPECT_EQ(copy.view().data(), name.view().data());
  name = "other";
  EXPECT_EQ(copy, "block.0/scaled");
  EXPECT_EQ(copy + "_out0", "block.0/scaled_out0");
  EXPECT_EQ("of " + copy, "of block.0/scaled");
  EXPECT_EQ(fmt::format("{:>6}|{}", name, copy), " other|block.0/scaled");
  EXPECT_EQ((std::map<std::string, int>{{"other", 1}}).at(name), 1);
  EXPECT_EQ(copy.substr(copy.rfind('/') + 1), "scaled");
  EXPECT_LT(copy, name);
}

TEST(InternedText, IsReadLikeAString) {
  InternedText op("Add");
  EXPECT_EQ(op, "Add");
  EXPECT_EQ(fmt::format("{}/{}", op, InternedText()), "Add/");
  op = "Mul";
  EXPECT_EQ("x." + op, "x.Mul");
  // More than the first blocks of the table hold.
  std::vector<InternedText> many;
  for (int i = 0; i < 5000; ++i) many.emplace_back(fmt::format("a text of the test {}", i));
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(many[static_cast<std::size_t>(i)], fmt::format("a text of the test {}", i));
}

TEST(SharedShape, EqualOnesAreTheSameMemoryAndUnknownIsNotAScalar) {
  const SharedShape a = Shape{Dim(2), Dim::symbol("batch")}, b = Shape{Dim(2), Dim::symbol("batch")}, unknown;
  EXPECT_EQ(&a.get(), &b.get());
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == SharedShape(Shape{Dim(2), Dim::symbol("other")}));
  EXPECT_FALSE(unknown.has_value());
  EXPECT_FALSE(unknown == SharedShape(Shape{}));
  EXPECT_FALSE(unknown.get().has_value());
  EXPECT_TRUE(SharedShape(Shape{}).has_value());
}

TEST(SharedDims, EqualOnesAreTheSameMemory) {
  const SharedDims a = Dims{2, 3}, b{2, 3}, scalar;
  EXPECT_EQ(&a.get(), &b.get());
  EXPECT_EQ(scalar, Dims{});
  EXPECT_FALSE(a == (Dims{3, 2}));
}

TEST(Attributes, CopiesShareAndEqualOnesAreJoinedBitForBit) {
  Attributes one{{"axis", std::int64_t{1}}, {"alpha", 0.0F}}, other{{"alpha", 0.0F}, {"axis", std::int64_t{1}}};
  one.shareEqual();
  other.shareEqual();
  EXPECT_EQ(&one.entries(), &other.entries());
  other.set("axis", std::int64_t{2});
  EXPECT_EQ(one.integer("axis", 0), 1);
  EXPECT_EQ(other.integer("axis", 0), 2);
  Attributes negative{{"alpha", -0.0F}, {"axis", std::int64_t{1}}};
  negative.shareEqual();
  EXPECT_TRUE(std::signbit(negative.real("alpha", 1)));
  other.erase("axis");
  other.erase("alpha");
  EXPECT_TRUE(other.empty());
  EXPECT_TRUE(other == Attributes());
}

TEST(EditLog, GivesBackWhatWasPutIn) {
  EditLog log;
  const InternedText pass("cse");
  using Kind = Edit::Kind;
  for (int i = 0; i < 3000; ++i) {
    log.push_back({Kind::kAddNode, {i}, {}, {}, pass});
    log.push_back({Kind::kRemoveNode, {i}, {}, {}, pass});
    log.push_back({Kind::kChangeNode, {i}, {}, {}, {}});
    log.push_back({Kind::kReplaceUses, {}, {i}, i % 2 == 0 ? ValueId{} : ValueId{i + 1}, pass});
  }
  std::size_t at = 0;
  for (const Edit& edit : log) {
    const int i = static_cast<int>(at / 4);
    const bool replaces = at % 4 == 3;
    constexpr Kind kKinds[] = {Kind::kAddNode, Kind::kRemoveNode, Kind::kChangeNode, Kind::kReplaceUses};
    ASSERT_EQ(edit.kind, kKinds[at % 4]);
    ASSERT_EQ(edit.node, replaces ? NodeId{} : NodeId{i});
    ASSERT_EQ(edit.from, replaces ? ValueId{i} : ValueId{});
    ASSERT_EQ(edit.to, replaces && i % 2 != 0 ? ValueId{i + 1} : ValueId{});
    ASSERT_EQ(edit.pass, at % 4 == 2 ? InternedText() : pass);
    ++at;
  }
  EXPECT_EQ(at, log.size());
}

// A node that is removed after its output was inherited is as it was, and the value lives on.
TEST(Graph, AnInheritedOutputOutlivesTheNodeThatMadeIt) {
  Graph graph;
  const ValueId x = graph.addValue("x", {}, ValueRole::kInput);
  const NodeId old = graph.addNode("old", "", "Relu", {x}, {"y"});
  const ValueId y = graph.node(old).output(0);
  graph.mutableOutputs().push_back(y);
  const Graph kept = graph;
  const NodeId made = graph.addNode("made", "", "Relu", {x}, {});
  graph.inheritOutput(y, made, 0);
  graph.removeNode(old);
  EXPECT_TRUE(graph.alive(y));
  EXPECT_EQ(graph.value(y).producer, made);
  EXPECT_EQ(&graph.node(old), &kept.node(old));
  EXPECT_TRUE(graph.verify().empty());
  EXPECT_TRUE(kept.verify().empty());
}

}  // namespace
}  // namespace stepscope
