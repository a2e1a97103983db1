// The kernels of kernels/cuda beside their reference kernels in f64: the operands of the table of loops, and products.
// Compiled three times: for the emulated device, where several seeds, that is orders of threads and blocks, give the same
// bits; for the device `cuda` on the fake GPU (SS_ON_FAKE_GPU); for a real one (SS_ON_GPU), where every test says why it is
// skipped if there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "kernels/emulated_device.h"
#include "tests/kernels/loop_cases.h"
#include "tests/kernels/on_device.h"
#ifdef SS_ON_FAKE_GPU
#include "tests/kernels/fake_gpu/use.h"
#endif

namespace stepscope {
namespace {

#if defined(SS_ON_GPU) || defined(SS_ON_FAKE_GPU)
const std::vector<std::string> kDevices{"cuda", "cuda", "cuda:0"};
#else
const std::vector<std::string> kDevices{"emulated", "emulated:seed=77", "emulated:seed=4711,streams=eager"};
#endif

// Why there is no device here; empty: there is.
std::string lacking() {
#ifdef SS_ON_FAKE_GPU
  static const bool fake = useFakeGpu();
  if (!fake) return "no fake GPU";
#endif
  const auto device = findDevice(kDevices[0]);
  return device ? "" : device.error().message;
}
#ifdef SS_ON_GPU
#define SS_NEEDS_DEVICE() \
  if (!lacking().empty()) GTEST_SKIP() << lacking()
#else
#define SS_NEEDS_DEVICE() ASSERT_EQ(lacking(), "")
#endif

// Inputs that the op reads on the host (OpDef::hostInputs).
std::set<std::size_t> hostInputs(const std::string& op) {
  static const std::map<std::string, std::set<std::size_t>> kInputs{{"Dropout", {1, 2}},
                                                                    {"Expand", {1}},
                                                                    {"GatherGrad", {2}},
                                                                    {"Slice", {1, 2, 3, 4}},
                                                                    {"SliceGrad", {1, 2, 3, 4, 5}},
                                                                    {"SoftmaxCrossEntropyLossGrad", {4}},
                                                                    {"SoftmaxCrossEntropyLossInternal", {3}},
                                                                    {"Split", {1}},
                                                                    {"SplitTraining", {1}},
                                                                    {"Tile", {1}},
                                                                    {"TileGrad", {1}}};
  if (op.starts_with("Reduce")) return {1};
  const auto found = kInputs.find(op);
  return found == kInputs.end() ? std::set<std::size_t>{} : found->second;
}

KernelSpec specOf(const std::string& domain, const std::string& op, const Attributes& attrs, const Operands& operands) {
  KernelSpec spec;
  spec.domain = domain;
  spec.op = op;
  spec.attrs = attrs;
  const auto onHost = hostInputs(op);
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    const Tensor& x = operands.inputs[i];
    spec.inputs.push_back(x.valid() ? OperandSpec{x.dtype(), x.dims(), false, onHost.contains(i) ? x : Tensor()}
                                    : OperandSpec{});
    spec.inputs.back().space = onHost.contains(i) ? Space::kHost : Space::kDevice;
  }
  for (const auto& [dtype, dims] : operands.outputs) spec.outputs.push_back({dtype, dims});
  return spec;
}

std::vector<Tensor> reference(const KernelSpec& spec, const Operands& operands) {
  std::vector<TensorView> in, out;
  std::vector<Tensor> results;
  for (const Tensor& x : operands.inputs) in.push_back(x.valid() ? x.view() : TensorView{});
  for (const auto& [dtype, dims] : operands.outputs) out.push_back(results.emplace_back(dtype, dims).view());
  const auto kernel = makeKernel(Backend::kReference, spec);
  EXPECT_TRUE(kernel.has_value());
  if (kernel) {
    const Status status = (*kernel)->run({in, out, {}, {7, 3, 11}, 0, {}});
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
  return results;
}

void expectNear(const std::vector<Tensor>& found, const std::vector<Tensor>& expected, double tolerance,
                const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t o = 0; o < found.size(); ++o)
    for (std::int64_t i = 0; i < found[o].elements(); ++i) {
      const double a = elementAsDouble(found[o].view(), i), b = elementAsDouble(expected[o].view(), i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      ASSERT_LE(std::abs(a - b), tolerance * std::max(1.0, std::abs(b)))
          << what << ", output " << o << " element " << i << " expected " << b;
    }
}

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
    if (!deviceNamed(kDevices[0]).takes(spec)) continue;
    ++taken;
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    const auto expected = reference(spec, operands);
    std::vector<Tensor> first;
    for (const std::string& name : kDevices) {
      const auto found = runOn(deviceNamed(name), **kernel, spec, operands.inputs);
      ASSERT_TRUE(found.has_value()) << test.op << " round " << round << ": " << found.error().message;
      expectNear(*found, expected, 4 * test.tolerance, test.op + " round " + std::to_string(round));
      if (HasFatalFailure()) return;
      if (first.empty()) first = *found;
      for (std::size_t o = 0; o < first.size(); ++o)
        ASSERT_EQ(std::memcmp(first[o].data(), (*found)[o].data(), first[o].bytes()), 0) << test.op << " on " << name;
    }
    if (test.inPlace < 0 || operands.inputs[static_cast<std::size_t>(test.inPlace)].bytes() != expected[0].bytes()) continue;
    const auto over = runOn(deviceNamed(kDevices[0]), **kernel, spec, operands.inputs, test.inPlace);
    ASSERT_TRUE(over.has_value()) << test.op << " in place: " << over.error().message;
    expectNear(*over, expected, 4 * test.tolerance, test.op + " in place");
  }
  EXPECT_EQ(taken == 0, leftToTheCpu().contains(test.op + test.label)) << taken << " rounds taken";
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
    ASSERT_TRUE(deviceNamed(kDevices[0]).takes(spec)) << what;
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    const auto found = runOn(deviceNamed(kDevices[0]), **kernel, spec, operands.inputs);
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
  std::string what = test.op;
  for (const auto& dims : test.inputs) {
    // Variances and inverse deviations are not negative.
    operands.inputs.push_back(dims ? floats(random, *dims, dims->size() == 1 ? 0.5F : -1.0F, 1.5F) : Tensor());
    what += dims ? " " + dimsText(*dims) : " -";
  }
  for (const auto& dims : test.outputs)
    operands.outputs.emplace_back(dims ? DType::kF32 : DType::kUndefined, dims.value_or(Dims{}));
  const KernelSpec spec = specOf(test.domain, test.op, test.attrs, operands);
  ASSERT_TRUE(deviceNamed(kDevices[0]).takes(spec)) << what;
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value()) << what << kernel.error().message;
  std::vector<Tensor> first;
  for (const std::string& name : kDevices) {
    const auto found = runOn(deviceNamed(name), **kernel, spec, operands.inputs);
    ASSERT_TRUE(found.has_value()) << what << ": " << found.error().message;
    if (first.empty()) {
      expectNear(*found, reference(spec, operands), 1e-5, what);
      first = *found;
    }
    for (std::size_t o = 0; o < first.size(); ++o)
      EXPECT_EQ(std::memcmp(first[o].data(), (*found)[o].data(), first[o].bytes()), 0) << what << " on " << name;
  }
}

Attributes window(const Dims& strides, const Dims& pads, const Dims& dilations, std::int64_t group = 1) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"group", group}};
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
      fused{{"training_mode", std::int64_t{1}}, {"relu", std::int64_t{1}}}, frozenGrad{{"training_mode", std::int64_t{0}}};
  Random random(10);
  for (const WindowCase& test : std::vector<WindowCase>{
           {"", "BatchNormalization", frozen, {x, c, c, c, c}, {x}},
           {"", "BatchNormalization", trained, {x, c, c, c, c}, {x, c, c, c, c}},
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
    ASSERT_TRUE(deviceNamed(kDevices[0]).takes(spec));
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value());
    const auto found = runOn(deviceNamed(kDevices[0]), **kernel, spec, operands.inputs);
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
  Device& device = deviceNamed(kDevices[1]);
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
