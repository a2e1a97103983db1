#include "tests/bench/op_cases.h"

namespace stepscope::op_bench {

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

}  // namespace stepscope::op_bench
