// Loops written out: values and gradients of models whose answer is known by hand, and what is refused with which reason.
#include <gtest/gtest.h>

#include "tests/engine/passes/loop_text.h"

namespace stepscope::testing {
namespace {

TEST(UnrollLoops, CarriedValueGoesThroughEveryIteration) {
  // v = x · w³, as often as x has rows
  const auto step = smallStep(
      floats("w", {1}, {2}) + floats("x", {3, 1}, {1, 2, 3}) + kYes + node("Shape", "x", "count", attribute("end", 1)) +
          node("Loop", "count yes x", "y", body("i c v", node("Mul", "v w", "u") + node("Identity", "c", "d"), "d u")) +
          sum("y"),
      17, {"w", "x"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 48, 1e-4);
  EXPECT_NEAR(step->gradients.at("w")[0], 3 * 4 * 6, 1e-3);
  EXPECT_NEAR(step->gradients.at("x")[0], 8, 1e-4);
}

TEST(UnrollLoops, ConditionOfTheBodyIsFollowed) {
  // do { v *= w; n += 1 } while (n < 3)
  const std::string nodes = node("Mul", "v w", "u") + node("Add", "n one", "m") + node("Less", "m three", "d");
  const auto step =
      smallStep(floats("w", {1}, {2}) + kYes + ints("one", {}, {1}) + ints("three", {}, {3}) + ints("zero", {}, {0}) +
                    node("Loop", "_ yes zero w", "n_out y", body("i c n v", nodes, "d m u")) + sum("y"),
                17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 16, 1e-4);
  EXPECT_NEAR(step->gradients.at("w")[0], 32, 1e-3);
}

TEST(UnrollLoops, CollectedValuesAreStackedAndTheNumberCounts) {
  // y[i] = w · i, i = 0..3
  const std::string nodes =
      node("Cast", "i", "f", attribute("to", 1)) + node("Mul", "w f", "u") + node("Identity", "c", "d");
  const auto step =
      smallStep(floats("w", {1}, {5}) + kYes + ints("four", {}, {4}) + floats("scale", {4, 1}, {1, 10, 100, 1000}) +
                    node("Loop", "four yes", "y", body("i c", nodes, "d u")) + node("Mul", "y scale", "z") + sum("z"),
                17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->gradients.at("w")[0], 10 + 200 + 3000, 1e-2);
}

TEST(UnrollLoops, LoopsAndBranchesInALoopReadItsValues) {
  // Outer twice: v = v + inner(v), inner three times u = u · w reading v through both bodies; If adds v again where i == 0.
  const std::string branch = "attribute { name: \"then_branch\" type: GRAPH g { name: \"t\" " + node("Add", "p v", "q") +
                             " output { name: \"q\" } } } " +
                             "attribute { name: \"else_branch\" type: GRAPH g { name: \"e\" " + node("Identity", "p", "r") +
                             " output { name: \"r\" } } } ";
  const std::string inner =
      node("Loop", "three yes v", "u", body("j k a", node("Mul", "a w", "b") + node("Identity", "k", "l"), "l b"));
  const std::string nodes = inner + node("Add", "v u", "p") + node("Equal", "i zero", "first") +
                            node("If", "first", "s", branch) + node("Identity", "c", "d");
  const auto step =
      smallStep(floats("w", {1}, {2}) + floats("x", {1}, {1}) + kYes + ints("two", {}, {2}) + ints("three", {}, {3}) +
                    ints("zero", {}, {0}) + node("Loop", "two yes x", "y", body("i c v", nodes, "d s")) + sum("y"),
                17, {"w", "x"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  // (2 + w³) · (1 + w³) · x at w = 2
  EXPECT_NEAR(step->loss, 90, 1e-3);
  EXPECT_NEAR(step->gradients.at("w")[0], 12 * 9 + 12 * 10, 1e-2);
  EXPECT_NEAR(step->gradients.at("x")[0], 90, 1e-3);
}

TEST(UnrollLoops, SequenceGrowsInALoop) {
  const std::string nodes = node("Mul", "v w", "u") + node("SequenceInsert", "s u", "t") + node("Identity", "c", "d");
  const auto step = smallStep(floats("w", {1}, {3}) + kYes + ints("two", {}, {2}) +
                                  node("SequenceEmpty", "", "empty", attribute("dtype", 1)) +
                                  node("Loop", "two yes empty w", "parts last", body("i c s v", nodes, "d t u")) +
                                  node("ConcatFromSequence", "parts", "y", attribute("axis", 0)) + sum("y"),
                              17, {"w"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, 9 + 27, 1e-4);
  EXPECT_NEAR(step->gradients.at("w")[0], 6 + 27, 1e-3);
}

using Directions = std::vector<std::int64_t>;

TEST(UnrollLoops, ScanGoesBothWays) {
  for (const int backwards : {0, 1}) {
    // state = state · w + x[i]; the states come out in the order of the directions.
    const std::string nodes = node("Mul", "s w", "p") + node("Add", "p e", "t") + node("Identity", "t", "o");
    const std::string attributes = attribute("num_scan_inputs", 1) +
                                   attribute("scan_input_directions", Directions{backwards}) +
                                   attribute("scan_output_directions", Directions{backwards});
    const auto step = smallStep(
        floats("w", {}, {2}) + floats("x", {3}, {1, 10, 100}) + floats("zero", {}, {0}) + floats("scale", {3}, {1, 0, 0}) +
            node("Scan", "zero x", "end all", attributes + body("s e", nodes, "t o")) + node("Mul", "all scale", "z") +
            node("ReduceSum", "z", "first", attribute("keepdims", 0)) + node("Add", "first end", "loss"),
        17, {"x"});
    ASSERT_TRUE(step.has_value()) << step.error().message;
    const double end = backwards ? 4 * 100 + 2 * 10 + 1 : 4 * 1 + 2 * 10 + 100;
    EXPECT_NEAR(step->loss, backwards ? 2 * end : end + 1, 1e-3);
    EXPECT_NEAR(step->gradients.at("x")[2], backwards ? 8 : 1, 1e-4);
  }
}

TEST(UnrollLoops, RefusesToGrowWithoutBound) {
  const std::string multiply = body("i c v", node("Mul", "v w", "u") + node("Identity", "c", "d"), "d u");
  expectError(smallStep(floats("w", {1}, {2}) + kYes + ints("many", {}, {1000000000000}) +
                            node("Loop", "many yes w", "y", multiply) + sum("y"),
                        17, {}),
              "1000000000000 or more iterations of 2 nodes are more than the 65536 nodes");
  expectError(smallStep(floats("w", {1}, {2}) + kYes + node("Loop", "_ yes w", "y", multiply) + sum("y"), 17, {}),
              "it never ends");
  // The condition is always true, but only step by step does that show.
  const std::string alternating =
      body("i c v n", node("Mul", "v w", "u") + node("Or", "c n", "d") + node("Not", "n", "m"), "d u m");
  expectError(
      smallStep(floats("w", {1}, {2}) + kYes + node("Loop", "_ yes w yes", "y last", alternating) + sum("y"), 17, {}),
      "goes on after 128 iterations");
}

}  // namespace
}  // namespace stepscope::testing
