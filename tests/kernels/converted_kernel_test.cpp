// Kernels of float32 for operands in float16 and bfloat16: every result is that of float32 arithmetic, rounded once.
#include "kernels/converted_kernel.h"

#include <cmath>

#include "kernels/kernel_registry.h"
#include "tests/kernels/trial.h"

namespace stepscope {
namespace {

class Converted : public ::testing::TestWithParam<DType> {
 protected:
  static OperandSpec operand(const Tensor& tensor) { return {.dtype = tensor.dtype(), .dims = tensor.dims()}; }

  static Tensor numbers(const Dims& dims, DType dtype, double factor = 1) {
    const Tensor tensor(dtype, dims);
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      storeElement(tensor.view(), i, factor * (0.37 * static_cast<double>(i % 23) - 3.1));
    return tensor;
  }

  struct Ran {
    std::string implementation;
    std::vector<Tensor> results;
  };
  static Ran run(std::string_view device, KernelSpec spec, const std::vector<Tensor>& inputs,
                 const std::vector<Tensor>& outputs) {
    for (const Tensor& input : inputs) spec.inputs.push_back(operand(input));
    for (const Tensor& output : outputs) spec.outputs.push_back(operand(output));
    auto kernel = builtInKernels().make(device, spec);
    EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
    std::vector<TensorView> from, to;
    for (const Tensor& input : inputs) from.push_back(input.view());
    for (const Tensor& output : outputs) to.push_back(output.view());
    const Tensor workspace(DType::kU8, {static_cast<std::int64_t>((*kernel)->workspaceBytes()) + 64});
    const auto pad = (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64) % 64;
    const auto bytes = std::span(static_cast<std::byte*>(workspace.data()), workspace.bytes()).subspan(pad);
    const Status status = (*kernel)->run({from, to, bytes, {}, 0, {}});
    EXPECT_TRUE(status.has_value()) << status.error().message;
    return {(*kernel)->implementation(), outputs};
  }

  // Half of the distance between two neighbours of the type at 1.
  double rounding() const { return GetParam() == DType::kBF16 ? 0x1p-8 : 0x1p-11; }

  void agrees(const KernelSpec& spec, const std::vector<Tensor>& inputs, const Dims& y, const char* implementation) {
    const Ran fast = run("cpu", spec, inputs, {Tensor(GetParam(), y)});
    EXPECT_NE(fast.implementation.find(implementation), std::string::npos) << fast.implementation;
    // What it should be: the same operands, computed in double.
    std::vector<Tensor> wide;
    for (const Tensor& input : inputs) wide.push_back(convertTensor(input.view(), DType::kF64));
    const Ran exact = run(kReferenceDevice, spec, wide, {Tensor(DType::kF64, y)});
    for (std::int64_t i = 0; i < fast.results[0].elements(); ++i) {
      const double expected = elementAsDouble(exact.results[0].view(), i);
      EXPECT_NEAR(elementAsDouble(fast.results[0].view(), i), expected, rounding() * std::abs(expected) + 1e-5)
          << spec.op << " element " << i;
    }
  }
};

TEST_P(Converted, ComputesInFloat32AndRoundsOnce) {
  const DType t = GetParam();
  agrees({.op = "Softmax", .attrs = {{"axis", std::int64_t{-1}}}, .threads = 2}, {numbers({5, 33}, t)}, {5, 33},
         "in float32");
  agrees({.op = "Add", .threads = 2}, {numbers({5, 33}, t), numbers({33}, t, 0.01)}, {5, 33}, "in float32");
  agrees({.op = "Gelu", .threads = 2}, {numbers({5, 33}, t)}, {5, 33}, "in float32");
  agrees({.op = "ReduceSum", .attrs = {{"keepdims", std::int64_t{0}}}, .threads = 2},
         {numbers({33}, t), Tensor::ints(std::vector<std::int64_t>{0})}, {}, "");
}

TEST_P(Converted, ProductsAddUpInFloat32) {
  const DType t = GetParam();
  // A thousand terms: adding up in the low type would be off by more than the rounding of the result.
  agrees({.op = "MatMul", .threads = 2}, {numbers({9, 1000}, t, 0.1), numbers({1000, 7}, t, 0.1)}, {9, 7}, "");
  agrees({.domain = "stepscope", .op = "BatchedMatMul", .attrs = {{"transA", std::int64_t{1}}}, .threads = 2},
         {numbers({2, 64, 9}, t, 0.1), numbers({2, 64, 7}, t, 0.1)}, {2, 9, 7}, "");
  agrees({.op = "Gemm", .attrs = {{"transB", std::int64_t{1}}}, .threads = 2},
         {numbers({9, 64}, t, 0.1), numbers({7, 64}, t, 0.1), numbers({7}, t)}, {9, 7}, "");
}

TEST_P(Converted, AResultMayLieOverItsOperand) {
  const Tensor x = numbers({65}, GetParam());
  const Tensor expected = run("cpu", {.op = "Relu", .threads = 2}, {x}, {Tensor(GetParam(), {65})}).results[0];
  run("cpu", {.op = "Relu", .threads = 2}, {x}, {x});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    EXPECT_EQ(elementAsDouble(x.view(), i), elementAsDouble(expected.view(), i));
}

TEST_P(Converted, TakesWhatHasLowOperandsOnly) {
  const OperandSpec low{.dtype = GetParam(), .dims = {3}}, wide{.dtype = DType::kF32, .dims = {3}};
  EXPECT_EQ(canBeConverted({.op = "Add", .inputs = {low, wide}, .outputs = {low}}), true);
  EXPECT_EQ(canBeConverted({.op = "Add", .inputs = {wide, wide}, .outputs = {wide}}), false);
  EXPECT_EQ(canBeConverted({.op = "Cast", .inputs = {low}, .outputs = {wide}}), false);
  OperandSpec dynamic = low;
  dynamic.dynamic = true;
  EXPECT_EQ(canBeConverted({.op = "Compress", .inputs = {low}, .outputs = {dynamic}}), false);
}

INSTANTIATE_TEST_SUITE_P(Types, Converted, ::testing::Values(DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(dtypeName(info.param)); });

}  // namespace
}  // namespace stepscope
