// Training in bfloat16 and float16 against float32: losses, gradients, what stays in float32, and what it costs in memory.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "engine/build/loss_scale.h"
#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::stateBits;
using testing::TestModel;

std::vector<TestModel> models() {
  std::vector<TestModel> found{testing::digits()};
  for (TestModel& model :
       testing::corpusCases({"mlp", "branching", "bert_mlm", "gpt2_lm", "gpt2_dropout", "mlp_accumulate"}))
    found.push_back(std::move(model));
  return found;
}

class InBfloat16 : public ::testing::TestWithParam<TestModel> {};

// As a user of PyTorch's autocast expects: parameters and optimizer state are float32, the loss is within half a percent.
TEST_P(InBfloat16, TrainsCloseToFloat32) {
  auto wide = openSession(GetParam()), low = openSession(GetParam(), {{"precision", "bf16"}});
  ASSERT_TRUE(wide && low);
  for (int step = 0; step < 3; ++step) {
    const auto a = wide->step(), b = low->step();
    ASSERT_TRUE(a && b) << (b ? "" : b.error().message);
    EXPECT_NEAR(b->loss(), a->loss(), 0.01 * std::abs(a->loss())) << "step " << step;
  }
  EXPECT_NE(stateBits(*wide), stateBits(*low));
  for (const auto& [name, view] : low->trained().named(true)) EXPECT_NE(view.dtype, DType::kBF16) << name;
}

// Gradients of the first step point where those of float32 point (the bounds of the corpus' checker).
TEST_P(InBfloat16, GradientsPointTheSameWay) {
  auto wide = openSession(GetParam()), low = openSession(GetParam(), {{"precision", "bf16"}});
  ASSERT_TRUE(wide && low);
  for (Session* session : {wide.get(), low.get()}) {
    session->keepGradients(true);
    ASSERT_TRUE(session->build() && session->step());
  }
  const auto norm = [](const Tensor& tensor) {
    double sum = 0;
    for (std::int64_t i = 0; i < tensor.elements(); ++i) sum += std::pow(elementAsDouble(tensor.view(), i), 2);
    return std::sqrt(sum);
  };
  double largest = 0;
  std::map<std::string, Tensor> expected;
  for (const auto& [name, view] : wide->trained().named(false))
    if (auto gradient = wide->trained().gradient(name))
      largest = std::max(largest, norm(expected[name] = gradient->clone()));
  ASSERT_GT(expected.size(), 1u);
  for (const auto& [name, g] : expected) {
    const auto found = low->trained().gradient(name);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(found->dtype(), DType::kF32) << name;
    const double length = norm(g);
    if (length < 1e-3 * largest) continue;
    double dot = 0;
    for (std::int64_t i = 0; i < g.elements(); ++i) dot += elementAsDouble(g.view(), i) * elementAsDouble(found->view(), i);
    EXPECT_GE(dot / (length * norm(*found)), 0.99) << name;
  }
}

// A weight that an exporter stores transposed is read where it lies, in either precision.
TEST_P(InBfloat16, TransposesNoMoreThanFloat32) {
  const auto transposes = [](const Session& session) {
    const Stepper& stepper = session.stepper();
    const auto& instructions = stepper.plan().instructions;
    return std::count_if(instructions.begin(), instructions.end(),
                         [&](const Instruction& i) { return i.node && stepper.graph().node(i.node).op == "Transpose"; });
  };
  auto wide = openSession(GetParam()), low = openSession(GetParam(), {{"precision", "bf16"}});
  ASSERT_TRUE(wide && low);
  EXPECT_LE(transposes(*low), transposes(*wide));
}

TEST_P(InBfloat16, TheMirrorHasTheBitsOfTheCpu) {
  auto cpu = openSession(GetParam(), {{"precision", "bf16"}}),
       mirror = openSession(GetParam(), {{"precision", "bf16"}, {"device", "mirror"}});
  ASSERT_TRUE(cpu && mirror);
  ASSERT_TRUE(cpu->step() && mirror->step());
  EXPECT_EQ(stateBits(*cpu) == stateBits(*mirror), true);
}

INSTANTIATE_TEST_SUITE_P(Models, InBfloat16, ::testing::ValuesIn(models()),
                         [](const auto& info) { return info.param.name; });

TEST(Precision, WhatIsNotThereIsSaid) {
  TrainOptions options;
  const auto refused = [&](const char* name, const char* value) {
    const Status status = applySetting(options, name, value, "test");
    EXPECT_FALSE(status.has_value()) << name << " " << value;
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(refused("precision", "b16"), "precision 'b16': unknown; expected fp32, bf16 or fp16");
  EXPECT_EQ(refused("loss-scale", "0"), "option 'loss-scale': found '0'; expected auto, dynamic, off or a number above 0");
  EXPECT_EQ(refused("loss-scale", "auto!"),
            "option 'loss-scale': found 'auto!'; expected auto, dynamic, off or a number above 0");
  EXPECT_EQ(refused("precision.force", "MatMul"),
            "option 'precision.force': found 'MatMul'; expected REGEX:fp32, REGEX:bf16 or REGEX:fp16");
  refused("precision.force", "(:fp32");
  refused("precision.force", "MatMul:fp8");
  refused("loss-scale.init", "0");
  refused("loss-scale.growth", "0.5");
  refused("loss-scale.backoff", "2");
  refused("loss-scale.window", "0");
  EXPECT_EQ(options.precision, "fp32");
}

// The rule of torch.amp.GradScaler: update() after a clean step, after one that overflowed.
TEST(LossScale, GrowsAndShrinksAsGradScalerDoes) {
  TrainOptions options;
  EXPECT_FALSE(scalesLoss(options));
  EXPECT_EQ(lossScaleFactor(options, {}), 1);
  options.precision = "fp16";
  options.lossScaleWindow = 3;
  ASSERT_TRUE(scalesLoss(options));
  EXPECT_TRUE(findsLossScale(options, {}));
  options.lossScaleInit = 65536;
  EXPECT_FALSE(findsLossScale(options, {}));
  LossScale scale;
  std::vector<double> factors;
  for (const bool finite : {false, false, true, true, true, true, true, false, true, true, true}) {
    factors.push_back(lossScaleFactor(options, scale));
    scale = lossScaleAfter(options, scale, finite);
  }
  EXPECT_EQ(factors, (std::vector<double>{65536, 32768, 16384, 16384, 16384, 32768, 32768, 32768, 16384, 16384, 16384}));
  EXPECT_EQ(scale.factor, 32768);
  options.lossScale = "128";
  EXPECT_EQ(lossScaleFactor(options, scale), 128);
  EXPECT_EQ(lossScaleAfter(options, scale, false), scale) << "a given number stays";
  options.lossScale = "off";
  EXPECT_FALSE(scalesLoss(options));
}

class InFloat16 : public ::testing::TestWithParam<TestModel> {};

TEST_P(InFloat16, TrainsCloseToFloat32) {
  auto wide = openSession(GetParam()), low = openSession(GetParam(), {{"precision", "fp16"}, {"loss-scale.init", "1024"}});
  ASSERT_TRUE(wide && low);
  low->keepGradients(true);
  ASSERT_TRUE(low->build().has_value());
  for (int step = 0; step < 3; ++step) {
    const auto a = wide->step(), b = low->step();
    ASSERT_TRUE(a && b) << (b ? "" : b.error().message);
    EXPECT_NEAR(b->loss(), a->loss(), 0.01 * std::abs(a->loss())) << "step " << step;
    EXPECT_EQ(b->loss_scale(), 1024);
    EXPECT_FALSE(b->skipped());
    EXPECT_EQ(b->updated(), a->updated());
  }
  for (const auto& [name, view] : low->trained().named(true)) EXPECT_NE(view.dtype, DType::kF16) << name;
}

TEST_P(InFloat16, StatisticsOfGradientsAreWithoutTheScale) {
  auto wide = openSession(GetParam(), {{"record.statistics", "1"}}),
       low = openSession(GetParam(), {{"record.statistics", "1"}, {"precision", "fp16"}, {"loss-scale", "256"}});
  ASSERT_TRUE(wide && low);
  const auto norms = [](const Result<snapshot::StepRecord>& record) {
    std::map<std::string, double> found;
    for (const auto& s : record->statistics())
      if (s.kind() == "gradient") found[s.of()] = s.statistics().norm();
    return found;
  };
  const auto a = wide->step(), b = low->step();
  ASSERT_TRUE(a && b);
  const auto exact = norms(a), found = norms(b);
  ASSERT_EQ(exact.size(), found.size());
  double largest = 0;
  for (const auto& [name, norm] : exact) largest = std::max(largest, norm);
  ASSERT_GT(largest, 0);
  for (const auto& [name, norm] : exact) EXPECT_NEAR(found.at(name), norm, 0.03 * norm + 1e-3 * largest) << name;
}

// An update whose gradients overflowed changes nothing, says so, and the scale shrinks until one does not.
TEST_P(InFloat16, UpdatesThatOverflowAreSkipped) {
  auto session =
      openSession(GetParam(), {{"precision", "fp16"}, {"loss-scale.init", "1e10"}, {"loss-scale.backoff", "0.001"}});
  ASSERT_TRUE(session);
  const auto parameters = [&] {
    std::map<std::string, Tensor> copies;
    for (const ParameterChoice& p : session->plans().parameters()) {
      const std::string& name = session->imported().value(p.value).name;
      if (const auto named = session->trained().named(true); p.trained && named.contains(name))
        copies[name] = Tensor(named.at(name).dtype, named.at(name).dims, nullptr, named.at(name).data).clone();
    }
    return copies;
  };
  const auto before = parameters();
  int skipped = 0, updated = 0;
  double scale = 1e10;
  for (int step = 0; step < 16 && updated < 2; ++step) {
    const auto record = session->step();
    ASSERT_TRUE(record.has_value()) << record.error().message;
    EXPECT_DOUBLE_EQ(record->loss_scale(), scale);
    EXPECT_TRUE(std::isfinite(record->loss()));
    if (record->skipped()) {
      EXPECT_FALSE(record->updated());
      scale *= 0.001;
      ++skipped;
      for (const auto& [name, tensor] : parameters())
        EXPECT_EQ(std::memcmp(tensor.data(), before.at(name).data(), tensor.bytes()), 0) << name;
    }
    updated += record->updated();
  }
  EXPECT_GT(skipped, 0);
  EXPECT_EQ(updated, 2);
  int told = 0;
  for (const snapshot::Alert& alert : session->alerts()) {
    EXPECT_NE(alert.code(), "inf") << alert.message();
    if (alert.code() != "update_skipped") continue;
    ++told;
    EXPECT_NE(alert.message().find("not finite at loss scale"), std::string::npos) << alert.message();
    EXPECT_GE(alert.instruction(), 0);
  }
  EXPECT_EQ(told, skipped);
}

// No loss scale helps a weight that is no number: the alert names it, and nothing is written.
TEST_P(InFloat16, AMasterWeightThatIsNoNumberIsNamed) {
  auto session = openSession(GetParam(), {{"precision", "fp16"}, {"loss-scale.init", "64"}, {"accumulate", "1"}});
  ASSERT_TRUE(session && session->step());
  std::string name;
  for (const ParameterChoice& p : session->plans().parameters())
    if (p.trained && name.empty()) name = session->imported().value(p.value).name;
  ASSERT_TRUE(editValue(session->stepper(), session->findValue(name), {}, NAN, true).has_value());
  const auto trained = [&] {  // the forward pass writes running statistics, whatever comes of the update
    std::string bits;
    for (const auto& [key, view] : session->trained().named(false))
      for (const ParameterChoice& p : session->plans().parameters())
        if (p.trained && session->imported().value(p.value).name == key)
          bits.append(static_cast<const char*>(view.data), view.bytes());
    return bits;
  };
  const std::string before = trained();
  const auto record = session->step();
  ASSERT_TRUE(record.has_value()) << record.error().message;
  EXPECT_FALSE(std::isfinite(record->loss()));  // whatever stands behind a product, Relu too, hands NaN on
  EXPECT_TRUE(record->skipped());
  EXPECT_TRUE(trained() == before);
  const std::string expected = "update skipped: parameter '" + name + "' holds NaN or infinity";
  EXPECT_TRUE(std::ranges::any_of(session->alerts(), [&](const snapshot::Alert& alert) {
    return alert.code() == "update_skipped" && alert.message().starts_with(expected);
  }));
}

// The first batch decides where the scale begins: nothing is skipped, and nothing of the search stays.
TEST_P(InFloat16, TheFirstScaleIsFoundWithTheFirstBatch) {
  auto found = openSession(GetParam(), {{"precision", "fp16"}});
  ASSERT_TRUE(found);
  const auto first = found->step();
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_FALSE(first->skipped());
  EXPECT_LE(first->loss_scale(), 65536);
  auto given = openSession(GetParam(), {{"precision", "fp16"}, {"loss-scale.init", fmt::format("{}", first->loss_scale())}});
  ASSERT_TRUE(given && given->step());
  EXPECT_EQ(stateBits(*found) == stateBits(*given), true);
}

// Every node in float32 by option precision.force is float32.
TEST_P(InFloat16, WhatIsForcedIsComputedAsForced) {
  auto wide = openSession(GetParam(), {{"loss-scale", "64"}}),
       forced = openSession(GetParam(), {{"loss-scale", "64"}, {"precision", "fp16"}, {"precision.force", ".:fp32"}}),
       low =
           openSession(GetParam(), {{"loss-scale", "64"}, {"precision", "fp16"}, {"precision.force", "no such node:fp32"}});
  ASSERT_TRUE(wide && forced && low);
  ASSERT_TRUE(wide->step() && forced->step() && low->step());
  EXPECT_EQ(stateBits(*wide) == stateBits(*forced), true);
  EXPECT_EQ(stateBits(*wide) == stateBits(*low), false);
  const auto& alerts = low->alerts();
  EXPECT_TRUE(std::any_of(alerts.begin(), alerts.end(), [](const snapshot::Alert& alert) {
    return alert.message() == "option 'precision.force': 'no such node' matches no op, node or module";
  }));
}

// By hand, with a way back in the middle, and from a file: the same bits, and the same scale.
TEST_P(InFloat16, StepsBothWaysAndResumesBitForBit) {
  const std::map<std::string, std::string> settings{
      {"precision", "fp16"}, {"loss-scale.init", "1e9"}, {"clip-grad-norm", "1"}};
  auto straight = openSession(GetParam(), settings), walked = openSession(GetParam(), settings),
       resumed = openSession(GetParam(), settings);
  ASSERT_TRUE(straight && walked && resumed);
  const auto path =
      std::filesystem::temp_directory_path() / ("precision_state_" + std::to_string(getpid()) + ".safetensors");
  for (int step = 0; step < 4; ++step) {
    const auto a = straight->step();
    ASSERT_TRUE(a.has_value()) << a.error().message;
    ASSERT_TRUE(walked->beginStep().has_value());
    const int count = walked->stepper().count();
    for (const int place : {count, count / 2, count - 1, 1}) ASSERT_TRUE(walked->runTo(place).has_value());
    const auto b = walked->finishStep();
    ASSERT_TRUE(b.has_value()) << b.error().message;
    EXPECT_EQ(a->loss_scale(), b->loss_scale());
    EXPECT_EQ(a->skipped(), b->skipped());
    EXPECT_EQ(stateBits(*straight) == stateBits(*walked), true) << "step " << step;
    if (step == 1) {
      ASSERT_TRUE(straight->trained().save(path).has_value());
      ASSERT_TRUE(resumed->trained().load(path, true).has_value());
    } else if (step > 1) {
      const auto c = resumed->step();
      ASSERT_TRUE(c.has_value()) << c.error().message;
      EXPECT_EQ(c->loss_scale(), a->loss_scale());
      EXPECT_EQ(stateBits(*straight) == stateBits(*resumed), true) << "step " << step;
    }
  }
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Models, InFloat16, ::testing::ValuesIn(models()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
