// The kernels of kernels/cuda on the emulated device, beside their reference kernels in f64: the operands of the table of
// loops, and products. Several seeds, that is orders of threads and blocks, give the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kernels/emulated_device.h"
#include "tests/kernels/loop_cases.h"
#include "tests/kernels/on_device.h"

namespace stepscope {
namespace {

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

// Lines whose operands no CUDA kernel takes: integers, and Clip without bounds.
const std::set<std::string>& leftToTheCpu() {
  static const std::set<std::string> kLines{
      "AddInts",      "ClipI8",       "ClipU8",           "ClipUnbounded",    "Equalint32",          "Equalint64",
      "Greaterint32", "Greaterint64", "Lessint32",        "Lessint64",        "GreaterOrEqualint32", "GreaterOrEqualint64",
      "MulInts",      "SubInts",      "LessOrEqualint32", "LessOrEqualint64", "WhereBools",          "WhereInts"};
  return kLines;
}

class CudaTable : public testing::TestWithParam<LoopCase> {};

TEST_P(CudaTable, AgreesWithTheReferenceKernel) {
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
    if (!deviceNamed("emulated").takes(spec)) continue;
    ++taken;
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    const auto expected = reference(spec, operands);
    std::vector<Tensor> first;
    for (const char* name : {"emulated", "emulated:seed=77", "emulated:seed=4711,streams=eager"}) {
      const auto found = runOn(deviceNamed(name), **kernel, spec, operands.inputs);
      ASSERT_TRUE(found.has_value()) << test.op << " round " << round << ": " << found.error().message;
      expectNear(*found, expected, 4 * test.tolerance, test.op + " round " + std::to_string(round));
      if (HasFatalFailure()) return;
      if (first.empty()) first = *found;
      for (std::size_t o = 0; o < first.size(); ++o)
        ASSERT_EQ(std::memcmp(first[o].data(), (*found)[o].data(), first[o].bytes()), 0) << test.op << " on " << name;
    }
    if (test.inPlace < 0 || operands.inputs[static_cast<std::size_t>(test.inPlace)].bytes() != expected[0].bytes()) continue;
    const auto over = runOn(deviceNamed("emulated"), **kernel, spec, operands.inputs, test.inPlace);
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
    ASSERT_TRUE(deviceNamed("emulated").takes(spec)) << what;
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    const auto found = runOn(deviceNamed("emulated"), **kernel, spec, operands.inputs);
    ASSERT_TRUE(found.has_value()) << what << ": " << found.error().message;
    expectNear(*found, reference(spec, operands), 2e-6, what);
  }
}

// float16 and bfloat16 between casts, both on the device.
TEST(CudaKernels, TakeTheLowTypesThroughFloat32) {
  Random random(2);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    Operands operands;
    for (const Dims& dims : {Dims{6, 40}, Dims{40}, Dims{40}})
      operands.inputs.push_back(convertTensor(floats(random, dims, -1, 1).view(), dtype));
    operands.outputs = {{dtype, {6, 40}}};
    const KernelSpec spec = specOf("", "LayerNormalization", {}, operands);
    ASSERT_TRUE(deviceNamed("emulated").takes(spec));
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value());
    const auto found = runOn(deviceNamed("emulated"), **kernel, spec, operands.inputs);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    expectNear(*found, reference(spec, operands), dtype == DType::kF16 ? 2e-3 : 2e-2, std::string(dtypeName(dtype)));
  }
}

TEST(CudaKernels, AnIndexOutOfRangeIsNamed) {
  const std::int64_t indices[] = {1, 9, 0, 12};
  Operands operands{{Tensor(DType::kF32, {4, 3}), Tensor::ints(indices)}, {{DType::kF32, {4, 3}}}};
  const KernelSpec gather = specOf("", "Gather", {}, operands);
  Operands labels{{Tensor(DType::kF32, {4, 3}), Tensor::ints(indices)}, {{DType::kF32, {}}}};
  const KernelSpec loss = specOf("", "SoftmaxCrossEntropyLoss", {}, labels);
  Device& device = deviceNamed("emulated:seed=3");
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
