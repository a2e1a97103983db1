// The kernels of kernels/cuda beside their reference kernels in f64: the operands of the table of loops, products,
// convolutions, batch norms. Devices: cuda_agreement.h.
#include <optional>

#include "kernels/converted_kernel.h"
#include "tests/kernels/cuda_agreement.h"

namespace stepscope {
namespace {

std::int64_t elementsOf(const Operands& operands) {
  std::int64_t count = 0;
  for (const Tensor& x : operands.inputs)
    if (x.valid()) count += x.elements();
  for (const auto& [dtype, dims] : operands.outputs) count += elementCount(dims);
  return count;
}

std::vector<LoopCase> table() {
  std::vector<LoopCase> cases;
  for (const auto& more : {elementwiseLoops(), movementLoops(), reductionLoops()})
    for (const LoopCase& test : more)
      if (std::ranges::any_of(cudaKernels(),
                              [&](const KernelEntry& entry) { return entry.domain == test.domain && entry.op == test.op; }))
        cases.push_back(test);
  return cases;
}

// Lines whose operands no CUDA kernel takes: small integers, and Clip without bounds.
const std::set<std::string>& leftToTheCpu() {
  static const std::set<std::string> kLines{"ClipI8", "ClipU8", "ClipUnbounded"};
  return kLines;
}

class CudaTable : public testing::TestWithParam<LoopCase> {};

TEST_P(CudaTable, AgreesWithTheReferenceKernel) {
  SS_NEEDS_DEVICE();
  constexpr int kRounds = 30, kEnough = 8;
  constexpr std::int64_t kMost = 8000;  // elements: the emulator is slow
  const LoopCase& test = GetParam();
  Random random(5);
  int taken = 0;
  for (int round = 0; round < kRounds && taken < kEnough; ++round) {
    Attributes attrs;
    const Operands operands = test.make(random, round, attrs);
    if (elementsOf(operands) > kMost) continue;
    const KernelSpec spec = specOf(test.domain, test.op, attrs, operands);
    if (!deviceNamed(testedDevices().names[0]).takes(spec)) continue;
    ++taken;
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    const auto expected = reference(spec, operands);
    std::vector<Tensor> first;
    for (const std::string& name : testedDevices().names) {
      const auto found = runOn(deviceNamed(name), **kernel, spec, operands.inputs);
      ASSERT_TRUE(found.has_value()) << test.op << " round " << round << ": " << found.error().message;
      expectNear(*found, expected, 4 * test.tolerance, test.op + " round " + std::to_string(round));
      if (HasFatalFailure()) return;
      if (first.empty()) first = *found;
      for (std::size_t o = 0; o < first.size(); ++o)
        ASSERT_EQ(std::memcmp(first[o].data(), (*found)[o].data(), first[o].bytes()), 0) << test.op << " on " << name;
    }
    if (test.inPlace < 0 || operands.inputs[static_cast<std::size_t>(test.inPlace)].bytes() != expected[0].bytes()) continue;
    const auto over = runOn(deviceNamed(testedDevices().names[0]), **kernel, spec, operands.inputs, test.inPlace);
    ASSERT_TRUE(over.has_value()) << test.op << " in place: " << over.error().message;
    expectNear(*over, expected, 4 * test.tolerance, test.op + " in place");
  }
  EXPECT_EQ(taken == 0, leftToTheCpu().contains(test.op + test.label)) << taken << " rounds taken";
}

// On the same numbers in a low type: what the reference kernel makes of them in float32, rounded once.
TEST_P(CudaTable, AgreesInLowTypes) {
  SS_NEEDS_DEVICE();
  constexpr int kRounds = 30, kEnough = 3;
  constexpr std::int64_t kMost = 4000;
  const LoopCase& test = GetParam();
  const auto isWide = [](DType dtype) { return dtype == DType::kF32; };
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    Random random(6);
    int taken = 0, floating = 0;
    for (int round = 0; round < kRounds && taken < kEnough; ++round) {
      Attributes attrs;
      Operands wide = test.make(random, round, attrs);
      if (elementsOf(wide) > kMost) continue;
      Operands low = wide;
      for (std::size_t i = 0; i < wide.inputs.size(); ++i)
        if (wide.inputs[i].valid() && isWide(wide.inputs[i].dtype())) {
          low.inputs[i] = convertTensor(wide.inputs[i].view(), dtype);
          wide.inputs[i] = convertTensor(low.inputs[i].view(), DType::kF32);
        }
      for (auto& [type, dims] : low.outputs)
        if (isWide(type)) type = dtype;
      const KernelSpec spec = specOf(test.domain, test.op, attrs, low), same = specOf(test.domain, test.op, attrs, wide);
      if (!canBeConverted(spec)) continue;  // none of floats, or a cast
      ++floating;
      if (!deviceNamed(testedDevices().names[0]).takes(spec)) continue;
      ++taken;
      const auto kernel = builtInKernels().make("cuda", spec);
      ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
      const auto found = runOn(deviceNamed(testedDevices().names[0]), **kernel, spec, low.inputs);
      ASSERT_TRUE(found.has_value()) << test.op << " round " << round << ": " << found.error().message;
      std::vector<Tensor> expected;
      for (const Tensor& y : reference(same, wide))
        expected.push_back(isWide(y.dtype()) ? convertTensor(y.view(), dtype) : y);
      // A result next to the middle of two numbers may be rounded to the other one.
      const double rounding = dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11;
      expectNear(*found, expected, 4 * test.tolerance + 2 * rounding,
                 test.op + " in " + std::string(dtypeName(dtype)) + " round " + std::to_string(round));
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(taken == 0, floating == 0 || leftToTheCpu().contains(test.op + test.label))
        << dtypeName(dtype) << ": " << taken << " rounds taken";
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CudaTable, testing::ValuesIn(table()), [](const auto& info) {
  return (info.param.domain == "com.microsoft" ? "Microsoft" : "") + info.param.op + info.param.label;
});

struct ProductCase {
  const char* op;
  Attributes attrs;
  std::vector<Dims> inputs;
  Dims y;
};

// Small and large tiles, ragged edges, batches, transposed operands, what is added.
TEST(CudaProducts, AgreeWithTheReferenceKernel) {
  SS_NEEDS_DEVICE();
  const std::vector<ProductCase> cases{
      {"MatMul", {}, {{5, 7}, {7, 3}}, {5, 3}},
      {"MatMul", {}, {{70, 33}, {33, 65}}, {70, 65}},
      {"MatMul", {}, {{2, 3, 20, 18}, {2, 3, 18, 19}}, {2, 3, 20, 19}},
      {"MatMul", {}, {{4, 9, 8}, {8, 40}}, {4, 9, 40}},
      {"Gemm", {{"transA", std::int64_t{1}}, {"alpha", 0.5F}, {"beta", 2.0F}}, {{9, 40}, {9, 21}, {21}}, {40, 21}},
      {"Gemm", {{"transB", std::int64_t{1}}}, {{17, 30}, {18, 30}, {17, 1}}, {17, 18}},
      {"Product", {{"activation", std::string("Relu")}}, {{3, 6, 5}, {5, 20}, {20}, {3, 6, 20}}, {3, 6, 20}},
      {"Product", {{"permA", Dims{0, 2, 1, 3}}, {"permB", Dims{0, 2, 3, 1}}}, {{2, 6, 3, 4}, {2, 5, 3, 4}}, {2, 3, 6, 5}},
  };
  Random random(1);
  for (const ProductCase& test : cases) {
    Operands operands;
    for (const Dims& dims : test.inputs) operands.inputs.push_back(floats(random, dims, -1, 1));
    operands.outputs = {{DType::kF32, test.y}};
    const std::string domain = std::string(test.op) == "Product" ? "stepscope" : "";
    const KernelSpec spec = specOf(domain, test.op, test.attrs, operands);
    const auto what = std::string(test.op) + " " + dimsText(test.inputs[0]) + " " + dimsText(test.inputs[1]);
    ASSERT_TRUE(deviceNamed(testedDevices().names[0]).takes(spec)) << what;
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    const auto found = runOn(deviceNamed(testedDevices().names[0]), **kernel, spec, operands.inputs);
    ASSERT_TRUE(found.has_value()) << what << ": " << found.error().message;
    expectNear(*found, reference(spec, operands), 2e-6, what);
  }
}

// One call whose kernel sums along channels or windows: the shapes of inputs and results, absent inputs without a shape.
struct WindowCase {
  const char *domain, *op;
  Attributes attrs;
  std::vector<std::optional<Dims>> inputs;
  std::vector<std::optional<Dims>> outputs;
};

void agree(const WindowCase& test, Random& random) {
  Operands operands;
  // Variances and inverse deviations are not negative.
  for (const auto& dims : test.inputs)
    operands.inputs.push_back(dims ? floats(random, *dims, dims->size() == 1 ? 0.5F : -1.0F, 1.5F) : Tensor());
  for (const auto& dims : test.outputs)
    operands.outputs.emplace_back(dims ? DType::kF32 : DType::kUndefined, dims.value_or(Dims{}));
  agreeing(specOf(test.domain, test.op, test.attrs, operands), operands);
}

Attributes window(const Dims& strides, const Dims& pads, const Dims& dilations, std::int64_t group = 1) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"group", group}};
}

// Without a library the product, Gelu and the sums are launched one after the other.
TEST(CudaEpilogueProducts, AgreeWithTheReferenceKernel) {
  SS_NEEDS_DEVICE();
  const Attributes gelu{{"activation", std::string("Gelu")}},
      slope{{"activation", std::string("GeluGrad")}, {"permB", Dims{1, 0}}},
      ofA{{"sums", std::string("a")}, {"permA", Dims{1, 0}}, {"permY", Dims{1, 0}}},
      ofB{{"sums", std::string("b")}, {"permA", Dims{1, 0}}}, ofRows{{"sums", std::string("b")}, {"permB", Dims{1, 0}}};
  Random random(11);
  for (const WindowCase& test : std::vector<WindowCase>{
           {"stepscope", "EpilogueProduct", gelu, {{{2, 9, 7}}, {{7, 24}}, {{24}}}, {{{2, 9, 24}}, {{2, 9, 24}}}},
           {"stepscope", "EpilogueProduct", gelu, {{{9, 7}}, {{7, 21}}}, {{{9, 21}}}},
           {"stepscope", "EpilogueProduct", slope, {{{9, 7}}, {{24, 7}}, {}, {{9, 24}}}, {{{9, 24}}}},
           {"stepscope", "EpilogueProduct", ofA, {{{33, 9}}, {{33, 20}}}, {{{20, 9}}, {{9}}}},
           {"stepscope", "EpilogueProduct", ofB, {{{300, 9}}, {{300, 70}}}, {{{9, 70}}, {{70}}}},
           {"stepscope", "EpilogueProduct", ofRows, {{{9, 33}}, {{20, 33}}}, {{{9, 20}}, {{20}}}},
       })
    agree(test, random);
}

// Strides, pads on either side, dilations, groups, depthwise, one to three axes, tiles of each size, sums in parts.
TEST(CudaConvolutions, AgreeWithTheReferenceKernel) {
  SS_NEEDS_DEVICE();
  const Attributes plain = window({1, 1}, {0, 0, 0, 0}, {1, 1}), bent = window({2, 1}, {1, 0, 2, 1}, {1, 2}, 2),
                   depthwise = window({1, 1}, {1, 1, 1, 1}, {1, 1}, 6);
  Random random(9);
  for (const WindowCase& test : std::vector<WindowCase>{
           {"", "Conv", plain, {{{2, 3, 5, 6}}, {{4, 3, 3, 2}}, {{4}}}, {{{2, 4, 3, 5}}}},
           {"", "Conv", bent, {{{2, 4, 7, 6}}, {{6, 2, 3, 2}}}, {{{2, 6, 4, 5}}}},
           {"", "Conv", depthwise, {{{1, 6, 5, 4}}, {{6, 1, 3, 3}}, {{6}}}, {{{1, 6, 5, 4}}}},
           {"", "Conv", plain, {{{1, 5, 9, 9}}, {{40, 5, 1, 1}}}, {{{1, 40, 9, 9}}}},
           {"", "Conv", window({3}, {2, 0}, {1}), {{{2, 3, 10}}, {{5, 3, 4}}}, {{{2, 5, 3}}}},
           {"",
            "Conv",
            window({1, 2, 1}, {0, 1, 0, 0, 1, 0}, {1, 1, 1}),
            {{{1, 2, 3, 4, 3}}, {{3, 2, 2, 3, 2}}},
            {{{1, 3, 2, 2, 2}}}},
           {"",
            "ConvTranspose",
            window({2, 2}, {1, 0, 0, 1}, {1, 1}),
            {{{2, 3, 3, 4}}, {{3, 2, 3, 3}}, {{2}}},
            {{{2, 2, 6, 8}}}},
           {"stepscope", "ConvInputGrad", bent, {{{2, 6, 4, 5}}, {{6, 2, 3, 2}}}, {{{2, 4, 7, 6}}}},
           {"stepscope", "ConvInputGrad", depthwise, {{{1, 6, 5, 4}}, {{6, 1, 3, 3}}}, {{{1, 6, 5, 4}}}},
           {"stepscope", "ConvWeightGrad", bent, {{{2, 6, 4, 5}}, {{2, 4, 7, 6}}}, {{{6, 2, 3, 2}}}},
           {"stepscope", "ConvWeightGrad", plain, {{{3, 2, 28, 28}}, {{3, 2, 30, 30}}}, {{{2, 2, 3, 3}}}},
           {"stepscope",
            "ConvTransposeInputGrad",
            window({2, 2}, {1, 0, 0, 1}, {1, 1}),
            {{{2, 2, 6, 8}}, {{3, 2, 3, 3}}},
            {{{2, 3, 3, 4}}}},
           {"stepscope",
            "ConvTransposeWeightGrad",
            window({2, 2}, {1, 0, 0, 1}, {1, 1}),
            {{{2, 2, 6, 8}}, {{2, 3, 3, 4}}},
            {{{3, 2, 3, 3}}}},
       })
    agree(test, random);
}

// Frozen and trained, with what is fused, with and without the results that a plan leaves out; rows that need several
// threads.
TEST(CudaBatchNorms, AgreeWithTheReferenceKernel) {
  SS_NEEDS_DEVICE();
  const std::optional<Dims> none, c = Dims{3}, x = Dims{4, 3, 5, 7}, wide = Dims{2, 3, 30, 31};
  const Attributes frozen{{"epsilon", 1e-3F}}, trained{{"training_mode", std::int64_t{1}}, {"momentum", 0.8F}},
      sample{{"training_mode", std::int64_t{1}}, {"sample_variance", std::int64_t{1}}},
      fused{{"training_mode", std::int64_t{1}}, {"relu", std::int64_t{1}}}, frozenGrad{{"training_mode", std::int64_t{0}}};
  Random random(10);
  for (const WindowCase& test : std::vector<WindowCase>{
           {"", "BatchNormalization", frozen, {x, c, c, c, c}, {x}},
           {"", "BatchNormalization", trained, {x, c, c, c, c}, {x, c, c, c, c}},
           {"", "BatchNormalization", sample, {x, c, c, c, c}, {x, c, c}},
           {"", "BatchNormalization", trained, {wide, c, c, c, c}, {wide, c, c}},
           {"", "BatchNormalization", trained, {Dims{9, 3}, c, c, c, c}, {Dims{9, 3}, none, none, c, c}},
           {"stepscope", "FusedBatchNormalization", fused, {x, c, c, c, c, x}, {x, c, c, c, c}},
           {"stepscope", "BatchNormalizationGrad", trained, {x, x, c, c, c}, {x, c, c}},
           {"stepscope", "BatchNormalizationGrad", trained, {wide, wide, c, c, c}, {wide}},
           {"stepscope", "BatchNormalizationGrad", frozenGrad, {x, none, c, c, c}, {x, none, c}},
           {"stepscope", "FusedBatchNormalizationGrad", trained, {x, x, c, c, c, x}, {x, c, c, x}},
       })
    agree(test, random);
}

// float16 and bfloat16 between casts, both on the device.
TEST(CudaKernels, TakeTheLowTypesThroughFloat32) {
  SS_NEEDS_DEVICE();
  Random random(2);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    Operands operands;
    for (const Dims& dims : {Dims{6, 40}, Dims{40}, Dims{40}})
      operands.inputs.push_back(convertTensor(floats(random, dims, -1, 1).view(), dtype));
    operands.outputs = {{dtype, {6, 40}}};
    const KernelSpec spec = specOf("", "LayerNormalization", {}, operands);
    ASSERT_TRUE(deviceNamed(testedDevices().names[0]).takes(spec));
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value());
    const auto found = runOn(deviceNamed(testedDevices().names[0]), **kernel, spec, operands.inputs);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    expectNear(*found, reference(spec, operands), dtype == DType::kF16 ? 2e-3 : 2e-2, std::string(dtypeName(dtype)));
  }
}

TEST(CudaKernels, AnIndexOutOfRangeIsNamed) {
  SS_NEEDS_DEVICE();
  const std::int64_t indices[] = {1, 9, 0, 12};
  Operands operands{{Tensor(DType::kF32, {4, 3}), Tensor::ints(indices)}, {{DType::kF32, {4, 3}}}};
  const KernelSpec gather = specOf("", "Gather", {}, operands);
  Operands labels{{Tensor(DType::kF32, {4, 3}), Tensor::ints(indices)}, {{DType::kF32, {}}}};
  const KernelSpec loss = specOf("", "SoftmaxCrossEntropyLoss", {}, labels);
  Device& device = deviceNamed(testedDevices().names[1]);
  for (const auto& [spec, given, message] :
       {std::tuple(gather, operands, "index 9 at position 1"), std::tuple(loss, labels, "label 9 at element 1")}) {
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value());
    const auto found = runOn(device, **kernel, spec, given.inputs);
    ASSERT_FALSE(found.has_value()) << spec.op;
    EXPECT_EQ(found.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(found.error().message.find(message), std::string::npos) << found.error().message;
  }
  EXPECT_TRUE(device.synchronise().has_value());  // told once; the device goes on
}

}  // namespace
}  // namespace stepscope
