// What a study says of models whose numbers are known, and that it leaves the session as it was.
#include "engine/lab/precision_study.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "engine/lab/summed_terms.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/passes/small_step.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::floats;
using testing::node;
using testing::openSession;
using testing::stateBits;
using testing::TestModel;

snapshot::GetPrecision question(const std::string& precision, int measured = 3) {
  snapshot::GetPrecision asked;
  asked.set_precision(precision);
  asked.set_measured(measured);
  asked.set_timed(2);
  return asked;
}

Status set(Session& session, const std::string& name, const std::string& value) {
  TrainOptions options = session.options();
  SS_TRY(applySetting(options, name, value, "test"));
  SS_TRY(session.setOptions(options));
  return session.applyOptions();
}

// A session of a graph written as text; the folder of its file is gone when it is open.
std::unique_ptr<Session> sessionOf(const std::string& graph) {
  onnx::ModelProto model;
  const std::string text = "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" " + graph +
                           " output { name: \"loss\" type { tensor_type { elem_type: 1 shape { } } } } }";
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  const testing::TemporaryFolder folder;
  return openSession({"planted", folder.write("model.onnx", model.SerializeAsString()), {}});
}

// MatMul_big makes 120,000, which float16 cannot hold; everything else is about 1.
std::string planted() {
  return floats("x", {2, 4}, std::vector<float>(8, 300.f)) + floats("w", {4, 3}, std::vector<float>(12, 100.f)) +
         floats("c", {1}, {1e-5f}) + floats("v", {3, 2}, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f}) +
         node("MatMul", "x w", "big") + node("Mul", "big c", "small") + node("MatMul", "small v", "y") +
         node("ReduceMean", "y", "loss", testing::attribute("keepdims", 0));
}

TEST(PrecisionStudy, FindsNothingInFloat32) {
  for (const TestModel& model : {testing::digits(), testing::languageModel()}) {
    auto session = openSession(model);
    ASSERT_TRUE(session);
    const auto report = session->lab().precision(question("fp32"));
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_EQ(report->precision(), "fp32");
    EXPECT_EQ(report->error(), 0);
    EXPECT_EQ(report->loss_error(), 0);
    EXPECT_EQ(report->update_error(), 0);
    EXPECT_EQ(report->not_finite(), 0);
    EXPECT_EQ(report->nodes_size(), 0);
    ASSERT_GT(report->gradients_size(), 2);
    for (const auto& g : report->gradients()) {
      EXPECT_EQ(g.cosine(), 1) << g.name();
      EXPECT_EQ(g.max_abs(), 0) << g.name();
    }
    EXPECT_EQ(report->cost().bytes_before(), report->cost().bytes_after());
    EXPECT_EQ(report->cost().traffic_before(), report->cost().traffic_after());
    for (const auto& c : report->classes()) {
      EXPECT_EQ(c.flushed(), 0) << c.tensors();
      EXPECT_EQ(std::accumulate(c.counts().begin(), c.counts().end(), std::int64_t{0}) + c.zeros() + c.not_finite(),
                c.elements())
          << c.tensors();
    }
  }
}

TEST(PrecisionStudy, MeasuresBfloat16AndItsOverrides) {
  auto session = openSession(testing::languageModel());
  ASSERT_TRUE(session && session->step());
  const std::string before = stateBits(*session);
  const auto report = session->lab().precision(question(""));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->precision(), "bf16") << "where the present one is fp32";
  EXPECT_EQ(report->step(), 1);
  EXPECT_GT(report->error(), 0);
  EXPECT_LT(report->error(), 0.2);
  EXPECT_LT(report->loss_error(), 0.01);
  EXPECT_GT(report->update_error(), 0);
  EXPECT_FALSE(report->skipped());
  for (const auto& g : report->gradients()) EXPECT_GT(g.cosine(), 0.9) << g.name();
  for (int i = 1; i < report->gradients_size(); ++i)
    EXPECT_GE(report->gradients(i - 1).error(), report->gradients(i).error());
  ASSERT_GT(report->nodes_size(), 3);
  int measured = 0;
  for (const auto& n : report->nodes()) {
    measured += n.measured();
    EXPECT_EQ(n.dtype(), "bfloat16") << n.node();
    EXPECT_FALSE(n.override().empty());
  }
  EXPECT_EQ(measured, 3);
  EXPECT_LT(report->cost().bytes_after(), report->cost().bytes_before());
  EXPECT_LT(report->cost().traffic_after(), report->cost().traffic_before());
  EXPECT_GT(report->cost().ns_after(), 0);
  bool lowActivations = false, states = false;
  for (const auto& c : report->classes()) {
    lowActivations |= c.tensors() == "activation" && c.dtype() == "bfloat16";
    states |= c.tensors() == "optimizer state" && c.dtype() == "float32";
  }
  EXPECT_TRUE(lowActivations);
  EXPECT_TRUE(states);
  EXPECT_EQ(stateBits(*session), before);
  EXPECT_EQ(session->nextStep(), 1);
  // What was measured is what the option gives.
  ASSERT_TRUE(set(*session, "precision", "bf16").has_value());
  const auto& first = report->nodes(0);
  ASSERT_TRUE(set(*session, "precision.force", first.override()).has_value());
  const auto forced = session->lab().precision(question("", -1));
  ASSERT_TRUE(forced.has_value()) << forced.error().message;
  EXPECT_EQ(forced->forced(), first.override());
  EXPECT_EQ(forced->error(), first.error_with_override());
  for (const auto& n : forced->nodes()) {
    EXPECT_FALSE(n.measured());
    EXPECT_NE(n.node(), first.node()) << "it does not compute in bfloat16 any more";
  }
}

// Softmax does not change with the bias of the keys: that gradient is rounding of terms that cancel, and an error of it
// would be noise beside noise.
TEST(PrecisionStudy, AGradientThatIsZeroByAlgebraIsNoOffender) {
  const auto models = testing::corpusCases({"vit_classifier"});
  if (models.empty()) GTEST_SKIP() << "no corpus";
  auto session = openSession(models.front(), {{"threads", "1"}});
  ASSERT_TRUE(session);
  const auto report = session->lab().precision(question("bf16", -1));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  std::set<std::string> zero;
  for (const auto& g : report->gradients()) {
    EXPECT_TRUE(zero.empty() || g.zero()) << g.name() << ": those that are zero come behind the others";
    if (g.zero()) zero.insert(g.name());
    if (!g.zero()) EXPECT_LT(g.error(), 0.5) << g.name();
    if (g.name().ends_with(".weight")) EXPECT_FALSE(g.zero()) << g.name();
  }
  std::set<std::string> keys;
  for (const auto& g : report->gradients())
    if (g.name().ends_with("key.bias")) keys.insert(g.name());
  EXPECT_FALSE(keys.empty());
  EXPECT_EQ(zero, keys);
  for (const auto& n : report->nodes()) EXPECT_LT(n.added(), 1) << n.node();
}

TEST(SummedTerms, AreZeroWhereRoundingIsAllThatIsLeft) {
  constexpr std::int64_t kTerms = 1000;
  Tensor terms(DType::kF32, {kTerms, 2}), sums(DType::kF32, {2});
  float column[2] = {};
  for (std::int64_t i = 0; i < kTerms; ++i)
    for (std::int64_t k = 0; k < 2; ++k) {
      // The terms of the first half come again with the other sign, in another order.
      const std::int64_t at = i < kTerms / 2 ? i : (7 * (i - kTerms / 2)) % (kTerms / 2);
      const float x = (i < kTerms / 2 ? 1.f : -1.f) * std::sin(1.f + static_cast<float>(2 * at + k));
      terms.as<float>()[static_cast<std::size_t>(2 * i + k)] = x;
      column[k] += x;
    }
  for (std::size_t k = 0; k < 2; ++k) sums.as<float>()[k] = column[k];
  const SummedTerms cancelled = summedTerms(terms.view(), sums.view());
  EXPECT_TRUE(cancelled.zeroUpToRounding()) << cancelled.norm << " of " << cancelled.terms;
  // Small beside its terms, and more than rounding.
  sums.as<float>()[0] += 0.01f;
  EXPECT_FALSE(summedTerms(terms.view(), sums.view()).zeroUpToRounding());
  // Nothing is said of sums of zeros, or of what is not finite.
  for (float& x : terms.as<float>()) x = 0;
  for (float& x : sums.as<float>()) x = 0;
  EXPECT_FALSE(summedTerms(terms.view(), sums.view()).zeroUpToRounding());
  terms.as<float>()[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(summedTerms(terms.view(), sums.view()).zeroUpToRounding());
}

TEST(PrecisionStudy, NamesAProductThatOverflowsAndMendsIt) {
  auto session = sessionOf(planted());
  ASSERT_TRUE(session);
  const auto report = session->lab().precision(question("fp16"));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->skipped());
  EXPECT_GT(report->not_finite(), 0);
  EXPECT_TRUE(std::isinf(report->error()));
  EXPECT_NEAR(report->reference_loss(), 1.26, 1e-3);
  EXPECT_FALSE(std::isfinite(report->loss()));
  ASSERT_GT(report->nodes_size(), 0);
  const auto& first = report->nodes(0);
  EXPECT_EQ(first.node(), "MatMul_big");
  EXPECT_EQ(first.op(), "MatMul");
  EXPECT_EQ(first.not_finite(), 6) << "all elements of the product";
  EXPECT_EQ(first.override(), "^MatMul_big$:fp32");
  ASSERT_TRUE(first.measured());
  EXPECT_EQ(first.not_finite_with_override(), 0);
  EXPECT_LT(first.error_with_override(), 0.01);
  EXPECT_LT(first.loss_error_with_override(), 0.01);
  // The step itself agrees.
  ASSERT_TRUE(set(*session, "precision", "fp16").has_value());
  ASSERT_TRUE(set(*session, "precision.force", first.override()).has_value());
  const auto record = session->step();
  ASSERT_TRUE(record.has_value());
  EXPECT_FALSE(record->skipped());
  EXPECT_NEAR(record->loss(), 1.26, 1e-2);
}

// Of 16 gradients in float16 without a loss scale those that are too small for it are zero.
TEST(PrecisionStudy, CountsWhatIsFlushedToZero) {
  auto session = sessionOf(floats("x", {4, 1}, {1e-3f, 1e-9f, 1e-3f, 1e-9f}) + floats("w", {1, 2}, {1, 1}) +
                           node("MatMul", "x w", "y") + node("ReduceSum", "y", "loss", testing::attribute("keepdims", 0)));
  ASSERT_TRUE(session && set(*session, "loss-scale", "off"));
  const auto report = session->lab().precision(question("fp16", -1));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->loss_scale(), 1);
  std::int64_t flushed = 0, compared = 0;
  for (const auto& c : report->classes()) {
    if (c.tensors() != "activation" || c.dtype() != "float16") continue;
    flushed = c.flushed();
    compared = c.compared();
    EXPECT_EQ(c.near_overflow(), 0);
    std::int64_t small = 0;  // of float32, below everything that float16 holds
    for (int i = 0; i < c.reference_counts_size(); ++i) small += c.first_exponent() + i < -25 ? c.reference_counts(i) : 0;
    EXPECT_EQ(small, flushed);
  }
  EXPECT_EQ(flushed, 4) << "half of the product";
  EXPECT_GE(compared, 8);
}

TEST(PrecisionStudy, LeavesABegunStepWhereItStands) {
  auto session = openSession(testing::digits()), other = openSession(testing::digits());
  ASSERT_TRUE(session && other);
  for (Session* s : {session.get(), other.get()}) {
    ASSERT_TRUE(s->step().has_value());
    ASSERT_TRUE(s->beginStep().has_value());
    ASSERT_TRUE(s->runTo(s->stepper().count() - 1).has_value());  // some parameters are new already
  }
  const std::size_t builds = session->log().builds();
  const auto there = session->position();
  const auto paused = session->lab().precision(question("bf16", 1));
  ASSERT_TRUE(paused.has_value()) << paused.error().message;
  EXPECT_EQ(session->log().builds(), builds);
  EXPECT_EQ(session->position().instruction(), there.instruction());
  ASSERT_TRUE(session->finishStep() && other->finishStep());
  EXPECT_EQ(stateBits(*session), stateBits(*other));
  // From the start of that step: what a session that stands there finds.
  ASSERT_TRUE(other->rewind(1).has_value());
  const auto between = other->lab().precision(question("bf16", 1));
  ASSERT_TRUE(between.has_value());
  EXPECT_EQ(paused->error(), between->error());
  EXPECT_EQ(paused->loss(), between->loss());
}

TEST(PrecisionStudy, SaysWhatIsWrong) {
  auto session = openSession(testing::digits());
  ASSERT_TRUE(session);
  const auto unknown = session->lab().precision(question("b16"));
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "precision 'b16': unknown; expected fp32, bf16 or fp16");
  session->cancel();
  const auto cancelled = session->lab().precision(question("bf16"));
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(session->step().has_value()) << "the session goes on";
  auto open = Session::open(testing::digits().model, {}, {});
  ASSERT_TRUE(open.has_value());
  const auto early = (*open)->lab().precision(question("bf16"));
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().message, "precision: nothing was built; build first");
}

TEST(PrecisionForce, TakesBackTheTextThatItShows) {
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "precision.force", "^a b$:fp32", "test").has_value());
  ASSERT_TRUE(applySetting(options, "precision.force", "c:d:bf16", "test").has_value());
  const std::string shown = options.origins.at("precision.force").value;
  TrainOptions again;
  ASSERT_TRUE(applySetting(again, "precision.force", shown, "test").has_value());
  ASSERT_EQ(again.precisionForce.size(), 2u);
  EXPECT_EQ(again.precisionForce[0].regex, "^a b$");
  EXPECT_EQ(again.precisionForce[1].regex, "c:d");
  EXPECT_EQ(again.precisionForce[1].dtype, DType::kBF16);
  EXPECT_FALSE(applySetting(again, "precision.force", "a:fp32 b", "test").has_value());
  TrainOptions none;
  EXPECT_TRUE(applySetting(none, "precision.force", "", "test").has_value());
  EXPECT_TRUE(none.precisionForce.empty());
}

}  // namespace
}  // namespace stepscope
