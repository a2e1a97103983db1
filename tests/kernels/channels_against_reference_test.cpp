// Kernels that know channels, in plain and in nChw16c layout, against the f64 reference kernels on plain operands.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/kernel.h"

namespace stepscope {
namespace {

using Ints = std::vector<std::int64_t>;

struct Operand {
  Dims dims;
  Layout layout = Layout::kPlain;
  bool present = true;
  Tensor contents = {};  // random when invalid
};

struct BlockedTrial {
  std::string domain, op;
  Attributes attrs;
  std::vector<Operand> inputs, outputs;
};

class Channels : public ::testing::Test {
 protected:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  Tensor random(const Dims& dims, float low = -1, float high = 1) {
    Tensor tensor(DType::kF32, dims);
    std::uniform_real_distribution<float> draw(low, high);
    for (float& value : tensor.as<float>()) value = draw(engine_);
    return tensor;
  }

  // Outputs in plain layout. The fast backend gets operands in the layouts of the trial, the reference plain f64 ones.
  Result<std::vector<Tensor>> execute(const BlockedTrial& trial, const std::vector<Tensor>& contents, bool fast,
                                      std::string* implementation = nullptr, int threads = 2,
                                      Determinism* determinism = nullptr) {
    const Backend backend = fast ? Backend::kCpu : Backend::kReference;
    KernelSpec spec{trial.domain, trial.op, trial.attrs, {}, {}, threads};
    std::vector<Tensor> inputs, outputs;
    std::vector<TensorView> views, results;
    const auto typeOf = [&](DType dtype) { return !fast && dtype == DType::kF32 ? DType::kF64 : dtype; };
    for (std::size_t i = 0; i < trial.inputs.size(); ++i) {
      if (!trial.inputs[i].present) {
        spec.inputs.push_back({});
        views.push_back({});
        continue;
      }
      const Layout layout = fast ? trial.inputs[i].layout : Layout::kPlain;
      Tensor plain = convertTensor(contents[i].view(), typeOf(contents[i].dtype())), stored(plain.dtype(), plain.dims());
      reorderLayout(plain.data(), Layout::kPlain, stored.data(), layout, plain.dtype(), plain.dims());
      inputs.push_back(stored);
      spec.inputs.push_back({stored.dtype(), stored.dims(), false, isFloating(stored.dtype()) ? Tensor() : stored, layout});
      views.push_back(stored.view());
    }
    for (const Operand& output : trial.outputs) {
      if (!output.present) {
        spec.outputs.push_back({});
        results.push_back({});
        outputs.emplace_back();
        continue;
      }
      outputs.emplace_back(typeOf(output.contents.valid() ? output.contents.dtype() : DType::kF32), output.dims);
      std::memset(outputs.back().data(), 0xff, outputs.back().bytes());  // kernels write every element
      spec.outputs.push_back({outputs.back().dtype(), output.dims, false, {}, fast ? output.layout : Layout::kPlain});
      results.push_back(outputs.back().view());
    }
    SS_ASSIGN(const auto kernel, makeKernel(backend, spec));
    if (implementation) *implementation = kernel->implementation();
    if (determinism) *determinism = kernel->determinism();
    Tensor workspace(DType::kU8, {static_cast<std::int64_t>(kernel->workspaceBytes() + 64)});
    KernelCall call;
    call.inputs = views;
    call.outputs = results;
    call.workspace = {static_cast<std::byte*>(workspace.data()), kernel->workspaceBytes()};
    SS_TRY(kernel->run(call));
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o].valid() || spec.outputs[o].layout == Layout::kPlain) continue;
      Tensor plain(outputs[o].dtype(), outputs[o].dims());
      reorderLayout(outputs[o].data(), spec.outputs[o].layout, plain.data(), Layout::kPlain, plain.dtype(), plain.dims());
      outputs[o] = plain;
    }
    return outputs;
  }

  // `native`: the kernel itself takes the layouts, without reorders around it.
  void compare(const BlockedTrial& trial, bool native = true, double tolerance = 3e-5) {
    std::string text = trial.op;
    std::vector<Tensor> contents;
    for (const Operand& input : trial.inputs) {
      text += input.present ? " " + dimsText(input.dims) + std::string(layoutName(input.layout)) : " -";
      contents.push_back(!input.present ? Tensor() : input.contents.valid() ? input.contents : random(input.dims));
    }
    SCOPED_TRACE(text);
    std::string implementation;
    Determinism says;
    const auto fast = execute(trial, contents, true, &implementation, 2, &says), exact = execute(trial, contents, false);
    ASSERT_TRUE(fast.has_value()) << fast.error().message;
    ASSERT_TRUE(exact.has_value()) << exact.error().message;
    EXPECT_EQ(implementation.find("reorders"), native ? std::string::npos : implementation.size() - 8) << implementation;
    if (native) EXPECT_NE(implementation, "reference");
    // What it says of its bits holds.
    for (const int threads : {1, 3}) {
      if (says.order == Determinism::Order::kThreadCount) break;
      const auto other = execute(trial, contents, true, nullptr, threads);
      ASSERT_TRUE(other.has_value());
      for (std::size_t o = 0; o < fast->size(); ++o)
        if (trial.outputs[o].present)
          EXPECT_EQ(std::memcmp((*fast)[o].data(), (*other)[o].data(), (*fast)[o].bytes()), 0)
              << "threads " << threads << ": " << says.reason;
    }
    for (std::size_t o = 0; o < fast->size(); ++o) {
      if (!trial.outputs[o].present) continue;
      const TensorView a = (*fast)[o].view(), b = (*exact)[o].view();
      double scale = 1;
      for (std::int64_t k = 0; k < b.elements(); ++k) scale = std::max(scale, std::abs(elementAsDouble(b, k)));
      for (std::int64_t k = 0; k < b.elements(); ++k)
        ASSERT_NEAR(elementAsDouble(a, k), elementAsDouble(b, k), tolerance * scale)
            << implementation << ", output " << o << ", element " << k;
    }
  }

  std::mt19937_64 engine_{7};
};

TEST_F(Channels, ReordersThereAndBack) {
  for (const DType dtype : {DType::kF32, DType::kI64, DType::kI16, DType::kU8})
    for (int round = 0; round < 10; ++round) {
      Dims dims{between(1, 3), 16 * between(1, 3), between(1, 20)};
      if (round % 2) dims.push_back(between(1, 5));
      Tensor plain = convertTensor(random(dims, 0, 250).view(), dtype), blocked(dtype, dims), back(dtype, dims);
      reorderLayout(plain.data(), Layout::kPlain, blocked.data(), Layout::kChannels16, dtype, dims);
      const std::int64_t channels = dims[1], inner = elementCount(dims) / (dims[0] * channels);
      for (std::int64_t n = 0; n < dims[0]; ++n)
        for (std::int64_t c = 0; c < channels; ++c)
          for (std::int64_t i = 0; i < inner; ++i)
            ASSERT_EQ(elementAsDouble(plain.view(), (n * channels + c) * inner + i),
                      elementAsDouble(blocked.view(), ((n * channels / 16 + c / 16) * inner + i) * 16 + c % 16));
      reorderLayout(blocked.data(), Layout::kChannels16, back.data(), Layout::kPlain, dtype, dims);
      EXPECT_EQ(std::memcmp(plain.data(), back.data(), plain.bytes()), 0);
    }
  EXPECT_NE(layoutRefusal(DType::kF32, {2, 24, 3, 3}), "");
  EXPECT_NE(layoutRefusal(DType::kF32, {2, 16}), "");
  EXPECT_NE(layoutRefusal(DType::kString, {2, 16, 3}), "");
  EXPECT_NE(layoutRefusal(DType::kF32, {0, 16, 3}), "");
}

TEST_F(Channels, BatchNormalizationInBothLayouts) {
  for (int round = 0; round < 60; ++round) {
    const bool blocked = round % 2, relu = between(0, 1), adds = between(0, 1), training = between(0, 3) > 0;
    const std::int64_t channels = blocked ? 16 * between(1, 3) : between(1, 20);
    Dims x{between(1, 3), channels};
    for (std::int64_t axes = between(blocked ? 1 : 0, 3); axes > 0; --axes) x.push_back(between(1, 7));
    const Layout layout = blocked ? Layout::kChannels16 : Layout::kPlain;
    const Operand full{x, layout}, vector{{channels}};
    const Operand variance{{channels}, Layout::kPlain, true, random({channels}, 0.5, 2)};
    BlockedTrial trial{"stepscope",
                       "FusedBatchNormalization",
                       {{"relu", std::int64_t{relu}},
                        {"training_mode", std::int64_t{training}},
                        {"momentum", 0.8F},
                        {"sample_variance", std::int64_t{round % 3 == 0}}},
                       {full, vector, vector, vector, variance},
                       {full, vector, vector, vector, vector}};
    if (adds) trial.inputs.push_back(full);
    if (x.size() == 2 && x[0] == 1) x[0] = 2;
    compare(trial, true, 2e-4);
    BlockedTrial gradient{"stepscope",
                          "FusedBatchNormalizationGrad",
                          {{"training_mode", std::int64_t{training}}},
                          {full, full, vector, vector, variance},
                          {full, vector, vector}};
    if (relu) {
      gradient.inputs.push_back(full);
      gradient.outputs.push_back(full);
      gradient.outputs.back().present = between(0, 1);
    }
    if (!training && between(0, 1)) {
      gradient.inputs[1].present = false;
      gradient.outputs[1].present = false;
    }
    compare(gradient, true, 2e-4);
  }
}

TEST_F(Channels, BatchNormalizationOfLargeMeansKeepsItsVariance) {
  const Operand x{{4, 16, 9, 9}, Layout::kPlain, true, random({4, 16, 9, 9}, 999, 1001)}, vector{{16}};
  const Operand variance{{16}, Layout::kPlain, true, random({16}, 0.5, 2)};
  compare({"",
           "BatchNormalization",
           {{"training_mode", std::int64_t{1}}},
           {x, vector, vector, vector, variance},
           {{{4, 16, 9, 9}}, vector, vector, vector, vector}},
          true, 1e-3);
}

TEST_F(Channels, ReluGradPassesNaNAndDropsZero) {
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{37}, std::int64_t{70000}})
    compare({"stepscope", "ReluGrad", {}, {{{n}}, {{n}}}, {{{n}}}});
  const float inf = INFINITY;
  const std::vector<float> y{0, -0.0F, NAN, inf, -inf}, dy{1, 2, 3, 4, 5};
  const auto made = execute({"stepscope", "ReluGrad", {}, {{{5}}, {{5}}}, {{{5}}}},
                            {Tensor::of<float>({5}, dy), Tensor::of<float>({5}, y)}, true);
  ASSERT_TRUE(made.has_value());
  const std::vector<double> expected{0, 0, 3, 4, 0};
  for (std::int64_t i = 0; i < 5; ++i)
    EXPECT_EQ(elementAsDouble((*made)[0].view(), i), expected[static_cast<std::size_t>(i)]);
}

TEST_F(Channels, WinogradOfOddExtents) {
  for (int round = 0; round < 16; ++round) {
    const std::int64_t batch = between(1, 3), c = 16 * between(1, 4), m = 16 * between(1, 4), pad = between(0, 1),
                       h = between(5, 19), w = between(5, 19);
    const Dims x{batch, c, h, w}, y{batch, m, h + 2 * pad - 2, w + 2 * pad - 2};
    const Attributes attrs{{"pads", Ints{pad, pad, pad, pad}}, {"winograd", std::int64_t{1}}};
    const auto blocked = [](const Dims& dims) { return Operand{dims, Layout::kChannels16}; };
    const auto shape = [](const Dims& dims) {
      return Operand{{static_cast<std::int64_t>(dims.size())}, Layout::kPlain, true, Tensor::ints(dims)};
    };
    const Operand weights{{m, c, 3, 3}};
    compare({"", "Conv", attrs, {blocked(x), weights, Operand{{m}}}, {blocked(y)}});
    compare({"stepscope", "ConvInputGrad", attrs, {blocked(y), weights, shape(x)}, {blocked(x)}});
    compare({"stepscope", "ConvWeightGrad", attrs, {blocked(y), blocked(x), shape({m, c, 3, 3})}, {{{m, c, 3, 3}}}});
  }
}

// What lies between convolutions: operands in nChw16c, and one element per channel beside them.
TEST_F(Channels, MovementSumsAndGatesBetweenConvolutions) {
  for (int round = 0; round < 60; ++round) {
    const std::int64_t rank = between(1, 3), batch = between(1, 3), c = 16 * between(1, 3), d = 16 * between(1, 2);
    Dims x{batch, c}, other{batch, d}, joined{batch, c + d}, gate{between(0, 1) ? batch : 1, c}, bias{c};
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t extent = between(i == 0 ? 2 : 1, 40);
      for (Dims* dims : {&x, &other, &joined}) dims->push_back(extent);
      gate.push_back(1);
      bias.push_back(1);
    }
    const auto blocked = [](const Dims& dims) { return Operand{dims, Layout::kChannels16}; };
    const auto ints = [](const Ints& values) {
      return Operand{{static_cast<std::int64_t>(values.size())}, Layout::kPlain, true, Tensor::ints(values)};
    };
    compare({"", "Concat", {{"axis", std::int64_t{-rank - 1}}}, {blocked(x), blocked(other), blocked(x)}, {blocked([&] {
               Dims all = joined;
               all[1] += c;
               return all;
             }())}},
            true, 0);
    compare({"", "Concat", {{"axis", rank + 1}}, {blocked(x), blocked(x)}, {blocked([&] {
               Dims all = x;
               all.back() *= 2;
               return all;
             }())}},
            true, 0);
    compare({"", "Split", {{"axis", std::int64_t{1}}}, {blocked(joined), ints({c, d})}, {blocked(x), blocked(other)}}, true,
            0);
    compare({"", "Expand", {}, {{gate}, ints(x)}, {blocked(x)}}, true, 0);
    for (const char* op : {"Add", "Sub", "Mul"}) {
      compare({"", op, {}, {blocked(x), {gate}}, {blocked(x)}}, true, 1e-6);
      compare({"", op, {}, {{bias}, blocked(x)}, {blocked(x)}}, true, 1e-6);
    }
    compare({"stepscope",
             "Pointwise",
             {{"steps", std::vector<std::string>{"Mul 0 1", "Add 4 2", "Sigmoid 5", "Mul 6 3"}}},
             {blocked(x), {gate}, {bias}, blocked(x)},
             {blocked(x)}},
            true, 1e-6);
    for (const Dims& to : {gate, bias, Dims{1}})
      compare({"stepscope", "ReduceToShape", {}, {blocked(x), ints(to)}, {{to}}}, true, 1e-6);
    Ints space;
    for (std::int64_t i = 0; i < rank; ++i) space.push_back(i + 2);
    Ints all = space;
    all.push_back(0);
    BlockedTrial sum{"", "ReduceSum", {{"keepdims", std::int64_t{0}}}, {blocked(x), ints(all)}, {{{c}}}};
    compare(sum, true, 1e-6);
    BlockedTrial mean{"", "ReduceMean", {}, {blocked(x), ints(space)}, {{[&] {
                        Dims y = gate;
                        y[0] = batch;
                        return y;
                      }()}}};
    compare(mean, true, 1e-6);
  }
}

TEST_F(Channels, ResizesOfSixteenChannels) {
  for (int round = 0; round < 60; ++round) {
    const std::int64_t rank = between(1, 2);
    Dims x{between(1, 2), 16 * between(1, 2)}, y = x;
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t extent = between(1, 9), target = round % 3 ? extent * 2 : between(1, 19);
      x.push_back(extent);
      y.push_back(target);
    }
    const char* modes[] = {"nearest", "linear", "cubic"};
    const Attributes attrs{{"mode", std::string(modes[between(0, 2)])},
                           {"coordinate_transformation_mode", std::string(between(0, 1) ? "half_pixel" : "asymmetric")}};
    const auto ints = [](const Dims& values) {
      return Operand{{static_cast<std::int64_t>(values.size())}, Layout::kPlain, true, Tensor::ints(values)};
    };
    const Operand none{{}, Layout::kPlain, false};
    compare({"", "Resize", attrs, {{x, Layout::kChannels16}, none, none, ints(y)}, {{y, Layout::kChannels16}}}, true, 1e-5);
    compare({"stepscope",
             "ResizeGrad",
             attrs,
             {{y, Layout::kChannels16}, ints(x), none, none, ints(y)},
             {{x, Layout::kChannels16}}},
            true, 1e-5);
  }
}

// Windows that keep all sums in registers, those that do not, and maps smaller than their window.
TEST_F(Channels, DepthwiseWeightGradientsOfAnyWindow) {
  for (int round = 0; round < 120; ++round) {
    const std::int64_t rank = between(1, 5) == 1 ? 1 : 2, batch = between(1, 4), blocked = round % 2;
    const std::int64_t c = blocked ? 16 * between(1, 4) : between(2, 40);
    Dims x{batch, c}, w{c, 1}, y{batch, c};
    Ints strides, pads, dilations;
    const std::int64_t square = std::vector<std::int64_t>{1, 3, 5, 7, 0}[static_cast<std::size_t>(round % 5)];
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t kernel = square > 0 ? square : between(1, 9), stride = between(1, 3), pad = between(0, kernel - 1),
                         dilation = between(1, 4) == 1 ? 2 : 1;
      const std::int64_t least = std::max<std::int64_t>(1, (kernel - 1) * dilation + 1 - 2 * pad),
                         extent = between(least, least + 12);
      x.push_back(extent);
      w.push_back(kernel);
      y.push_back((extent + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1);
      strides.push_back(stride);
      pads.push_back(pad);
      dilations.push_back(dilation);
    }
    const Ints begin = pads;
    pads.insert(pads.end(), begin.begin(), begin.end());
    const Attributes attrs{{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"group", c}};
    const auto any = [&](const Dims& dims) {
      return Operand{dims, blocked && between(0, 3) > 0 ? Layout::kChannels16 : Layout::kPlain};
    };
    compare({"stepscope",
             "ConvWeightGrad",
             attrs,
             {any(y), any(x), Operand{{static_cast<std::int64_t>(w.size())}, Layout::kPlain, true, Tensor::ints(w)}},
             {{w}}},
            true, 1e-5);
  }
}

TEST_F(Channels, ConvolutionsWithAnyMixOfLayouts) {
  for (int round = 0; round < 60; ++round) {
    const std::int64_t rank = between(1, 3), batch = between(1, 3);
    const int kind = round % 4;  // dense, depthwise, grouped, few input channels
    const std::int64_t m = 16 * between(1, 2), c = kind == 1 ? m : kind == 3 ? 3 : 16 * between(1, 2);
    const std::int64_t group = kind == 1 ? m : kind == 2 ? 2 : 1;
    Dims x{batch, c}, w{m, c / group}, y{batch, m};
    Ints strides, pads, dilations;
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t kernel = between(1, 3), stride = between(1, 2), pad = between(0, kernel - 1),
                         dilation = between(1, 2), extent = between(5, 9);
      x.push_back(extent);
      w.push_back(kernel);
      y.push_back((extent + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1);
      strides.push_back(stride);
      pads.push_back(pad);
      dilations.push_back(dilation);
    }
    const Ints begin = pads;
    pads.insert(pads.end(), begin.begin(), begin.end());
    const Attributes attrs{{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"group", group}};
    const auto any = [&](const Dims& dims) {
      return Operand{dims, dims[1] % 16 == 0 && between(0, 2) > 0 ? Layout::kChannels16 : Layout::kPlain};
    };
    const auto shape = [](const Dims& dims) {
      return Operand{{static_cast<std::int64_t>(dims.size())}, Layout::kPlain, true, Tensor::ints(dims)};
    };
    compare({"", "Conv", attrs, {any(x), {w}, {{m}}}, {any(y)}});
    compare({"stepscope", "ConvInputGrad", attrs, {any(y), {w}, shape(x)}, {any(x)}});
    compare({"stepscope", "ConvWeightGrad", attrs, {any(y), any(x), shape(w)}, {{w}}}, true, 1e-4);
    if (kind != 0) continue;
    // The transposed convolution takes y back to the extents of x.
    Attributes transposed = attrs;
    transposed.set("output_shape", Ints(x.begin() + 2, x.end()));
    transposed.erase("pads");
    compare({"", "ConvTranspose", transposed, {any(y), {w}, {{c}}}, {any(x)}});
    compare({"stepscope", "ConvTransposeInputGrad", transposed, {any(x), {w}, shape(y)}, {any(y)}});
    compare({"stepscope", "ConvTransposeWeightGrad", transposed, {any(x), any(y), shape(w)}, {{w}}}, true, 1e-4);
  }
}

TEST_F(Channels, MaxPoolOfSixteenChannelsTakesTheFirstOfEqualsAndNaN) {
  for (int round = 0; round < 20; ++round) {
    const Dims x{2, 16, 7, 6}, y{2, 16, 4, 3};
    const Attributes attrs{{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
    const BlockedTrial trial{"",
                             "MaxPool",
                             attrs,
                             {{x, Layout::kChannels16}},
                             {{y, Layout::kChannels16}, {y, Layout::kChannels16, true, Tensor(DType::kI64, y)}}};
    Tensor values(DType::kF32, x);
    const float few[] = {1, 2, 0, -0.0F, -INFINITY, INFINITY, NAN};
    for (float& value : values.as<float>()) value = round % 5 == 4 ? -INFINITY : few[between(0, round % 2 ? 6 : 4)];
    const auto fast = execute(trial, {values}, true), slow = execute(trial, {values}, false);
    ASSERT_TRUE(fast && slow);
    for (std::int64_t i = 0; i < elementCount(y); ++i) {
      EXPECT_EQ(elementAsInt((*fast)[1].view(), i), elementAsInt((*slow)[1].view(), i))
          << "round " << round << ", element " << i;
      const double a = elementAsDouble((*fast)[0].view(), i), b = elementAsDouble((*slow)[0].view(), i);
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
          << "round " << round << ", element " << i << ": " << a << " and " << b;
    }
  }
}

TEST_F(Channels, PoolsOfSixteenChannels) {
  for (int round = 0; round < 40; ++round) {
    const std::int64_t rank = between(1, 3), channels = 16 * between(1, 2), batch = between(1, 2);
    Dims x{batch, channels}, y{batch, channels};
    Ints kernel, strides, pads, dilations;
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t k = between(1, 3), stride = between(1, 2), pad = between(0, k - 1), dilation = between(1, 2),
                         extent = between(5, 8);
      kernel.push_back(k);
      strides.push_back(stride);
      pads.push_back(pad);
      dilations.push_back(dilation);
      x.push_back(extent);
      y.push_back((extent + 2 * pad - (k - 1) * dilation - 1) / stride + 1);
    }
    const Ints begin = pads;
    pads.insert(pads.end(), begin.begin(), begin.end());
    const Attributes attrs{{"kernel_shape", kernel},
                           {"strides", strides},
                           {"pads", pads},
                           {"dilations", dilations},
                           {"count_include_pad", between(0, 1)}};
    const Operand in{x, Layout::kChannels16}, out{y, Layout::kChannels16};
    const Operand indices{y, Layout::kChannels16, true, Tensor(DType::kI64, y)};
    const BlockedTrial forward{"", "MaxPool", attrs, {in}, {out, indices}};
    compare(forward);
    const auto made = execute(forward, {random(x)}, true);
    ASSERT_TRUE(made.has_value());
    const Operand shape{{static_cast<std::int64_t>(x.size())}, Layout::kPlain, true, Tensor::ints(x)};
    compare({"stepscope", "MaxPoolGrad", {}, {out, {y, Layout::kChannels16, true, (*made)[1]}, shape}, {in}});
    compare({"", "AveragePool", attrs, {in}, {out}});
    compare({"stepscope", "AveragePoolGrad", attrs, {out, shape}, {in}});
    Dims one = x;
    std::fill(one.begin() + 2, one.end(), 1);
    compare({"", "GlobalAveragePool", {}, {in}, {{one}}});
    compare({"", "GlobalAveragePool", {}, {in}, {{one, Layout::kChannels16}}});
  }
}

TEST_F(Channels, KernelsThatKnowNoLayoutRunBetweenReorders) {
  const Operand blocked{{2, 16, 3, 5}, Layout::kChannels16}, plain{{2, 16, 3, 5}};
  compare({"", "Softmax", {{"axis", std::int64_t{3}}}, {blocked}, {blocked}}, false);
  compare({"", "Softmax", {{"axis", std::int64_t{1}}}, {plain}, {blocked}}, false);
  compare({"stepscope", "Reorder", {}, {plain}, {blocked}});
  compare({"stepscope", "Reorder", {}, {blocked}, {plain}});
}

}  // namespace
}  // namespace stepscope
