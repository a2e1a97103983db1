// Optimizers, schedules, groups, clipping and accumulation against PyTorch's formulas, written out in double for a quadratic
// loss.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

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

INSTANTIATE_TEST_SUITE_P(Formulas, Optimizer, ::testing::ValuesIn(all()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stepscope::testing
