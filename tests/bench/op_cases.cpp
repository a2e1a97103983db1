#include "tests/bench/op_cases.h"

namespace stepscope::op_bench {

Source floats(Dims dims, float low, float high) {
  return [=] {
    Tensor tensor(DType::kF32, dims);
    std::uint32_t state = 1;
    for (float& x : tensor.as<float>()) {
      state = state * 1664525U + 1013904223U;
      x = low + (high - low) * static_cast<float>(state >> 8) * 0x1p-24F;
    }
    return tensor;
  };
}
Source bools(Dims dims) {
  return [=] {
    Tensor tensor(DType::kBool, dims);
    for (std::int64_t i = 0; i < tensor.elements(); ++i) static_cast<bool*>(tensor.data())[i] = i % 3 != 0;
    return tensor;
  };
}
Source labels(Dims dims, std::int64_t count) {
  return [=] {
    Tensor tensor(DType::kI64, dims);
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      tensor.as<std::int64_t>()[static_cast<std::size_t>(i)] = i * 7919 % count;
    return tensor;
  };
}
Source scalar(DType dtype, double value) {
  return [=] { return Tensor::scalar(dtype, value); };
}
Source ints(std::vector<std::int64_t> values) {
  return [=] { return Tensor::ints(values); };
}

std::vector<Case> cases() {
  const DType f = DType::kF32;
  const Dims hidden{2, 128, 768}, wide{2, 128, 3072}, scores{2, 12, 128, 128}, vocabulary{256, 30522}, big{256, 50257},
      image{4, 256, 56, 56}, rows{2, 128, 1};
  const auto count = [](const Dims& dims) { return static_cast<double>(elementCount(dims)); };
  std::vector<Case> all;
  const auto unary = [&](const char* op, const Dims& dims, double operations, const char* domain = "") {
    all.push_back({op + dimsText(dims), domain, op, {}, {floats(dims, 0.1F, 2)}, {{f, dims}}, operations * count(dims)});
  };
  unary("Exp", wide, 26);
  unary("Tanh", wide, 43);
  unary("Erf", wide, 52);
  unary("Gelu", wide, 56);
  unary("Sigmoid", wide, 34);
  unary("FastGelu", wide, 50, "com.microsoft");
  for (const char* form : {"none", "tanh"})
    all.push_back({std::string("GeluGrad ") + form + dimsText(wide),
                   "stepscope",
                   "GeluGrad",
                   {{"approximate", std::string(form)}},
                   {floats(wide), floats(wide)},
                   {{f, wide}},
                   46 * count(wide)});
  unary("Sqrt", wide, 0);
  unary("Log", wide, 40);
  unary("Relu", image, 0);
  unary("Sin", wide, 48);
  unary("Cos", wide, 48);
  unary("Atan", wide, 64);
  all.push_back({"Pow3" + dimsText(wide), "", "Pow", {}, {floats(wide), scalar(f, 3)}, {{f, wide}}});
  all.push_back(
      {"Pow2.7" + dimsText(wide), "", "Pow", {}, {floats(wide, 0.1F, 2), scalar(f, 2.7)}, {{f, wide}}, 107 * count(wide)});
  all.push_back({"Add" + dimsText(hidden), "", "Add", {}, {floats(hidden), floats(hidden)}, {{f, hidden}}});
  all.push_back({"AddRow" + dimsText(wide), "", "Add", {}, {floats(wide), floats({3072})}, {{f, wide}}});
  all.push_back({"Add" + dimsText(image), "", "Add", {}, {floats(image), floats(image)}, {{f, image}}});
  all.push_back({"MulColumn" + dimsText(hidden), "", "Mul", {}, {floats(hidden), floats(rows)}, {{f, hidden}}});
  all.push_back({"AddMask" + dimsText(scores), "", "Add", {}, {floats(scores), floats({2, 1, 1, 128})}, {{f, scores}}});
  all.push_back(
      {"LessOrEqual" + dimsText(image), "", "LessOrEqual", {}, {floats(image), scalar(f, 0)}, {{DType::kBool, image}}});
  all.push_back({"Where" + dimsText(image), "", "Where", {}, {bools(image), scalar(f, 0), floats(image)}, {{f, image}}});
  all.push_back({"WhereCausal" + dimsText(scores),
                 "",
                 "Where",
                 {},
                 {bools({1, 1, 128, 128}), floats(scores), scalar(f, -1e9)},
                 {{f, scores}}});
  all.push_back({"Sum3" + dimsText(hidden), "", "Sum", {}, {floats(hidden), floats(hidden), floats(hidden)}, {{f, hidden}}});
  all.push_back({"Softmax" + dimsText(scores), "", "Softmax", {}, {floats(scores)}, {{f, scores}}, 30 * count(scores)});
  all.push_back(
      {"SoftmaxGrad" + dimsText(scores), "stepscope", "SoftmaxGrad", {}, {floats(scores), floats(scores)}, {{f, scores}}});
  all.push_back({"LogSoftmax" + dimsText(vocabulary),
                 "",
                 "LogSoftmax",
                 {},
                 {floats(vocabulary)},
                 {{f, vocabulary}},
                 31 * count(vocabulary)});
  all.push_back({"LayerNormalization" + dimsText(hidden),
                 "",
                 "LayerNormalization",
                 {},
                 {floats(hidden), floats({768}), floats({768})},
                 {{f, hidden}, {f, rows}, {f, rows}},
                 8 * count(hidden)});
  all.push_back({"LayerNormalizationGrad" + dimsText(hidden),
                 "stepscope",
                 "LayerNormalizationGrad",
                 {},
                 {floats(hidden), floats(hidden), floats({768}), floats(rows), floats(rows)},
                 {{f, hidden}, {f, {768}}, {f, {768}}},
                 13 * count(hidden)});
  all.push_back({"RMSNormalization" + dimsText(hidden),
                 "",
                 "RMSNormalization",
                 {},
                 {floats(hidden), floats({768})},
                 {{f, hidden}, {f, rows}},
                 7 * count(hidden)});
  const Dims stem{4, 64, 112, 112}, pooled{4, 64, 56, 56};
  const std::vector<std::int64_t> three{3, 3}, two{2, 2}, around{1, 1, 1, 1};
  all.push_back({"MaxPool" + dimsText(stem),
                 "",
                 "MaxPool",
                 {{"kernel_shape", three}, {"strides", two}, {"pads", around}},
                 {floats(stem)},
                 {{f, pooled}, {DType::kI64, pooled}},
                 9 * 5 * count(pooled),
                 -1,
                 {},
                 1,
                 Layout::kChannels16});
  const Dims small{4, 64, 56, 56}, twice{4, 64, 112, 112};
  for (const char* mode : {"nearest", "linear"}) {
    const Attributes attrs{{"mode", std::string(mode)}};
    const Source none = [] { return Tensor(); };
    all.push_back({std::string("Resize ") + mode + dimsText(twice),
                   "",
                   "Resize",
                   attrs,
                   {floats(small), none, none, ints(twice)},
                   {{f, twice}}});
    all.push_back({std::string("ResizeGrad ") + mode + dimsText(small),
                   "stepscope",
                   "ResizeGrad",
                   attrs,
                   {floats(twice), ints(small), none, none, ints(twice)},
                   {{f, small}}});
  }
  const Attributes groups{{"num_groups", std::int64_t{32}}};
  all.push_back({"GroupNormalization" + dimsText(image),
                 "",
                 "GroupNormalization",
                 groups,
                 {floats(image), floats({256}), floats({256})},
                 {{f, image}}});
  all.push_back({"InstanceNormalization" + dimsText(image),
                 "",
                 "InstanceNormalization",
                 {},
                 {floats(image), floats({256}), floats({256})},
                 {{f, image}}});
  all.push_back({"GroupNormalizationGrad" + dimsText(image),
                 "stepscope",
                 "GroupNormalizationGrad",
                 groups,
                 {floats(image), floats(image), floats({256})},
                 {{f, image}, {f, {256}}, {f, {256}}}});
  for (const Dims& logits : {vocabulary, big}) {
    const Source targets = labels({256}, logits[1]);
    all.push_back({"CrossEntropy" + dimsText(logits),
                   "",
                   "SoftmaxCrossEntropyLoss",
                   {},
                   {floats(logits), targets},
                   {{f, {}}, {f, logits}},
                   31 * count(logits)});
    all.push_back({"CrossEntropyGrad" + dimsText(logits),
                   "stepscope",
                   "SoftmaxCrossEntropyLossGrad",
                   {},
                   {floats({}), floats(logits, -9, -8), targets},
                   {{f, logits}},
                   27 * count(logits)});
  }
  const Dims pixels{4, 21, 256, 256};  // as in segmentation
  all.push_back({"CrossEntropy" + dimsText(pixels),
                 "",
                 "SoftmaxCrossEntropyLoss",
                 {},
                 {floats(pixels), labels({4, 256, 256}, 21)},
                 {{f, {}}, {f, pixels}},
                 31 * count(pixels)});
  all.push_back({"CrossEntropyGrad" + dimsText(pixels),
                 "stepscope",
                 "SoftmaxCrossEntropyLossGrad",
                 {},
                 {floats({}), floats(pixels, -9, -8), labels({4, 256, 256}, 21)},
                 {{f, pixels}},
                 27 * count(pixels)});
  all.push_back({"ReduceToShape" + dimsText(hidden),
                 "stepscope",
                 "ReduceToShape",
                 {},
                 {floats(hidden), labels({1}, 1)},
                 {{f, {768}}}});
  all.push_back(
      {"ReduceToShape" + dimsText(wide), "stepscope", "ReduceToShape", {}, {floats(wide), labels({1}, 1)}, {{f, {3072}}}});
  const std::vector<std::string> geluGrad{"GeluGrad 0 1"}, scaled{"Mul 0 1"};
  all.push_back({"PointwiseSumGeluGrad" + dimsText(wide),
                 "stepscope",
                 "PointwiseSum",
                 {{"steps", geluGrad}, {"axes", Dims{0, 1}}, {"shape", Dims{3072}}},
                 {floats(wide), floats(wide)},
                 {{f, {3072}}}});
  all.push_back({"PointwiseSumScale" + dimsText(hidden),
                 "stepscope",
                 "PointwiseSum",
                 {{"steps", scaled}, {"axes", Dims{0, 1}}, {"shape", Dims{768}}},
                 {floats(hidden), floats(hidden)},
                 {{f, {768}}}});
  // Both halves of rows, read where they lie; what Split takes for them; and halves that lie by themselves.
  for (const std::int64_t n : {4, 8, 16, 64, 3072}) {
    const std::int64_t m = (std::int64_t{1} << 22) / n;
    const Dims both{m, 2 * n}, half{m, n};
    all.push_back({"PointwiseHalves" + dimsText(half),
                   "stepscope",
                   "Pointwise",
                   {{"steps", scaled}, {"view0", Dims{0, m, n, 2 * n, 1}}, {"view1", Dims{n, m, n, 2 * n, 1}}},
                   {floats(both), floats(both)},
                   {{f, half}},
                   0,
                   -1,
                   {1}});
    all.push_back(
        {"Split" + dimsText(both), "", "Split", {{"axis", std::int64_t{1}}}, {floats(both)}, {{f, half}, {f, half}}});
    if (n == 3072)
      all.push_back({"Pointwise" + dimsText(half),
                     "stepscope",
                     "Pointwise",
                     {{"steps", scaled}},
                     {floats(half), floats(half)},
                     {{f, half}}});
  }
  all.push_back({"ReduceSumLast" + dimsText(wide), "", "ReduceSum", {}, {floats(wide), ints({-1})}, {{f, rows}}});
  all.push_back(
      {"ReduceSumChannels" + dimsText(image), "", "ReduceSum", {}, {floats(image), ints({0, 2, 3})}, {{f, {1, 256, 1, 1}}}});
  all.push_back({"SquareSum[30522, 768]", "stepscope", "SquareSum", {}, {floats({30522, 768})}, {{f, {}}}});
  all.push_back({"Gather" + dimsText(hidden),
                 "",
                 "Gather",
                 {},
                 {floats({30522, 768}), labels({2, 128}, 30522)},
                 {{f, hidden}},
                 0,
                 -1,
                 {0}});
  all.push_back({"GatherGrad[30522, 768]",
                 "stepscope",
                 "GatherGrad",
                 {},
                 {floats(hidden), labels({2, 128}, 30522)},
                 {{f, {30522, 768}}}});
  const Dims tokens{4096, 256};
  all.push_back({"GatherND" + dimsText(tokens),
                 "",
                 "GatherND",
                 {},
                 {floats({8192, 256}), labels({4096, 1}, 8192)},
                 {{f, tokens}},
                 0,
                 -1,
                 {0}});
  all.push_back({"GatherNDGrad" + dimsText(tokens),
                 "stepscope",
                 "GatherNDGrad",
                 {},
                 {floats(tokens), labels({4096, 1}, 8192)},
                 {{f, {8192, 256}}}});
  all.push_back({"ScatterND" + dimsText(tokens),
                 "",
                 "ScatterND",
                 {{"reduction", std::string("add")}},
                 {floats({8192, 256}), labels({4096, 1}, 8192), floats(tokens)},
                 {{f, {8192, 256}}}});
  all.push_back({"ScatterElements" + dimsText(tokens),
                 "",
                 "ScatterElements",
                 {{"reduction", std::string("add")}},
                 {floats({8192, 256}), labels(tokens, 8192), floats(tokens)},
                 {{f, {8192, 256}}}});
  all.push_back(
      {"TopK2[4096, 64]", "", "TopK", {}, {floats({4096, 64}), ints({2})}, {{f, {4096, 2}}, {DType::kI64, {4096, 2}}}});
  all.push_back(
      {"TopK50" + dimsText(big), "", "TopK", {}, {floats(big), ints({50})}, {{f, {256, 50}}, {DType::kI64, {256, 50}}}});
  all.push_back({"Dropout" + dimsText(scores),
                 "",
                 "Dropout",
                 {},
                 {floats(scores), scalar(f, 0.1), scalar(DType::kBool, 1)},
                 {{f, scores}, {DType::kBool, scores}},
                 65 * count(scores)});
  all.push_back({"Transpose[2, 128, 12, 64]",
                 "",
                 "Transpose",
                 {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}},
                 {floats({2, 128, 12, 64})},
                 {{f, {2, 12, 128, 64}}}});
  const Dims third{2, 128, 768}, triple{2, 128, 2304};
  all.push_back({"Split3" + dimsText(triple),
                 "",
                 "Split",
                 {{"axis", std::int64_t{2}}},
                 {floats(triple)},
                 {{f, third}, {f, third}, {f, third}}});
  all.push_back({"Concat3" + dimsText(triple),
                 "",
                 "Concat",
                 {{"axis", std::int64_t{2}}},
                 {floats(third), floats(third), floats(third)},
                 {{f, triple}}});
  all.push_back({"Slice[2, 128, 50257]",
                 "",
                 "Slice",
                 {},
                 {floats({2, 128, 50257}), ints({0}), ints({127}), ints({1})},
                 {{f, {2, 127, 50257}}}});
  all.push_back({"SliceGrad[2, 128, 50257]",
                 "stepscope",
                 "SliceGrad",
                 {},
                 {floats({2, 127, 50257}), ints({2, 128, 50257}), ints({0}), ints({127}), ints({1})},
                 {{f, {2, 128, 50257}}}});
  const Attributes adam{
      {"beta1", 0.9F}, {"beta2", 0.999F}, {"eps", 1e-8F}, {"weight_decay", 0.01F}, {"decoupled", std::int64_t{1}}};
  for (const Dims& p : {Dims{768, 768}, Dims{768, 3072}, Dims{30522, 768}})
    for (const char* op : {"AdamUpdate", "LambUpdate"})
      all.push_back({op + dimsText(p),
                     "stepscope",
                     op,
                     adam,
                     {floats(p), floats(p), floats(p), floats(p, 0, 1), scalar(f, 1e-4), scalar(DType::kI64, 2)},
                     {{f, p}, {f, p}, {f, p}},
                     0,
                     -1,
                     {},
                     *op == 'L' ? 2 : 1});
  const Dims weight{2048, 512, 1, 1};
  all.push_back({"SgdUpdate" + dimsText(weight),
                 "stepscope",
                 "SgdUpdate",
                 {{"momentum", 0.9F}},
                 {floats(weight), floats(weight), floats(weight), scalar(f, 0.1), scalar(f, 1), scalar(DType::kI64, 2)},
                 {{f, weight}, {f, weight}}});
  for (const auto& [steps, batch, in, hiddenSize] : {std::array<std::int64_t, 4>{64, 32, 256, 256}, {50, 16, 128, 512}}) {
    const std::int64_t gates = 4 * hiddenSize;
    all.push_back({"LSTM" + dimsText(Dims{steps, batch, in, hiddenSize}),
                   "",
                   "LSTM",
                   {{"hidden_size", hiddenSize}},
                   {floats({steps, batch, in}), floats({1, gates, in}, -0.1F, 0.1F),
                    floats({1, gates, hiddenSize}, -0.1F, 0.1F), floats({1, 2 * gates}, -0.1F, 0.1F)},
                   {{f, {steps, 1, batch, hiddenSize}}, {f, {1, batch, hiddenSize}}, {f, {1, batch, hiddenSize}}},
                   static_cast<double>(steps * batch * gates * (in + hiddenSize))});
  }
  smallerFamilies(all);
  all.push_back({"MatMul[256, 768, 3072]",
                 "",
                 "MatMul",
                 {},
                 {floats({256, 768}), floats({768, 3072})},
                 {{f, {256, 3072}}},
                 256.0 * 768 * 3072});
  return all;
}

}  // namespace stepscope::op_bench
