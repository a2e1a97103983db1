// Hot kernels of the CPU backend at the sizes of BERT-base and GPT-2 (batch 2, sequence 128) and ResNet-50 (batch 4), beside
// what this machine can do, measured in the same run.
//
// Counters   GBps        bytes of operands and results per second
//            Gops        operations per second where arithmetic counts: additions, products, their fusions, comparisons,
//            blends,
//                        shifts and conversions of one element, as the AVX-512 inner loop has them
//            peak_GBps   a triad (a sum where a kernel hardly writes, a copy where it writes half) over as many bytes, on as
//            many threads share       the time that memory or arithmetic alone would take, divided by the time it took; the
//            peak of arithmetic is
//                        that of the fused products in a matrix product of 1024 x 1024 x 1024
// The triad writes past the caches where that is faster; it has the same fork and join, so small kernels are compared
// fairly.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <random>

#include "kernels/cpu/loops/machine_peak.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope {
namespace {

using cpu::Traffic;

// Bytes per second over a working set of `bytes` that is read, read by two thirds, or by a half.
double peakBytes(std::int64_t bytes, Traffic traffic, int threads) {
  static std::map<std::pair<std::int64_t, Traffic>, double> known;
  auto [it, fresh] = known.try_emplace({bytes, traffic}, 0.0);
  if (fresh) it->second = cpu::trafficPeak(bytes, traffic, threads, 0.04);
  return it->second;
}

using Source = std::function<Tensor()>;  // made when its benchmark runs

struct Case {
  std::string name, domain, op;
  Attributes attrs;
  std::vector<Source> inputs;
  std::vector<std::pair<DType, Dims>> outputs;
  double operations = 0;                 // of one run; 0: not counted
  int inPlace = -1;                      // the input that output 0 lies over
  std::vector<std::size_t> unread = {};  // inputs whose contents are not (or hardly) read
  int reads = 1;                         // passes over the inputs that the formula needs
  Layout layout = Layout::kPlain;        // of operands with four extents
};

// A kernel with memory for one run.
class Runner {
 public:
  Runner(const Case& test, int threads) {
    for (const Source& make : test.inputs) inputs_.push_back(make());
    KernelSpec spec;
    spec.domain = test.domain;
    spec.op = test.op;
    spec.attrs = test.attrs;
    spec.threads = threads;
    const auto layoutOf = [&](const Dims& dims) { return dims.size() == 4 ? test.layout : Layout::kPlain; };
    for (const Tensor& x : inputs_) {
      spec.inputs.push_back(
          x.valid() ? OperandSpec{x.dtype(), x.dims(), false, x.dtype() == DType::kI64 ? x : Tensor(), layoutOf(x.dims())}
                    : OperandSpec{});
      in_.push_back(x.view());
    }
    for (std::size_t i = 0; i < test.outputs.size(); ++i) {
      const auto& [dtype, dims] = test.outputs[i];
      spec.outputs.push_back({dtype, dims, false, {}, layoutOf(dims)});
      outputs_.push_back(i == 0 && test.inPlace >= 0 ? inputs_[static_cast<std::size_t>(test.inPlace)].reshaped(dims)
                                                     : Tensor(dtype, dims));
      out_.push_back(outputs_.back().view());
    }
    auto kernel = makeKernel(Backend::kCpu, spec);
    if (!kernel) {
      error_ = kernel.error().message;
      return;
    }
    kernel_ = std::move(*kernel);
    workspace_ = Tensor(DType::kU8, {static_cast<std::int64_t>(kernel_->workspaceBytes()) + 64});
  }
  std::int64_t inputBytes(std::size_t i) const { return static_cast<std::int64_t>(inputs_[i].bytes()); }
  const std::string& error() const { return error_; }
  std::string implementation() const { return kernel_->implementation(); }
  void run() {
    const Status status =
        kernel_->run({in_, out_, {static_cast<std::byte*>(workspace_.data()), kernel_->workspaceBytes()}, {1, 2, 3}, {}});
    if (!status) error_ = status.error().message;
  }

 private:
  std::vector<Tensor> inputs_, outputs_;
  std::vector<TensorView> in_, out_;
  std::unique_ptr<Kernel> kernel_;
  Tensor workspace_;
  std::string error_;
};

Source floats(Dims dims, float low = -2, float high = 2) {
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

// Fused products per second.
double peakOperations(int threads) {
  static const double peak = cpu::operationsPeak(threads, 0.1) / 2;
  return peak;
}

void measure(benchmark::State& state, const Case& test) {
  const int threads = omp_get_max_threads();
  Runner runner(test, threads);
  if (!runner.error().empty()) {
    state.SkipWithError(runner.error().c_str());
    return;
  }
  std::int64_t read = 0, written = 0;
  for (std::size_t i = 0; i < test.inputs.size(); ++i)
    if (std::find(test.unread.begin(), test.unread.end(), i) == test.unread.end()) read += runner.inputBytes(i) * test.reads;
  for (const auto& [dtype, dims] : test.outputs) written += elementCount(dims) * static_cast<std::int64_t>(dtypeSize(dtype));
  const double bytes = static_cast<double>(read + written), peak = peakBytes(read + written,
                                                                             written * 10 < read      ? Traffic::kSum
                                                                             : written * 4 > read * 3 ? Traffic::kCopy
                                                                                                      : Traffic::kTriad,
                                                                             threads);
  runner.run();
  double best = 1e9;
  for ([[maybe_unused]] auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    runner.run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  if (!runner.error().empty()) state.SkipWithError(runner.error().c_str());
  state.counters["GBps"] = bytes / best * 1e-9;
  state.counters["peak_GBps"] = peak * 1e-9;
  if (test.operations > 0) state.counters["Gops"] = test.operations / best * 1e-9;
  state.counters["share"] =
      std::max(bytes / peak, test.operations > 0 ? test.operations / peakOperations(threads) : 0) / best;
  state.SetLabel(runner.implementation());
}

// Of quantised, generative, segmentation and detection models, and what else trains less often.
void smallerFamilies(std::vector<Case>& all) {
  const DType f = DType::kF32;
  const Dims image{4, 256, 56, 56}, channels{1, 256, 1, 1}, column{4, 1, 56, 56}, pooled{4, 256, 28, 28},
      spots{4, 256, 1, 1}, wide{2, 128, 3072}, rows{2, 128, 1};
  const auto count = [](const Dims& dims) { return static_cast<double>(elementCount(dims)); };
  const auto add = [&](const std::string& name, const char* domain, const char* op, Attributes attrs,
                       std::vector<Source> inputs, std::vector<std::pair<DType, Dims>> outputs, double operations = 0) {
    all.push_back({name + dimsText(outputs[0].second), domain, op, std::move(attrs), std::move(inputs), std::move(outputs),
                   operations});
  };
  // Indices that stay within their channel, as those of a pooling do.
  const Source winners = [pooled] {
    Tensor tensor(DType::kI64, pooled);
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      tensor.as<std::int64_t>()[static_cast<std::size_t>(i)] = i / 784 * 3136 + i % 784 / 28 * 112 + i % 28 * 2 + i * 7 % 2;
    return tensor;
  };
  const Source codes = [image] {
    Tensor tensor(DType::kI8, image);
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      static_cast<std::int8_t*>(tensor.data())[i] = static_cast<std::int8_t>(i * 31);
    return tensor;
  };
  add("QuantizeLinear", "", "QuantizeLinear", {}, {floats(image), scalar(f, 0.05), scalar(DType::kI8, 0)},
      {{DType::kI8, image}});
  add("QuantizeLinearAxis", "", "QuantizeLinear", {}, {floats(image), floats({256}, 0.01F, 0.1F)}, {{DType::kU8, image}});
  add("DequantizeLinear", "", "DequantizeLinear", {}, {codes, scalar(f, 0.05), scalar(DType::kI8, 0)}, {{f, image}});
  add("FakeQuant", "com.microsoft", "FakeQuant", {}, {floats(image), scalar(f, 0.05), scalar(f, 128)},
      {{f, image}, {DType::kBool, image}}, 22 * count(image));
  add("RandomUniformLike", "", "RandomUniformLike", {}, {floats(image)}, {{f, image}}, 40 * count(image));
  add("RandomNormalLike", "", "RandomNormalLike", {}, {floats(image)}, {{f, image}}, 260 * count(image));
  add("Bernoulli", "", "Bernoulli", {}, {floats(image, 0, 1)}, {{f, image}}, 38 * count(image));
  add("Not", "", "Not", {}, {bools(image)}, {{DType::kBool, image}});
  add("IsNaN", "", "IsNaN", {}, {floats(image)}, {{DType::kBool, image}});
  add("Shrink", "", "Shrink", {}, {floats(image)}, {{f, image}});
  add("Mod", "", "Mod", {{"fmod", std::int64_t{1}}}, {floats(image), scalar(f, 0.3)}, {{f, image}});
  add("Hardmax", "", "Hardmax", {}, {floats(wide)}, {{f, wide}});
  add("HardmaxChannels", "", "Hardmax", {{"axis", std::int64_t{1}}}, {floats(image)}, {{f, image}});
  add("CumSumLast", "", "CumSum", {}, {floats(wide), scalar(DType::kI64, 2)}, {{f, wide}});
  add("CumSumChannels", "", "CumSum", {}, {floats(image), scalar(DType::kI64, 1)}, {{f, image}});
  add("ReduceLogSumExpLast", "", "ReduceLogSumExp", {}, {floats(wide), ints({2})}, {{f, rows}}, 28 * count(wide));
  add("ReduceLogSumExpChannels", "", "ReduceLogSumExp", {}, {floats(image), ints({1})}, {{f, column}}, 28 * count(image));
  add("ReduceProdLast", "", "ReduceProd", {}, {floats(wide, 0.9F, 1.1F), ints({2})}, {{f, rows}});
  add("ReduceProdGrad", "stepscope", "ReduceProdGrad", {}, {floats(rows), floats(wide, 0.9F, 1.1F), ints({2})}, {{f, wide}});
  add("MeanVarianceNormalization", "", "MeanVarianceNormalization", {}, {floats(image)}, {{f, image}});
  add("LpNormalizationLast", "", "LpNormalization", {}, {floats(wide)}, {{f, wide}});
  add("LpNormalizationChannels", "", "LpNormalization", {{"axis", std::int64_t{1}}}, {floats(image)}, {{f, image}});
  const Attributes window{{"size", std::int64_t{5}}};
  add("LRN", "", "LRN", window, {floats(image)}, {{f, image}}, 40 * count(image));
  add("LRNGrad", "stepscope", "LRNGrad", window, {floats(image), floats(image)}, {{f, image}}, 60 * count(image));
  const std::vector<std::int64_t> two{2, 2};
  const Attributes pool{{"kernel_shape", two}, {"strides", two}};
  add("LpPool", "", "LpPool", pool, {floats(image)}, {{f, pooled}});
  add("LpPoolGrad", "stepscope", "LpPoolGrad", pool, {floats(pooled), floats(image), floats(pooled, 1, 2)}, {{f, image}});
  add("GlobalMaxPool", "", "GlobalMaxPool", {}, {floats(image)}, {{f, spots}});
  add("GlobalMaxPoolGrad", "stepscope", "GlobalMaxPoolGrad", {}, {floats(spots), floats(image)}, {{f, image}});
  add("GlobalLpPool", "", "GlobalLpPool", {}, {floats(image)}, {{f, spots}});
  const Dims grid{4, 56, 56, 2}, feature{1, 256, 50, 50}, regions{128, 256, 7, 7};
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    const Attributes sampling{{"mode", std::string(mode)}};
    const double taps = *mode == 'l' ? 4 : *mode == 'n' ? 1 : 16;
    add(std::string("GridSample ") + mode, "", "GridSample", sampling, {floats(image), floats(grid, -1, 1)}, {{f, image}},
        taps * count(image));
    add(std::string("GridSampleInputGrad ") + mode, "stepscope", "GridSampleInputGrad", sampling,
        {floats(image), floats(grid, -1, 1), ints(image)}, {{f, image}}, taps * count(image));
    add(std::string("GridSampleGridGrad ") + mode, "stepscope", "GridSampleGridGrad", sampling,
        {floats(image), floats(image), floats(grid, -1, 1)}, {{f, grid}}, 3 * taps * count(image));
  }
  add("AffineGrid", "", "AffineGrid", {}, {floats({8, 2, 3}), ints({8, 3, 224, 224})}, {{f, {8, 224, 224, 2}}});
  const Attributes aligned{{"sampling_ratio", std::int64_t{2}}, {"spatial_scale", 0.0625F}};
  const Source boxes = [] {
    Tensor tensor(DType::kF32, {128, 4});
    for (std::int64_t r = 0; r < 128; ++r)
      for (std::int64_t k = 0; k < 4; ++k)
        tensor.as<float>()[static_cast<std::size_t>(4 * r + k)] =
            static_cast<float>(r * 37 % 400 + (k < 2 ? 0 : 100 + r * 13 % 300));
    return tensor;
  };
  add("RoiAlign", "", "RoiAlign", aligned, {floats(feature), boxes, labels({128}, 1)}, {{f, regions}}, 16 * count(regions));
  add("RoiAlignGrad", "stepscope", "RoiAlignGrad", aligned, {floats(regions), boxes, labels({128}, 1), ints(feature)},
      {{f, feature}}, 16 * count(regions));
  const Attributes patches{{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}};
  const Dims blocks{4, 64 * 9, 56 * 56}, folded{4, 64, 56, 56};
  add("Col2Im", "", "Col2Im", patches, {floats(blocks), ints({56, 56}), ints({3, 3})}, {{f, folded}});
  add("Col2ImGrad", "stepscope", "Col2ImGrad", patches, {floats(folded), ints({56, 56}), ints({3, 3})}, {{f, blocks}});
  add("MaxUnpool", "", "MaxUnpool", pool, {floats(pooled), winners}, {{f, image}});
  add("MaxUnpoolGrad", "stepscope", "MaxUnpoolGrad", pool, {floats(image), winners}, {{f, pooled}});
  add("ReverseSequence", "", "ReverseSequence", {{"time_axis", std::int64_t{1}}, {"batch_axis", std::int64_t{0}}},
      {floats({64, 128, 256}), labels({64}, 128)}, {{f, {64, 128, 256}}});
  add("SplitTraining", "com.microsoft", "SplitTraining", {{"axis", std::int64_t{2}}},
      {floats({2, 128, 2304}), ints({768, 768, 768})}, {{f, {2, 128, 768}}, {f, {2, 128, 768}}, {f, {2, 128, 768}}});
  const Dims looked{64, 128, 256};
  const Attributes last{{"axis", std::int64_t{2}}};
  add("GatherElements", "", "GatherElements", last, {floats(looked), labels(looked, 256)}, {{f, looked}});
  add("GatherElementsGrad", "stepscope", "GatherElementsGrad", last, {floats(looked), labels(looked, 256)}, {{f, looked}});
  add("Gate", "stepscope", "Gate", {}, {scalar(DType::kBool, 1), floats(image)}, {{f, image}});
  add("Scatter elements of rows", "", "ScatterElements", {{"axis", std::int64_t{1}}},
      {floats({4096, 64}), labels({4096, 64}, 64), floats({4096, 64})}, {{f, {4096, 64}}});
  add("Trilu", "", "Trilu", {}, {floats({24, 512, 512})}, {{f, {24, 512, 512}}});
  add("OneHot", "", "OneHot", {}, {labels({4096}, 1000), scalar(DType::kI64, 1000), floats({2}, 0, 1)}, {{f, {4096, 1000}}});
  add("ConcatTraining", "com.microsoft", "ConcatTraining", {{"axis", std::int64_t{2}}},
      {floats({2, 128, 768}), floats({2, 128, 768})}, {{f, {2, 128, 1536}}});
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

}  // namespace
}  // namespace stepscope

int main(int argc, char** argv) {
  const auto cases = stepscope::cases();
  for (const auto& test : cases)
    benchmark::RegisterBenchmark(test.name.c_str(), [&test](benchmark::State& state) { stepscope::measure(state, test); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
