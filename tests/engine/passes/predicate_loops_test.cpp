// Loops whose number of iterations is computed: values and gradients against what is known by hand, for numbers that follow
// from the batch's extents and for those that follow from its contents; the bound and what is said of it.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "tests/engine/passes/loop_text.h"

namespace stepscope::testing {
namespace {

using Directions = std::vector<std::int64_t>;

std::string input(const std::string& name, const std::string& dims, int type = 1) {
  std::string text = "input { name: \"" + name + "\" type { tensor_type { elem_type: " + std::to_string(type) + " shape { ";
  for (std::size_t at = 0; at < dims.size();) {
    const std::size_t end = std::min(dims.find(' ', at), dims.size());
    const std::string dim = dims.substr(at, end - at);
    text += std::isdigit(static_cast<unsigned char>(dim[0])) ? "dim { dim_value: " + dim + " } "
                                                             : "dim { dim_param: \"" + dim + "\" } ";
    at = end + 1;
  }
  return text + "} } } } ";
}

SmallStepOptions with(std::map<std::string, std::string> settings, std::vector<std::string> keep = {}) {
  return {1, std::move(settings), std::move(keep)};
}

// v ← w v + x[i] for the rows of x, v from 0: the recurrence of the layers that Keras writes as a loop.
const std::string kRecurrence =
    floats("w", {}, {0.5}) + floats("zero", {1}, {0}) + kYes + ints("first", {}, {0}) + node("Shape", "x", "extents") +
    node("Gather", "extents first", "count") +
    node("Loop", "count yes zero", "last all",
         body("i c v",
              node("Gather", "x i", "row") + node("Mul", "v w", "m") + node("Add", "m row", "u") +
                  node("Identity", "u", "o") + node("Identity", "c", "d"),
              "d u o"));

TEST(PredicateLoops, FollowTheExtentsOfTheBatch) {
  for (const int length : {1, 3, 6}) {
    const auto step =
        smallStep(input("x", "time 1") + kRecurrence + node("Add", "all last", "both") +
                      node("Mul", "both both", "squares") + sum("squares"),
                  17, {"w"}, with({{"dim", "time=" + std::to_string(length)}, {"train", "^w$"}}, {"x", "all"}));
    ASSERT_TRUE(step.has_value()) << length << ": " << step.error().message;
    std::vector<double> v, dv;  // and their slopes in w
    for (const double x : step->values.at("x")) {
      dv.push_back(v.empty() ? 0 : v.back() + 0.5 * dv.back());
      v.push_back(v.empty() ? x : 0.5 * v.back() + x);
    }
    double loss = 0, slope = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      loss += std::pow(v[i] + v.back(), 2);
      slope += 2 * (v[i] + v.back()) * (dv[i] + dv.back());
    }
    EXPECT_EQ(step->values.at("all").size(), static_cast<std::size_t>(length));
    EXPECT_NEAR(step->loss, loss, 1e-4);
    EXPECT_NEAR(step->gradients.at("w")[0], slope, 1e-4);
  }
}

// Of a number that the extents decide; of one that the data decide, all that are allowed stand there under predicates.
TEST(PredicateLoops, APlanHasTheIterationsOfItsBatchAndNoOthers) {
  const auto counted = [](const std::string& length) {
    return smallStep(input("x", "time 1") + kRecurrence + sum("all"), 17, {"w"}, with({{"dim", "time=" + length}}));
  };
  const auto two = counted("2"), four = counted("4"), six = counted("6");
  ASSERT_TRUE(two && four && six);
  EXPECT_EQ(two->conditional + four->conditional + six->conditional, 0u);
  EXPECT_EQ(six->instructions - four->instructions, four->instructions - two->instructions);
  EXPECT_LT(six->instructions, 6u * 12u);
}

TEST(PredicateLoops, FollowACountThatTheDataGive) {
  const std::string multiply = body("i c v", node("Mul", "v w", "u") + node("Identity", "c", "d"), "d u");
  const auto step = smallStep(floats("w", {1}, {2}) + kYes + node("Cast", "w", "count", attribute("to", 7)) +
                                  node("Loop", "count yes w", "y", multiply) + sum("y"),
                              17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 8, 1e-5);
  EXPECT_NEAR(step->gradients.at("w")[0], 12, 1e-4);
}

TEST(PredicateLoops, FollowAConditionThatTheDataGive) {
  // do v ← v w while v < 9
  const std::string multiply = body("i c v", node("Mul", "v w", "u") + node("Less", "u limit", "d"), "d u");
  const auto step =
      smallStep(floats("w", {1}, {2}) + floats("limit", {1}, {9}) + kYes + node("Loop", "_ yes w", "y", multiply) + sum("y"),
                17, {"w"}, with({{"train", "^w$"}}));
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 16, 1e-4);
  EXPECT_NEAR(step->gradients.at("w")[0], 32, 1e-3);
}

TEST(PredicateLoops, ACollectedValueIsAsLongAsTheLoopRan) {
  // v ← v w while it is below the limit; the sum of squares of what was collected, whatever its number.
  const std::string nodes = node("Mul", "v w", "u") + node("Less", "u limit", "d") + node("Mul", "u w", "o");
  for (const auto& [limit, values] : std::map<float, std::vector<double>>{{3, {8}}, {9, {8, 16, 32}}}) {
    const auto step = smallStep(floats("w", {1}, {2}) + floats("limit", {1}, {limit}) + kYes +
                                    node("Loop", "_ yes w", "y all", body("i c v", nodes, "d u o")) +
                                    node("Mul", "all all", "squares") + sum("squares"),
                                17, {"w"}, with({{"train", "^w$"}}, {"all"}));
    ASSERT_TRUE(step.has_value()) << step.error().message;
    EXPECT_EQ(step->values.at("all"), values);
    double slope = 0;  // of w^(2 (i + 3))
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double power = 2 * (static_cast<double>(i) + 3);
      slope += power * std::pow(2.0, power - 1);
    }
    EXPECT_NEAR(step->gradients.at("w")[0], slope, 1e-6 * slope);
  }
}

TEST(PredicateLoops, AStateMayGrow) {
  // s ← concat(s, w × its last element) while that is below the limit, as decoders keep what they wrote.
  const std::string nodes = node("Gather", "s minus", "end") + node("Mul", "end w", "next") +
                            node("Concat", "s next", "t", attribute("axis", 0)) + node("Less", "next limit", "d");
  const auto step = smallStep(floats("w", {1}, {2}) + floats("limit", {1}, {9}) + ints("minus", {1}, {-1}) + kYes +
                                  node("Loop", "_ yes w", "y", body("i c s", nodes, "d t")) + node("Mul", "y y", "squares") +
                                  sum("squares"),
                              17, {"w"}, with({{"train", "^w$"}}, {"y"}));
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->values.at("y"), (std::vector<double>{2, 4, 8, 16}));
  EXPECT_NEAR(step->gradients.at("w")[0], 2 * 2 + 4 * 8 + 6 * 32 + 8 * 128, 1e-2);
}

TEST(PredicateLoops, ScanGoesBothWays) {
  for (const int backwards : {0, 1}) {
    const std::string nodes = node("Mul", "s w", "p") + node("Add", "p e", "t") + node("Identity", "t", "o");
    const std::string attributes = attribute("num_scan_inputs", 1) +
                                   attribute("scan_input_directions", Directions{backwards}) +
                                   attribute("scan_output_directions", Directions{backwards});
    const auto step = smallStep(input("x", "time") + floats("w", {}, {2}) + floats("zero", {}, {0}) +
                                    node("Scan", "zero x", "end all", attributes + body("s e", nodes, "t o")) +
                                    node("Mul", "all x", "z") + sum("z"),
                                17, {"w"}, with({{"dim", "time=4"}, {"train", "^w$"}}, {"x", "all"}));
    ASSERT_TRUE(step.has_value()) << step.error().message;
    std::vector<double> x = step->values.at("x"), all;
    if (backwards != 0) std::reverse(x.begin(), x.end());
    double state = 0, slope = 0, loss = 0, dw = 0;
    for (const double e : x) {
      slope = state + 2 * slope;
      state = 2 * state + e;
      all.push_back(state);
      loss += state * e;
      dw += slope * e;
    }
    if (backwards != 0) std::reverse(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(step->values.at("all")[i], all[i], 1e-4);
    EXPECT_NEAR(step->loss, loss, 1e-3);
    EXPECT_NEAR(step->gradients.at("w")[0], dw, 1e-3);
  }
}

TEST(PredicateLoops, ALoopInALoopAndABranchInIt) {
  // for each row: v ← If(v < 3, w-th power by an inner loop as long as the row number, v); both counts are computed.
  const std::string inner =
      node("Loop", "j yes v", "u", body("k g a", node("Mul", "a w", "b") + node("Identity", "g", "h"), "h b"));
  const std::string branches = "attribute { name: \"then_branch\" type: GRAPH g { name: \"t\" " +
                               node("Add", "u one_f", "p") +
                               " output { name: \"p\" } } } attribute { name: \"else_branch\" type: GRAPH g { name: \"e\" " +
                               node("Identity", "u", "q") + " output { name: \"q\" } } } ";
  const std::string nodes = node("Add", "i start", "j") + inner + node("Less", "v three", "small") +
                            node("If", "small", "s", branches) + node("Identity", "c", "d");
  const auto step =
      smallStep(floats("w", {}, {2}) + floats("x", {}, {1}) + floats("three", {}, {3}) + floats("one_f", {}, {1}) + kYes +
                    node("Cast", "w", "count", attribute("to", 7)) + node("Cast", "x", "start", attribute("to", 7)) +
                    node("Loop", "count yes x", "y", body("i c v", nodes, "d s")) + node("Identity", "y", "loss"),
                17, {"w", "x"}, with({{"train", "^[wx]$"}, {"loop.max_iterations", "8"}}));
  ASSERT_TRUE(step.has_value()) << step.error().message;
  // v1 = x w + 1 = 3, v2 = v1 w² = 12
  EXPECT_NEAR(step->loss, 12, 1e-4);
  EXPECT_NEAR(step->gradients.at("w")[0], 1 * 4 + 3 * 2 * 2, 1e-3);
  EXPECT_NEAR(step->gradients.at("x")[0], 8, 1e-3);
}

TEST(PredicateLoops, MayRunNotAtAll) {
  const std::string nodes = node("Mul", "v w", "u") + node("Identity", "u", "o") + node("Identity", "c", "d");
  for (const bool computed : {false, true}) {
    const std::string count = computed ? node("Cast", "w", "count", attribute("to", 7)) : ints("count", {}, {0});
    const auto step = smallStep(floats("w", {1}, {0.5}) + kYes + count +
                                    node("Loop", "count yes w", "y all", body("i c v", nodes, "d u o")) +
                                    node("ReduceSum", "all", "s", attribute("keepdims", 0)) + node("Mul", "y y", "square") +
                                    node("Add", "square s", "t") + sum("t"),
                                17, {"w"}, with({{"train", "^w$"}}));
    ASSERT_TRUE(step.has_value()) << step.error().message;
    EXPECT_NEAR(step->loss, 0.25, 1e-6);
    EXPECT_NEAR(step->gradients.at("w")[0], 1, 1e-6);
  }
}

TEST(PredicateLoops, SayWhereTheBoundIs) {
  const std::string multiply = body("i c v", node("Mul", "v w", "u") + node("Less", "u limit", "d"), "d u");
  const std::string data =
      floats("w", {1}, {1.001f}) + floats("limit", {1}, {9}) + kYes + node("Loop", "_ yes w", "y", multiply) + sum("y");
  expectError(smallStep(data, 17, {}, with({{"train", "^w$"}})),
              "the loop goes on after 128 iterations; expected at most as many as the option loop.max_iterations says");
  expectError(smallStep(data, 17, {}, with({{"train", "^w$"}, {"loop.max_iterations", "5"}})), "after 5 iterations");
  const std::string extents = input("x", "time 1") + kRecurrence + sum("all");
  expectError(smallStep(extents, 17, {}, with({{"dim", "time=9"}, {"loop.max_iterations", "8"}})), "after 8 iterations");
  EXPECT_TRUE(smallStep(extents, 17, {}, with({{"dim", "time=200"}, {"loop.max_iterations", "200"}})).has_value());
  expectError(smallStep(extents, 17, {}, with({{"loop.max_iterations", "0"}})), "loop.max_iterations");
}

// The first loops take the room that there is.
TEST(PredicateLoops, SayHowManyIterationsOfManyLoopsFit) {
  const std::string multiply = body("i c v", node("Mul", "v w", "u") + node("Less", "u limit", "d"), "d u");
  std::string graph = floats("w", {1}, {1.001f}) + floats("limit", {1}, {9}) + kYes, results;
  for (int loop = 0; loop < 16; ++loop) {
    const std::string y = "y" + std::to_string(loop);
    graph += node("Loop", "_ yes w", y, multiply);
    results += y + " ";
  }
  graph += node("Sum", results, "s") + sum("s");
  expectError(smallStep(graph, 17, {}, with({{"train", "^w$"}, {"loop.max_iterations", "60000"}})),
              "hint: --set loop.max_iterations=273 leaves room for all loops (left: 15)");
}

// Of every iteration the gradient keeps v and the slope's operand, and `all` its part: some multiple of 4 bytes each.
TEST(PredicateLoops, SayWhatTheyKeepBeforeItIsAllocated) {
  const std::string extents = input("x", "time 1") + kRecurrence + sum("all");
  const auto within = [&](const std::string& time, const std::string& most) {
    return smallStep(extents, 17, {}, with({{"dim", "time=" + time}, {"train", "^w$"}, {"loop.max_memory", most}}));
  };
  EXPECT_TRUE(within("50", "0").has_value());
  EXPECT_TRUE(within("50", "1 KiB").has_value());
  expectError(within("50", "100"), "Loop 'Loop_last': 50 iterations keep ");
  expectError(within("50", "100"), " bytes; expected at most 100, the option loop.max_memory");
  EXPECT_TRUE(within("3", "100").has_value()) << "iterations that do not run keep nothing";
  expectError(within("3", "a lot"), "loop.max_memory");
  // A number that the data decide: all that may run count. Extents that grow count as 1.
  const std::string nodes = node("Gather", "s minus", "end") + node("Mul", "end w", "next") +
                            node("Concat", "s next", "t", attribute("axis", 0)) + node("Less", "next limit", "d");
  const std::string grows = floats("w", {1}, {2}) + floats("limit", {1}, {9}) + ints("minus", {1}, {-1}) + kYes +
                            node("Loop", "_ yes w", "y", body("i c s", nodes, "d t")) + node("Mul", "y y", "squares") +
                            sum("squares");
  expectError(smallStep(grows, 17, {}, with({{"train", "^w$"}, {"loop.max_iterations", "20"}, {"loop.max_memory", "8"}})),
              "Loop 'Loop_y': 20 iterations keep at least ");
}

}  // namespace
}  // namespace stepscope::testing
