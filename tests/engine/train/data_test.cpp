// Synthetic extents and what files may hold.
#include "engine/train/data.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/data/safetensors.h"
#include "engine/train/synthetic_dims.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const Dim kBatch = Dim::symbol("batch"), kSequence = Dim::symbol("sequence");

Graph graphWith(const std::vector<std::pair<std::string, Shape>>& inputs, DType dtype = DType::kF32) {
  Graph graph;
  for (const auto& [name, shape] : inputs)
    graph.mutableInputs().push_back(graph.addValue(name, {ValueKind::kTensor, dtype, shape}, ValueRole::kInput));
  return graph;
}

std::map<std::string, Dims> extents(const Graph& graph, const std::map<std::string, std::int64_t>& dims = {}) {
  TrainOptions options;
  options.dims = dims;
  std::vector<std::string> notes;
  const auto data = openData(graph, options, builtInOperators(), &notes);
  EXPECT_TRUE(data.has_value()) << data.error().message;
  std::map<std::string, Dims> found;
  if (!data) return found;
  const auto batch = (*data)->batch(0);
  for (const auto& [name, tensor] : batch->arrays) found[name] = tensor.dims();
  return found;
}

TEST(SyntheticDims, ASymbolIsOneNumberWhereverItStands) {
  const auto graph = graphWith({{"positions", {kSequence}}, {"ids", {kBatch, kSequence}}, {"bias", {kSequence, kSequence}}});
  const auto found = extents(graph);
  EXPECT_EQ(found.at("ids"), (Dims{2, 128}));
  EXPECT_EQ(found.at("positions"), (Dims{128}));
  EXPECT_EQ(found.at("bias"), (Dims{128, 128}));
  EXPECT_EQ(extents(graph, {{"sequence", 5}}).at("bias"), (Dims{5, 5}));
}

// The numbers of a batch of integer inputs of the given names and shapes, beside features [batch, 80, frames] and tokens
// [batch, sequence].
std::map<std::string, std::vector<std::int64_t>> integersOf(const std::vector<std::pair<std::string, Shape>>& inputs,
                                                            double padding = 0) {
  Graph graph = graphWith({{"features", {kBatch, Dim(80), Dim::symbol("frames")}}, {"text", {kBatch, kSequence}}});
  for (const auto& [name, shape] : inputs)
    graph.mutableInputs().push_back(graph.addValue(name, {ValueKind::kTensor, DType::kI64, shape}, ValueRole::kInput));
  TrainOptions options;
  options.dims = {{"frames", 40}, {"sequence", 10}};
  options.padding = padding;
  const auto data = openData(graph, options, builtInOperators(), nullptr);
  EXPECT_TRUE(data.has_value()) << data.error().message;
  std::map<std::string, std::vector<std::int64_t>> found;
  if (!data) return found;
  const auto batch = (*data)->batch(0);
  for (const auto& [name, shape] : inputs)
    for (std::int64_t k = 0; k < batch->arrays.at(name).elements(); ++k)
      found[name].push_back(elementAsInt(batch->arrays.at(name).view(), k));
  return found;
}

TEST(SyntheticData, LengthsAreTheExtentThatTheyCount) {
  using Integers = std::vector<std::int64_t>;
  const auto found = integersOf({{"features_lens", {kBatch}},
                                 {"text_lengths", {kBatch}},
                                 {"text_seq_len", {kBatch, Dim(1)}},
                                 {"seq_lens", {kBatch}},
                                 {"length", {}},
                                 {"TextLength.1", {kBatch}}});
  EXPECT_EQ(found.at("features_lens"), (Integers{40, 40}));
  EXPECT_EQ(found.at("text_lengths"), (Integers{10, 10}));
  EXPECT_EQ(found.at("text_seq_len"), (Integers{10, 10}));
  EXPECT_EQ(found.at("seq_lens"), (Integers{40, 40})) << "of the first input that has an axis to count";
  EXPECT_EQ(found.at("length"), (Integers{40}));
  EXPECT_EQ(found.at("TextLength.1"), (Integers{40, 40})) << "names are compared as they are spelled";
  EXPECT_EQ(integersOf({{"text_lengths", {kBatch}}}, 0.3).at("text_lengths"), (Integers{7, 7})) << "without the padding";
  // Not one number per entry, or another word: zeros and ones.
  const auto others = integersOf({{"lengths", {kBatch, kSequence}}, {"lenses", {kBatch}}});
  for (const auto& [name, numbers] : others)
    for (const std::int64_t number : numbers) EXPECT_TRUE(number == 0 || number == 1) << name;
}

// The state of a recurrent layer is [layers, batch, size].
TEST(SyntheticDims, ABatchIsSmallOnWhicheverAxisItStands) {
  Graph graph;
  const ValueId state = graph.addValue(
      "state", {ValueKind::kTensor, DType::kF32, Shape{Dim(2), Dim::symbol("Batch_size"), Dim::symbol("size")}},
      ValueRole::kInput);
  const SyntheticDims dims(graph, {state}, {});
  EXPECT_EQ(*dims.extent("state", Dim::symbol("Batch_size")), 2);
  EXPECT_EQ(*dims.extent("state", Dim::symbol("size")), 128);
}

TEST(SyntheticDims, ExpressionsFollowFromTheirSymbols) {
  const auto graph =
      graphWith({{"x", {Dim(2) * kBatch, kSequence + 1, Dim(3) * kSequence}}, {"y", {kBatch, kSequence - 1}}});
  EXPECT_EQ(extents(graph).at("x"), (Dims{4, 129, 384}));
  EXPECT_EQ(extents(graph, {{"sequence", 6}, {"batch", 3}}).at("x"), (Dims{6, 7, 18}));
  EXPECT_EQ(extents(graph, {{"sequence", 6}}).at("y"), (Dims{2, 5}));
}

TEST(SyntheticDims, AnExtentMayBeSetByItsText) {
  const Dim half = Dim::floorDiv(kSequence, Dim(2));
  ASSERT_FALSE(half.known());
  const auto graph = graphWith({{"x", {kBatch, half}}});
  EXPECT_EQ(extents(graph, {{half.text(), 9}}).at("x"), (Dims{2, 9}));
}

TEST(SyntheticDims, WhatIsBelowZeroOrUnknownIsNamed) {
  TrainOptions options;
  options.dims = {{"sequence", 3}};
  const auto below = openData(graphWith({{"x", {kBatch, kSequence - 8}}}), options, builtInOperators(), nullptr);
  ASSERT_FALSE(below.has_value());
  EXPECT_EQ(below.error().message,
            "input 'x': extent sequence-8 is -5 with sequence = 3; expected 0 or more; hint: --dim NAME=N");
  const auto unknown = openData(graphWith({{"x", {kBatch}}}), options, builtInOperators(), nullptr);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "option 'dim': no input has a dimension 'sequence'");
}

TEST(SyntheticDims, SymbolsOfAPolynomial) {
  EXPECT_EQ(symbolsOf(Dim(3)), std::vector<std::string>{});
  EXPECT_EQ(symbolsOf(kBatch * kBatch + Dim(7)), std::vector<std::string>{"batch"});
  EXPECT_EQ(symbolsOf(Dim(3) * kSequence * kBatch - kSequence - 2), (std::vector<std::string>{"batch", "sequence"}));
  const Dim opaque = Dim::floorDiv(kSequence + 1, Dim(2));
  EXPECT_EQ(symbolsOf(opaque + kBatch), (std::vector<std::string>{"batch", opaque.text()}));
}

TEST(DataFile, IntegersThatTheInputCannotHoldAreRefused) {
  const TemporaryFolder folder;
  TrainOptions options;
  options.data = (folder.path() / "d.safetensors").string();
  const auto graph = graphWith({{"ids", {kBatch}}}, DType::kI32);
  const auto open = [&](std::vector<std::int64_t> values) {
    const Tensor tensor = Tensor::ints(values);
    EXPECT_TRUE(writeSafetensors(options.data, {{"ids", tensor.view()}}, {}).has_value());
    return openData(graph, options, builtInOperators(), nullptr);
  };
  const auto fits = open({1, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()});
  ASSERT_TRUE(fits.has_value()) << fits.error().message;
  EXPECT_EQ((*fits)->batch(0)->arrays.at("ids").as<std::int32_t>()[2], std::numeric_limits<std::int32_t>::max());
  const auto wraps = open({1, (std::int64_t{1} << 32) + 3});
  ASSERT_FALSE(wraps.has_value()) << "it would train with 3";
  EXPECT_NE(wraps.error().message.find("array 'ids': element [1] is 4294967299 of type int64; expected int32"),
            std::string::npos)
      << wraps.error().message;
}

}  // namespace
}  // namespace stepscope::testing
