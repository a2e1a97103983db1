// Optimizers, schedules, groups, clipping and accumulation against PyTorch's formulas, written out in double for a quadratic
// loss.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "engine/data/onnxruntime_checkpoint.h"
#include "engine/data/safetensors.h"
#include "engine/train/onnxruntime_artifacts.h"
#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<double>;

// loss = sum of c (p - t)^2 over the tensors a [3] and b [2]; dp = 2 c (p - t).
const std::vector<Numbers> kStart{{1, -2, 0.5}, {3, -1}}, kFactor{{1, 0.5, 2}, {0.25, 4}}, kTarget{{0.25, 1, -1}, {2, 0}};

std::string initializer(const std::string& name, const Numbers& values) {
  std::string text = "initializer { name: \"" + name + "\" data_type: 1 dims: " + std::to_string(values.size());
  for (const double value : values) text += " float_data: " + std::to_string(value);
  return text + " } ";
}

std::string node(const std::string& op, const std::string& first, const std::string& second, const std::string& output,
                 const std::string& more = "") {
  return "node { op_type: \"" + op + "\" input: \"" + first + "\" " + (second.empty() ? "" : "input: \"" + second + "\" ") +
         "output: \"" + output + "\" " + more + "} ";
}

std::string quadratic() {
  const std::string scalar = "attribute { name: \"keepdims\" type: INT i: 0 } ";
  std::string text = "ir_version: 8 opset_import { version: 17 } graph { name: \"quadratic\" ";
  for (const auto& [p, k] : {std::pair("a", 0), std::pair("b", 1)}) {
    const std::string name = p;
    const auto at = static_cast<std::size_t>(k);
    text += initializer(name, kStart[at]) + initializer("fixed_c" + name, kFactor[at]) +
            initializer("fixed_t" + name, kTarget[at]) + node("Sub", name, "fixed_t" + name, "d" + name) +
            node("Mul", "d" + name, "d" + name, "q" + name) + node("Mul", "q" + name, "fixed_c" + name, "z" + name) +
            node("ReduceSum", "z" + name, "", "s" + name, scalar);
  }
  return text + node("Add", "sa", "sb", "loss") +
         "output { name: \"loss\" type { tensor_type { elem_type: 1 shape { } } } } }";
}

struct Settings {
  const char* name;
  std::vector<std::pair<std::string, std::string>> options;
  // Changes p for update k (from 0) with gradient g; `memory` is the tensor's own, empty at first.
  std::function<void(int k, Numbers& p, const Numbers& g, Numbers& memory, int tensor)> update;
  int accumulate = 1;
  double clip = 0;
};

void PrintTo(const Settings& settings, std::ostream* out) { *out << settings.name; }

double norm(const Numbers& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

// torch.optim.Adam and AdamW; LAMB (arXiv:1904.00962) multiplies the step by |p| / |step|.
void adam(int k, Numbers& p, const Numbers& g, Numbers& memory, double lr, double b1, double b2, double eps, double decay,
          bool decoupled, bool lamb) {
  memory.resize(2 * p.size());
  Numbers step(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double slope = g[i] + (decoupled || lamb ? 0 : decay * p[i]);
    double &m = memory[2 * i], &v = memory[2 * i + 1];
    m = b1 * m + (1 - b1) * slope;
    v = b2 * v + (1 - b2) * slope * slope;
    step[i] = m / (1 - std::pow(b1, k + 1)) / (std::sqrt(v / (1 - std::pow(b2, k + 1))) + eps) + (lamb ? decay * p[i] : 0);
  }
  const double trust = lamb ? norm(p) / norm(step) : 1;
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= lr * (trust * step[i] + (decoupled ? decay * p[i] : 0));
}

void sgd(Numbers& p, const Numbers& g, double lr) {
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= lr * g[i];
}

std::vector<Settings> all() {
  std::vector<Settings> list;
  list.push_back({"SgdWithMomentumAndDecay",
                  {{"optimizer", "sgd"}, {"lr", "0.05"}, {"momentum", "0.9"}, {"weight-decay", "0.1"}},
                  [](int k, Numbers& p, const Numbers& g, Numbers& memory, int) {
                    if (k == 0) memory.assign(p.size(), 0);  // torch starts with the gradient itself, which is the same
                    for (std::size_t i = 0; i < p.size(); ++i)
                      p[i] -= 0.05 * (memory[i] = 0.9 * memory[i] + g[i] + 0.1 * p[i]);
                  }});
  list.push_back({"NesterovOverTwoMicroSteps",
                  {{"optimizer", "sgd"}, {"lr", "0.05"}, {"momentum", "0.9"}, {"nesterov", "on"}, {"accumulate", "2"}},
                  [](int k, Numbers& p, const Numbers& g, Numbers& memory, int) {
                    if (k == 0) memory.assign(p.size(), 0);
                    for (std::size_t i = 0; i < p.size(); ++i) {
                      memory[i] = 0.9 * memory[i] + g[i];
                      p[i] -= 0.05 * (g[i] + 0.9 * memory[i]);
                    }
                  },
                  2});
  list.push_back({"AdamWithDecayInTheGradient",
                  {{"optimizer", "adam"}, {"lr", "0.1"}, {"weight-decay", "0.1"}, {"betas", "0.8,0.95"}, {"eps", "1e-6"}},
                  [](int k, Numbers& p, const Numbers& g, Numbers& memory, int) {
                    adam(k, p, g, memory, 0.1, 0.8, 0.95, 1e-6, 0.1, false, false);
                  }});
  list.push_back(
      {"AdamWOfTheDefaults", {{"optimizer", "adamw"}}, [](int k, Numbers& p, const Numbers& g, Numbers& memory, int) {
         adam(k, p, g, memory, 0.001, 0.9, 0.999, 1e-8, 0.01, true, false);
       }});
  list.push_back({"Lamb",
                  {{"optimizer", "lamb"}, {"lr", "0.1"}, {"weight-decay", "0.1"}},
                  [](int k, Numbers& p, const Numbers& g, Numbers& memory, int) {
                    adam(k, p, g, memory, 0.1, 0.9, 0.999, 1e-6, 0.1, false, true);
                  }});
  list.push_back({"ClippingByTheNormOfAll",
                  {{"optimizer", "sgd"}, {"lr", "0.5"}, {"clip-grad-norm", "1"}},
                  [](int, Numbers& p, const Numbers& g, Numbers&, int) { sgd(p, g, 0.5); },
                  1,
                  1});
  list.push_back(
      {"GroupsInTheirOrder",
       {{"optimizer", "sgd"}, {"lr", "0.1"}, {"group", "^b$:lr=0.02,weight_decay=0.5"}, {"group", ".:weight_decay=0.25"}},
       [](int, Numbers& p, Numbers g, Numbers&, int tensor) {
         for (std::size_t i = 0; i < p.size(); ++i) g[i] += (tensor == 1 ? 0.5 : 0.25) * p[i];
         sgd(p, g, tensor == 1 ? 0.02 : 0.1);
       }});
  // Eight updates, the first two of them warm-up: the rate is right from the first one on.
  const auto scheduled = [&](const char* name, const char* schedule, double (*factor)(double done)) {
    list.push_back(
        {name,
         {{"optimizer", "sgd"}, {"lr", "0.1"}, {"lr-schedule", schedule}, {"warmup-steps", "2"}, {"total-steps", "8"}},
         [factor](int k, Numbers& p, const Numbers& g, Numbers&, int) {
           sgd(p, g, 0.1 * (k < 2 ? (k + 1) / 2.0 : factor(std::min(1.0, (k - 2) / 6.0))));
         }});
  };
  scheduled("ConstantAfterWarmUp", "constant", [](double) { return 1.0; });
  scheduled("Linear", "linear", [](double done) { return 1 - done; });
  scheduled("Cosine", "cosine", [](double done) { return (1 + std::cos(std::numbers::pi * done)) / 2; });
  scheduled("Polynomial", "polynomial", [](double done) { return (1 - done) * (1 - done); });
  scheduled("Step", "step", [](double done) { return std::pow(0.1, std::min(2.0, std::floor(3 * done + 1e-9))); });
  return list;
}

class Optimizer : public ::testing::TestWithParam<Settings> {};

TEST_P(Optimizer, FollowsItsFormula) {
  const Settings& settings = GetParam();
  onnx::ModelProto model;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(quadratic(), &model));
  const TemporaryFolder folder;
  const auto session = Session::open(folder.write("m.onnx", model.SerializeAsString()), {}, {});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "freeze", "^fixed_", "test").has_value());
  for (const auto& [name, value] : settings.options)
    ASSERT_TRUE(applySetting(options, name, value, "test").has_value()) << name;
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();
  ASSERT_TRUE(built.has_value()) << built.error().message;

  std::vector<Numbers> p = kStart, memory(2), sum(2);
  for (int k = 0; k < 10; ++k) {
    for (std::size_t t = 0; t < 2; ++t) {
      sum[t].resize(p[t].size());
      for (std::size_t i = 0; i < p[t].size(); ++i)
        sum[t][i] += 2 * kFactor[t][i] * (p[t][i] - kTarget[t][i]) / settings.accumulate;
    }
    ASSERT_TRUE((*session)->step().has_value());
    if ((k + 1) % settings.accumulate == 0) {
      if (settings.clip > 0) {
        const double scale = std::min(1.0, settings.clip / (std::hypot(norm(sum[0]), norm(sum[1])) + 1e-6));
        for (Numbers& g : sum)
          for (double& x : g) x *= scale;
      }
      for (int t : {0, 1})
        settings.update(k / settings.accumulate, p[static_cast<std::size_t>(t)], sum[static_cast<std::size_t>(t)],
                        memory[static_cast<std::size_t>(t)], t);
      sum = std::vector<Numbers>(2);
    }
    const auto state = (*session)->trained().named(false);
    for (std::size_t t = 0; t < 2; ++t)
      for (std::size_t i = 0; i < p[t].size(); ++i)
        EXPECT_NEAR(elementAsDouble(state.at(t == 0 ? "a" : "b"), static_cast<std::int64_t>(i)), p[t][i], 2e-5)
            << "tensor " << t << " element " << i << " after step " << k;
  }
}

// The quadratic, trained with changing settings and compared with the formulas after every step.
class Changes : public ::testing::Test {
 protected:
  void SetUp() override {
    onnx::ModelProto model;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(quadratic(), &model));
    file_ = folder_.write("m.onnx", model.SerializeAsString());
    session_ = open();
  }
  std::unique_ptr<Session> open() {
    auto session = Session::open(file_, {}, {});
    EXPECT_TRUE(session.has_value()) << session.error().message;
    return session ? std::move(*session) : nullptr;
  }
  static Status set(Session& session, const std::vector<std::pair<std::string, std::string>>& settings) {
    TrainOptions options;
    SS_TRY(applySetting(options, "freeze", "^fixed_", "test"));
    for (const auto& [name, value] : settings) SS_TRY(applySetting(options, name, value, "test"));
    SS_TRY(session.setOptions(options));
    return session.build();
  }
  void set(const std::vector<std::pair<std::string, std::string>>& settings) {
    const Status built = set(*session_, settings);
    ASSERT_TRUE(built.has_value()) << built.error().message;
  }
  Numbers gradient(int t) const {
    Numbers g(p_[at(t)].size());
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = 2 * kFactor[at(t)][i] * (p_[at(t)][i] - kTarget[at(t)][i]);
    return g;
  }
  static std::size_t at(int t) { return static_cast<std::size_t>(t); }
  void adamStep(int k, int t) { adam(k, p_[at(t)], gradient(t), memory_[at(t)], 0.1, 0.9, 0.999, 1e-8, 0, false, false); }
  void step() {
    ASSERT_TRUE(session_->beginStep().has_value());
    const auto done = session_->finishStep();
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }
  void agrees(const char* when) const {
    const auto state = session_->trained().named(false);
    for (int t : {0, 1})
      for (std::size_t i = 0; i < p_[at(t)].size(); ++i)
        EXPECT_NEAR(elementAsDouble(state.at(t == 0 ? "a" : "b"), static_cast<std::int64_t>(i)), p_[at(t)][i], 2e-5)
            << when << ", tensor " << t << " element " << i;
  }

  TemporaryFolder folder_;
  std::filesystem::path file_;
  std::unique_ptr<Session> session_;
  std::vector<Numbers> p_ = kStart, memory_ = std::vector<Numbers>(2);
};

// As a new optimizer of PyTorch: moments of zero at their first update.
TEST_F(Changes, MomentsOfAnotherOptimizerBeginWithTheirFirstUpdate) {
  set({{"optimizer", "sgd"}, {"lr", "0.05"}});
  for (int k = 0; k < 10; ++k) {
    step();
    for (int t : {0, 1}) sgd(p_[at(t)], gradient(t), 0.05);
  }
  agrees("sgd");
  const std::vector<std::pair<std::string, std::string>> adamSettings{{"optimizer", "adam"}, {"lr", "0.1"}};
  set(adamSettings);
  const auto saved = (folder_.path() / "unstepped.safetensors").string();
  ASSERT_TRUE(session_->trained().save(saved).has_value());
  for (int k = 0; k < 3; ++k) {
    step();
    for (int t : {0, 1}) adamStep(k, t);
    agrees("adam");
  }
  // Files know it too: of moments that had no update yet, and of some that had.
  const auto half = (folder_.path() / "half.safetensors").string();
  ASSERT_TRUE(session_->trained().save(half).has_value());
  for (const std::string& from : {saved, half}) {
    const auto other = open();
    ASSERT_TRUE(other && other->trained().load(from, true).has_value() && set(*other, adamSettings).has_value());
    if (from == half) {
      step();
      for (int t : {0, 1}) adamStep(3, t);
    }
    for (int k = 0; k < (from == half ? 1 : 3); ++k) ASSERT_TRUE(other->step().has_value());
    session_->trained().named(false);
    for (const auto& [name, view] : other->trained().named(false))
      for (std::int64_t i = 0; i < view.elements(); ++i)
        EXPECT_EQ(elementAsDouble(view, i), elementAsDouble(session_->trained().named(false).at(name), i)) << from << name;
  }
  agrees("after the file");
}

TEST_F(Changes, AParameterThatIsTrainedLaterHasMomentsOfItsOwnAge) {
  const auto frozen = [&](const char* more) {
    return std::vector<std::pair<std::string, std::string>>{
        {"optimizer", "adam"}, {"lr", "0.1"}, {"freeze", std::string("^fixed_") + more}};
  };
  set(frozen("|^b$"));
  for (int k = 0; k < 4; ++k) {
    step();
    adamStep(k, 0);
  }
  const auto then = p_, moments = memory_;
  set(frozen(""));
  for (int k = 4; k < 7; ++k) {
    step();
    adamStep(k, 0);
    adamStep(k - 4, 1);
    agrees("both");
  }
  // Moments that rest keep their number.
  set(frozen("|^a$"));
  step();
  adamStep(3, 1);
  set(frozen(""));
  step();
  adamStep(7, 0);
  adamStep(4, 1);
  agrees("after a rest");
  // A rewind behind the change: the moments are those of then.
  ASSERT_TRUE(session_->rewind(4).has_value());
  p_ = then;
  memory_ = moments;
  for (int k = 4; k < 6; ++k) {
    step();
    adamStep(k, 0);
    adamStep(k - 4, 1);
    agrees("after a rewind");
  }
}

// A sum is kept times the loss scale of its round; with another one it is converted.
TEST_F(Changes, ALossScaleChangesInsideAnAccumulation) {
  const auto scaled = [](const char* scale) {
    return std::vector<std::pair<std::string, std::string>>{
        {"optimizer", "sgd"}, {"lr", "0.05"}, {"accumulate", "3"}, {"loss-scale", scale}};
  };
  const auto round = [&] {
    for (int t : {0, 1}) sgd(p_[at(t)], gradient(t), 0.05);
  };
  const auto file = (folder_.path() / "round.safetensors").string();
  for (const auto& [first, second] : {std::pair("1024", "off"), std::pair("off", "1024"), std::pair("16", "dynamic")}) {
    session_ = open();
    p_ = kStart;
    set(scaled(first));
    for (int k = 0; k < 5; ++k) step();
    round();
    agrees(first);
    ASSERT_TRUE(session_->trained().save(file).has_value());
    set(scaled(second));
    step();
    round();
    agrees(second);
    session_ = open();
    ASSERT_TRUE(session_->trained().load(file, true).has_value());
    set(scaled(second));
    step();
    agrees("from the file");
  }
}

// Builds of before did not note what a round of accumulation has, and at which loss scale.
TEST_F(Changes, ARoundOfAnOlderFileIsRightOrSaysWhatIsUnknown) {
  const auto scaled = [](const char* scale) {
    return std::vector<std::pair<std::string, std::string>>{
        {"optimizer", "sgd"}, {"lr", "0.05"}, {"accumulate", "3"}, {"loss-scale", scale}};
  };
  const auto file = folder_.path() / "new.safetensors", older = folder_.path() / "older.safetensors";
  const auto saidOf = [](const Session& session, std::string_view what) {
    return std::ranges::any_of(session.alerts(), [&](const snapshot::Alert& alert) {
      return alert.code() == "state_incomplete" && alert.message().find(what) != std::string::npos;
    });
  };
  for (const auto& [first, second, known] : {std::tuple("dynamic", "1024", true), std::tuple("1024", "1024", false)}) {
    session_ = open();
    p_ = kStart;
    set(scaled(first));
    for (int k = 0; k < 5; ++k) step();
    ASSERT_TRUE(session_->trained().save(file.string()).has_value());
    auto saved = readSafetensors(file);
    ASSERT_TRUE(saved.has_value());
    ASSERT_EQ(saved->metadata.erase("stepscope.round_of") + saved->metadata.erase("stepscope.sum_scale"), 2u);
    std::map<std::string, TensorView> views;
    for (auto& [name, tensor] : saved->tensors) views[name] = tensor.view();
    ASSERT_TRUE(writeSafetensors(older, views, saved->metadata).has_value());
    for (const auto& from : {file, older}) {
      session_ = open();
      ASSERT_TRUE(session_->trained().load(from.string(), true).has_value());
      set(scaled(second));
      EXPECT_EQ(saidOf(*session_,
                       "saved after 2 micro steps of an update, by a build that did not note how many it has; "
                       "taken for 3"),
                from == older);
      EXPECT_EQ(saidOf(*session_, "did not note the loss scale of its sums of gradients; taken for "), from == older);
      if (from == older) EXPECT_EQ(saidOf(*session_, "taken for that of this run"), !known);
      step();
    }
    for (int k = 0; k < 2; ++k)
      for (int t : {0, 1}) sgd(p_[at(t)], gradient(t), 0.05);
    agrees("from the older file");
  }
}

// Adam's step is that of its moments, not that of the run.
TEST_F(Changes, ArtifactsForOnnxruntimeHaveTheAgeOfTheMoments) {
  const auto written = [&](std::string_view note) {
    const auto made = writeOnnxruntimeArtifacts(*session_, folder_.path() / "artifacts");
    EXPECT_TRUE(made.has_value()) << made.error().message;
    if (!made) return std::int64_t{-1};
    EXPECT_EQ(!note.empty(), std::ranges::any_of(made->notes, [&](const std::string& text) {
      return text.find(note.empty() ? "moments" : note) != std::string::npos;
    }));
    const auto checkpoint = readOnnxruntimeCheckpoint(folder_.path() / "artifacts" / "checkpoint");
    EXPECT_TRUE(checkpoint.has_value() && checkpoint->groups.size() == 1);
    return checkpoint && checkpoint->groups.size() == 1 ? checkpoint->groups[0].step : -1;
  };
  set({{"optimizer", "sgd"}, {"lr", "0.05"}});
  for (int k = 0; k < 4; ++k) step();
  EXPECT_EQ(written(""), 4) << "sgd counts for its programs alone";
  set({{"optimizer", "adam"}, {"freeze", "^fixed_|^b$"}});
  EXPECT_EQ(written(""), 0);
  for (int k = 0; k < 3; ++k) step();
  EXPECT_EQ(written(""), 3);
  set({{"optimizer", "adam"}});
  for (int k = 0; k < 2; ++k) step();
  EXPECT_EQ(written("moments have had 2 to 5 updates, 'b' the fewest"), 5);
}

// The mean of a round needs the number of gradients with which it began.
TEST_F(Changes, AnotherNumberOfMicroStepsWaitsForTheUpdate) {
  const auto accumulated = [](const char* count) {
    return std::vector<std::pair<std::string, std::string>>{{"optimizer", "sgd"}, {"lr", "0.05"}, {"accumulate", count}};
  };
  set(accumulated("3"));
  for (int k = 0; k < 5; ++k) step();
  const auto file = (folder_.path() / "round.safetensors").string();
  ASSERT_TRUE(session_->trained().save(file).has_value());
  for (const char* other : {"1", "2", "4"}) {
    const auto resumed = open();
    ASSERT_TRUE(resumed->trained().load(file, true).has_value());
    for (Session* session : {session_.get(), resumed.get()}) {
      const Status refused = set(*session, accumulated(other));
      ASSERT_FALSE(refused.has_value()) << other;
      EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
      EXPECT_EQ(refused.error().option, "accumulate");
      EXPECT_NE(refused.error().message.find("step 5 comes after 2 of the 3 micro steps of an update; expected 3 until the "
                                             "update is complete, which is after step 5"),
                std::string::npos)
          << refused.error().message;
    }
  }
  set(accumulated("3"));
  step();
  for (int k = 0; k < 2; ++k)
    for (int t : {0, 1}) sgd(p_[at(t)], gradient(t), 0.05);
  agrees("the round that began");
  set(accumulated("1"));
  step();
  for (int t : {0, 1}) sgd(p_[at(t)], gradient(t), 0.05);
  agrees("another number between two rounds");
  // A rewind may come into a round of before.
  ASSERT_TRUE(session_->rewind(5).has_value());
  const Status begun = session_->beginStep();
  ASSERT_FALSE(begun.has_value());
  EXPECT_EQ(begun.error().option, "accumulate");
}

TEST_F(Changes, AScheduleNeedsItsLengthAndTellsOfItsEnd) {
  for (const char* schedule : {"linear", "cosine", "step", "polynomial"}) {
    const Status refused = set(*session_, {{"lr-schedule", schedule}});
    ASSERT_FALSE(refused.has_value()) << schedule;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().option, "total-steps");
    EXPECT_NE(refused.error().message.find("found 0; expected the number of steps of the whole training"), std::string::npos)
        << refused.error().message;
  }
  set({{"lr-schedule", "linear"}, {"total-steps", "3"}});
  const auto told = [&] {
    return std::ranges::count_if(session_->alerts(), [](const auto& alert) { return alert.code() == "schedule_ended"; });
  };
  for (int k = 0; k < 3; ++k) step();
  EXPECT_EQ(told(), 0);
  for (int k = 0; k < 3; ++k) step();
  EXPECT_EQ(told(), 1);
}

INSTANTIATE_TEST_SUITE_P(Formulas, Optimizer, ::testing::ValuesIn(all()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stepscope::testing
