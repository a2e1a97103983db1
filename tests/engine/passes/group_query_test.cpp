// com.microsoft.GroupQueryAttention against loops in double precision, its gradients against differences of those loops. The
// loops say what ONNX Runtime 1.32 answers; tests/golden/sources has its numbers for two of the forms.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <ostream>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<float>;
using Extents = std::vector<std::int64_t>;
using Operands = std::map<std::string, Numbers>;

constexpr std::int64_t kBatch = 2, kSize = 4, kTablePositions = 9;

struct Form {
  const char* name = "";
  std::int64_t heads = 4, keyHeads = 2, rows = 3, past = 0, total = 3;
  std::vector<std::int64_t> last = {2, 2};  // seqlens_k
  std::int64_t window = -1, turned = 0;     // turned: elements of a head that rotate
  double softcap = 0, scale = 0;
  bool packed = false, interleaved = false, positions = false, bias = false, causal = true, presents = false;
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

std::int64_t countOf(const Extents& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

// Even numbers without a pattern, never 0.
Numbers wave(const Extents& dims, double phase) {
  Numbers values(static_cast<std::size_t>(countOf(dims)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<float>(std::sin(1.7 * static_cast<double>(i) + phase) + 0.3 * std::cos(0.9 * static_cast<double>(i)));
  return values;
}

const std::vector<std::int64_t> kPositions{2, 0, 1, 1, 3, 0};  // by batch and row

std::map<std::string, Extents> extentsOf(const Form& f) {
  std::map<std::string, Extents> dims{{"q", {kBatch, f.rows, f.heads * kSize}},
                                      {"k", {kBatch, f.rows, f.keyHeads * kSize}},
                                      {"v", {kBatch, f.rows, f.keyHeads * kSize}},
                                      {"c", {kBatch, f.rows, f.heads * kSize}}};
  if (f.packed) {
    dims["q"].back() = (f.heads + 2 * f.keyHeads) * kSize;
    dims.erase("k");
    dims.erase("v");
  }
  if (f.past > 0) dims["pk"] = dims["pv"] = {kBatch, f.keyHeads, f.past, kSize};
  if (f.turned > 0) dims["cos"] = dims["sin"] = {kTablePositions, f.turned / 2};
  if (f.bias) dims["bias"] = {1, f.heads, f.rows, f.total};
  if (f.presents) dims["ck"] = dims["cv"] = {kBatch, f.keyHeads, std::max(f.total, f.past), kSize};
  return dims;
}

// Σ result·c, and where the form has them, Σ present_key·ck + Σ present_value·cv.
double lossOf(const Form& f, const Operands& x) {
  const std::int64_t width = (f.packed ? f.heads + 2 * f.keyHeads : f.heads) * kSize;
  const auto at = [](const Numbers& numbers, std::int64_t i) -> double { return numbers[static_cast<std::size_t>(i)]; };
  // Element d of head h in row i, before it is turned.
  const auto raw = [&](char what, std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t d) {
    if (what == 'q') return at(x.at("q"), (b * f.rows + i) * width + h * kSize + d);
    if (!f.packed) return at(x.at(what == 'k' ? "k" : "v"), ((b * f.rows + i) * f.keyHeads + h) * kSize + d);
    return at(x.at("q"), (b * f.rows + i) * width + (f.heads + (what == 'v' ? f.keyHeads : 0) + h) * kSize + d);
  };
  double loss = 0;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    const std::int64_t length = f.last[static_cast<std::size_t>(b)] + 1;
    const std::int64_t before = f.past > 0 ? std::max<std::int64_t>(0, length - f.rows) : 0;
    const auto fresh = [&](char what, std::int64_t i, std::int64_t h, std::int64_t d) {
      if (what == 'v' || d >= f.turned) return raw(what, b, i, h, d);
      const std::int64_t half = f.turned / 2, pair = f.interleaved ? d / 2 : d % half;
      const bool first = f.interleaved ? d % 2 == 0 : d < half;
      const std::int64_t other = f.interleaved ? d + (first ? 1 : -1) : d + (first ? half : -half);
      const std::int64_t position = f.positions ? kPositions[static_cast<std::size_t>(b * f.rows + i)] : before + i;
      const double cosine = at(x.at("cos"), position * half + pair), sine = at(x.at("sin"), position * half + pair);
      return cosine * raw(what, b, i, h, d) + (first ? -sine : sine) * raw(what, b, i, h, other);
    };
    // Entry j of keys or values: the past that counts, then the new ones.
    const auto held = [&](char what, std::int64_t j, std::int64_t h, std::int64_t d) {
      if (j >= before) return fresh(what, j - before, h, d);
      return at(x.at(what == 'k' ? "pk" : "pv"), ((b * f.keyHeads + h) * f.past + j) * kSize + d);
    };
    for (std::int64_t h = 0; h < f.heads; ++h)
      for (std::int64_t i = 0; i < f.rows; ++i) {
        const std::int64_t g = h / (f.heads / f.keyHeads);
        std::vector<double> weights(static_cast<std::size_t>(before + f.rows), 0);
        double sum = 0;
        for (std::int64_t j = 0; j < before + f.rows; ++j) {
          const std::int64_t position = before + i;
          if (j >= length || (f.causal && j > position) || (f.window >= 0 && j <= position - f.window)) continue;
          double score = 0;
          for (std::int64_t d = 0; d < kSize; ++d) score += fresh('q', i, h, d) * held('k', j, g, d);
          score *= f.scale != 0 ? f.scale : 1 / std::sqrt(static_cast<double>(kSize));
          if (f.softcap != 0) score = f.softcap * std::tanh(score / f.softcap);
          if (f.bias) score += at(x.at("bias"), (h * f.rows + i) * f.total + j);
          sum += weights[static_cast<std::size_t>(j)] = std::exp(score);
        }
        for (std::int64_t d = 0; d < kSize && sum > 0; ++d)
          for (std::int64_t j = 0; j < before + f.rows; ++j)
            loss += weights[static_cast<std::size_t>(j)] / sum * held('v', j, g, d) *
                    at(x.at("c"), (b * f.rows + i) * f.heads * kSize + h * kSize + d);
      }
    if (!f.presents) continue;
    const std::int64_t extent = std::max(f.total, f.past);
    for (std::int64_t h = 0; h < f.keyHeads; ++h)
      for (std::int64_t j = 0; j < before + f.rows; ++j)
        for (std::int64_t d = 0; d < kSize; ++d) {
          const std::int64_t place = ((b * f.keyHeads + h) * extent + j) * kSize + d;
          loss += held('k', j, h, d) * at(x.at("ck"), place) + held('v', j, h, d) * at(x.at("cv"), place);
        }
  }
  return loss;
}

std::string modelOf(const Form& f, const Operands& operands, const std::map<std::string, Extents>& dims) {
  std::string text;
  for (const auto& [name, numbers] : operands) text += floats(name, dims.at(name), numbers);
  text += ints("last", {kBatch}, f.last) + ints("total", {}, {f.total});
  if (f.positions) text += ints("positions", {kBatch, f.rows}, kPositions);
  std::string inputs = f.packed ? "q _ _" : "q k v";
  inputs += f.past > 0 ? " pk pv" : " _ _";
  inputs += " last total";
  inputs += f.turned > 0 ? " cos sin" : " _ _";
  inputs += f.positions ? " positions" : " _";
  inputs += f.bias ? " bias" : " _";
  std::string more = "domain: \"com.microsoft\" " + attribute("num_heads", f.heads) + attribute("kv_num_heads", f.keyHeads);
  if (f.window >= 0) more += attribute("local_window_size", f.window);
  if (f.turned > 0) more += attribute("do_rotary", 1);
  if (f.interleaved) more += attribute("rotary_interleaved", 1);
  if (f.softcap != 0) more += realAttribute("softcap", f.softcap);
  if (f.scale != 0) more += realAttribute("scale", f.scale);
  if (!f.causal) more += attribute("causal", std::int64_t{0});
  text += node("GroupQueryAttention", inputs, f.presents ? "y prk prv" : "y _ _", more) + node("Mul", "y c", "yc") +
          node("ReduceSum", "yc", "s", attribute("keepdims", 0));
  if (!f.presents) return text + node("Identity", "s", "loss");
  return text + node("Mul", "prk ck", "kc") + node("ReduceSum", "kc", "sk", attribute("keepdims", 0)) +
         node("Mul", "prv cv", "vc") + node("ReduceSum", "vc", "sv", attribute("keepdims", 0)) +
         node("Sum", "s sk sv", "loss");
}

class GroupQuery : public ::testing::TestWithParam<Form> {};

TEST_P(GroupQuery, ComputesWhatOnnxRuntimeDoesWithItsGradients) {
  const Form& f = GetParam();
  const auto dims = extentsOf(f);
  Operands operands;
  double phase = 0;
  for (const auto& [name, extents] : dims) operands[name] = wave(extents, phase += 1);
  std::vector<std::string> trained;
  for (const char* name : {"q", "k", "v", "pk", "pv", "cos", "bias"})
    if (dims.contains(name)) trained.emplace_back(name);
  const auto step = smallStep(modelOf(f, operands, dims), 17, trained, {1, {{"train", "^(q|k|v|pk|pv|cos|bias)$"}}, {}});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, lossOf(f, operands), 2e-4);
  constexpr float kStep = 1.0F / 128;
  for (const std::string& name : trained) {
    const std::vector<double>& gradient = step->gradients.at(name);
    ASSERT_EQ(gradient.size(), operands[name].size()) << name;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      Operands up = operands, down = operands;
      up[name][i] += kStep;
      down[name][i] -= kStep;
      EXPECT_NEAR(gradient[i], (lossOf(f, up) - lossOf(f, down)) / (2 * kStep), 4e-3) << name << "[" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    RaiseMicrosoft, GroupQuery,
    ::testing::Values(Form{.name = "plain"}, Form{.name = "packed", .packed = true},
                      Form{.name = "padded_prompt", .last = {2, 0}, .presents = true},
                      Form{.name = "one_key_head", .heads = 3, .keyHeads = 1, .softcap = 0.7, .scale = 0.4},
                      Form{.name = "window", .rows = 4, .total = 4, .last = {3, 3}, .window = 2},
                      Form{.name = "empty_window", .window = 0}, Form{.name = "both_ways", .last = {2, 1}, .causal = false},
                      Form{.name = "rotary", .turned = 4, .packed = true},
                      Form{.name = "rotary_interleaved_part", .turned = 2, .interleaved = true},
                      Form{.name = "rotary_positions", .turned = 4, .positions = true}, Form{.name = "bias", .bias = true},
                      Form{.name = "past", .rows = 1, .past = 3, .total = 4, .last = {3, 3}, .presents = true},
                      Form{.name = "past_of_different_lengths",
                           .rows = 1,
                           .past = 4,
                           .total = 5,
                           .last = {4, 2},
                           .turned = 4,
                           .presents = true},
                      Form{.name = "past_in_a_larger_buffer",
                           .rows = 2,
                           .past = 5,
                           .total = 4,
                           .last = {3, 3},
                           .window = 2,
                           .bias = true,
                           .presents = true},
                      Form{.name = "prompt_in_a_buffer",
                           .rows = 3,
                           .past = 5,
                           .total = 3,
                           .last = {2, 1},
                           .packed = true,
                           .presents = true}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(GroupQueryAttention, NamesWhatItCannotCompute) {
  const std::string operands = floats("q", {1, 2, 4}, wave({8}, 0)) + floats("k", {1, 2, 4}, wave({8}, 1)) +
                               ints("last", {1}, {1}) + ints("total", {}, {2}) + floats("sink", {1}, {1});
  const std::string one = attribute("num_heads", 1) + attribute("kv_num_heads", 1);
  const auto refused = [&](const std::string& inputs, const std::string& outputs, const std::string& more) {
    const auto step =
        smallStep(operands + node("GroupQueryAttention", inputs, outputs, "domain: \"com.microsoft\" " + more) +
                      node("ReduceSum", "y", "loss", attribute("keepdims", 0)),
                  17, {"q"});
    EXPECT_FALSE(step.has_value());
    return step.has_value() ? std::string() : step.error().message;
  };
  const auto expect = [&](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refused("q k k _ _ last total _ _ _ _ sink", "y", one), "input 11 (head_sink); expected query, key and value");
  expect(refused("q k k _ _ last total", "y", one + attribute("smooth_softmax", 1)), "smooth_softmax = 1");
  expect(refused("q k k _ _ last total", "y", one + textAttribute("k_quant_type", "PER_TENSOR")),
         "k_quant_type = PER_TENSOR");
  expect(refused("q k k k _ last total", "y", one), "one of past_key and past_value is absent");
  expect(refused("q k _ _ _ last total", "y", one), "one of key and value is absent");
  expect(refused("q k k _ _ _ total", "y", one), "seqlens_k is absent");
  expect(refused("q k k _ _ last total", "y", one + attribute("do_rotary", 1)), "do_rotary without cos_cache and sin_cache");
  expect(refused("q k k _ _ last total", "y", attribute("num_heads", 3) + attribute("kv_num_heads", 2)),
         "num_heads 3 and kv_num_heads 2; expected");
}

}  // namespace
}  // namespace stepscope::testing
