// sparse_labels: the loss and the gradients of a head over a vocabulary are what they were, with fewer rows; batches of
// other densities; which condition a near miss names.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/build/kept_rows.h"
#include "tests/engine/passes/sketch.h"

namespace stepscope {
namespace {

using testing::Ints;
using testing::Sketch;

Batch batchOf(const std::vector<std::int64_t>& labels) {
  Batch batch;
  batch.arrays["labels"] = Tensor::ints(labels);
  return batch;
}

const KeptRows kKept{"labels.kept_rows", "labels", -100};

std::vector<std::int64_t> labelsWith(std::size_t all, std::size_t valid) {
  std::vector<std::int64_t> labels(all, -100);
  for (std::size_t i = 0; i < valid; ++i) labels[i * all / std::max<std::size_t>(1, valid)] = 3;
  return labels;
}

TEST(KeptRows, ComeInBucketsOfSixteenths) {
  EXPECT_EQ(bucketOf(0, 512), 32);
  EXPECT_EQ(bucketOf(32, 512), 32);
  EXPECT_EQ(bucketOf(33, 512), 64);
  EXPECT_EQ(bucketOf(512, 512), 512);
  EXPECT_EQ(bucketOf(5, 7), 5);
  EXPECT_EQ(bucketOf(7, 7), 7);
  EXPECT_EQ(bucketOf(0, 0), 1);
}

TEST(KeptRows, AreThoseThatCountThenOneThatIsIgnored) {
  const auto rows = rowsOf(kKept, batchOf({-100, 5, -100, 7, 0, -100}), 5);
  ASSERT_TRUE(rows.has_value()) << rows.error().message;
  EXPECT_EQ(std::vector<std::int64_t>(rows->as<std::int64_t>().begin(), rows->as<std::int64_t>().end()),
            (std::vector<std::int64_t>{1, 3, 4, 5, 5}));
}

TEST(KeptRows, TooManyForThePlanAndNoLabelsAreErrors) {
  const auto many = rowsOf(kKept, batchOf({1, 2, 3, -100}), 2);
  ASSERT_FALSE(many.has_value());
  EXPECT_NE(many.error().message.find("more than 2 labels of 'labels' count"), std::string::npos) << many.error().message;
  const auto none = rowsOf(kKept, Batch{}, 2);
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("no array 'labels'"), std::string::npos) << none.error().message;
}

// A plan serves what fits and is not much less; one that was made without a batch serves all.
TEST(KeptRows, APlanServesUpToTwoBucketsLess) {
  const std::vector<KeptRows> rows{kKept};
  const Signature signature = signatureOf(batchOf(labelsWith(160, 75)), rows);
  EXPECT_EQ(signature.rows.at("labels.kept_rows"), 80);
  EXPECT_NE(signature.text().find("labels.kept_rows int64[80]"), std::string::npos) << signature.text();
  EXPECT_TRUE(fits(signature, batchOf(labelsWith(160, 80)), rows));
  EXPECT_FALSE(fits(signature, batchOf(labelsWith(160, 81)), rows));
  EXPECT_TRUE(fits(signature, batchOf(labelsWith(160, 51)), rows));
  EXPECT_FALSE(fits(signature, batchOf(labelsWith(160, 50)), rows));
  EXPECT_FALSE(fits(signature, batchOf(labelsWith(170, 75)), rows));
  EXPECT_TRUE(fits(signatureOf(batchOf(labelsWith(160, 75))), batchOf(labelsWith(160, 160)), rows));
}

// scores = (LayerNorm(Gelu(x · dense + bias)) · table^T + row), as a masked language model's head computes them.
struct Head : Sketch {
  static constexpr std::int64_t kBatch = 2, kRows = 4, kSize = 6, kWords = 9;
  ValueId x = input("x", {kBatch, kRows, kSize}), dense = input("dense", {kSize, kSize}), bias = input("bias", {kSize}),
          scale = input("scale", {kSize}), table = input("table", {kSize, kWords}), row = input("row", {kWords});
  ValueId labels;
  InputDensity density{"labels", 2, kBatch* kRows};

  ValueId scores(ValueId hidden) {
    const ValueId inner = op("Gelu", {op("Add", {op("MatMul", {hidden, dense}), bias})});
    const ValueId normal = op("LayerNormalization", {inner, scale, bias}, {{"axis", std::int64_t{-1}}});
    const ValueId all = op("Add", {op("MatMul", {normal, table}), row});
    return op("Reshape", {all, ints({-1, kWords})});
  }
  ValueId lossOf(ValueId scoreRows, Attributes attrs = {{"ignore_index", std::int64_t{-100}}}) {
    labels = graph.addValue("labels", {ValueKind::kTensor, DType::kI64, Shape{kBatch, kRows}}, ValueRole::kInput);
    graph.mutableInputs().push_back(labels);
    return op("SoftmaxCrossEntropyLoss", {scoreRows, op("Reshape", {labels, ints({-1})})}, std::move(attrs));
  }

  // The loss, with labels of which `density.valid` count.
  double value() {
    Interpreter interpreter(graph, builtInOperators(), Backend::kReference);
    for (const ValueId id : graph.inputs()) {
      const std::string& name = graph.value(id).name;
      if (id == labels) {
        EXPECT_TRUE(interpreter.feed(id, batch().arrays.at("labels")).has_value());
      } else if (name == "labels.kept_rows") {
        auto rows = rowsOf(kKept, flat(), 3);
        EXPECT_TRUE(rows.has_value());
        EXPECT_TRUE(interpreter.feed(id, *rows).has_value());
      } else {
        Tensor tensor(DType::kF32, *knownDims(*graph.value(id).type.shape));
        for (std::int64_t i = 0; i < tensor.elements(); ++i)
          tensor.as<float>()[static_cast<std::size_t>(i)] =
              static_cast<float>(std::sin(1.3 * static_cast<double>(i) + name[0]));
        EXPECT_TRUE(interpreter.feed(id, tensor).has_value());
      }
    }
    const Status status = interpreter.run();
    EXPECT_TRUE(status.has_value()) << status.error().message;
    return status ? elementAsDouble(interpreter.value(graph.outputs()[0])->view(), 0) : 0;
  }
  Batch flat() const {
    std::vector<std::int64_t> numbers(kBatch * kRows, -100);
    numbers[1] = 4;
    numbers[6] = 8;
    return batchOf(numbers);
  }
  Batch batch() const {
    Batch result = flat();
    Tensor& all = result.arrays["labels"];
    all = all.reshaped({kBatch, kRows});
    return result;
  }

  PassResult run(std::string_view name = "sparse_labels") {
    for (const PassList& list : pipeline())
      for (const Pass& pass : list.passes)
        if (pass.name == name) {
          PassContext context(*inference);
          context.batch = {density};
          EXPECT_TRUE(pass.run(graph, context).has_value());
          EXPECT_TRUE(graph.verify().empty());
          return context.result;
        }
    ADD_FAILURE() << "no pass";
    return {};
  }
  void expectMiss(std::string_view reason) {
    const std::uint64_t version = graph.version();
    const PassResult result = run();
    EXPECT_EQ(result.matches, 0u);
    ASSERT_EQ(result.nearMisses.size(), 1u);
    EXPECT_NE(result.nearMisses[0].condition.find(reason), std::string::npos) << result.nearMisses[0].condition;
    EXPECT_EQ(graph.version(), version);
  }
};

TEST(SparseLabels, RowsAreTakenBeforeTheDenseLayer) {
  Head s;
  s.finish({s.lossOf(s.scores(s.x))});
  const double before = s.value();
  EXPECT_EQ(s.run().matches, 1u);
  EXPECT_NEAR(s.value(), before, 1e-6);
  // Flatten and Gather of x stand first; every product has the rows that count.
  const Node& first = s.only("MatMul");
  const NodeId gather = s.graph.value(first.input(0)).producer;
  ASSERT_TRUE(gather);
  EXPECT_EQ(s.graph.node(gather).op, "Gather");
  EXPECT_EQ(s.count("MatMul"), 2u);
  EXPECT_EQ(s.count("Gather"), 2u);  // and the labels
  EXPECT_EQ(s.graph.value(s.only("SoftmaxCrossEntropyLoss").input(0)).type.text(), "float32[labels.kept_rows, 9]");
}

// Scores in float16, and a Cast to float32 that the loss does by itself (pass fuse_cross_entropy).
TEST(SparseLabels, TheLossThatAbsorbedACast) {
  Head s;
  const ValueId low = s.op("Cast", {s.scores(s.x)}, {{"to", std::int64_t{10}}});
  s.finish({s.lossOf(s.op("Cast", {low}, {{"to", std::int64_t{1}}}))});
  ASSERT_EQ(s.run("fuse_cross_entropy").matches, 1u);
  ASSERT_EQ(s.count("SoftmaxCrossEntropyLossInternal"), 1u);
  const double before = s.value();
  EXPECT_EQ(s.run().matches, 1u);
  EXPECT_NEAR(s.value(), before, 1e-6);
  EXPECT_EQ(s.graph.value(s.only("SoftmaxCrossEntropyLossInternal").input(0)).type.text(), "float16[labels.kept_rows, 9]");
  ASSERT_EQ(keptRowsOf(s.graph, {}).size(), 1u);
}

// Files of ONNX Runtime say which label is ignored with an input.
TEST(SparseLabels, AnIgnoredLabelThatIsAConstantInput) {
  for (const bool constant : {true, false}) {
    Head s;
    const ValueId scores = s.scores(s.x);
    const ValueId loss = s.lossOf(scores, {});
    Node& node = s.graph.mutableNode(s.graph.value(loss).producer);
    node.domain = "com.microsoft";
    node.op = "SoftmaxCrossEntropyLossInternal";
    ValueId ignored = s.graph.addConstant("ignored", Tensor::scalar(DType::kI64, -100));
    if (!constant) ignored = s.op("Identity", {ignored});
    node.inputs.push_back({});
    node.inputs.push_back(ignored);
    static_cast<void>(s.graph.sortTopologically());
    s.finish({loss});
    if (!constant) {
      s.expectMiss("ignores no label");
      continue;
    }
    const double before = s.value();
    EXPECT_EQ(s.run().matches, 1u);
    EXPECT_NEAR(s.value(), before, 1e-6);
  }
}

// The mask of the rows that count stays what it was.
TEST(SparseLabels, PassesADropout) {
  Head s;
  const ValueId on = s.graph.addConstant("on", Tensor::scalar(DType::kBool, 1));
  const ValueId dropped = s.op("Dropout", {s.op("Tanh", {s.x}), s.constant(0.5), on});
  s.graph.mutableNode(s.graph.value(dropped).producer).provenance.imported = s.graph.value(dropped).producer;
  s.finish({s.lossOf(s.scores(dropped))});
  const double before = s.value();
  EXPECT_EQ(s.run().matches, 1u);
  EXPECT_NEAR(s.value(), before, 1e-6);
  EXPECT_EQ(s.count("Dropout"), 0u);
  EXPECT_EQ(s.graph.value(s.only("Tanh").output(0)).type.text(), "float32[labels.kept_rows, 6]");
}

TEST(SparseLabels, StopsWhereOthersReadTheRows) {
  Head s;
  const ValueId hidden = s.op("Relu", {s.x});
  const ValueId loss = s.lossOf(s.scores(hidden));
  s.finish({loss, s.op("ReduceSum", {hidden})});
  const double before = s.value();
  EXPECT_EQ(s.run().matches, 1u);
  EXPECT_NEAR(s.value(), before, 1e-6);
  EXPECT_EQ(s.graph.value(s.only("Relu").output(0)).type.text(), "float32[2, 4, 6]");
}

TEST(SparseLabels, NearMisses) {
  {
    Head s;
    s.density.dense = "87.5 % of the labels count";
    s.finish({s.lossOf(s.scores(s.x))});
    s.expectMiss("87.5 % of the labels count");
  }
  {
    Head s;
    s.finish({s.lossOf(s.scores(s.x), {})});
    s.expectMiss("ignores no label");
  }
  {
    Head s;
    s.finish({s.lossOf(s.scores(s.x), {{"ignore_index", std::int64_t{-100}}, {"reduction", std::string("none")}})});
    s.expectMiss("loss of every row");
  }
  {
    Head s;
    s.density.input = "other";
    s.finish({s.lossOf(s.scores(s.x))});
    s.expectMiss("no batch says");
  }
}

}  // namespace
}  // namespace stepscope
