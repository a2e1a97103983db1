// A step next to what PyTorch computed: agreement, planted differences and their causes.
#include "engine/lab/golden_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/onnx/model_builder.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::digits;
using testing::openSession;

constexpr auto kAgrees = GoldenVerdict::kAgrees, kDiffers = GoldenVerdict::kDiffers, kSkipped = GoldenVerdict::kSkipped;

// What the engine computes itself, for tests to change. Another plan, so that rounding is part of it.
Golden goldenOf(const testing::TestModel& model) {
  auto session = Session::open(model.model, {}, {});
  EXPECT_TRUE(session.has_value());
  TrainOptions options;
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"data", model.data.string()}, {"loss", model.loss}, {"lr", "0"}, {"kernels", "reference"}})
    EXPECT_TRUE(applySetting(options, name, value, "test").has_value());
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  (*session)->keepGradients(true);
  EXPECT_TRUE((*session)->build().has_value());
  const auto record = (*session)->step();
  EXPECT_TRUE(record.has_value());
  Golden golden;
  golden.losses = {record->loss()};
  for (const ParameterChoice& parameter : (*session)->plans().parameters())
    if (parameter.trained) {
      const std::string& name = (*session)->imported().value(parameter.value).name;
      golden.gradients[name] = *(*session)->trained().gradient(name);
    }
  return golden;
}

const GoldenRow* rowOf(const GoldenReport& report, const std::string& name) {
  for (const GoldenRow& row : report.rows)
    if (row.name == name) return &row;
  return nullptr;
}

void scale(Tensor& tensor, double factor) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    storeElement(tensor.view(), i, factor * elementAsDouble(tensor.view(), i));
}

GoldenReport compare(const Golden& golden, const std::map<std::string, std::string>& settings = {}) {
  const auto session = openSession(digits(), settings);
  if (!session) return {};
  const std::string before = testing::stateBits(*session);
  auto report = session->lab().compareWithGolden(golden);
  EXPECT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(testing::stateBits(*session), before) << "the comparison changed the run";
  EXPECT_EQ(session->nextStep(), 0);
  return report ? *report : GoldenReport{};
}

class GoldenCheck : public ::testing::Test {
 protected:
  Golden golden_ = goldenOf(digits());
  std::string first_ = golden_.gradients.begin()->first;
};

TEST_F(GoldenCheck, AgreesWithTheReferenceKernels) {
  const GoldenReport report = compare(golden_);
  EXPECT_TRUE(report.agrees());
  EXPECT_EQ(report.count(kAgrees), static_cast<std::int64_t>(golden_.gradients.size()) + 1);
  EXPECT_EQ(report.worst(), nullptr);
}

TEST_F(GoldenCheck, TellsOneElementThatIsOff) {
  Tensor& gradient = golden_.gradients[first_];
  const double largest = 1e-2;
  storeElement(gradient.view(), 1, elementAsDouble(gradient.view(), 1) + largest);
  const GoldenReport report = compare(golden_);
  EXPECT_EQ(report.count(kDiffers), 1);
  ASSERT_NE(report.worst(), nullptr);
  EXPECT_EQ(report.worst()->name, first_);
  EXPECT_EQ(report.worst()->index.back(), 1);
  EXPECT_NEAR(report.worst()->maxAbs, largest, 1e-4);
  EXPECT_FALSE(report.worst()->cause.empty());
}

TEST_F(GoldenCheck, KnowsTheCaptureToleranceBetterThanItsOwn) {
  golden_.tolerances["grad/" + first_] = 1;
  storeElement(golden_.gradients[first_].view(), 0, elementAsDouble(golden_.gradients[first_].view(), 0) + 0.5);
  EXPECT_TRUE(compare(golden_).agrees());
}

TEST_F(GoldenCheck, SeesALostNoGrad) {
  scale(golden_.gradients[first_], 0);
  const GoldenReport report = compare(golden_);
  ASSERT_NE(rowOf(report, first_), nullptr);
  EXPECT_NE(rowOf(report, first_)->cause.find("no_grad or detach lost"), std::string::npos);
}

TEST_F(GoldenCheck, SeesALostReversalAndALostFactor) {
  const std::string last = golden_.gradients.rbegin()->first;
  scale(golden_.gradients[first_], -2);
  scale(golden_.gradients[last], 10);
  const GoldenReport report = compare(golden_);
  EXPECT_NE(rowOf(report, first_)->cause.find("gradient reversal lost"), std::string::npos) << rowOf(report, first_)->cause;
  EXPECT_NE(rowOf(report, last)->cause.find("scales the gradient by 10"), std::string::npos) << rowOf(report, last)->cause;
}

TEST_F(GoldenCheck, SeesAFactorByRow) {
  for (auto& [name, gradient] : golden_.gradients) {
    if (gradient.dims().size() != 2) continue;
    for (std::int64_t i = 0; i < gradient.elements(); ++i)
      storeElement(gradient.view(), i,
                   elementAsDouble(gradient.view(), i) / static_cast<double>(1 + i / gradient.dims()[1] % 3));
    const GoldenReport report = compare(golden_);
    EXPECT_NE(rowOf(report, name)->cause.find("scale_grad_by_freq"), std::string::npos) << rowOf(report, name)->cause;
    return;
  }
  FAIL() << "no matrix among the parameters";
}

TEST_F(GoldenCheck, SeesAMeanForASum) {
  golden_.losses[0] *= 64;
  for (auto& [name, gradient] : golden_.gradients) scale(gradient, 64);
  const GoldenReport report = compare(golden_);
  EXPECT_EQ(report.count(kDiffers), static_cast<std::int64_t>(golden_.gradients.size()) + 1);
  EXPECT_EQ(report.worst()->name, "loss");
  EXPECT_NE(report.worst()->cause.find("factor 1/64: a mean here where PyTorch takes the sum"), std::string::npos)
      << report.worst()->cause;
}

TEST_F(GoldenCheck, NamesParametersThatOneSideLacks) {
  golden_.gradients["nowhere.weight"] = golden_.gradients[first_].clone();
  golden_.gradients.erase(first_);
  const GoldenReport report = compare(golden_);
  EXPECT_EQ(report.count(kDiffers), 2);
  EXPECT_EQ(rowOf(report, "nowhere.weight")->words, "a gradient in PyTorch, and no such parameter in the file");
  EXPECT_NE(rowOf(report, first_)->words.find("PyTorch has no gradient for it"), std::string::npos);
}

TEST_F(GoldenCheck, SkipsWhatTheUserFreezes) {
  const GoldenReport report = compare(golden_, {{"freeze", "^" + first_ + "$"}});
  EXPECT_TRUE(report.agrees());
  EXPECT_EQ(rowOf(report, first_)->verdict, kSkipped);
}

TEST_F(GoldenCheck, DoesNotTakeNaNForANumber) {
  storeElement(golden_.gradients[first_].view(), 0, std::numeric_limits<double>::quiet_NaN());
  golden_.tolerances["grad/" + first_] = 1e30;
  const GoldenReport report = compare(golden_);
  EXPECT_EQ(report.count(kDiffers), 1);
  EXPECT_TRUE(rowOf(report, first_)->cause.starts_with("finite here and not in PyTorch")) << rowOf(report, first_)->cause;
}

TEST_F(GoldenCheck, SeesAStatisticThatStays) {
  golden_.statistics[first_] = golden_.gradients[first_].clone();  // no running statistic, so nothing writes it
  golden_.statistics["gone.counter"] = Tensor::scalar(DType::kF32, 1);
  const GoldenReport report = compare(golden_, {{"freeze", "^" + first_ + "$"}});
  EXPECT_EQ(report.count(kDiffers), 2);
  for (const GoldenRow& row : report.rows)
    if (row.kind == GoldenRow::Kind::kStatistic && row.name == first_)
      EXPECT_NE(row.cause.find("statistics frozen"), std::string::npos);
  EXPECT_EQ(rowOf(report, "gone.counter")->words, "PyTorch's forward pass changes it, and it is not in the file");
}

// x → Dropout → product → loss: with random numbers only a capture that switched them off can be compared.
TEST(GoldenDropout, IsComparedSwitchedOff) {
  const testing::TemporaryFolder folder;
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("dropout");
  testing::addInput(graph, "x", {2, 3});
  testing::addFloats(graph, "w", {3, 1});
  auto* ratio = graph.add_initializer();
  ratio->set_name("ratio");
  ratio->set_data_type(onnx::TensorProto::FLOAT);
  ratio->add_float_data(0.5F);
  auto* training = graph.add_initializer();
  training->set_name("training");
  training->set_data_type(onnx::TensorProto::BOOL);
  training->add_int32_data(1);
  testing::addNode(graph, "Dropout", {"x", "ratio", "training"}, {"dropped"}, "dropout");
  testing::addNode(graph, "MatMul", {"dropped", "w"}, {"y"}, "product");
  auto* sum = testing::addNode(graph, "ReduceSum", {"y"}, {"loss"}, "sum");
  auto* keep = sum->add_attribute();
  keep->set_name("keepdims");
  keep->set_type(onnx::AttributeProto::INT);
  keep->set_i(0);
  testing::addOutput(graph, "loss");
  auto session = Session::open(folder.write("model.onnx", model.SerializeAsString()), {}, {});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  struct Data : DataSource {
    std::int64_t entries() const override { return 1; }
    Result<Batch> batch(std::int64_t) override {
      return Batch{{{"x", Tensor::of<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})}}, "one"};
    }
  };
  (*session)->feedFrom(std::make_unique<Data>());
  ASSERT_TRUE((*session)->build().has_value());
  Golden golden;
  golden.losses = {(1 + 4) * 0.0 + (2 + 5) * 1.0 + (3 + 6) * 2.0};
  golden.gradients["w"] = Tensor::of<float>({3, 1}, std::vector<float>{5, 7, 9});
  auto report = (*session)->lab().compareWithGolden(golden);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_NE(report->unchecked.find("Dropout 'dropout' draws random numbers"), std::string::npos) << report->unchecked;
  EXPECT_FALSE(report->agrees());
  golden.draws = GoldenDraws::kSwitchedOff;
  report = (*session)->lab().compareWithGolden(golden);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->agrees());
  golden.draws = GoldenDraws::kNone;
  report = (*session)->lab().compareWithGolden(golden);
  EXPECT_EQ(report->count(kDiffers), 1);
  EXPECT_NE(report->worst()->cause.find("dropout active"), std::string::npos);
  golden.draws = GoldenDraws::kDrawn;
  EXPECT_FALSE((*session)->lab().compareWithGolden(golden)->unchecked.empty());
}

}  // namespace
}  // namespace stepscope
