// Patterns as text: what is wrong with one is said with its line, what is right finds attention that the program's own do
// not know, and near misses name where it ended.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "engine/build/options.h"
#include "engine/passes/attention_pattern.h"
#include "engine/passes/pattern_match.h"
#include "tests/engine/passes/sketch.h"

namespace stepscope {
namespace {

using testing::Sketch;

constexpr std::array<std::string_view, 2> kValues{"x", "y"};
constexpr std::array<std::string_view, 1> kNumbers{"c"};

TEST(PatternFile, SaysWhatIsWrongAndWhere) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"a = Add(x, y", "p line 1: found the end; expected ')'"},
      {"# one\n\na = Add(x,\n  )", "p line 4: found ')'; expected an op, a rule, a name or a number"},
      {"a = ", "expected an op, a rule, a name or a number"},
      {"a Add(x)", "found 'Add(x)'; expected '='"},
      {"a = Relu(z)", "p, rule 'a': found name 'z'; expected a rule or one of x, y"},
      {"a = z: Relu(x)", "found name 'z'; expected one of x, y"},
      {"a = Mul(x, *k)", "found number 'k'; expected one of c"},
      {"x = Relu(y)", "rule 'x': it has the name of a value"},
      {"a = b | Relu(x)\nb = a", "leads back to it; expected a node between"},
      {"a = !x", "as ! marks a node"},
      {"a = Relu(x) [axis = first]", "found 'first]'; expected a whole number or last"},
      {"a = Mul(x, *)", "found ')'; expected the name of a number"},
  };
  for (const auto& [text, wanted] : cases) {
    PatternFile patterns({kValues, kNumbers});
    const Status status = patterns.add(text, "p");
    ASSERT_FALSE(status.has_value()) << text;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find(wanted), std::string::npos) << text << "\n" << status.error().message;
    EXPECT_EQ(patterns.rule("a"), nullptr) << text;  // nothing was taken
  }
  PatternFile patterns({kValues, kNumbers});
  const std::string deep = "a = " + std::string(5000, '(');
  EXPECT_FALSE(patterns.add(deep, "p").has_value());
  std::string nested = "a = ";
  for (int i = 0; i < 5000; ++i) nested += "Relu(";
  EXPECT_NE(patterns.add(nested, "p").error().message.find("fewer than 100"), std::string::npos);
}

struct Found {
  std::optional<PatternMatch> match;
  std::optional<PatternMatcher::NearMiss> miss;
};
Found find(const Sketch& s, const char* text, ValueId value) {
  PatternFile patterns({kValues, kNumbers});
  const Status status = patterns.add(text, "p");
  EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
  PatternMatcher matcher(s.graph, *s.inference, patterns);
  Found found;
  found.match = matcher.match("a", value);
  found.miss = matcher.nearMiss();
  return found;
}

TEST(PatternMatch, NamesValuesMultipliesNumbersAndListsNodesOnce) {
  Sketch s;
  const ValueId u = s.input("u", {2, 3}), v = s.input("v", {2, 3});
  const ValueId relu = s.op("Relu", {u}), scaled = s.op("Mul", {s.constant(6), s.op("Div", {relu, s.constant(3)})});
  const ValueId sum = s.op("Add", {v, s.op("Where", {s.op("IsNaN", {relu}), s.constant(0), scaled})});
  s.finish({sum});
  const char* text = "a = Add(Where(IsNaN(x), 0, b), y)\nb = Mul(b, *c) | Div(b, /c) | x: Relu(y?)";
  EXPECT_FALSE(find(s, text, sum).match.has_value());  // y is v, and u
  const Found found = find(s, "a = Add(Where(IsNaN(x), 0, b), y)\nb = Mul(b, *c) | Div(b, /c) | x", sum);
  ASSERT_TRUE(found.match.has_value());
  EXPECT_EQ(found.match->value("x"), relu);
  EXPECT_EQ(found.match->value("y"), v);
  EXPECT_EQ(found.match->number("c"), 2);
  EXPECT_EQ(found.match->nodes.size(), 5u);
  EXPECT_FALSE(found.miss.has_value());
}

TEST(PatternMatch, NearMissesNameWhereItEnded) {
  Sketch s;
  const ValueId u = s.input("u", {2, 3}), soft = s.op("Softmax", {s.op("Tanh", {u})}, {{"axis", std::int64_t{1}}});
  s.finish({soft});
  const Found before = find(s, "a = !Softmax(b) [axis = last]\nb = Relu(x) | Add(x, y)", soft);
  ASSERT_TRUE(before.miss.has_value());
  EXPECT_EQ(before.miss->node, s.graph.value(soft).producer);
  EXPECT_NE(before.miss->condition.find("before Softmax '"), std::string::npos) << before.miss->condition;
  EXPECT_NE(before.miss->condition.find("found Tanh '"), std::string::npos) << before.miss->condition;
  EXPECT_NE(before.miss->condition.find("expected Add or Relu"), std::string::npos) << before.miss->condition;
  EXPECT_NE(find(s, "a = !Softmax(x) [axis = 0]", soft).miss->condition.find("expected axis = 0 instead of 1"),
            std::string::npos);
  EXPECT_FALSE(find(s, "a = Softmax(b)\nb = Relu(x)", soft).miss.has_value());  // nothing is marked
  EXPECT_FALSE(find(s, "a = !Relu(x)", soft).miss.has_value());
}

// Products of products: without a limit this one takes 2^40 ways.
TEST(PatternMatch, GivesUpWhereAPatternBranchesWithoutEnd) {
  Sketch s;
  ValueId x = s.input("u", {2});
  for (int i = 0; i < 40; ++i) x = s.op("Mul", {x, x});
  s.finish({x});
  EXPECT_FALSE(find(s, "a = Mul(a, a) | Relu(x)", x).match.has_value());
}

// Attention whose softmax is written as the exponential of a LogSoftmax.
struct ByLogarithms : Sketch {
  ByLogarithms() {
    const ValueId q = input("q", {2, 5, 4}), k = input("k", {2, 4, 6}), v = input("v", {2, 6, 4});
    const ValueId p = op("Exp", {op("LogSoftmax", {op("MatMul", {q, k})}, {{"axis", std::int64_t{-1}}})});
    finish({op("MatMul", {p, v})});
  }
};

TEST(AttentionPatterns, AFileAddsAForm) {
  const auto path = std::filesystem::temp_directory_path() / "stepscope_forms.pattern";
  std::ofstream(path) << "softmax = Exp(!LogSoftmax(s: scores) [axis = last])\n";
  const std::map<std::string, std::string, std::less<>> options{{"attention.patterns", path.string()}};
  ByLogarithms own, other;
  EXPECT_EQ(own.apply("fuse_attention").matches, 0u);
  EXPECT_EQ(other.apply("fuse_attention", options).matches, 1u);
  EXPECT_EQ(other.count("FusedAttention"), 1u);
  EXPECT_EQ(other.count("LogSoftmax"), 0u);
  EXPECT_EQ(other.apply("fuse_attention", options).matches, 0u);
  // A file that goes away after it was set is a warning, and the program's own forms go on.
  std::filesystem::remove(path);
  ByLogarithms third;
  const PassResult result = third.apply("fuse_attention", options);
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_NE(result.warnings[0].find("cannot be read"), std::string::npos);
}

TEST(AttentionPatterns, TheOptionReadsItsFileAtOnce) {
  TrainOptions options;
  const auto path = std::filesystem::temp_directory_path() / "stepscope_wrong.pattern";
  std::ofstream(path) << "rows = Relu(rosw)\n";
  const Status wrong = applySetting(options, "attention.patterns", path.string(), "test");
  std::filesystem::remove(path);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_TRUE(wrong.error().message.starts_with("option 'attention.patterns': ")) << wrong.error().message;
  EXPECT_NE(wrong.error().message.find("found name 'rosw'; expected a rule or one of q, k"), std::string::npos)
      << wrong.error().message;
  EXPECT_FALSE(applySetting(options, "attention.patterns", path.string(), "test").has_value());
  EXPECT_TRUE(applySetting(options, "attention.patterns", "", "test").has_value());
}

}  // namespace
}  // namespace stepscope
