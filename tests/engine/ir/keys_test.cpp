// Keys as values and as text.
#include "engine/ir/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <unordered_set>
#include <vector>

namespace stepscope {
namespace {

const NodeKey kMatMul = NodeKey::forward("h.0/mlp/MatMul");
const ValueKey kX = ValueKey::named("h.0/x");

TEST(NodeKey, IsReadableAsText) {
  const std::vector<std::pair<NodeKey, std::string>> texts{
      {kMatMul, "h.0/mlp/MatMul"},
      {NodeKey::root("loss/Sub"), "=loss/Sub"},
      {NodeKey::root("loss/Mul", 2), "=loss/Mul #2"},
      {NodeKey::gradient(kMatMul, 1, 0), "h.0/mlp/MatMul ∂1"},
      {NodeKey::gradient(kMatMul, 1, 2), "h.0/mlp/MatMul ∂1.2"},
      {NodeKey::gradient(kMatMul, 0, 2, "Gelu"), "h.0/mlp/MatMul as:Gelu ∂0.2"},
      {NodeKey::valueGradient(kX), "h.0/x grad"},
      {NodeKey::valueGradient(kX, "cse"), "h.0/x grad:cse"},
      {NodeKey::recomputed(kMatMul), "h.0/mlp/MatMul again"},
      {NodeKey::update("w"), "w update"},
      {NodeKey::update("w", "accumulate"), "w update:accumulate"},
      {NodeKey::madeByPass(kMatMul, "assign_layouts", 1), "h.0/mlp/MatMul by:assign_layouts.1"},
      {NodeKey::gradient(NodeKey::madeByPass(kMatMul, "p", 0), 0, 0), "h.0/mlp/MatMul by:p.0 ∂0"},
      {NodeKey::valueGradient(ValueKey::of(NodeKey::root("loss/Sub"), 0)), "=loss/Sub :0 grad"},
  };
  for (const auto& [key, text] : texts) {
    EXPECT_EQ(key.text(), text);
    const auto parsed = NodeKey::parse(text);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(*parsed, key) << text;
  }
}

TEST(ValueKey, IsReadableAsText) {
  const std::vector<std::pair<ValueKey, std::string>> texts{
      {kX, "h.0/x"},
      {ValueKey::named("w.exp_avg"), "w.exp_avg"},
      {ValueKey::gradient(kX), "h.0/x grad"},
      {ValueKey::gradient(kX, "cse"), "h.0/x grad:cse"},
      {ValueKey::next(kX), "h.0/x next"},
      {ValueKey::recomputed(kX), "h.0/x again"},
      {ValueKey::of(NodeKey::gradient(kMatMul, 1, 2), 3), "h.0/mlp/MatMul ∂1.2 :3"},
      {ValueKey::recomputed(ValueKey::of(kMatMul, 1)), "h.0/mlp/MatMul :1 again"},
  };
  for (const auto& [key, text] : texts) {
    EXPECT_EQ(key.text(), text);
    const auto parsed = ValueKey::parse(text);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(*parsed, key) << text;
  }
}

TEST(Keys, NamesOfAnyBytesComeBackFromTheText) {
  std::vector<std::string> names{" ",
                                 "a b",
                                 "=x",
                                 "a=x",
                                 "\\",
                                 "\\s",
                                 "a ∂1",
                                 "∂1",
                                 "again",
                                 "w grad",
                                 "#1",
                                 "x :0",
                                 "by:p.0",
                                 "\x01\x7f",
                                 "\xff\xfe",
                                 "a\xe2\x88",
                                 "日本",
                                 "\n",
                                 "=",
                                 "as:Gelu",
                                 "a update",
                                 "\xed\xa0\x80",
                                 std::string("a\0b", 3)};
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string name(1 + random() % 6, ' ');
    for (char& byte : name) byte = static_cast<char>(random() % 3 == 0 ? " \\=:.#\xe2\x88\x82"[random() % 9] : random());
    names.push_back(name);
  }
  std::unordered_set<NodeKey> nodes;
  std::unordered_set<ValueKey> values;
  std::unordered_set<std::string> texts, different(names.begin(), names.end());
  for (const std::string& name : names) {
    const NodeKey forward = NodeKey::forward(name);
    for (const NodeKey& key :
         {forward, NodeKey::root(name, 1), NodeKey::gradient(forward, 3, 4, name), NodeKey::update(name, name),
          NodeKey::madeByPass(forward, name, 7), NodeKey::valueGradient(ValueKey::named(name), name)}) {
      const auto parsed = NodeKey::parse(key.text());
      ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
      EXPECT_EQ(*parsed, key);
      nodes.insert(key);
      texts.insert(key.text());
    }
    const ValueKey value = ValueKey::named(name);
    for (const ValueKey& key : {value, ValueKey::gradient(value, name), ValueKey::of(forward, 2), ValueKey::next(value)}) {
      const auto parsed = ValueKey::parse(key.text());
      ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
      EXPECT_EQ(*parsed, key);
      values.insert(key);
    }
  }
  EXPECT_EQ(nodes.size(), 6 * different.size());
  EXPECT_EQ(texts.size(), nodes.size());
  EXPECT_EQ(values.size(), 4 * different.size());
}

TEST(Keys, ParseTakesNothingThatTextDoesNotWrite) {
  for (const char* text : {"",      " ",      "a ",       " a",         "a  ∂1",     "a ∂",        "a ∂x",  "a ∂1.0",
                           "a ∂01", "a ∂-1",  "a ∂40000", "a again ",   "a  again",  "a nonsense", "a #1",  "=a #0",
                           "=",     "a by:p", "a by:.0",  "a update: ", "a update:", "a b update", "a\\",   "a\\q",
                           "a\\x2", "a\\x41", "a\\xzz",   "\xff",       "=a\x01",    "a as:Gelu",  "a sum", "a :0"}) {
    const auto parsed = NodeKey::parse(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find("expected"), std::string::npos) << parsed.error().message;
  }
  for (const char* text : {"", "=a", "a :", "a :x", "a :-1", "a update", "a ∂1", "a grad:", "a next again nonsense"})
    EXPECT_FALSE(ValueKey::parse(text).has_value()) << text;
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += " again";
  EXPECT_FALSE(NodeKey::parse(deep).has_value());
  EXPECT_FALSE(ValueKey::parse(deep).has_value());
  EXPECT_LT(NodeKey::parse(deep).error().message.size(), 500u);
}

TEST(Keys, OrderIsThatOfTheNamesWhateverCameFirst) {
  std::vector<NodeKey> keys;
  for (const char* name : {"order/c", "order/a", "order/b"}) keys.push_back(NodeKey::forward(name));
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys[0].text(), "order/a");
  EXPECT_EQ(keys[2].text(), "order/c");
  EXPECT_LE(sizeof(NodeKey), 16u);
  EXPECT_LE(sizeof(ValueKey), 16u);
  EXPECT_FALSE(NodeKey{}.valid());
  EXPECT_EQ(NodeKey{}.text(), "");
}

}  // namespace
}  // namespace stepscope
