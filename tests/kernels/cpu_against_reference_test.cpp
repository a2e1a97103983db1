// Every fast CPU kernel against the reference kernel in f64, over random shapes, strides, odd tails and zero extents.
#include <array>
#include <limits>

#include "tests/kernels/trial.h"

namespace stepscope {
namespace {

TEST_F(CpuKernels, MatrixProductsOfRandomShapes) {
  for (int round = 0; round < 60; ++round) {
    const std::int64_t m = between(1, 70), n = between(1, 70), k = between(1, 90);
    const std::int64_t transA = between(0, 1), transB = between(0, 1);
    const Dims a = transA ? Dims{k, m} : Dims{m, k}, b = transB ? Dims{n, k} : Dims{k, n};
    Dims batchA, batchB, batch;
    for (std::int64_t i = between(0, 2); i > 0; --i) {
      const std::int64_t extent = between(1, 3), which = between(0, 3);
      batchA.push_back(which == 0 ? 1 : extent);
      batchB.push_back(which == 1 ? 1 : extent);
      batch.push_back(extent);
    }
    if (between(0, 2) == 0) batchB.clear();
    const auto joined = [](Dims head, const Dims& tail) {
      head.insert(head.end(), tail.begin(), tail.end());
      return head;
    };
    const Dims left = joined(batchA, a), right = joined(batchB, b);
    const Dims y = joined(*broadcastDims(batchA, batchB), {m, n});
    const float alpha = between(0, 1) ? 1.0f : 0.25f;
    compare({"stepscope",
             "BatchedMatMul",
             {{"transA", transA}, {"transB", transB}, {"alpha", alpha}},
             {random(left), random(right)},
             {y}});
  }
}

// Shapes of layers, for which products are shared out in blocks or run on another primitive.
TEST_F(CpuKernels, LargeMatrixProducts) {
  struct Large {
    std::int64_t transA, transB, m, k, n;
    const char* implementation;
  };
  for (const Large& p : {Large{0, 0, 65, 257, 4099, "by columns"}, Large{1, 0, 2101, 67, 523, "by rows"},
                         Large{0, 1, 65, 2053, 523, "matmul"}}) {
    const Tensor a = random(p.transA ? Dims{p.k, p.m} : Dims{p.m, p.k}),
                 b = random(p.transB ? Dims{p.n, p.k} : Dims{p.k, p.n});
    const Attributes attrs{{"transA", p.transA}, {"transB", p.transB}};
    const Trial plain{"stepscope", "BatchedMatMul", attrs, {a, b}, {{p.m, p.n}}};
    compare(plain);
    compare({"", "Gemm", attrs, {a, b, random({p.n})}, {{p.m, p.n}}});
    const auto made = execute(Backend::kCpu, plain, false);
    ASSERT_TRUE(made.has_value());
    EXPECT_NE(made->implementation.find(p.implementation), std::string::npos) << made->implementation;
  }
}

// A number that is none is seen in the result of every fast kernel that picks the larger one: PyTorch's hand it on too.
TEST_F(CpuKernels, RectifiersAndMaximaHandNanOn) {
  const auto poisoned = [this](Dims dims) {
    Tensor tensor = random(std::move(dims));
    tensor.as<float>()[tensor.as<float>().size() / 2] = std::numeric_limits<float>::quiet_NaN();
    return tensor;
  };
  struct Product {
    std::int64_t transA, transB, m, k, n;
  };
  std::vector<Trial> trials;
  for (const Product& p : {Product{0, 0, 65, 257, 4099}, Product{1, 0, 2101, 67, 523}, Product{0, 1, 65, 2053, 523},
                           Product{0, 0, 5, 7, 3}, Product{0, 1, 200, 64, 96}})
    trials.push_back(
        {"stepscope",
         "Product",
         {{"permA", p.transA ? Ints{1, 0} : Ints{0, 1}},
          {"permB", p.transB ? Ints{1, 0} : Ints{0, 1}},
          {"activation", "Relu"}},
         {poisoned(p.transA ? Dims{p.k, p.m} : Dims{p.m, p.k}), random(p.transB ? Dims{p.n, p.k} : Dims{p.k, p.n})},
         {{p.m, p.n}}});
  trials.push_back({"", "Relu", {}, {poisoned({7, 33})}, {{7, 33}}});
  trials.push_back(
      {"", "MaxPool", {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}}, {poisoned({1, 16, 9, 9})}, {{1, 16, 4, 4}}});
  trials.push_back({"", "Max", {}, {poisoned({5, 19}), random({5, 19})}, {{5, 19}}});
  trials.push_back({"", "Min", {}, {random({5, 19}), poisoned({5, 19})}, {{5, 19}}});
  trials.push_back({"",
                    "ReduceMax",
                    {{"keepdims", std::int64_t{0}}},
                    {poisoned({6, 40}), Tensor::ints(std::vector<std::int64_t>{1})},
                    {{6}}});
  for (const Trial& trial : trials) {
    const auto fast = execute(Backend::kCpu, trial, false), reference = execute(Backend::kReference, trial, true);
    ASSERT_TRUE(fast.has_value()) << trial.op << ": " << fast.error().message;
    ASSERT_TRUE(reference.has_value()) << trial.op << ": " << reference.error().message;
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < fast->outputs[0].elements(); ++i) {
      const bool nan = std::isnan(elementAsDouble(fast->outputs[0].view(), i));
      found += nan;
      ASSERT_EQ(nan, std::isnan(elementAsDouble(reference->outputs[0].view(), i)))
          << trial.op << " (" << fast->implementation << "), element " << i;
    }
    EXPECT_GT(found, 0) << trial.op << " (" << fast->implementation << ")";
  }
}

TEST_F(CpuKernels, MatrixProductsWithVectors) {
  compare({"", "MatMul", {}, {random({5}), random({5})}, {{}}});
  compare({"", "MatMul", {}, {random({5}), random({2, 5, 3})}, {{2, 3}}});
  compare({"", "MatMul", {}, {random({2, 3, 5}), random({5})}, {{2, 3}}});
  compare({"", "MatMul", {}, {random({2, 0, 5}), random({5, 4})}, {{2, 0, 4}}}, false);
  compare({"", "MatMul", {}, {random({2, 0}), random({0, 3})}, {{2, 3}}}, false);
}

// Matrices of one panel and of several, whose blocks end within rows.
TEST_F(CpuKernels, ProductsWithFourBitWeights) {
  for (const auto& [m, n, k, block] :
       {std::array<std::int64_t, 4>{3, 7, 20, 16}, {1, 33, 129, 64}, {5, 300, 1031, 64}, {2, 4, 3000, 128}})
    for (const std::int64_t kind : {0, 1})
      for (const std::int64_t transB : {0, 1}) {
        Tensor packed(DType::kU8, {(n * k + 1) / 2});
        for (std::int64_t i = 0; i < packed.elements(); ++i)
          static_cast<std::uint8_t*>(packed.data())[i] = static_cast<std::uint8_t>(between(0, 255));
        compare({"com.microsoft",
                 "MatMulBnb4",
                 {{"N", n}, {"K", k}, {"block_size", block}, {"quant_type", kind}, {"transB", transB}},
                 {random({m, transB ? k : n}), packed, random({(n * k + block - 1) / block})},
                 {{m, transB ? n : k}}});
      }
}

TEST_F(CpuKernels, GemmWithEveryBias) {
  for (const std::int64_t transA : {0, 1})
    for (const std::int64_t transB : {0, 1})
      for (const Dims& c : {Dims{}, Dims{1}, Dims{17}, Dims{9, 1}, Dims{1, 17}, Dims{9, 17}, Dims{1, 1}})
        for (const float beta : {0.0f, 1.0f, -0.5f})
          compare({"",
                   "Gemm",
                   {{"transA", transA}, {"transB", transB}, {"alpha", beta == 1.0f ? 1.0f : 2.0f}, {"beta", beta}},
                   {random(transA ? Dims{33, 9} : Dims{9, 33}), random(transB ? Dims{17, 33} : Dims{33, 17}), random(c)},
                   {{9, 17}}});
}

TEST_F(CpuKernels, ConvolutionsAndTheirGradientsOfRandomShapes) {
  for (int round = 0; round < 60; ++round) {
    const std::int64_t rank = between(1, 3), group = between(0, 2) == 0 ? between(2, 3) : 1;
    const bool depthwise = between(0, 3) == 0;
    const std::int64_t groups = depthwise ? between(2, 20) : group;
    const std::int64_t inGroup = depthwise ? 1 : between(1, 9), outGroup = depthwise ? 1 : between(1, 20);
    Dims x{between(1, 3), groups * inGroup}, w{groups * outGroup, inGroup}, y{x[0], w[0]};
    Ints strides, dilations, pads(static_cast<std::size_t>(2 * rank));
    const bool pointwise = between(0, 3) == 0;
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t kernel = pointwise ? 1 : between(1, 3), dilation = between(1, 2),
                         stride = pointwise ? 1 : between(1, 3);
      const std::int64_t begin = pointwise ? 0 : between(0, 2), end = pointwise ? 0 : between(0, 2), extent = between(6, 11);
      x.push_back(extent);
      w.push_back(kernel);
      y.push_back((extent + begin + end - (kernel - 1) * dilation - 1) / stride + 1);
      strides.push_back(stride);
      dilations.push_back(dilation);
      pads[static_cast<std::size_t>(i)] = begin;
      pads[static_cast<std::size_t>(rank + i)] = end;
    }
    const Attributes attrs{{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", groups}};
    compare({"", "Conv", attrs, {random(x), random(w), between(0, 1) ? random({w[0]}) : Tensor()}, {y}});
    compare({"stepscope", "ConvInputGrad", attrs, {random(y), random(w), Tensor::ints(x)}, {x}});
    compare({"stepscope", "ConvWeightGrad", attrs, {random(y), random(x), Tensor::ints(w)}, {w}}, true, 1e-4);
    // The same window the other way round; x is what it makes where no element of x is left over.
    Ints padding;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i)
      padding.push_back(x[i + 2] - ((y[i + 2] - 1) * strides[i] + (w[i + 2] - 1) * dilations[i] + 1 - pads[i] -
                                    pads[i + static_cast<std::size_t>(rank)]));
    Attributes transposed = attrs;
    transposed.set("output_padding", padding);
    compare({"", "ConvTranspose", transposed, {random(y), random(w), random({x[1]})}, {x}});
    compare({"stepscope", "ConvTransposeInputGrad", transposed, {random(x), random(w), Tensor::ints(y)}, {y}});
    compare({"stepscope", "ConvTransposeWeightGrad", transposed, {random(x), random(y), Tensor::ints(w)}, {w}}, true, 1e-4);
  }
}

TEST_F(CpuKernels, ConvolutionOfAnEmptyBatch) {
  compare({"", "Conv", {}, {random({0, 3, 5, 5}), random({4, 3, 3, 3}), Tensor()}, {{0, 4, 3, 3}}}, false);
  compare({"stepscope",
           "ConvWeightGrad",
           {},
           {random({0, 4, 3, 3}), random({0, 3, 5, 5}), Tensor::ints(Dims{4, 3, 3, 3})},
           {{4, 3, 3, 3}}},
          false);
}

TEST_F(CpuKernels, PoolsAndTheirGradientsOfRandomShapes) {
  for (int round = 0; round < 60; ++round) {
    const std::int64_t rank = between(1, 3), ceil = between(0, 1);
    Dims x{between(1, 3), between(1, 5)}, y = x;
    Ints kernel, strides, dilations, pads(static_cast<std::size_t>(2 * rank));
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t k = between(1, 3), dilation = between(1, 2), stride = between(1, 3), extent = between(6, 11);
      const std::int64_t begin = between(0, k - 1), end = between(0, k - 1);
      const std::int64_t room = extent + begin + end - (k - 1) * dilation - 1;
      std::int64_t out = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
      if (ceil && (out - 1) * stride >= extent + begin) --out;
      x.push_back(extent);
      y.push_back(out);
      kernel.push_back(k);
      strides.push_back(stride);
      dilations.push_back(dilation);
      pads[static_cast<std::size_t>(i)] = begin;
      pads[static_cast<std::size_t>(rank + i)] = end;
    }
    Attributes attrs{
        {"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"ceil_mode", ceil}};
    const Trial forward{"", "MaxPool", attrs, {random(x)}, {y, y}, {DType::kF32, DType::kI64}};
    compare(forward);
    const auto made = execute(Backend::kReference, forward, false);
    ASSERT_TRUE(made.has_value());
    compare({"stepscope", "MaxPoolGrad", {}, {random(y), made->outputs[1], Tensor::ints(x)}, {x}});
    attrs.set("count_include_pad", between(0, 1));
    compare({"", "AveragePool", attrs, {random(x)}, {y}});
    compare({"stepscope", "AveragePoolGrad", attrs, {random(y), Tensor::ints(x)}, {x}});
  }
}

TEST_F(CpuKernels, MaxPoolTakesTheFirstOfEqualsAndNaN) {
  const std::vector<float> values{1, 2, 2, NAN, 0, -1};
  const Trial trial{"",
                    "MaxPool",
                    {{"kernel_shape", Ints{3}}, {"strides", Ints{3}}},
                    {Tensor::of<float>({1, 1, 6}, std::span(values))},
                    {{1, 1, 2}, {1, 1, 2}},
                    {DType::kF32, DType::kI64}};
  for (const Backend backend : {Backend::kCpu, Backend::kReference}) {
    const auto made = execute(backend, trial, false);
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->outputs[1].as<std::int64_t>()[0], 1);
    EXPECT_EQ(made->outputs[1].as<std::int64_t>()[1], 3);
    EXPECT_TRUE(std::isnan(made->outputs[0].as<float>()[1]));
  }
}

TEST_F(CpuKernels, MaxPoolGradRefusesIndicesOutsideTheInput) {
  const std::vector<std::int64_t> indices{99};
  const Trial trial{
      "stepscope",
      "MaxPoolGrad",
      {},
      {random({1, 1, 1}), Tensor::of<std::int64_t>({1, 1, 1}, std::span(indices)), Tensor::ints(Dims{1, 1, 4})},
      {{1, 1, 4}}};
  EXPECT_FALSE(execute(Backend::kCpu, trial, false).has_value());
  EXPECT_FALSE(execute(Backend::kReference, trial, false).has_value());
}

TEST_F(CpuKernels, GlobalAveragePool) {
  for (const Dims& x : {Dims{2, 3, 7, 7}, Dims{1, 5, 33}, Dims{3, 2, 1}}) {
    Dims y = x;
    std::fill(y.begin() + 2, y.end(), 1);
    compare({"", "GlobalAveragePool", {}, {random(x)}, {y}});
  }
}

// X, W, R, B, sequence_lens, initial_h, initial_c of random extents; each optional one may be absent.
TEST_F(CpuKernels, RecurrentLayersAndTheirGradientsOfRandomShapes) {
  struct Op {
    const char* name;
    std::int64_t gates, kept;
  };
  for (int round = 0; round < 90; ++round) {
    const Op op = std::array{Op{"LSTM", 4, 3}, Op{"GRU", 3, 2}, Op{"RNN", 1, 2}}[static_cast<std::size_t>(round % 3)];
    const bool lstm = op.gates == 4, large = round % 10 == 9, batchFirst = between(0, 3) == 0;
    const std::int64_t steps = between(1, 7), batch = between(1, large ? 20 : 9), input = between(1, 40),
                       hidden = large ? between(60, 90) : between(1, 40);
    const std::int64_t directions = between(1, 2);
    Attributes attrs{
        {"hidden_size", hidden}, {"layout", std::int64_t{batchFirst}}, {"linear_before_reset", std::int64_t{1}}};
    attrs.set("direction", std::string(directions == 2 ? "bidirectional" : between(0, 1) ? "reverse" : "forward"));
    if (op.gates == 1 && between(0, 1))
      attrs.set("activations", std::vector<std::string>(static_cast<std::size_t>(directions), "Relu"));
    const Dims state = batchFirst ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden},
               x = batchFirst ? Dims{batch, steps, input} : Dims{steps, batch, input};
    const Dims y = batchFirst ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden};
    const auto maybe = [&](const Dims& dims) { return between(0, 3) ? random(dims) : Tensor(); };
    std::vector<Tensor> inputs{random(x), random({directions, op.gates * hidden, input}),
                               random({directions, op.gates * hidden, hidden}), maybe({directions, 2 * op.gates * hidden})};
    // Of the size that layers begin with: larger ones double a rounding with every step, and the trial would be of chance.
    for (float& weight : inputs[2].as<float>()) weight /= std::sqrt(static_cast<float>(hidden));
    inputs.emplace_back();
    if (between(0, 1)) {
      inputs[4] = Tensor(DType::kI32, {batch});
      for (std::int32_t& length : inputs[4].as<std::int32_t>()) length = static_cast<std::int32_t>(between(0, steps));
    }
    inputs.push_back(maybe(state));
    inputs.push_back(lstm ? maybe(state) : Tensor());
    inputs.emplace_back();
    Trial forward{"", op.name, attrs, inputs, {y, state}, {}};
    if (lstm) forward.outputs.push_back(state);
    forward.outputTypes.assign(forward.outputs.size(), DType::kF32);
    compare(forward, true, 5e-6);  // without what is kept
    if (op.gates > 1)
      for (const std::int64_t width : {op.gates * hidden, hidden})
        forward.outputs.push_back({directions, x[0], x[1], width});
    forward.outputTypes.assign(forward.outputs.size(), DType::kF32);
    compare(forward, true, 5e-6);

    const auto known = execute(Backend::kCpu, forward, false);
    ASSERT_TRUE(known.has_value());
    Trial back{"stepscope",
               std::string(op.name) + "Grad",
               attrs,
               {maybe(y), maybe(state), lstm ? maybe(state) : Tensor()},
               {x, inputs[1].dims(), inputs[2].dims(), {directions, 2 * op.gates * hidden}, state, state},
               {}};
    back.outputTypes.assign(6, DType::kF32);
    back.inputs.insert(back.inputs.end(), inputs.begin(), inputs.end());
    back.inputs.push_back(known->outputs[0]);
    if (op.gates > 1) back.inputs.insert(back.inputs.end(), known->outputs.begin() + op.kept, known->outputs.end());
    compare(back, true, 5e-6);
  }
}

TEST_F(CpuKernels, ALengthThatIsNotInTheSequenceIsNamed) {
  Tensor lengths(DType::kI32, {2});
  lengths.as<std::int32_t>()[1] = 9;
  const Trial trial{"",
                    "RNN",
                    {{"hidden_size", std::int64_t{3}}},
                    {random({4, 2, 3}), random({1, 3, 3}), random({1, 3, 3}), Tensor(), lengths},
                    {{4, 1, 2, 3}}};
  const auto found = execute(Backend::kCpu, trial, false);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().message, "sequence_lens: 9; expected 0..4");
}

}  // namespace
}  // namespace stepscope
