// Products by the fake cuBLASLt: every form that nodes have beside the reference kernel, in every type; our own tiles where
// the library has nothing for a product or is not there.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "kernels/activity.h"
#include "kernels/cuda_device.h"
#include "tests/kernels/fake_gpu/use.h"
#include "tests/kernels/on_device.h"

namespace stepscope {
namespace {

Tensor numbers(const Dims& dims, DType dtype, int seed) {
  Tensor made(dtype, dims);
  for (std::int64_t i = 0; i < made.elements(); ++i)
    storeElement(made.view(), i, static_cast<double>((i * 37 + seed * 11) % 101) / 50 - 1);
  return made;
}

std::int64_t countOfLibrary(const char* counter) {
  void* const library = dlopen(SS_FAKE_CUBLAS, RTLD_NOW | RTLD_NOLOAD);
  const auto count = library ? reinterpret_cast<std::int64_t (*)()>(dlsym(library, counter)) : nullptr;
  return count ? count() : 0;
}
std::int64_t productsOfLibrary() { return countOfLibrary("fakeCublasProducts"); }
std::int64_t epiloguesOfLibrary() { return countOfLibrary("fakeCublasEpilogues"); }

struct Form {
  const char *name, *domain, *op;
  Attributes attrs;
  Dims a, b, c, addend, y;  // empty: absent
  int calls = 1;            // of the library; 0: it is our own tiles
  Dims second = {};         // result 1
};

Attributes gelu(float alpha = 1) { return {{"activation", std::string("Gelu")}, {"alpha", alpha}}; }
// Of the product of a's columns, as the gradient of a weight is; permY: how it is stored.
Attributes sums(const char* of, const Dims& permY = {}) {
  Attributes attrs{{"sums", std::string(of)}, {"permA", Dims{1, 0}}};
  if (!permY.empty()) attrs.set("permY", permY);
  return attrs;
}

std::vector<Form> forms() {
  return {
      {"Plain", "", "MatMul", {}, {24, 40}, {40, 16}, {}, {}, {24, 16}},
      {"Stack", "", "MatMul", {}, {3, 24, 40}, {40, 16}, {}, {}, {3, 24, 16}},
      {"Batches", "", "MatMul", {}, {3, 24, 40}, {3, 40, 16}, {}, {}, {3, 24, 16}},
      {"TwoBatchAxes", "", "MatMul", {}, {2, 3, 24, 40}, {2, 3, 40, 16}, {}, {}, {2, 3, 24, 16}, 2},
      {"Broadcast", "", "MatMul", {}, {1, 3, 24, 40}, {2, 3, 40, 16}, {}, {}, {2, 3, 24, 16}, 2},
      {"Column", "", "MatMul", {}, {24, 40}, {40, 1}, {}, {}, {24, 1}},
      {"Row", "", "MatMul", {}, {1, 40}, {40, 16}, {}, {}, {1, 16}},
      {"Gemm", "", "Gemm", {{"transA", std::int64_t{1}}, {"alpha", 0.5F}}, {40, 24}, {40, 16}, {}, {}, {24, 16}},
      {"GemmBias", "", "Gemm", {{"transB", std::int64_t{1}}}, {24, 40}, {16, 40}, {16}, {}, {24, 16}},
      {"GemmMatrix", "", "Gemm", {{"beta", 0.25F}, {"alpha", 2.0F}}, {24, 40}, {40, 16}, {24, 16}, {}, {24, 16}},
      {"GemmScaledBias", "", "Gemm", {{"beta", 0.25F}}, {24, 40}, {40, 16}, {16}, {}, {24, 16}, 0},
      {"GemmScalar", "", "Gemm", {}, {24, 40}, {40, 16}, {1}, {}, {24, 16}, 0},
      {"Relu", "stepscope", "Product", {{"activation", std::string("Relu")}}, {24, 40}, {40, 16}, {16}, {}, {24, 16}},
      {"Addend", "stepscope", "Product", {}, {24, 40}, {40, 16}, {16}, {24, 16}, {24, 16}},
      {"AddendAlone", "stepscope", "Product", {{"transB", std::int64_t{1}}}, {24, 40}, {16, 40}, {}, {24, 16}, {24, 16}},
      {"Heads",
       "stepscope",
       "Product",
       {{"permA", std::vector<std::int64_t>{0, 2, 1, 3}}, {"permB", std::vector<std::int64_t>{0, 2, 3, 1}}},
       {2, 24, 4, 16},
       {2, 32, 4, 16},
       {},
       {},
       {2, 4, 24, 32},
       2},
      {"TransposedResult",
       "stepscope",
       "Product",
       {{"permY", std::vector<std::int64_t>{1, 0}}},
       {24, 40},
       {40, 16},
       {},
       {},
       {16, 24}},
      {"Gelu", "stepscope", "EpilogueProduct", gelu(), {24, 40}, {40, 16}, {16}, {}, {24, 16}, 1, {24, 16}},
      {"GeluOfRows", "stepscope", "EpilogueProduct", gelu(), {3, 8, 40}, {40, 16}, {}, {}, {3, 8, 16}, 1, {3, 8, 16}},
      {"GeluAlone", "stepscope", "EpilogueProduct", gelu(0.5F), {24, 40}, {40, 16}, {16}, {}, {24, 16}},
      {"GeluOfOddRows", "stepscope", "EpilogueProduct", gelu(), {24, 40}, {40, 12}, {}, {}, {24, 12}, 1, {24, 12}},
      {"Slope",
       "stepscope",
       "EpilogueProduct",
       {{"activation", std::string("GeluGrad")}, {"permB", Dims{1, 0}}},
       {24, 40},
       {16, 40},
       {},
       {24, 16},
       {24, 16}},
      {"SumsOfB", "stepscope", "EpilogueProduct", sums("b"), {40, 24}, {40, 16}, {}, {}, {24, 16}, 1, {16}},
      {"SumsOfA", "stepscope", "EpilogueProduct", sums("a"), {40, 24}, {40, 16}, {}, {}, {24, 16}, 1, {24}},
      {"SumsOfATransposed",
       "stepscope",
       "EpilogueProduct",
       sums("a", Dims{1, 0}),
       {40, 24},
       {40, 16},
       {},
       {},
       {16, 24},
       1,
       {24}},
      {"SumsOfBTransposed",
       "stepscope",
       "EpilogueProduct",
       sums("b", Dims{1, 0}),
       {40, 24},
       {40, 16},
       {},
       {},
       {16, 24},
       1,
       {16}},
      {"SumsOfBStoredByColumns",
       "stepscope",
       "EpilogueProduct",
       {{"sums", std::string("b")}, {"permB", Dims{1, 0}}},
       {24, 40},
       {16, 40},
       {},
       {},
       {24, 16},
       1,
       {16}},
  };
}

class LibraryProducts : public ::testing::TestWithParam<std::tuple<Form, DType>> {
 protected:
  void SetUp() override {
    setenv("STEPSCOPE_CUBLASLT", SS_FAKE_CUBLAS, 1);
    setenv("STEPSCOPE_FAKE_CUBLASLT", "", 1);
  }
  void TearDown() override { setenv("STEPSCOPE_CUBLASLT", "off", 1); }
};

KernelSpec specOf(const Form& form, DType dtype, std::vector<Tensor>& inputs) {
  KernelSpec spec;
  spec.domain = form.domain;
  spec.op = form.op;
  spec.attrs = form.attrs;
  int seed = 1;
  for (const Dims& dims : {form.a, form.b, form.c, form.addend}) {
    inputs.push_back(dims.empty() ? Tensor() : numbers(dims, dtype, seed++));
    spec.inputs.push_back(dims.empty() ? OperandSpec{}
                                       : OperandSpec{dtype, dims, false, {}, Layout::kPlain, Space::kDevice});
  }
  while (!inputs.back().valid()) inputs.pop_back(), spec.inputs.pop_back();
  spec.outputs = {{dtype, form.y}};
  if (!form.second.empty()) spec.outputs.push_back({dtype, form.second});
  return spec;
}

std::vector<Tensor> referenceOf(const KernelSpec& spec, const std::vector<Tensor>& inputs) {
  KernelSpec wide = spec;
  std::vector<Tensor> held;
  std::vector<TensorView> in;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    held.push_back(inputs[i].valid() ? convertTensor(inputs[i].view(), DType::kF32) : Tensor());
    in.push_back(held.back().valid() ? held.back().view() : TensorView{});
    if (held.back().valid()) wide.inputs[i].dtype = DType::kF32;
  }
  std::vector<Tensor> results;
  std::vector<TensorView> out;
  for (OperandSpec& output : wide.outputs) {
    output.dtype = DType::kF32;
    results.emplace_back(DType::kF32, output.dims);
    out.push_back(results.back().view());
  }
  const auto kernel = makeKernel(Backend::kReference, wide);
  EXPECT_TRUE(kernel.has_value()) << (kernel ? "" : kernel.error().message);
  if (kernel) EXPECT_TRUE((*kernel)->run({in, out, {}, {}, 0, {}}).has_value());
  return results;
}

void expectAgree(Device& device, const Form& form, DType dtype, int calls) {
  std::vector<Tensor> inputs;
  const KernelSpec spec = specOf(form, dtype, inputs);
  ASSERT_TRUE(device.takes(spec));
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  const std::int64_t before = productsOfLibrary();
  const auto found = runOn(device, **kernel, spec, inputs);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(productsOfLibrary() - before, calls);
  const std::vector<Tensor> expected = referenceOf(spec, inputs);
  const double tolerance = dtype == DType::kF32 ? 1e-5 : dtype == DType::kF16 ? 1e-3 : 8e-3;
  for (std::size_t o = 0; o < expected.size(); ++o)
    for (std::int64_t i = 0; i < expected[o].elements(); ++i) {
      const double a = elementAsDouble((*found)[o].view(), i), b = elementAsDouble(expected[o].view(), i);
      ASSERT_LE(std::abs(a - b), tolerance * std::max(1.0, std::abs(b)))
          << "result " << o << ", element " << i << " expected " << b;
    }
}

TEST_P(LibraryProducts, AgreeWithTheReference) {
  const auto& [form, dtype] = GetParam();
  ASSERT_TRUE(useFakeGpu());
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value()) << device.error().message;
  const std::int64_t before = epiloguesOfLibrary();
  for (int round = 0; round < 2; ++round) expectAgree(**device, form, dtype, form.calls);
  const bool whole = std::string(form.op) == "EpilogueProduct" && std::string(form.name) != "GeluOfOddRows";
  EXPECT_EQ(epiloguesOfLibrary() - before, whole ? 2 : 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, LibraryProducts,
                         ::testing::Combine(::testing::ValuesIn(forms()),
                                            ::testing::Values(DType::kF32, DType::kBF16, DType::kF16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  std::string(dtypeName(std::get<1>(info.param)));
                         });

TEST(LibraryProduct, TilesComputeWhatTheLibraryHasNot) {
  const Form plain = forms()[0];
  for (const auto& [library, orders] : {std::pair(SS_FAKE_CUBLAS, "none"), std::pair(SS_FAKE_CUBLAS, "refuses"),
                                        std::pair(SS_FAKE_CUBLAS, "no-layouts"), std::pair("/nowhere/libcublasLt.so", "")}) {
    setenv("STEPSCOPE_CUBLASLT", library, 1);
    setenv("STEPSCOPE_FAKE_CUBLASLT", orders, 1);
    ASSERT_TRUE(useFakeGpu());
    const auto device = makeCudaDevice("cuda");
    ASSERT_TRUE(device.has_value());
    for (const DType dtype : {DType::kF32, DType::kBF16}) expectAgree(**device, plain, dtype, 0);
  }
  setenv("STEPSCOPE_CUBLASLT", "off", 1);
}

// Parts of an epilogue that the library has not: the product by the library, or by our own tiles, the rest by our kernels.
TEST(LibraryProduct, EpiloguesThatTheLibraryLacksAreLaunchedAfterTheProduct) {
  setenv("STEPSCOPE_CUBLASLT", SS_FAKE_CUBLAS, 1);
  ASSERT_TRUE(useFakeGpu());
  for (const auto& [orders, calls] : {std::pair("no-epilogues", 1), std::pair("none", 0)}) {
    setenv("STEPSCOPE_FAKE_CUBLASLT", orders, 1);
    const auto device = makeCudaDevice("cuda");
    ASSERT_TRUE(device.has_value());
    int seen = 0;
    for (const Form& form : forms()) {
      if (std::string(form.op) != "EpilogueProduct") continue;
      ++seen;
      for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) expectAgree(**device, form, dtype, calls);
    }
    EXPECT_GE(seen, 10);
  }
  setenv("STEPSCOPE_CUBLASLT", "off", 1);
}

// With TF32 ten bits of a fraction are read: other numbers, within 2^-10 of each factor; low types stay as they are.
TEST(LibraryProduct, Tf32IsUsedWhereItIsAskedFor) {
  setenv("STEPSCOPE_CUBLASLT", SS_FAKE_CUBLAS, 1);
  setenv("STEPSCOPE_FAKE_CUBLASLT", "", 1);
  ASSERT_TRUE(useFakeGpu());
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  const auto productOf = [&](bool tf32, DType dtype) {
    std::vector<Tensor> inputs;
    KernelSpec spec = specOf(forms()[0], dtype, inputs);
    if (tf32) spec.attrs.set("tf32", std::int64_t{1});
    const auto kernel = builtInKernels().make("cuda", spec);
    EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
    if (dtype == DType::kF32) EXPECT_EQ((*kernel)->implementation().find("TF32") != std::string::npos, tf32);
    auto y = runOn(**device, **kernel, spec, inputs);
    EXPECT_TRUE(y.has_value()) << y.error().message;
    return std::move((*y)[0]);
  };
  const Tensor plain = productOf(false, DType::kF32), short32 = productOf(true, DType::kF32);
  int differ = 0;
  for (std::int64_t i = 0; i < plain.elements(); ++i) {
    const double a = elementAsDouble(plain.view(), i), b = elementAsDouble(short32.view(), i);
    differ += a == b ? 0 : 1;
    EXPECT_NEAR(a, b, 40 * 2 * 0x1p-10);  // 40 products of factors up to 1
  }
  EXPECT_GT(differ, 0);
  const Tensor low = productOf(false, DType::kBF16), same = productOf(true, DType::kBF16);
  EXPECT_EQ(std::memcmp(low.view().data, same.view().data, low.bytes()), 0);
  setenv("STEPSCOPE_CUBLASLT", "off", 1);
}

// A product is a kernel among the records, and waits for what is on its stream.
TEST(LibraryProduct, IsRecordedAndOrdered) {
  setenv("STEPSCOPE_CUBLASLT", SS_FAKE_CUBLAS, 1);
  setenv("STEPSCOPE_FAKE_CUBLASLT", "", 1);
  ASSERT_TRUE(useFakeGpu());
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  activityOf(**device)->startActivity(ActivityRung::kActivity);
  activityId = 3;
  expectAgree(**device, forms()[0], DType::kF32, 1);
  activityId = 0;
  const Activity activity = activityOf(**device)->takeActivity();
  int kernels = 0;
  for (const ActivityRecord& record : activity.records) {
    if (record.kind != ActivityKind::kKernel) continue;
    ++kernels;
    EXPECT_EQ(activity.kernels[static_cast<std::size_t>(record.kernel)].name, "cuBLASLt");
  }
  EXPECT_EQ(kernels, 1);
  setenv("STEPSCOPE_CUBLASLT", "off", 1);
}

// A product of a library is one call, whatever kernels it runs; its counters are those of all of them.
TEST(LibraryProduct, IsCounted) {
  setenv("STEPSCOPE_CUBLASLT", SS_FAKE_CUBLAS, 1);
  setenv("STEPSCOPE_FAKE_CUBLASLT", "", 1);
  ASSERT_TRUE(useFakeGpu());
  setenv("STEPSCOPE_CUPTI", SS_FAKE_CUPTI, 1);
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  activityOf(**device)->startActivity(ActivityRung::kCounters);
  activityId = 3;
  expectAgree(**device, forms()[0], DType::kF32, 1);
  activityId = 0;
  const Activity activity = activityOf(**device)->takeActivity();
  EXPECT_EQ(activityOf(**device)->rung().name, "counters");
  ASSERT_EQ(activity.counters.size(), 1u);
  EXPECT_GT(activity.counters[0].readBytes, 0);
  EXPECT_EQ(activity.counters[0].tensor, 0.625);
  EXPECT_EQ(activity.uncounted, 0);
  setenv("STEPSCOPE_CUPTI", "off", 1);
  setenv("STEPSCOPE_CUBLASLT", "off", 1);
}

}  // namespace
}  // namespace stepscope
