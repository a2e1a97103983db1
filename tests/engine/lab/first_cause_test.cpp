// Faults planted into small models: the replay names the planted node.
#include "engine/lab/first_cause.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "engine/train/data.h"
#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::addFloats;
using testing::addInput;
using testing::addNode;
using testing::addOutput;
using testing::TemporaryFolder;

constexpr std::int64_t kRows = 4, kWidth = 8;
constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

// One batch for every step: x [4, 8], normal.
class OneBatch : public DataSource {
 public:
  explicit OneBatch(Tensor x) { batch_.arrays["x"] = std::move(x); }
  std::int64_t entries() const override { return 1; }
  Result<Batch> batch(std::int64_t) override { return batch_; }

 private:
  Batch batch_;
};

Tensor normal(Dims dims, unsigned seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, scale);
  Tensor tensor(DType::kF32, std::move(dims));
  for (float& x : tensor.as<float>()) x = draw(random);
  return tensor;
}

void fill(onnx::TensorProto& tensor, const Tensor& contents) {
  tensor.clear_float_data();
  for (const float x : contents.as<float>()) tensor.add_float_data(x);
}

onnx::TensorProto* constant(onnx::GraphProto& graph, const std::string& name, float value) {
  auto* node = addNode(graph, "Constant", {}, {name}, name + "_node");
  auto* attribute = node->add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  attribute->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  attribute->mutable_t()->add_float_data(value);
  return attribute->mutable_t();
}

// x → three products with LeakyRelu between them, the fault after one of them, and a branch whose infinities are masked,
// which no one is to blame for. loss = mean of the squares.
struct Fault {
  std::string name, kind;
  // Adds nodes from value `in` to value `out`, both [4, 8]; the one to be named is "fault".
  std::function<void(onnx::GraphProto&, const std::string& in, const std::string& out)> plant;
  std::function<void(onnx::GraphProto&)> change;  // of the finished model
  std::function<void(Tensor& x)> poison;          // of the batch
  std::vector<std::int64_t> rows;                 // expected; empty: not judged
};

onnx::ModelProto modelWith(const Fault& fault, int place) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name(fault.name);
  addInput(graph, "x", {kRows, kWidth});
  std::string now = "x";
  for (int k = 0; k < 3; ++k) {
    const std::string w = "w" + std::to_string(k), h = "h" + std::to_string(k);
    fill(*addFloats(graph, w, {kWidth, kWidth}), normal({kWidth, kWidth}, 7U + static_cast<unsigned>(k), 0.3F));
    addNode(graph, "MatMul", {now, w}, {h}, "product" + std::to_string(k));
    now = h;
    if (k == place && fault.plant) {
      fault.plant(graph, now, "planted");
      now = "planted";
    }
    if (k < 2) {
      addNode(graph, "LeakyRelu", {now}, {"t" + std::to_string(k)}, "bend" + std::to_string(k));  // hands infinities on
      now = "t" + std::to_string(k);
    }
  }
  // log of what is 0 in some places, which Where drops: an infinity that is on the way to nothing.
  addNode(graph, "Relu", {"x"}, {"decoy_relu"}, "decoy_relu");
  addNode(graph, "Log", {"decoy_relu"}, {"decoy_log"}, "decoy_log");
  constant(graph, "decoy_zero", 0);
  addNode(graph, "Greater", {"decoy_relu", "decoy_zero"}, {"decoy_positive"}, "decoy_greater");
  addNode(graph, "Where", {"decoy_positive", "decoy_log", "decoy_zero"}, {"decoy"}, "decoy_where");
  addNode(graph, "Add", {now, "decoy"}, {"sum"}, "sum");
  addNode(graph, "Mul", {"sum", "sum"}, {"square"}, "square");
  auto* mean = addNode(graph, "ReduceMean", {"square"}, {"loss"}, "mean");
  auto* keep = mean->add_attribute();
  keep->set_name("keepdims");
  keep->set_type(onnx::AttributeProto::INT);
  keep->set_i(0);
  addOutput(graph, "loss");
  if (fault.change) fault.change(graph);
  return model;
}

// in → [helper op] → fault op → out.
Fault unary(const std::string& name, const std::string& kind, const std::vector<std::string>& before, const std::string& op,
            float factor = 1, bool bounded = false) {
  return {name,
          kind,
          [=](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
            std::string now = in;
            if (factor != 1) {
              constant(graph, "factor", factor);
              addNode(graph, "Mul", {now, "factor"}, {"scaled"}, "scale");
              now = "scaled";
            }
            for (const std::string& helper : before) {
              const std::string next = "after_" + helper;
              addNode(graph, helper, {now}, {next}, "helper_" + helper);
              now = next;
            }
            addNode(graph, op, {now}, {bounded ? "unbounded" : out}, "fault");
            if (bounded) addNode(graph, "Tanh", {"unbounded"}, {out}, "bound");
          },
          {},
          {},
          {}};
}

std::vector<Fault> faults() {
  std::vector<Fault> list = {
      unary("LogOfZero", "log or root out of domain", {"Relu"}, "Log"),
      unary("LogOfNegative", "log or root out of domain", {"Abs", "Neg"}, "Log"),
      unary("RootOfNegative", "log or root out of domain", {"Abs", "Neg"}, "Sqrt"),
      unary("ArcSineOutside", "log or root out of domain", {}, "Asin", 100),
      unary("ArcCosineOutside", "log or root out of domain", {}, "Acos", 100),
      unary("ExpOverflow", "overflow", {}, "Exp", 1000),
      unary("SinhOverflow", "overflow", {}, "Sinh", 1000),
      unary("CoshOverflow", "overflow", {}, "Cosh", 1000),
      unary("ReciprocalOfZero", "division by zero", {"Relu"}, "Reciprocal"),
      // The forward pass is finite; the slope is not.
      unary("SlopeOfRootAtZero", "log or root out of domain", {}, "Sqrt", 0),
  };
  const auto add = [&](std::string name, std::string kind, auto plant) {
    list.push_back({std::move(name), std::move(kind), plant, {}, {}, {}});
  };
  add("DivisionByZero", "division by zero", [](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
    addNode(graph, "Sub", {in, in}, {"nothing"}, "helper");
    addNode(graph, "Div", {in, "nothing"}, {out}, "fault");
  });
  add("ZeroByZero", "division by zero", [](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
    addNode(graph, "Relu", {in}, {"part"}, "helper");
    addNode(graph, "Div", {"part", "part"}, {out}, "fault");
  });
  add("ProductOverflow", "overflow", [](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
    constant(graph, "big", 1e30F);
    constant(graph, "bigger", 1e30F);
    addNode(graph, "Mul", {in, "big"}, {"large"}, "helper");
    addNode(graph, "Mul", {"large", "bigger"}, {out}, "fault");
  });
  add("SumOverflow", "overflow", [](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
    constant(graph, "big", 3e38F);
    addNode(graph, "Sigmoid", {in}, {"part"}, "helper");
    addNode(graph, "Mul", {"part", "big"}, {"large"}, "helper2");
    addNode(graph, "Add", {"large", "big"}, {out}, "fault");
  });
  add("PowerOfNegative", "log or root out of domain",
      [](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
        constant(graph, "half", 0.3F);
        addNode(graph, "Pow", {in, "half"}, {out}, "fault");
      });
  add("AllMaskedSoftmax", "all-masked softmax", [](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
    auto* mask = addFloats(graph, "mask", {kRows, kWidth});
    for (int i = 0; i < kRows * kWidth; ++i) mask->set_float_data(i, i / kWidth == 2 || i % kWidth == 5 ? -kInf : 0);
    addNode(graph, "Add", {in, "mask"}, {"masked"}, "helper");
    addNode(graph, "Softmax", {"masked"}, {out}, "fault");
  });
  list.back().rows = {2};
  // As masked_fill is exported: the infinity is a Constant node.
  add("AllFilledSoftmax", "all-masked softmax", [](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
    auto* kept = addFloats(graph, "kept_buffer", {kRows, 1});
    for (int i = 0; i < kRows; ++i) kept->set_float_data(i, i == 1 ? 0 : 1);
    constant(graph, "half", 0.5F);
    constant(graph, "fill", -kInf);
    addNode(graph, "Greater", {"kept_buffer", "half"}, {"keeps"}, "helper");
    addNode(graph, "Where", {"keeps", in, "fill"}, {"filled"}, "helper2");
    addNode(graph, "Softmax", {"filled"}, {out}, "fault");
  });
  list.back().rows = {1};
  add("SumOfSquaresOverflow", "overflow", [](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
    constant(graph, "big", 1e25F);
    addNode(graph, "Mul", {in, "big"}, {"large"}, "helper");
    auto* sum = addNode(graph, "ReduceSumSquare", {"large"}, {"squares"}, "fault");
    auto* axes = sum->add_attribute();
    axes->set_name("axes");
    axes->set_type(onnx::AttributeProto::INTS);
    axes->add_ints(1);
    addNode(graph, "Add", {in, "squares"}, {out}, "join");
  });
  add("MeanOfNothing", "mean of no elements", [](onnx::GraphProto& graph, const std::string& in, const std::string& out) {
    for (const char* name : {"first", "end"}) {
      auto* position = graph.add_initializer();
      position->set_name(name);
      position->set_data_type(onnx::TensorProto::INT64);
      position->add_dims(1);
      position->add_int64_data(0);
    }
    addNode(graph, "Slice", {in, "first", "end"}, {"nothing"}, "helper");
    addNode(graph, "ReduceMean", {"nothing"}, {"mean"}, "fault");
    addNode(graph, "Add", {in, "mean"}, {out}, "join");
  });
  // What the batch and the file bring in: the node that reads it first.
  list.push_back({"NaNInTheBatch", "bad input", {}, {}, [](Tensor& x) { x.as<float>()[2 * kWidth + 3] = kNaN; }, {2}});
  list.push_back({"InfInTheBatch", "bad input", {}, {}, [](Tensor& x) { x.as<float>()[kWidth + 1] = kInf; }, {1}});
  return list;
}

struct Named {
  std::optional<FirstCause> cause;
  std::string problem;
};

Named blame(const Fault& fault, int place, const std::map<std::string, std::string>& settings = {}, int steps = 1) {
  const TemporaryFolder folder;
  const auto path = folder.write("model.onnx", modelWith(fault, place).SerializeAsString());
  auto session = Session::open(path, {}, {});
  if (!session) return {{}, session.error().message};
  TrainOptions options;
  for (const auto& [name, value] : settings)
    if (Status set = applySetting(options, name, value, "test"); !set) return {{}, set.error().message};
  if (Status set = applySetting(options, "threads", "1", "test"); !set) return {{}, set.error().message};
  if (Status set = (*session)->setOptions(options); !set) return {{}, set.error().message};
  Tensor x = normal({kRows, kWidth}, 3, 1);
  if (fault.poison) fault.poison(x);
  (*session)->feedFrom(std::make_unique<OneBatch>(x));
  if (Status built = (*session)->build(); !built) return {{}, built.error().message};
  (*session)->numbers().blame(true);
  for (int i = 0; i < steps; ++i) {
    const auto stepped = (*session)->step();
    if (stepped) continue;
    if (!(*session)->numbers().cause()) return {{}, "no cause: " + stepped.error().message};
    return {*(*session)->numbers().cause(), {}};
  }
  return {{}, "the step was finite"};
}

// The program names the planted node in nearly every fault, whatever stands around it.
TEST(FirstCause, NamesThePlantedNode) {
  int planted = 0, named = 0, kinds = 0;
  std::string missed;
  for (const Fault& fault : faults())
    for (int place = 0; place < 3; ++place) {
      if (!fault.plant && place > 0) continue;
      ++planted;
      const Named found = blame(fault, place);
      const std::string expected = fault.plant ? "fault" : "";
      const bool right = found.cause && (fault.plant ? found.cause->name == "fault" : found.cause->value == "x");
      named += right;
      kinds += found.cause && found.cause->kind == fault.kind;
      if (!right || found.cause->kind != fault.kind)
        missed += fault.name + " " + std::to_string(place) + ": " + found.problem +
                  (found.cause ? found.cause->text() : "") + "\n";
      if (right && !fault.rows.empty()) {
        EXPECT_EQ(found.cause->rows, fault.rows) << fault.name;
      }
      if (right) {
        EXPECT_GE(found.cause->instruction, 0) << fault.name;
        EXPECT_EQ(found.cause->operands.empty(), fault.kind == "mean of no elements") << fault.name;
      }
    }
  EXPECT_GE(planted, 50);
  EXPECT_GE(named, planted - 2) << missed;
  EXPECT_GE(kinds, planted - 2) << missed;
}

TEST(FirstCause, NamesAnInfiniteWeight) {
  Fault fault;
  fault.name = "weight";
  fault.change = [](onnx::GraphProto& graph) { graph.mutable_initializer(1)->set_float_data(9, kInf); };
  const Named found = blame(fault, 0, {{"train", "w1"}});  // what holds an infinity is not trained unless it is asked for
  ASSERT_TRUE(found.cause.has_value()) << found.problem;
  EXPECT_EQ(found.cause->name, "product1");
  EXPECT_EQ(found.cause->value, "w1");
  EXPECT_EQ(found.cause->index, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(found.cause->kind, "invalid operand");
}

// Nothing masks the loss: the infinity is no mask's, although a constant brought it in.
TEST(FirstCause, NamesAnInfiniteFactorOfTheLoss) {
  for (const float factor : {kInf, -kInf}) {
    Fault fault;
    fault.name = "factor";
    fault.change = [factor](onnx::GraphProto& graph) {
      graph.mutable_node(graph.node_size() - 1)->set_output(0, "mean_loss");
      constant(graph, "infinite", factor);
      addNode(graph, "Mul", {"mean_loss", "infinite"}, {"scaled_loss"}, "fault");
      addNode(graph, "Neg", {"scaled_loss"}, {"loss"}, "negative");
    };
    const Named found = blame(fault, 0);
    ASSERT_TRUE(found.cause.has_value()) << found.problem;
    EXPECT_EQ(found.cause->name, "fault") << found.cause->text();
    EXPECT_EQ(found.cause->value, "scaled_loss") << found.cause->text();
    EXPECT_FALSE(found.cause->backward);
    EXPECT_FALSE(found.cause->nan);
    const bool shown = std::ranges::any_of(
        found.cause->operands, [&](const CauseOperand& o) { return o.name == "infinite" && o.value == double{factor}; });
    EXPECT_TRUE(shown) << found.cause->text();
  }
}

TEST(FirstCause, TellsSinceWhenWeightsExplode) {
  Fault fault;
  fault.name = "rate";
  const Named found = blame(fault, 0, {{"lr", "1e15"}}, 20);
  ASSERT_TRUE(found.cause.has_value()) << found.problem;
  EXPECT_EQ(found.cause->kind, "exploded weights since step 0") << found.cause->text();
  EXPECT_GT(found.cause->step, 0);
}

// Batches of the same size of numbers, then much larger ones.
class JumpingBatches : public DataSource {
 public:
  std::int64_t entries() const override { return 1000; }
  Result<Batch> batch(std::int64_t step) override {
    Batch batch;
    batch.arrays["x"] = normal({kRows, kWidth}, 3, step >= 300 ? 1e4F : 1);
    return batch;
  }
};

TEST(FirstCause, AJumpOfTheGradientsIsTold) {
  const TemporaryFolder folder;
  const auto path = folder.write("model.onnx", modelWith({}, 0).SerializeAsString());
  auto session = Session::open(path, {}, {});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "lr", "0", "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  (*session)->feedFrom(std::make_unique<JumpingBatches>());
  ASSERT_TRUE((*session)->build().has_value());
  // Steps as short as these are not all looked at, whatever the machine does meanwhile.
  std::vector<std::string> told;
  for (int i = 0; i < 20'000 && told.empty(); ++i) {  // the batches jump once in a thousand
    ASSERT_TRUE((*session)->step().has_value());
    for (const snapshot::Alert& alert : (*session)->alerts())
      if (alert.code() == "gradient_jump") told.push_back(alert.message());
  }
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told.front().find("the largest element of all gradients jumped from "), std::string::npos) << told.front();
}

// Numbers of 1e30 have a variance that no float holds: the running one is infinite before any product is.
TEST(FirstCause, IsTheRunningVarianceThatOverflowsBeforeAProduct) {
  auto session = testing::openSession(testing::digits(), {{"lr", "1e30"}, {"optimizer", "sgd"}});
  ASSERT_NE(session, nullptr);
  session->numbers().blame(false);
  ASSERT_TRUE(session->step() && session->step());
  const FirstCause* cause = session->numbers().cause();
  ASSERT_NE(cause, nullptr);
  EXPECT_EQ(cause->name, "/stages.0/bn/BatchNormalization") << cause->text();
  EXPECT_EQ(cause->op, "BatchNormalization");
  EXPECT_EQ(cause->kind, "exploded weights since step 0");
  EXPECT_TRUE(cause->rows.empty()) << cause->text();  // a channel is no row
  const auto told = std::ranges::find(session->alerts(), "inf", &snapshot::Alert::code);
  ASSERT_NE(told, session->alerts().end());
  EXPECT_EQ(told->step(), 1);
  EXPECT_EQ(told->instruction(), cause->instruction) << told->message();
  EXPECT_FALSE(told->has_sample()) << told->message();
}

void addLabels(onnx::GraphProto& graph) {
  addInput(graph, "labels", {kRows});
  graph.mutable_input(graph.input_size() - 1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->set_elem_type(onnx::TensorProto::INT64);
}

// Scores of x, and their mean loss over the labels that are not -100, as one node.
onnx::ModelProto lossOfLabels() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("labels");
  addInput(graph, "x", {kRows, kWidth});
  addLabels(graph);
  fill(*addFloats(graph, "w", {kWidth, kWidth}), normal({kWidth, kWidth}, 7, 0.3F));
  addNode(graph, "MatMul", {"x", "w"}, {"scores"}, "product");
  auto* ignored = addNode(graph, "SoftmaxCrossEntropyLoss", {"scores", "labels"}, {"loss"}, "fault")->add_attribute();
  ignored->set_name("ignore_index");
  ignored->set_type(onnx::AttributeProto::INT);
  ignored->set_i(-100);
  addOutput(graph, "loss");
  return model;
}

// The same written out: the sum over those labels, by their number.
onnx::ModelProto lossOfCountedLabels() {
  onnx::ModelProto model = lossOfLabels();
  auto& graph = *model.mutable_graph();
  graph.mutable_node()->RemoveLast();
  auto* zero = graph.add_initializer();
  zero->set_name("least");
  zero->set_data_type(onnx::TensorProto::INT64);
  zero->add_int64_data(0);
  addNode(graph, "GreaterOrEqual", {"labels", "least"}, {"counts"}, "counts");
  auto* to = addNode(graph, "Cast", {"counts"}, {"weights"}, "weights")->add_attribute();
  to->set_name("to");
  to->set_type(onnx::AttributeProto::INT);
  to->set_i(onnx::TensorProto::FLOAT);
  const auto sum = [&graph](const std::string& in, const std::string& out) {
    auto* keep = addNode(graph, "ReduceSum", {in}, {out}, out)->add_attribute();
    keep->set_name("keepdims");
    keep->set_type(onnx::AttributeProto::INT);
    keep->set_i(0);
  };
  sum("weights", "number");
  addNode(graph, "MatMul", {"weights", "scores"}, {"taken"}, "taken");
  sum("taken", "sum");
  addNode(graph, "Div", {"sum", "number"}, {"loss"}, "fault");
  return model;
}

class LabelledBatch : public DataSource {
 public:
  std::int64_t entries() const override { return 1; }
  Result<Batch> batch(std::int64_t) override {
    Batch batch;
    batch.arrays["x"] = normal({kRows, kWidth}, 3, 1);
    Tensor labels(DType::kI64, {kRows});
    std::ranges::fill(labels.as<std::int64_t>(), -100);
    batch.arrays["labels"] = std::move(labels);
    return batch;
  }
};

TEST(FirstCause, SaysThatNoLabelCounts) {
  for (const onnx::ModelProto& model : {lossOfLabels(), lossOfCountedLabels()}) {
    const TemporaryFolder folder;
    const auto path = folder.write("model.onnx", model.SerializeAsString());
    auto session = Session::open(path, {}, {});
    ASSERT_TRUE(session.has_value()) << session.error().message;
    (*session)->feedFrom(std::make_unique<LabelledBatch>());
    const Status built = (*session)->build();
    ASSERT_TRUE(built.has_value()) << built.error().message;
    (*session)->numbers().blame(false);
    ASSERT_TRUE((*session)->step().has_value());
    const FirstCause* cause = (*session)->numbers().cause();
    ASSERT_NE(cause, nullptr);
    EXPECT_EQ(cause->name, "fault");
    EXPECT_EQ(cause->kind, "no label of the batch counts, so the loss is undefined") << cause->text();
    EXPECT_EQ(cause->rows, (std::vector<std::int64_t>{0, 1, 2, 3})) << cause->text();
    EXPECT_EQ(cause->text().find("-nan"), std::string::npos) << cause->text();
  }
}

TEST(FirstCause, FindsNothingInAFiniteStep) {
  Fault fault;
  fault.name = "none";
  EXPECT_EQ(blame(fault, 0).problem, "the step was finite");
}

}  // namespace
}  // namespace stepscope
