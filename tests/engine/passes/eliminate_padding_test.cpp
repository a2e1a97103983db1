// eliminate_padding: an encoder computes the same loss on the tokens that count alone; what is kept of a batch; which
// condition a near miss names. Gradients: tests/engine/train/eliminate_padding_test.cpp and passes_on_models_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/build/kept_rows.h"
#include "engine/passes/token_flow.h"
#include "tests/engine/passes/sketch.h"

namespace stepscope {
namespace {

using testing::Ints;
using testing::Sketch;

Tensor grid(const Ints& numbers, std::int64_t rows) {
  return Tensor::ints(numbers).reshaped({rows, static_cast<std::int64_t>(numbers.size()) / rows});
}

const KeptRows kKept{"ids.kept_tokens", "mask", 0, true, {{"labels", -100}}};

std::vector<std::int64_t> keptOf(const Batch& batch, std::int64_t extent) {
  const auto rows = rowsOf(kKept, batch, extent);
  EXPECT_TRUE(rows.has_value()) << (rows ? "" : rows.error().message);
  return rows ? Ints(rows->as<std::int64_t>().begin(), rows->as<std::int64_t>().end()) : Ints{};
}

TEST(KeptTokens, AreThoseUnderTheMaskThoseWithLabelsAndTheFirstOfEveryRow) {
  Batch batch;
  batch.arrays["mask"] = grid({1, 1, 0, 0, 0, 1, 1, 0}, 2);
  batch.arrays["labels"] = grid({-100, 5, -100, 3, -100, -100, 2, -100}, 2);
  EXPECT_EQ(keptOf(batch, 7), (Ints{0, 1, 3, 4, 5, 6, 7}));
  EXPECT_EQ(neededRows(kKept, batch), 6);
}

TEST(KeptTokens, OfARowThatIsMaskedAltogetherAreAllWhereALabelCounts) {
  Batch batch;
  batch.arrays["mask"] = grid({0, 0, 0, 0, 1, 1, 0, 0}, 2);
  batch.arrays["labels"] = grid({-100, 5, -100, -100, -100, -100, -100, -100}, 2);
  EXPECT_EQ(keptOf(batch, 6), (Ints{0, 1, 2, 3, 4, 5}));
  batch.arrays["labels"] = grid(Ints(8, -100), 2);
  EXPECT_EQ(keptOf(batch, 3), (Ints{0, 4, 5}));
}

// Embeddings of words, kinds and positions, one layer of attention with its norms, and a head with a loss.
struct Encoder : Sketch {
  static constexpr std::int64_t kBatch = 2, kLength = 4, kSize = 6, kHeads = 2, kWords = 9;
  ValueId ids = ints64("ids"), kinds = ints64("kinds"), mask = ints64("mask"), labels = ints64("labels");
  ValueId words = input("words", {kWords, kSize}), kindTable = input("kindTable", {2, kSize}),
          places = input("places", {1, kLength, kSize}), wq = input("wq", {kSize, kSize}), wk = input("wk", {kSize, kSize}),
          wv = input("wv", {kSize, kSize}), wo = input("wo", {kSize, kSize}), scale = input("scale", {kSize}),
          bias = input("bias", {kSize}), head = input("head", {kSize, kWords});
  InputDensity density{"ids", 4, kBatch* kLength, "tokens", "mask", 0};
  InputDensity counted{"labels", 2, kBatch* kLength, "labels", "", -100};

  ValueId ints64(const char* name) {
    const ValueId id = graph.addValue(name, {ValueKind::kTensor, DType::kI64, Shape{kBatch, kLength}}, ValueRole::kInput);
    graph.mutableInputs().push_back(id);
    return id;
  }
  ValueId embedded() {
    const ValueId sum = op("Add", {op("Gather", {words, ids}), op("Gather", {kindTable, kinds})});
    return op("LayerNormalization", {op("Add", {sum, places}), scale, bias}, {{"axis", std::int64_t{-1}}});
  }
  ValueId heads(ValueId x, ValueId w, Ints perm) {
    return op("Transpose", {op("Reshape", {op("Add", {op("MatMul", {x, w}), bias}), ints({0, 0, kHeads, -1})})},
              {{"perm", std::move(perm)}});
  }
  // (1 - mask) · -3e38 [B, 1, 1, S]
  ValueId lowWherePadded() {
    const ValueId wide = op("Cast", {op("Unsqueeze", {mask, ints({1, 2})})}, {{"to", std::int64_t{1}}});
    return op("Mul", {op("Sub", {constant(1), wide}), constant(-3e38)});
  }
  ValueId attention(ValueId x, const std::function<ValueId(ValueId)>& masked) {
    const ValueId scores = op("MatMul", {heads(x, wq, {0, 2, 1, 3}), heads(x, wk, {0, 2, 3, 1})});
    const ValueId p = op("Softmax", {masked(op("Div", {scores, constant(1.7)}))}, {{"axis", std::int64_t{-1}}});
    const ValueId context = op("Transpose", {op("MatMul", {p, heads(x, wv, {0, 2, 1, 3})})}, {{"perm", Ints{0, 2, 1, 3}}});
    const ValueId joined = op("MatMul", {op("Reshape", {context, ints({0, 0, kSize})}), wo});
    return op("LayerNormalization", {op("Add", {joined, x}), scale, bias}, {{"axis", std::int64_t{-1}}});
  }
  ValueId layer(ValueId x) {
    const ValueId low = lowWherePadded();
    return attention(x, [&](ValueId scores) { return op("Add", {scores, low}); });
  }
  ValueId lossOf(ValueId hidden, Attributes attrs = {{"ignore_index", std::int64_t{-100}}}) {
    const ValueId scores = op("Reshape", {op("MatMul", {hidden, head}), ints({-1, kWords})});
    return op("SoftmaxCrossEntropyLoss", {scores, op("Reshape", {labels, ints({-1})})}, std::move(attrs));
  }

  static Batch batch() {
    Batch batch;
    batch.arrays["ids"] = grid({3, 5, 1, 1, 7, 2, 8, 1}, 2);
    batch.arrays["kinds"] = grid({0, 1, 0, 0, 1, 1, 0, 0}, 2);
    batch.arrays["mask"] = grid({1, 1, 0, 0, 1, 1, 1, 0}, 2);
    batch.arrays["labels"] = grid({-100, 4, -100, -100, 2, -100, -100, -100}, 2);
    return batch;
  }
  double value() {
    Interpreter interpreter(graph, builtInOperators(), Backend::kReference);
    const Batch given = batch();
    for (const ValueId id : graph.inputs()) {
      const std::string& name = graph.value(id).name;
      if (const auto it = given.arrays.find(name); it != given.arrays.end()) {
        EXPECT_TRUE(interpreter.feed(id, it->second).has_value());
      } else if (name == "ids.kept_tokens") {
        auto rows = rowsOf(kKept, given, 6);  // one of them padded
        EXPECT_TRUE(rows.has_value() && interpreter.feed(id, *rows).has_value());
      } else {
        Tensor tensor(DType::kF32, *knownDims(*graph.value(id).type.shape));
        for (std::int64_t i = 0; i < tensor.elements(); ++i)
          tensor.as<float>()[static_cast<std::size_t>(i)] =
              static_cast<float>(std::sin(1.3 * static_cast<double>(i) + name[0] + 3 * name[1]));
        EXPECT_TRUE(interpreter.feed(id, tensor).has_value());
      }
    }
    const Status status = interpreter.run();
    EXPECT_TRUE(status.has_value()) << status.error().message;
    return status ? elementAsDouble(interpreter.value(graph.outputs()[0])->view(), 0) : 0;
  }

  PassResult run(std::string_view name = "eliminate_padding") {
    for (const PassList& list : pipeline())
      for (const Pass& pass : list.passes)
        if (pass.name == name) {
          PassContext context(*inference);
          context.batch = {density, counted};
          const Status status = pass.run(graph, context);
          EXPECT_TRUE(status.has_value()) << status.error().message;
          EXPECT_TRUE(graph.verify().empty());
          return context.result;
        }
    ADD_FAILURE() << "no pass";
    return {};
  }
  void expectSame(std::string_view what) {
    const double before = value();
    const PassResult result = run();
    EXPECT_EQ(result.matches, 1u) << what << ": " << (result.nearMisses.empty() ? "" : result.nearMisses[0].condition);
    EXPECT_NEAR(value(), before, 2e-5) << what;
    const std::uint64_t version = graph.version();
    EXPECT_EQ(run().matches, 0u) << what;  // there is nothing left to do
    EXPECT_EQ(graph.version(), version);
  }
  void expectMiss(std::string_view reason) {
    const std::uint64_t version = graph.version();
    const PassResult result = run();
    EXPECT_EQ(result.matches, 0u) << reason;
    ASSERT_EQ(result.nearMisses.size(), 1u) << reason;
    EXPECT_NE(result.nearMisses[0].condition.find(reason), std::string::npos) << result.nearMisses[0].condition;
    EXPECT_EQ(graph.version(), version);
  }
};

TEST(EliminatePadding, EveryProductButThoseOfAttentionWorksOnTheTokensThatCount) {
  Encoder s;
  s.finish({s.lossOf(s.layer(s.layer(s.embedded())))});
  s.expectSame("two layers");
  std::size_t rows = 0;
  for (const NodeId id : s.graph.order())
    if (const Node& node = s.graph.node(id); node.op == "MatMul")
      rows += s.graph.value(node.output(0)).type.text().starts_with("float32[ids.kept_tokens") ? 1 : 0;
  EXPECT_EQ(rows, 9u);                // four of each layer, and the head
  EXPECT_EQ(s.count("MatMul"), 13u);  // and two of each attention
  EXPECT_EQ(s.count("PadAndUnflatten"), 6u);
  EXPECT_EQ(s.graph.value(s.only("SoftmaxCrossEntropyLoss").input(0)).type.text(), "float32[ids.kept_tokens, 9]");
}

TEST(EliminatePadding, FusedAttentionLeavesOutQueriesBehindTheLastToken) {
  Encoder s;
  s.finish({s.lossOf(s.layer(s.layer(s.embedded())))});
  const double before = s.value();
  EXPECT_EQ(s.run().matches, 1u);
  const PassResult fused = s.run("fuse_attention");
  EXPECT_EQ(fused.matches, 2u);
  EXPECT_EQ(fused.notes, (std::vector<std::string>{"2 of them leave out what stands behind the last token of each row"}));
  ASSERT_EQ(s.count("FusedAttention"), 2u);
  EXPECT_EQ(s.graph.value(s.only("FusedAttention").input(4)).name, "ids.kept_tokens");
  EXPECT_NEAR(s.value(), before, 2e-5);
}

// Somebody looks at all rows: all are computed.
TEST(EliminatePadding, FusedAttentionKeepsQueriesWhoseResultsAreReadWhole) {
  Encoder s;
  s.finish({s.lossOf(s.layer(s.embedded()))});
  EXPECT_EQ(s.run().matches, 1u);
  for (const NodeId id : s.graph.order())
    if (const Node& node = s.graph.node(id); node.op == "FlattenAndUnpad")
      if (producerOf(s.graph, node.input(0), "Transpose")) s.graph.mutableOutputs().push_back(node.input(0));
  ASSERT_EQ(s.graph.outputs().size(), 2u);
  EXPECT_EQ(s.run("fuse_attention").matches, 1u);
  EXPECT_EQ(s.only("FusedAttention").inputs.size(), 4u);
}

// Scores in float16, and a Cast to float32 that the loss does by itself (pass fuse_cross_entropy).
TEST(EliminatePadding, TheLossThatAbsorbedACast) {
  Encoder s;
  const ValueId scores = s.op("Reshape", {s.op("MatMul", {s.layer(s.embedded()), s.head}), s.ints({-1, Encoder::kWords})});
  const ValueId low = s.op("Cast", {scores}, {{"to", std::int64_t{10}}}),
                wide = s.op("Cast", {low}, {{"to", std::int64_t{1}}});
  s.finish({s.op("SoftmaxCrossEntropyLoss", {wide, s.op("Reshape", {s.labels, s.ints({-1})})},
                 {{"ignore_index", std::int64_t{-100}}})});
  ASSERT_EQ(s.run("fuse_cross_entropy").matches, 1u);
  s.expectSame("float16 scores");
  EXPECT_EQ(s.graph.value(s.only("SoftmaxCrossEntropyLossInternal").input(0)).type.text(), "float16[ids.kept_tokens, 9]");
}

// Masks are those of the places: the loss is the same.
TEST(EliminatePadding, ADropoutOfHiddenStatesWorksOnTheTokensThatCount) {
  Encoder s;
  const auto dropped = [&](ValueId x) {
    const ValueId on = s.graph.addConstant("on", Tensor::scalar(DType::kBool, 1));
    const ValueId y = s.op("Dropout", {x, s.constant(0.5), on});
    s.graph.mutableNode(s.graph.value(y).producer).provenance.imported = s.graph.value(y).producer;
    return y;
  };
  const ValueId first = s.layer(dropped(s.embedded()));
  s.finish({s.lossOf(dropped(s.op("Reshape", {first, s.ints({-1, Encoder::kSize})})))});
  s.expectSame("Dropout");
  EXPECT_EQ(s.count("Dropout"), 0u);
  EXPECT_EQ(s.count("DropoutPart"), 2u);
  EXPECT_EQ(s.count("PadAndUnflatten"), 3u) << "in front of attention alone";
}

TEST(EliminatePadding, AMaskMaySelect) {
  Encoder s;
  const ValueId wide = s.op("Cast", {s.op("Unsqueeze", {s.mask, s.ints({1, 2})})}, {{"to", std::int64_t{9}}});
  const ValueId low = s.constant(-1e30);
  s.finish({s.lossOf(s.attention(s.embedded(), [&](ValueId scores) { return s.op("Where", {wide, scores, low}); }))});
  s.expectSame("Where");
}

// Q11: sums and means over features, with the axis kept and without.
TEST(EliminatePadding, Q11_AMeanWithoutItsAxisHasTheRowsThatCount) {
  Encoder s;
  const ValueId x = s.embedded();
  const ValueId mean = s.op("ReduceMean", {x, s.ints({2})}, {{"keepdims", std::int64_t{0}}});
  const ValueId wide = s.op("Unsqueeze", {mean, s.ints({2})});
  s.finish({s.lossOf(s.layer(s.op("Sub", {x, wide})))});
  s.expectSame("mean");
  EXPECT_EQ(s.graph.value(s.only("ReduceMean").output(0)).type.text(), "float32[ids.kept_tokens]");
}

// Q12: axes that are an input and not known.
TEST(EliminatePadding, Q12_AMeanAlongUnknownAxesIsRefused) {
  Encoder s;
  const ValueId axes = s.graph.addValue("axes", {ValueKind::kTensor, DType::kI64, Shape{1}}, ValueRole::kInput);
  s.graph.mutableInputs().push_back(axes);
  const ValueId x = s.embedded();
  s.finish({s.lossOf(s.layer(s.op("Sub", {x, s.op("ReduceMean", {x, axes})})))});
  s.expectMiss("its axes are not known");
}

TEST(EliminatePadding, TheFirstTokenOfEveryRowMayBePicked) {
  Encoder s;
  const ValueId first = s.op("Gather", {s.layer(s.embedded()), s.graph.addConstant("i", Tensor::scalar(DType::kI64, 0))},
                             {{"axis", std::int64_t{1}}});
  s.finish({s.op("ReduceSum", {s.op("Tanh", {s.op("MatMul", {first, s.head})})}, {{"keepdims", std::int64_t{0}}})});
  s.expectSame("classifier");
}

TEST(EliminatePadding, AMeanOverTokensUnderTheirMaskIsTheSame) {
  Encoder s;
  const ValueId wide = s.op("Cast", {s.op("Unsqueeze", {s.mask, s.ints({2})})}, {{"to", std::int64_t{1}}});
  const ValueId pooled =
      s.op("ReduceSum", {s.op("Mul", {s.layer(s.embedded()), wide}), s.ints({1})}, {{"keepdims", std::int64_t{0}}});
  s.finish({s.op("ReduceSum", {s.op("Tanh", {s.op("MatMul", {pooled, s.head})})}, {{"keepdims", std::int64_t{0}}})});
  s.expectSame("pooled");
}

TEST(EliminatePadding, WithoutAMaskInputTheIdsAreComparedWithThePaddingValue) {
  Encoder s;
  s.density.mask = "";
  s.density.ignored = 1;
  const ValueId padded = s.op("Equal", {s.ids, s.graph.addConstant("one", Tensor::scalar(DType::kI64, 1))});
  const ValueId wide = s.op("Unsqueeze", {padded, s.ints({1, 2})});
  const ValueId low = s.constant(-1e30);
  s.finish({s.lossOf(s.attention(s.embedded(), [&](ValueId scores) { return s.op("Where", {wide, low, scores}); }))});
  EXPECT_EQ(s.run().matches, 1u);
}

TEST(EliminatePadding, NearMissesOfTheBatch) {
  {
    Encoder s;
    s.density.dense = "87.5 % of the tokens count";
    s.finish({s.lossOf(s.layer(s.embedded()))});
    s.expectMiss("87.5 % of the tokens count");
  }
  {
    Encoder s;
    s.density.kind = "mask";
    s.finish({s.lossOf(s.layer(s.embedded()))});
    s.expectMiss("no batch says which tokens are padding");
  }
  {
    Encoder s;
    s.counted.elements = 3;
    s.finish({s.lossOf(s.layer(s.embedded()))});
    s.expectMiss("its labels are no input with one for every token");
  }
}

TEST(EliminatePadding, NearMissesOfTheGraph) {
  {
    Encoder s;
    s.finish({s.lossOf(s.attention(s.embedded(), [](ValueId scores) { return scores; }))});
    s.expectMiss("does not mask padded tokens");
  }
  {
    Encoder s;
    const ValueId x = s.layer(s.embedded());
    s.finish(
        {s.op("ReduceSum", {s.op("MatMul", {s.op("ReduceMean", {x, s.ints({1})}, {{"keepdims", std::int64_t{0}}}), s.head})},
              {{"keepdims", std::int64_t{0}}})});
    s.expectMiss("sums over padded tokens");
  }
  {
    Encoder s;
    const ValueId x = s.layer(s.embedded());
    const ValueId last =
        s.op("Gather", {x, s.graph.addConstant("i", Tensor::scalar(DType::kI64, 2))}, {{"axis", std::int64_t{1}}});
    s.finish({s.op("ReduceSum", {last}, {{"keepdims", std::int64_t{0}}})});
    s.expectMiss("picks tokens by their positions");
  }
  {
    Encoder s;
    const ValueId x = s.layer(s.embedded());
    const ValueId moved = s.op("Slice", {x, s.ints({0}), s.ints({3}), s.ints({1})});
    s.finish({s.op("ReduceSum", {moved}, {{"keepdims", std::int64_t{0}}})});
    s.expectMiss("takes the tokens apart by their positions");
  }
  {
    Encoder s;
    s.finish({s.lossOf(s.layer(s.embedded()), {})});
    s.expectMiss("the loss ignores no label");
  }
  {
    Encoder s;
    const ValueId x = s.layer(s.embedded());
    s.finish({s.lossOf(x), x});
    s.expectMiss("is an output or is watched");
  }
  {
    Encoder s;
    s.finish({s.lossOf(s.op("CumSum", {s.layer(s.embedded()), s.ints({1})}))});
    s.expectMiss("reads padded tokens");
  }
}

// Q13: the padding value is compared as a number, whatever integer type it has.
TEST(EliminatePadding, Q13_APaddingValueOfInt32IsReadByItsType) {
  Encoder s;
  s.density.mask = "";
  s.density.ignored = 1;
  s.graph.mutableValue(s.ids).type.dtype = DType::kI32;
  const ValueId padded = s.op("Equal", {s.ids, s.graph.addConstant("one", Tensor::scalar(DType::kI32, 1))});
  const ValueId wide = s.op("Unsqueeze", {padded, s.ints({1, 2})});
  const ValueId low = s.constant(-1e30);
  s.finish({s.lossOf(s.attention(s.embedded(), [&](ValueId scores) { return s.op("Where", {wide, low, scores}); }))});
  EXPECT_EQ(s.run().matches, 1u);
}

TEST(EliminatePadding, AModelWithoutTokensStaysAsItIs) {
  Sketch s;
  s.finish({s.op("Relu", {s.op("MatMul", {s.input("x", {3, 4}), s.input("w", {4, 5})})})});
  const std::uint64_t version = s.graph.version();
  EXPECT_EQ(s.apply("eliminate_padding").matches, 0u);
  EXPECT_EQ(s.graph.version(), version);
}

}  // namespace
}  // namespace stepscope
