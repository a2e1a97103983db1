// Gradients that a model writes down itself (CustomGradient), and buffers that its forward pass writes.
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "engine/train/session.h"
#include "tests/engine/autodiff/slopes.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<double>;

const char* const kOurs = "domain: \"stepscope\"";

std::string ours(const std::string& op, const std::string& inputs, const std::string& outputs) {
  return node(op, inputs, outputs, kOurs);
}

// y = CustomGradient of `y` and `x`, where `backward` makes d of g.
std::string custom(const std::string& y, const std::string& x, const std::string& backward, const std::string& out) {
  return ours("StopGradient", y, y + "_fixed") + ours("GradientOf", y + "_fixed", "g") + backward +
         ours("CustomGradient", y + "_fixed g " + x + " d", out);
}

TEST(CustomGradient, WhatTheModelSaysCountsAndNotTheSlope) {
  // y = sign(w), d = 3 g w: a straight-through estimator that reads what the forward pass saved.
  const auto step =
      smallStep(floats("w", {2}, {2, -5}) + floats("k", {2}, {7, 11}) + floats("three", {1}, {3}) + node("Sign", "w", "s") +
                    custom("s", "w", node("Mul", "g w", "gw") + node("Mul", "gw three", "d"), "y") +
                    node("Mul", "y k", "p") + sumOf("p"),
                18, {"w", "k"}, {1, {{"freeze", "^three$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->loss, 7 - 11);
  EXPECT_EQ(step->gradients.at("w"), (Numbers{3 * 7 * 2, 3 * 11 * -5}));
  EXPECT_EQ(step->gradients.at("k"), (Numbers{1, -1}));
}

TEST(CustomGradient, IsAddedToWhatArrivesOnOtherWays) {
  // loss = sum(reversed(w) k + w): -k and 1.
  const auto step = smallStep(floats("w", {2}, {2, -5}) + floats("k", {2}, {7, 11}) + node("Identity", "w", "i") +
                                  custom("i", "w", node("Neg", "g", "d"), "y") + node("Mul", "y k", "p") +
                                  node("Add", "p w", "q") + sumOf("q"),
                              18, {"w"}, {1, {{"freeze", "^k$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("w"), (Numbers{1 - 7, 1 - 11}));
}

TEST(CustomGradient, SeveralArgumentsFormAChain) {
  // y = a b with gradients of its own: 2 g to a, 10 g to b.
  const auto step = smallStep(floats("a", {2}, {2, 3}) + floats("b", {2}, {5, 7}) + floats("two", {1}, {2}) +
                                  floats("ten", {1}, {10}) + node("Mul", "a b", "ab") +
                                  custom("ab", "a", node("Mul", "g two", "d") + node("Mul", "g ten", "e"), "y1") +
                                  ours("CustomGradient", "y1 g b e", "y2") + sumOf("y2"),
                              18, {"a", "b"}, {1, {{"freeze", "^(two|ten)$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->loss, 31);
  EXPECT_EQ(step->gradients.at("a"), (Numbers{2, 2}));
  EXPECT_EQ(step->gradients.at("b"), (Numbers{10, 10}));
}

TEST(CustomGradient, TheStandInIsNoConstantEvenWhereTheValueIs) {
  // y is a constant of the file; its gradient goes to w all the same.
  const auto step =
      smallStep(floats("w", {2}, {2, -5}) + floats("k", {2}, {7, 11}) +
                    node("Constant", "", "c", "attribute { name: \"value_floats\" type: FLOATS floats: 1 floats: 4 }") +
                    custom("c", "w", node("Neg", "g", "d"), "y") + node("Mul", "y k", "p") + sumOf("p"),
                18, {"w"}, {1, {{"freeze", "^k$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->gradients.at("w"), (Numbers{-7, -11}));
}

TEST(CustomGradient, WhatOnlyStandsForAGradientIsNotPlanned) {
  const std::string plain = floats("w", {2}, {2, -5}) + node("Identity", "w", "i");
  // Each node by itself: a sum would take the Neg before it along, but not one behind a CustomGradient.
  const testing::SmallStepOptions apart{1, {{"pass.fuse_pointwise", "off"}}, {}};
  const auto without = smallStep(plain + node("Neg", "i", "y") + sumOf("y"), 18, {"w"}, apart);
  const auto with =
      smallStep(plain + node("Neg", "i", "n") + custom("n", "w", node("Exp", "g", "d"), "y") + sumOf("y"), 18, {"w"}, apart);
  ASSERT_TRUE(without && with);
  EXPECT_EQ(with->gradients.at("w"), (Numbers(2, std::exp(1.0F))));
  EXPECT_LE(with->instructions, without->instructions + 2);
}

// A counter and an average that the file says are written: stepscope.update.N.state and .next.
TEST(StateOfTheModel, BuffersThatTheForwardPassWritesAreCommitted) {
  const std::string graph = floats("w", {2}, {1, 1}) + floats("average", {2}, {0, 0}) + floats("half", {1}, {0.5F}) +
                            floats("data", {2}, {8, 4}) + ints("seen", {}, {0}) + ints("one", {}, {1}) +
                            node("Add", "seen one", "seen.next") + node("Sub", "data average", "far") +
                            node("Mul", "far half", "part") + node("Add", "average part", "average.next") +
                            node("Cast", "seen.next", "count", attribute("to", 1)) + node("Mul", "w count", "wc") +
                            node("Mul", "wc average.next", "p") + sumOf("p");
  onnx::ModelProto model;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "ir_version: 8 opset_import { version: 18 } graph { name: \"g\" " + graph +
          "output { name: \"loss\" type { tensor_type { elem_type: 1 shape { } } } } }",
      &model));
  int number = 0;
  for (const char* name : {"seen", "average"}) {
    const std::string key = "stepscope.update." + std::to_string(number++);
    for (const auto& [part, value] :
         {std::pair{".state", std::string(name)}, std::pair{".next", std::string(name) + ".next"}}) {
      auto& entry = *model.add_metadata_props();
      entry.set_key(key + part);
      entry.set_value(value);
    }
  }
  const TemporaryFolder folder;
  TrainOptions options;
  for (const auto& [name, value] : {std::pair{"loss", "loss"}, {"freeze", "^(average|half|data)$"}, {"lr", "0"}})
    ASSERT_TRUE(applySetting(options, name, value, "test"));
  auto session = Session::open(folder.write("model.onnx", model.SerializeAsString()), {}, {});
  ASSERT_TRUE(session) << session.error().message;
  ASSERT_TRUE((*session)->setOptions(options));
  ASSERT_TRUE((*session)->build());
  Numbers losses;
  for (int i = 0; i < 3; ++i) {
    const auto record = (*session)->step();
    ASSERT_TRUE(record) << record.error().message;
    losses.push_back(record->loss());
  }
  // count 1, 2, 3 times the sum of the average: 6, 9, 10.5.
  EXPECT_EQ(losses, (Numbers{6, 18, 31.5}));
  const auto state = (*session)->trained().named(true);
  ASSERT_TRUE(state.contains("seen"));
  EXPECT_EQ(elementAsInt(state.at("seen"), 0), 3);
}

// Embedding with max_norm: the forward pass shortens rows of a parameter, and the optimizer goes on from there.
TEST(StateOfTheModel, AnUpdateStartsFromWhatTheForwardPassMadeOfItsParameter) {
  const std::string graph = floats("w", {2}, {4, 1}) + floats("two", {1}, {2}) + node("Min", "w two", "w.next") + sumOf("w");
  onnx::ModelProto model;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "ir_version: 8 opset_import { version: 18 } graph { name: \"g\" " + graph +
          "output { name: \"loss\" type { tensor_type { elem_type: 1 shape { } } } } }",
      &model));
  for (const auto& [part, value] : {std::pair{"state", "w"}, {"next", "w.next"}}) {
    auto& entry = *model.add_metadata_props();
    entry.set_key(std::string("stepscope.update.0.") + part);
    entry.set_value(value);
  }
  const TemporaryFolder folder;
  TrainOptions options;
  for (const auto& [name, value] : {std::pair{"loss", "loss"}, {"train", "^w$"}, {"optimizer", "sgd"}, {"lr", "0.5"}})
    ASSERT_TRUE(applySetting(options, name, value, "test"));
  auto session = Session::open(folder.write("model.onnx", model.SerializeAsString()), {}, {});
  ASSERT_TRUE(session) << session.error().message;
  ASSERT_TRUE((*session)->setOptions(options));
  ASSERT_TRUE((*session)->build());
  ASSERT_TRUE((*session)->step());
  const auto state = (*session)->trained().named(true);
  EXPECT_EQ(elementAsDouble(state.at("w"), 0), 1.5);  // min(4, 2) - 0.5
  EXPECT_EQ(elementAsDouble(state.at("w"), 1), 0.5);
  const auto written = [](const snapshot::Alert& alert) { return alert.code() == "parameter_written"; };
  EXPECT_TRUE(std::ranges::none_of((*session)->alerts(), written));

  // Where a micro step has no update, what the forward pass made of the parameter is lost: that is said.
  ASSERT_TRUE(applySetting(options, "accumulate", "2", "test"));
  auto accumulating = Session::open(folder.path() / "model.onnx", {}, {});
  ASSERT_TRUE(accumulating) << accumulating.error().message;
  ASSERT_TRUE((*accumulating)->setOptions(options));
  ASSERT_TRUE((*accumulating)->build());
  const auto alert = std::ranges::find_if((*accumulating)->alerts(), written);
  ASSERT_NE(alert, (*accumulating)->alerts().end());
  EXPECT_NE(alert->message().find("parameter 'w'"), std::string::npos) << alert->message();
}

}  // namespace
}  // namespace stepscope::testing
