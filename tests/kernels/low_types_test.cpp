// float16 and bfloat16: slabs, channels in every layout and convolutions give what the float32 kernel gives on the same
// numbers, rounded once.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/kernel_registry.h"

namespace stepscope {
namespace {

struct Operand {
  Dims dims;
  bool wide = false;  // float32 whatever the type of the test is
  bool mask = false;  // bool
  bool present = true;
};

struct Case {
  std::string name;
  KernelSpec spec;
  std::vector<Operand> inputs, outputs;
  Layout layout = Layout::kPlain;  // of operands with the extents of output 0
};

Tensor numbers(const Dims& dims, DType dtype, int seed) {
  const Tensor tensor(dtype, dims);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = static_cast<double>((i * 37 + seed * 11) % 101) / 25 - 2;
    storeElement(tensor.view(), i, dtype == DType::kBool ? static_cast<double>(i % 3 == 0) : value + 0.001 * seed);
  }
  return tensor;
}

struct Ran {
  std::string implementation;
  std::vector<Tensor> results;
};

Ran run(const Case& c, const std::vector<Tensor>& inputs, DType type, int threads) {
  KernelSpec spec = c.spec;
  spec.threads = threads;
  std::vector<TensorView> from, to;
  Ran ran;
  const auto layoutOf = [&](const Operand& o) { return o.dims == c.outputs[0].dims ? c.layout : Layout::kPlain; };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!c.inputs[i].present) {
      spec.inputs.push_back({});
      from.push_back({});
      continue;
    }
    spec.inputs.push_back({.dtype = inputs[i].dtype(), .dims = inputs[i].dims(), .layout = layoutOf(c.inputs[i])});
    from.push_back(inputs[i].view());
  }
  for (const Operand& output : c.outputs) {
    ran.results.push_back(Tensor(output.wide ? DType::kF32 : output.mask ? DType::kBool : type, output.dims));
    spec.outputs.push_back({.dtype = ran.results.back().dtype(), .dims = output.dims, .layout = layoutOf(output)});
    std::memset(ran.results.back().data(), 0xff, ran.results.back().bytes());  // every element is written
    to.push_back(ran.results.back().view());
  }
  auto kernel = builtInKernels().make("cpu", spec);
  EXPECT_TRUE(kernel.has_value()) << c.name << ": " << kernel.error().message;
  if (!kernel) return ran;
  const Tensor workspace(DType::kU8, {static_cast<std::int64_t>((*kernel)->workspaceBytes())});
  const auto bytes = std::span(static_cast<std::byte*>(workspace.data()), workspace.bytes());
  const Status status = (*kernel)->run({from, to, bytes, {}, 0, {}});
  EXPECT_TRUE(status.has_value()) << c.name << ": " << (status ? "" : status.error().message);
  ran.implementation = (*kernel)->implementation();
  return ran;
}

bool sameBits(const Tensor& a, const Tensor& b) { return std::memcmp(a.data(), b.data(), a.bytes()) == 0; }

class LowTypes : public ::testing::TestWithParam<DType> {
 protected:
  // In the low type with 1, 2 and 3 threads, against float32 on the same numbers, rounded.
  void roundsOnce(const Case& c, const char* implementation) {
    std::vector<Tensor> low, wide;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const Operand& o = c.inputs[i];
      const DType type = o.mask ? DType::kBool : o.wide ? DType::kF32 : GetParam();
      low.push_back(o.present ? numbers(o.dims, type, static_cast<int>(i)) : Tensor());
      wide.push_back(!o.present || o.mask ? low.back() : convertTensor(low.back().view(), DType::kF32));
    }
    const Ran expected = run(c, wide, DType::kF32, 1);
    for (const int threads : {1, 2, 3}) {
      const Ran found = run(c, low, GetParam(), threads);
      EXPECT_NE(found.implementation.find(implementation), std::string::npos) << c.name << ": " << found.implementation;
      ASSERT_EQ(found.results.size(), expected.results.size());
      for (std::size_t o = 0; o < found.results.size(); ++o) {
        const Tensor& f = found.results[o];
        EXPECT_TRUE(sameBits(f, convertTensor(expected.results[o].view(), f.dtype())))
            << c.name << ", result " << o << ", " << threads << " threads";
      }
    }
  }
};

TEST_P(LowTypes, SlabsGiveTheBitsOfTheWhole) {
  const Dims cube{3, 5, 4099}, row{1, 1, 4099}, many{70001};
  roundsOnce({"one axis", {.op = "Gelu"}, {{many}}, {{many}}}, "slabs");
  roundsOnce({"less than a slab", {.op = "Tanh"}, {{{7, 3}}}, {{{7, 3}}}}, "slabs");
  roundsOnce({"a row beside it", {.op = "Add"}, {{cube}, {row}}, {{cube}}}, "slabs");
  roundsOnce({"a vector beside it", {.op = "Mul"}, {{cube}, {{4099}}}, {{cube}}}, "slabs");
  roundsOnce({"both are repeated", {.op = "Sub"}, {{{3, 1, 4099}}, {{5, 1}}}, {{cube}}}, "slabs");
  roundsOnce({"a scalar", {.op = "Div"}, {{many}, {{}}}, {{many}}}, "slabs");
  roundsOnce({"a mask", {.op = "Where"}, {{{5, 4099}, false, true}, {cube}, {{}}}, {{cube}}}, "slabs");
  roundsOnce({"a result of bool", {.op = "Less"}, {{cube}, {row}}, {{cube, false, true}}}, "slabs");
  roundsOnce({"bounds", {.op = "Clip"}, {{many}, {{}}, {Dims{}, false, false, false}}, {{many}}}, "slabs");
}

TEST_P(LowTypes, RowsStayWhole) {
  const Dims x{5, 7, 1000}, statistics{5, 7, 1};
  roundsOnce({"softmax", {.op = "Softmax", .attrs = {{"axis", std::int64_t{-1}}}}, {{x}}, {{x}}}, "slabs");
  roundsOnce({"a row above a slab", {.op = "LogSoftmax"}, {{{3, 20000}}}, {{{3, 20000}}}}, "slabs");
  roundsOnce({"gradient", {.domain = "stepscope", .op = "SoftmaxGrad"}, {{x}, {x}}, {{x}}}, "slabs");
  roundsOnce({"statistics in float32",
              {.op = "LayerNormalization", .attrs = {{"axis", std::int64_t{2}}}},
              {{x}, {{1000}}, {{1000}}},
              {{x}, {statistics, true}, {statistics, true}}},
             "slabs");
  roundsOnce({"two axes", {.op = "LayerNormalization", .attrs = {{"axis", std::int64_t{-2}}}}, {{x}, {{7, 1000}}}, {{x}}},
             "slabs");
  // Along another axis than the last ones nothing is cut off.
  roundsOnce({"the first axis", {.op = "Softmax", .attrs = {{"axis", std::int64_t{0}}}}, {{{40, 30}}}, {{{40, 30}}}},
             "float32");
}

// Operands are read as they are.
TEST_P(LowTypes, SumsOfChains) {
  const Attributes steps{{"steps", std::vector<std::string>{"Mul 0 1", "Add 2 0"}}};
  const auto sum = [&](std::vector<std::int64_t> axes, std::int64_t mean) {
    KernelSpec spec{.domain = "stepscope", .op = "PointwiseSum", .attrs = steps};
    spec.attrs.set("axes", std::move(axes));
    spec.attrs.set("mean", mean);
    return spec;
  };
  const Dims x{300, 7, 40}, wide{70, 3000}, narrow{9000, 5};
  roundsOnce({"leading axes", sum({0, 1}, 0), {{x}, {{40}}}, {{{40}}}}, "and a sum");
  roundsOnce({"trailing axes", sum({1, 2}, 1), {{x}, {{300, 1, 1}}}, {{{300}}}}, "and a sum");
  roundsOnce({"wide rows", sum({0}, 0), {{wide}, {{3000}}}, {{{3000}}}}, "and a sum");
  roundsOnce({"narrow rows", sum({0}, 1), {{narrow}, {narrow}}, {{{5}}}}, "and a sum");
  roundsOnce({"everything", sum({0, 1}, 1), {{wide}, {{70, 1}, true}}, {{Dims{}}}}, "and a sum");
}

TEST_P(LowTypes, ElementsInBlocksOfChannels) {
  const Dims x{2, 32, 37, 41};
  roundsOnce({"sum", {.op = "Add"}, {{x}, {x}}, {{x}}, Layout::kChannels16}, "slabs");
  roundsOnce({"one per channel", {.op = "Add"}, {{x}, {{1, 32, 1, 1}}}, {{x}}, Layout::kChannels16}, "float32");
  roundsOnce({"sum, channels last", {.op = "Add"}, {{x}, {x}}, {{x}}, Layout::kChannelsLast}, "slabs");
  roundsOnce({"one per channel, channels last", {.op = "Add"}, {{x}, {{1, 32, 1, 1}}}, {{x}}, Layout::kChannelsLast},
             "slabs");
  roundsOnce({"one per image and channel", {.op = "Add"}, {{x}, {{2, 32, 1, 1}}}, {{x}}, Layout::kChannelsLast}, "float32");
  // A kernel of sixteen channels between reorders.
  const Attributes window{{"kernel_shape", std::vector<std::int64_t>{3, 3}},
                          {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}};
  roundsOnce({"pool", {.op = "MaxPool", .attrs = window}, {{x}}, {{x}}, Layout::kChannelsLast},
             "16 channels in float32 between reorders");
}

TEST_P(LowTypes, NormalisationOverChannels) {
  const Dims x{3, 32, 9, 11}, c{32};
  for (const Layout layout : {Layout::kPlain, Layout::kChannels16}) {
    const Attributes training{{"training_mode", std::int64_t{1}}, {"relu", std::int64_t{1}}};
    const auto vector = [&] { return Operand{c, true}; };
    const std::string lanes = layout == Layout::kPlain ? "lanes of one channel" : "lanes of 16 channels";
    roundsOnce({"forward",
                {.domain = "stepscope", .op = "FusedBatchNormalization", .attrs = training},
                {{x}, vector(), vector(), vector(), vector(), {x}},
                {{x}, vector(), vector(), vector(), vector()},
                layout},
               lanes.c_str());
    roundsOnce({"gradient",
                {.domain = "stepscope", .op = "FusedBatchNormalizationGrad", .attrs = {{"training_mode", std::int64_t{1}}}},
                {{x}, {x}, vector(), vector(), vector(), {x}},
                {{x}, vector(), vector(), {x}},
                layout},
               lanes.c_str());
  }
}

TEST(ChannelsLast, AnElementIsWhereTheLayoutSays) {
  const Dims dims{2, 48, 3, 5};
  for (const DType type : {DType::kU8, DType::kBF16, DType::kF32, DType::kI64}) {
    const Tensor plain = numbers(dims, type, 1), last(type, dims), blocked(type, dims), back(type, dims);
    reorderLayout(plain.data(), Layout::kPlain, last.data(), Layout::kChannelsLast, type, dims);
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t c = 0; c < 48; ++c)
        for (std::int64_t i = 0; i < 15; ++i)
          ASSERT_EQ(elementAsDouble(last.view(), (n * 15 + i) * 48 + c),
                    elementAsDouble(plain.view(), (n * 48 + c) * 15 + i));
    reorderLayout(last.data(), Layout::kChannelsLast, blocked.data(), Layout::kChannels16, type, dims, 2);
    reorderLayout(blocked.data(), Layout::kChannels16, back.data(), Layout::kPlain, type, dims, 2);
    EXPECT_TRUE(sameBits(back, plain));
    reorderLayout(blocked.data(), Layout::kChannels16, back.data(), Layout::kChannelsLast, type, dims, 2);
    EXPECT_TRUE(sameBits(back, last));
    reorderLayout(last.data(), Layout::kChannelsLast, back.data(), Layout::kPlain, type, dims);
    EXPECT_TRUE(sameBits(back, plain));
  }
}

// Sums of other parts than those of float32: the last bit of bfloat16 may differ, statistics by the rounding of float32.
TEST(ChannelsLast, NormalisationAgreesWithFloat32) {
  for (const Dims& x : {Dims{3, 32, 9, 11}, Dims{2, 64, 40, 41}, Dims{1, 16, 1, 1}, Dims{2, 48, 7}}) {
    const Dims c{x[1]};
    const Operand whole{x}, vector{c, true};
    for (const bool fused : {false, true}) {
      const std::string prefix = fused ? "Fused" : "";
      const std::string domain = fused ? "stepscope" : "";
      std::vector<Case> cases;
      for (const std::int64_t training : {0, 1}) {
        const Attributes attrs{{"training_mode", training}, {"relu", std::int64_t{fused}}};
        cases.push_back({"forward",
                         {.domain = domain, .op = prefix + "BatchNormalization", .attrs = attrs},
                         {whole, vector, vector, vector, vector},
                         {whole, vector, vector}});
        if (fused) cases.back().inputs.push_back(whole);
        cases.push_back({"gradient",
                         {.domain = "stepscope", .op = prefix + "BatchNormalizationGrad", .attrs = attrs},
                         {whole, whole, vector, vector, vector},
                         {whole, vector, vector}});
        if (fused) {
          cases.back().inputs.push_back(whole);
          cases.back().outputs.push_back(whole);
        }
      }
      for (Case& trial : cases) {
        std::vector<Tensor> low, wide;
        for (std::size_t i = 0; i < trial.inputs.size(); ++i) {
          const bool vectors = trial.inputs[i].wide;
          Tensor plain = numbers(trial.inputs[i].dims, vectors ? DType::kF32 : DType::kBF16, static_cast<int>(i));
          if (vectors)
            for (float& value : plain.as<float>()) value = std::abs(value) + 0.5F;  // variances
          wide.push_back(convertTensor(plain.view(), DType::kF32));
          low.push_back(Tensor(plain.dtype(), plain.dims()));
          reorderLayout(plain.data(), Layout::kPlain, low.back().data(), vectors ? Layout::kPlain : Layout::kChannelsLast,
                        plain.dtype(), plain.dims());
        }
        const Ran expected = run(trial, wide, DType::kF32, 1);
        trial.layout = Layout::kChannelsLast;
        const Ran found = run(trial, low, DType::kBF16, 2), three = run(trial, low, DType::kBF16, 3);
        EXPECT_EQ(found.implementation, "rows of channels");
        for (std::size_t o = 0; o < found.results.size(); ++o) {
          const Tensor& f = found.results[o];
          EXPECT_TRUE(sameBits(f, three.results[o])) << trial.name << ", result " << o;
          Tensor plain(f.dtype(), f.dims());
          reorderLayout(f.data(), f.dims() == x ? Layout::kChannelsLast : Layout::kPlain, plain.data(), Layout::kPlain,
                        f.dtype(), f.dims());
          double scale = 0;
          for (std::int64_t i = 0; i < f.elements(); ++i)
            scale = std::max(scale, std::abs(elementAsDouble(expected.results[o].view(), i)));
          for (std::int64_t i = 0; i < f.elements(); ++i) {
            const double e = elementAsDouble(expected.results[o].view(), i);
            ASSERT_NEAR(elementAsDouble(plain.view(), i), e,
                        (f.dtype() == DType::kBF16 ? 0x1p-8 * std::abs(e) : 0) + 1e-5 * scale)
                << trial.name << (fused ? " fused" : "") << ", result " << o << " of " << dimsText(x) << ", element " << i;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LowTypes, ::testing::Values(DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(dtypeName(info.param)); });

// Every pass of a convolution in bfloat16, in either layout, against float32 on the same numbers: products are exact in
// float32, so that the two differ by the order of the sums and by one rounding.
TEST(BFloat16Convolution, AgreesWithFloat32) {
  struct Window {
    std::int64_t channels, size, filters, kernel, stride, pad, group;
  };
  for (const Window& w : {Window{32, 14, 48, 3, 1, 1, 1},
                          {64, 9, 32, 1, 1, 0, 1},
                          {16, 15, 32, 3, 2, 1, 1},
                          {3, 21, 16, 7, 2, 3, 1},
                          {32, 8, 32, 3, 1, 1, 32},
                          {64, 7, 64, 3, 1, 1, 4}}) {
    const std::int64_t out = (w.size + 2 * w.pad - w.kernel) / w.stride + 1;
    const Dims x{2, w.channels, w.size, w.size}, k{w.filters, w.channels / w.group, w.kernel, w.kernel},
        y{2, w.filters, out, out};
    const Attributes attrs{{"kernel_shape", std::vector<std::int64_t>{w.kernel, w.kernel}},
                           {"strides", std::vector<std::int64_t>{w.stride, w.stride}},
                           {"pads", std::vector<std::int64_t>{w.pad, w.pad, w.pad, w.pad}},
                           {"group", w.group}};
    struct Pass {
      const char *domain, *op;
      std::vector<Dims> inputs;
      Dims output;
    };
    for (const Pass& pass : {Pass{"", "Conv", {x, k, {w.filters}}, y},
                             {"stepscope", "ConvInputGrad", {y, k}, x},
                             {"stepscope", "ConvWeightGrad", {y, x}, k}})
      for (const Layout layout : {Layout::kPlain, Layout::kChannels16, Layout::kChannelsLast}) {
        KernelSpec low{.domain = pass.domain, .op = pass.op, .attrs = attrs, .threads = 2}, wide = low;
        std::vector<Tensor> inputs, wideInputs;
        std::vector<TensorView> from, wideFrom;
        const auto layoutOf = [&](const Dims& dims) {
          return dims != k && layoutRefusal(DType::kBF16, dims).empty() ? layout : Layout::kPlain;
        };
        for (const Dims& dims : pass.inputs) {
          inputs.push_back(numbers(dims, DType::kBF16, static_cast<int>(inputs.size())));
          wideInputs.push_back(convertTensor(inputs.back().view(), DType::kF32));
          low.inputs.push_back({.dtype = DType::kBF16, .dims = dims, .layout = layoutOf(dims)});
          wide.inputs.push_back({.dtype = DType::kF32, .dims = dims, .layout = layoutOf(dims)});
        }
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          from.push_back(inputs[i].view());
          wideFrom.push_back(wideInputs[i].view());
        }
        const Tensor found(DType::kBF16, pass.output), expected(DType::kF32, pass.output);
        low.outputs = {{.dtype = DType::kBF16, .dims = pass.output, .layout = layoutOf(pass.output)}};
        wide.outputs = {{.dtype = DType::kF32, .dims = pass.output, .layout = layoutOf(pass.output)}};
        const auto compute = [](const KernelSpec& spec, const std::vector<TensorView>& operands, const Tensor& result) {
          auto kernel = builtInKernels().make("cpu", spec);
          ASSERT_TRUE(kernel.has_value()) << spec.op << ": " << kernel.error().message;
          const Tensor workspace(DType::kU8, {static_cast<std::int64_t>((*kernel)->workspaceBytes())});
          std::vector<TensorView> to{result.view()};
          const Status status = (*kernel)->run(
              {operands, to, std::span(static_cast<std::byte*>(workspace.data()), workspace.bytes()), {}, 0, {}});
          ASSERT_TRUE(status.has_value()) << status.error().message;
        };
        compute(low, from, found);
        compute(wide, wideFrom, expected);
        double scale = 0;
        for (std::int64_t i = 0; i < expected.elements(); ++i)
          scale = std::max(scale, std::abs(elementAsDouble(expected.view(), i)));
        for (std::int64_t i = 0; i < expected.elements(); ++i) {
          const double e = elementAsDouble(expected.view(), i);
          ASSERT_NEAR(elementAsDouble(found.view(), i), e, 0x1p-8 * std::abs(e) + 1e-5 * scale)
              << pass.op << " " << w.channels << " channels, kernel " << w.kernel << ", " << layoutName(layout)
              << ", element " << i;
        }
      }
  }
}

}  // namespace
}  // namespace stepscope
