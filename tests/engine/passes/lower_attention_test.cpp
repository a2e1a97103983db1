// Attention and RotaryEmbedding of opset 23 and later against loops in double precision, their gradients against differences
// of those loops; and what else newer opsets write. All of ONNX's own node tests of these operators pass too (tests/golden,
// with data of onnx 1.23).
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <ostream>

#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

using Numbers = std::vector<float>;
using Extents = std::vector<std::int64_t>;

// Even numbers without a pattern, never 0.
Numbers wave(const Extents& dims, double phase) {
  Numbers values(static_cast<std::size_t>(std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>())));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<float>(std::sin(1.7 * static_cast<double>(i) + phase) + 0.3 * std::cos(0.9 * static_cast<double>(i)));
  return values;
}

// loss = Σ y·c
std::string weighed(const std::string& y, const Extents& dims) {
  return floats("c", dims, wave(dims, 2)) + node("Mul", y + " c", "yc") +
         node("ReduceSum", "yc", "loss", attribute("keepdims", 0));
}

// What a parameter's gradient should be, by central differences of `loss`.
void expectSlopes(const std::vector<double>& gradient, const Numbers& at,
                  const std::function<double(const Numbers&)>& loss) {
  ASSERT_EQ(gradient.size(), at.size());
  constexpr float kStep = 1.0F / 128;
  for (std::size_t i = 0; i < at.size(); ++i) {
    Numbers up = at, down = at;
    up[i] += kStep;
    down[i] -= kStep;
    EXPECT_NEAR(gradient[i], (loss(up) - loss(down)) / (2 * kStep), 2e-3) << i;
  }
}

struct Attention {
  const char* name = "";
  bool packed = false, causal = false;
  std::int64_t queryHeads = 2, keyHeads = 2, queries = 3, keys = 3, past = 0, left = -1, right = -1;
  std::vector<std::int64_t> filled = {};  // nonpad_kv_seqlen, by batch
  double softcap = 0, scale = 0;
  bool truths = false, numbers = false;  // attn_mask
  std::int64_t masked = 0;               // extent of its last axis; 0: all keys
};

void PrintTo(const Attention& attention, std::ostream* out) { *out << attention.name; }

constexpr std::int64_t kBatch = 2, kSize = 4, kValueSize = 3;

// Element (b, h, t, d) of an operand that is packed or not.
std::size_t place(const Attention& a, std::int64_t heads, std::int64_t length, std::int64_t size, std::int64_t b,
                  std::int64_t h, std::int64_t t, std::int64_t d) {
  return static_cast<std::size_t>(a.packed ? ((b * length + t) * heads + h) * size + d
                                           : ((b * heads + h) * length + t) * size + d);
}

bool truthAt(std::int64_t b, std::int64_t i, std::int64_t j) {
  return (b + 2 * i + 3 * j) % 4 != 0 && !(b == 1 && i == 1);
}  // one row of nothing
double numberAt(std::int64_t i, std::int64_t j) { return 0.5 * std::sin(static_cast<double>(3 * i + j)); }

double lossOf(const Attention& a, const Numbers& q, const Numbers& k, const Numbers& v, const Numbers& pastK,
              const Numbers& pastV) {
  const std::int64_t all = a.past + a.keys, masked = a.masked ? a.masked : all;
  const Numbers c = wave({static_cast<std::int64_t>(kBatch * a.queryHeads * a.queries * kValueSize)}, 2);
  Attention unpacked = a;
  unpacked.packed = false;
  const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(kSize));
  double loss = 0;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t h = 0; h < a.queryHeads; ++h)
      for (std::int64_t i = 0; i < a.queries; ++i) {
        const std::int64_t g = h / (a.queryHeads / a.keyHeads);
        const auto key = [&](std::int64_t j, std::int64_t d) -> double {
          return j < a.past ? pastK[place(unpacked, a.keyHeads, a.past, kSize, b, g, j, d)]
                            : k[place(a, a.keyHeads, a.keys, kSize, b, g, j - a.past, d)];
        };
        const auto value = [&](std::int64_t j, std::int64_t d) -> double {
          return j < a.past ? pastV[place(unpacked, a.keyHeads, a.past, kValueSize, b, g, j, d)]
                            : v[place(a, a.keyHeads, a.keys, kValueSize, b, g, j - a.past, d)];
        };
        const std::int64_t filled = a.filled.empty() ? all : a.filled[static_cast<std::size_t>(b)];
        const std::int64_t offset = a.past > 0 ? a.past : a.filled.empty() ? 0 : filled - a.queries;
        std::vector<double> weight(static_cast<std::size_t>(all), 0);
        double sum = 0;
        for (std::int64_t j = 0; j < all; ++j) {
          bool allowed = j < filled && (!a.causal || j <= i + offset) && (a.left < 0 || j >= i + offset - a.left) &&
                         (a.right < 0 || j <= i + offset + a.right);
          if ((a.truths || a.numbers) && j >= masked) allowed = false;
          if (a.truths && !truthAt(b, i, j)) allowed = false;
          if (!allowed) continue;
          double score = 0;
          for (std::int64_t d = 0; d < kSize; ++d)
            score += scale * q[place(a, a.queryHeads, a.queries, kSize, b, h, i, d)] * key(j, d);
          if (a.softcap != 0) score = a.softcap * std::tanh(score / a.softcap);
          if (a.numbers) score += numberAt(i, j);
          sum += weight[static_cast<std::size_t>(j)] = std::exp(score);
        }
        for (std::int64_t d = 0; d < kValueSize; ++d) {
          double y = 0;
          for (std::int64_t j = 0; j < all && sum > 0; ++j) y += weight[static_cast<std::size_t>(j)] / sum * value(j, d);
          loss += y * c[place(a, a.queryHeads, a.queries, kValueSize, b, h, i, d)];
        }
      }
  return loss;
}

std::string maskOf(const Attention& a) {
  const std::int64_t width = a.masked ? a.masked : a.past + a.keys;
  Numbers numbers;
  if (a.numbers) {
    for (std::int64_t i = 0; i < a.queries; ++i)
      for (std::int64_t j = 0; j < width; ++j) numbers.push_back(static_cast<float>(numberAt(i, j)));
    return floats("mask", {a.queries, width}, numbers);
  }
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t i = 0; i < a.queries; ++i)
      for (std::int64_t j = 0; j < width; ++j) numbers.push_back(truthAt(b, i, j) ? 1.0F : 0.0F);
  return floats("mask01", {kBatch, 1, a.queries, width}, numbers) + node("Cast", "mask01", "mask", attribute("to", 9));
}

class AttentionForms : public ::testing::TestWithParam<Attention> {};

TEST_P(AttentionForms, ComputesWhatOnnxSaysWithItsGradients) {
  const Attention& a = GetParam();
  const auto dims = [&](std::int64_t heads, std::int64_t length, std::int64_t size) -> Extents {
    return a.packed ? Extents{kBatch, length, heads * size} : Extents{kBatch, heads, length, size};
  };
  const Extents qDims = dims(a.queryHeads, a.queries, kSize), kDims = dims(a.keyHeads, a.keys, kSize),
                vDims = dims(a.keyHeads, a.keys, kValueSize);
  const Extents pastKDims{kBatch, a.keyHeads, a.past, kSize}, pastVDims{kBatch, a.keyHeads, a.past, kValueSize};
  const Numbers q = wave(qDims, 0), k = wave(kDims, 1), v = wave(vDims, 3), pastK = wave(pastKDims, 4),
                pastV = wave(pastVDims, 5);
  std::string graph = floats("q", qDims, q) + floats("k", kDims, k) + floats("v", vDims, v), inputs = "q k v", more;
  if (a.truths || a.numbers) graph += maskOf(a);
  inputs += a.truths || a.numbers ? " mask" : " _";
  if (a.past > 0) graph += floats("pk", pastKDims, pastK) + floats("pv", pastVDims, pastV);
  inputs += a.past > 0 ? " pk pv" : " _ _";
  if (!a.filled.empty()) {
    graph += ints("filled", {kBatch}, a.filled);
    inputs += " filled";
  } else if (a.left < 0 && a.right < 0) {
    inputs = inputs.substr(0, inputs.find_last_not_of(" _") + 1);
  }
  if (a.packed) more += attribute("q_num_heads", a.queryHeads) + attribute("kv_num_heads", a.keyHeads);
  if (a.causal) more += attribute("is_causal", 1);
  if (a.left >= 0) more += attribute("left_window_size", a.left);
  if (a.right >= 0) more += attribute("right_window_size", a.right);
  if (a.softcap != 0) more += realAttribute("softcap", a.softcap);
  if (a.scale != 0) more += realAttribute("scale", a.scale);
  const int opset = a.left >= 0 || a.right >= 0 ? 25 : a.filled.empty() ? 23 : 24;
  const auto step =
      smallStep(graph + node("Attention", inputs, "y", more) + weighed("y", dims(a.queryHeads, a.queries, kValueSize)),
                opset, {"q", "k", "v"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, lossOf(a, q, k, v, pastK, pastV), 1e-4);
  expectSlopes(step->gradients.at("q"), q, [&](const Numbers& x) { return lossOf(a, x, k, v, pastK, pastV); });
  expectSlopes(step->gradients.at("k"), k, [&](const Numbers& x) { return lossOf(a, q, x, v, pastK, pastV); });
  expectSlopes(step->gradients.at("v"), v, [&](const Numbers& x) { return lossOf(a, q, k, x, pastK, pastV); });
}

INSTANTIATE_TEST_SUITE_P(
    LowerAttention, AttentionForms,
    ::testing::Values(
        Attention{.name = "plain"}, Attention{.name = "packed", .packed = true}, Attention{.name = "causal", .causal = true},
        Attention{.name = "cross", .queries = 2, .keys = 5}, Attention{.name = "grouped", .queryHeads = 4, .keyHeads = 2},
        Attention{
            .name = "packed_one_key_head", .packed = true, .queryHeads = 3, .keyHeads = 1, .softcap = 0.7, .scale = 0.4},
        Attention{.name = "truths", .truths = true}, Attention{.name = "numbers", .numbers = true},
        Attention{.name = "short_truths", .keys = 5, .truths = true, .masked = 3},
        Attention{.name = "short_numbers", .keys = 4, .numbers = true, .masked = 2},
        Attention{.name = "causal_numbers", .causal = true, .numbers = true},
        Attention{.name = "past", .causal = true, .queries = 2, .keys = 2, .past = 3},
        Attention{.name = "filled", .causal = true, .queries = 2, .keys = 5, .filled = {4, 1}},
        Attention{.name = "window", .queries = 4, .keys = 4, .left = 1, .right = 1},
        Attention{.name = "window_behind_the_keys", .causal = true, .queries = 5, .keys = 2, .left = 1}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LowerAttention, NamesWhatItCannotLower) {
  const std::string operands = floats("q", {1, 2, 4}, wave({8}, 0)) + floats("k", {1, 2, 4}, wave({8}, 1));
  const auto blocked = [&](const std::string& inputs, const std::string& more) {
    const auto step =
        smallStep(operands + node("Attention", inputs, "y", more) + node("ReduceSum", "y", "loss", attribute("keepdims", 0)),
                  23, {"q"});
    EXPECT_FALSE(step.has_value());
    return step.has_value() ? std::string() : step.error().message;
  };
  EXPECT_NE(blocked("q k k", "").find("q_num_heads 0 and kv_num_heads 0; expected numbers from 1"), std::string::npos);
  EXPECT_NE(
      blocked("q k k", attribute("q_num_heads", 2) + attribute("kv_num_heads", 4)).find("2 heads of queries and 4 of keys"),
      std::string::npos);
  EXPECT_NE(blocked("q k k _ k", attribute("q_num_heads", 2) + attribute("kv_num_heads", 2))
                .find("one of past_key and past_value is absent"),
            std::string::npos);
}

// --- RotaryEmbedding

struct Rotary {
  const char* name = "";
  bool packed = false, interleaved = false, positions = false;
  std::int64_t turned = 0;
};

void PrintTo(const Rotary& rotary, std::ostream* out) { *out << rotary.name; }

constexpr std::int64_t kHeads = 2, kLength = 3;
const std::vector<std::int64_t> kPositions{2, 0, 1, 1, 2, 0};

double lossOf(const Rotary& r, const Numbers& x, const Numbers& cosines, const Numbers& sines) {
  const std::int64_t turned = r.turned ? r.turned : kSize, half = turned / 2;
  Attention layout;
  layout.packed = r.packed;
  const Numbers c = wave({kBatch * kHeads * kLength * kSize}, 2);
  double loss = 0;
  for (std::int64_t b = 0; b < kBatch; ++b)
    for (std::int64_t h = 0; h < kHeads; ++h)
      for (std::int64_t t = 0; t < kLength; ++t)
        for (std::int64_t d = 0; d < kSize; ++d) {
          const auto at = [&](std::int64_t other) { return place(layout, kHeads, kLength, kSize, b, h, t, other); };
          double y = x[at(d)];
          if (d < turned) {
            const std::int64_t pair = r.interleaved ? d / 2 : d % half;
            const bool first = r.interleaved ? d % 2 == 0 : d < half;
            const std::int64_t other = r.interleaved ? d + (first ? 1 : -1) : d + (first ? half : -half);
            const std::int64_t row = r.positions ? kPositions[static_cast<std::size_t>(b * kLength + t)] : b * kLength + t;
            const auto angle = static_cast<std::size_t>(row * half + pair);
            y = cosines[angle] * x[at(d)] + (first ? -1.0 : 1.0) * sines[angle] * x[at(other)];
          }
          loss += y * c[at(d)];
        }
  return loss;
}

class RotaryForms : public ::testing::TestWithParam<Rotary> {};

TEST_P(RotaryForms, TurnsPairsWithItsGradients) {
  const Rotary& r = GetParam();
  const std::int64_t half = (r.turned ? r.turned : kSize) / 2;
  const Extents dims = r.packed ? Extents{kBatch, kLength, kHeads * kSize} : Extents{kBatch, kHeads, kLength, kSize};
  const Extents table = r.positions ? Extents{kLength, half} : Extents{kBatch, kLength, half};
  const Numbers x = wave(dims, 0), cosines = wave(table, 1), sines = wave(table, 4);
  std::string more;
  if (r.packed) more += attribute("num_heads", kHeads);
  if (r.interleaved) more += attribute("interleaved", 1);
  if (r.turned) more += attribute("rotary_embedding_dim", r.turned);
  const auto step = smallStep(floats("x", dims, x) + floats("cos", table, cosines) + floats("sin", table, sines) +
                                  ints("positions", {kBatch, kLength}, kPositions) +
                                  node("RotaryEmbedding", r.positions ? "x cos sin positions" : "x cos sin", "y", more) +
                                  weighed("y", dims),
                              23, {"x", "cos"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_NEAR(step->loss, lossOf(r, x, cosines, sines), 1e-4);
  expectSlopes(step->gradients.at("x"), x, [&](const Numbers& other) { return lossOf(r, other, cosines, sines); });
  expectSlopes(step->gradients.at("cos"), cosines, [&](const Numbers& other) { return lossOf(r, x, other, sines); });
}

INSTANTIATE_TEST_SUITE_P(LowerAttention, RotaryForms,
                         ::testing::Values(Rotary{.name = "halves"}, Rotary{.name = "packed", .packed = true},
                                           Rotary{.name = "interleaved", .interleaved = true},
                                           Rotary{.name = "positions", .positions = true},
                                           Rotary{.name = "part", .packed = true, .positions = true, .turned = 2},
                                           Rotary{.name = "interleaved_part", .interleaved = true, .turned = 2}),
                         [](const auto& info) { return std::string(info.param.name); });

// --- what else is written anew

TEST(NewerOpset, SwishAndSwiGluAreProducts) {
  const Numbers a = wave({6}, 0), b = wave({6}, 1);
  const auto swish = [](double x) { return x / (1 + std::exp(-1.5 * x)); };
  const auto one =
      smallStep(floats("a", {6}, a) + node("Swish", "a", "y", realAttribute("alpha", 1.5)) + weighed("y", {6}), 24, {"a"});
  const auto two = smallStep(floats("a", {6}, a) + floats("b", {6}, b) +
                                 node("SwiGLU", "a b", "y", realAttribute("alpha", 1.5)) + weighed("y", {6}),
                             28, {"a", "b"});
  ASSERT_TRUE(one.has_value()) << one.error().message;
  ASSERT_TRUE(two.has_value()) << two.error().message;
  const Numbers c = wave({6}, 2);
  const auto lossOne = [&](const Numbers& x) {
    double loss = 0;
    for (std::size_t i = 0; i < x.size(); ++i) loss += c[i] * swish(x[i]);
    return loss;
  };
  const auto lossTwo = [&](const Numbers& x, const Numbers& y) {
    double loss = 0;
    for (std::size_t i = 0; i < x.size(); ++i) loss += c[i] * swish(x[i]) * y[i];
    return loss;
  };
  EXPECT_NEAR(one->loss, lossOne(a), 1e-5);
  EXPECT_NEAR(two->loss, lossTwo(a, b), 1e-5);
  expectSlopes(one->gradients.at("a"), a, lossOne);
  expectSlopes(two->gradients.at("a"), a, [&](const Numbers& x) { return lossTwo(x, b); });
  expectSlopes(two->gradients.at("b"), b, [&](const Numbers& y) { return lossTwo(a, y); });
}

TEST(NewerOpset, BlocksOfSpaceCountFastestByColumns) {
  const Extents dims{1, 2, 2, 4}, result{1, 8, 1, 2};
  const Numbers x = wave(dims, 0), c = wave(result, 2);
  const auto step = smallStep(floats("x", dims, x) +
                                  node("SpaceToDepth", "x", "y", attribute("blocksize", 2) + textAttribute("mode", "CRD")) +
                                  weighed("y", result),
                              28, {"x"});
  ASSERT_TRUE(step.has_value()) << step.error().message;
  for (int channel = 0; channel < 2; ++channel)
    for (int row = 0; row < 2; ++row)
      for (int column = 0; column < 4; ++column) {
        const int to = ((channel * 2 + row) * 2 + column % 2) * 2 + column / 2;
        EXPECT_NEAR(step->gradients.at("x")[static_cast<std::size_t>((channel * 2 + row) * 4 + column)],
                    c[static_cast<std::size_t>(to)], 1e-5);  // the text of the model has six digits
      }
  const auto wrong = smallStep(floats("x", dims, x) +
                                   node("SpaceToDepth", "x", "y", attribute("blocksize", 2) + textAttribute("mode", "RCD")) +
                                   weighed("y", result),
                               28, {"x"});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("mode 'RCD'; expected DCR or CRD"), std::string::npos) << wrong.error().message;
}

}  // namespace
}  // namespace stepscope::testing
