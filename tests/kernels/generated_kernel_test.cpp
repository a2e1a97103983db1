// Chains that are compiled at run time, by the fake NVRTC, which asks the host compiler: the bits of the kernel that
// interprets them.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "kernels/cuda_device.h"
#include "kernels/device_graph.h"
#include "tests/kernels/fake_gpu/use.h"
#include "tests/kernels/on_device.h"

namespace stepscope {
namespace {

std::int64_t compiledSources() {
  void* const library = dlopen(SS_FAKE_NVRTC, RTLD_NOW | RTLD_NOLOAD);
  const auto count = library ? reinterpret_cast<std::int64_t (*)()>(dlsym(library, "fakeNvrtcCompiled")) : nullptr;
  return count ? count() : 0;
}

struct Chain {
  const char* name;
  std::vector<std::string> steps;
  std::vector<std::pair<DType, Dims>> inputs;
  Dims y;
  DType result = DType::kF32;
  std::vector<std::int64_t> summed = {};  // axes
  bool mean = false;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> views = {};
};

// Whole operands, numbers, broadcasts of several axes and of masks; sizes that are no multiples of four; low types in every
// place. Sums of one part and of several, of one warp and of several.
std::vector<Chain> chains() {
  const auto f = DType::kF32, h = DType::kF16, b = DType::kBF16;
  return {{"Whole", {"Mul 0 1", "Add 2 3", "Sigmoid 4", "Mul 4 5"}, {{f, {5, 7}}, {f, {5, 7}}, {f, {5, 7}}}, {5, 7}},
          {"Broadcast",
           {"Sub 0 1", "Mul 3 2", "Gelu 4", "Add 5 0"},
           {{f, {3, 4, 5}}, {f, {1, 4, 1}}, {f, {3, 1, 5}}},
           {3, 4, 5}},
          {"Masks",
           {"Greater 0 2", "And 3 1", "Where 4 0 2", "FromMask 1", "Max 5 6"},
           {{f, {6, 9}}, {DType::kBool, {9}}, {f, {}}},
           {6, 9}},
          {"Rounded",
           {"ToBFloat16 0", "Mul 2 1", "ToFloat16 3", "GeluTanhGrad 4 0", "Erf 5", "Round 3", "Pow 6 7"},
           {{f, {1030}}, {f, {1030}}},
           {1030}},
          {"LowBroadcast", {"Mul 0 1", "Add 3 2", "Tanh 4"}, {{b, {5, 7}}, {h, {7}}, {b, {}}}, {5, 7}, b},
          {"LowMasks",
           {"Relu 0", "FromMask 1", "Mul 3 4", "Sub 5 2"},
           {{h, {1030}}, {DType::kBool, {1030}}, {f, {1030}}},
           {1030},
           h},
          {"LowToFloat", {"Exp 0", "Div 2 1"}, {{b, {3, 41}}, {h, {3, 1}}}, {3, 41}},
          {"FloatToLow", {"GeluTanh 0", "Mul 1 0"}, {{f, {1029}}}, {1029}, b},
          {"SumOfRows", {"Mul 0 1", "Sub 2 0"}, {{f, {3, 9001}}, {f, {9001}}}, {3}, f, {1}},
          {"SumOfShortRows", {"Mul 0 1", "Sigmoid 2"}, {{f, {70, 33}}, {f, {70, 1}}}, {70}, f, {1}},
          {"SumOfColumns", {"Where 1 0 2"}, {{f, {300, 41}}, {DType::kBool, {41}}, {f, {}}}, {41}, f, {0}},
          {"MeanOfAll", {"Sub 0 1", "Mul 2 2"}, {{f, {3, 55, 5}}, {f, {1, 55, 1}}}, {}, f, {0, 1, 2}, true},
          {"LowSumOfRows", {"Mul 0 1", "Add 2 0"}, {{b, {5, 700}}, {b, {700}}}, {5}, b, {1}},
          {"LowMeanOfColumns", {"Mul 0 1", "Abs 2"}, {{h, {200, 9}}, {f, {200, 1}}}, {9}, h, {0}, true},
          {"Views",
           {"Sigmoid 0", "Mul 3 1", "Where 2 4 0"},
           {{f, {2, 3, 22}}, {b, {2, 3, 22}}, {DType::kBool, {30}}},
           {2, 3, 11},
           f,
           {},
           false,
           {{"view0", {0, 2, 3, 11, 66, 22, 1}}, {"view1", {11, 2, 3, 11, 66, 22, 1}}, {"view2", {4, 3, 1, 2, 1}}}},
          {"SumOfViews",
           {"Mul 0 1"},
           {{f, {70, 66}}, {f, {70, 66}}},
           {33},
           f,
           {0},
           false,
           {{"view0", {0, 70, 33, 66, 1}}, {"view1", {33, 70, 33, 66, 1}}}}};
}

KernelSpec specOf(const Chain& chain) {
  KernelSpec spec;
  spec.domain = "stepscope";
  spec.op = chain.summed.empty() ? "Pointwise" : "PointwiseSum";
  spec.attrs.set("steps", chain.steps);
  if (!chain.summed.empty()) spec.attrs.set("axes", chain.summed);
  spec.attrs.set("mean", std::int64_t{chain.mean});
  for (const auto& [attribute, numbers] : chain.views) spec.attrs.set(attribute, numbers);
  for (const auto& [dtype, dims] : chain.inputs)
    spec.inputs.push_back({dtype, dims, false, {}, Layout::kPlain, Space::kDevice});
  spec.outputs = {{chain.result, chain.y}};
  return spec;
}

std::vector<Tensor> operandsOf(const Chain& chain) {
  std::vector<Tensor> made;
  for (const auto& [dtype, dims] : chain.inputs) {
    Tensor& x = made.emplace_back(dtype, dims);
    for (std::int64_t i = 0; i < x.elements(); ++i)
      storeElement(
          x.view(), i,
          dtype == DType::kBool ? static_cast<double>(i % 3 == 0) : static_cast<double>((i * 37 + 11) % 101) / 23 - 2);
  }
  return made;
}

class GeneratedChain : public ::testing::TestWithParam<Chain> {
 protected:
  void SetUp() override {
    setenv("STEPSCOPE_NVRTC", SS_FAKE_NVRTC, 1);
    setenv("STEPSCOPE_FAKE_NVRTC", "", 1);
  }
  void TearDown() override { setenv("STEPSCOPE_NVRTC", "off", 1); }
};

TEST_P(GeneratedChain, HasTheBitsOfTheInterpreter) {
  const Chain& chain = GetParam();
  const KernelSpec spec = specOf(chain);
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  EXPECT_NE((*kernel)->implementation().find("NVRTC"), std::string::npos) << (*kernel)->implementation();
  const auto interpreted = runOn(deviceNamed("emulated"), **kernel, spec, operandsOf(chain));
  ASSERT_TRUE(interpreted.has_value()) << interpreted.error().message;
  ASSERT_TRUE(useFakeGpu());
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value()) << device.error().message;
  const std::int64_t before = compiledSources();
  for (int round = 0; round < 2; ++round) {
    const auto found = runOn(**device, **kernel, spec, operandsOf(chain));
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(std::memcmp((*found)[0].data(), (*interpreted)[0].data(), (*found)[0].bytes()), 0);
  }
  EXPECT_EQ(compiledSources() - before, 1) << "each source is compiled once";
}

INSTANTIATE_TEST_SUITE_P(Forms, GeneratedChain, ::testing::ValuesIn(chains()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GeneratedChains, AreInterpretedWhereNobodyCompiles) {
  const Chain chain = chains()[1];
  const KernelSpec spec = specOf(chain);
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value());
  const auto expected = runOn(deviceNamed("emulated"), **kernel, spec, operandsOf(chain));
  ASSERT_TRUE(expected.has_value());
  for (const auto& [library, orders] :
       {std::pair("off", ""), std::pair("/nowhere/libnvrtc.so", ""), std::pair(SS_FAKE_NVRTC, "refuses")}) {
    setenv("STEPSCOPE_NVRTC", library, 1);
    setenv("STEPSCOPE_FAKE_NVRTC", orders, 1);
    ASSERT_TRUE(useFakeGpu());
    const auto device = makeCudaDevice("cuda");
    ASSERT_TRUE(device.has_value());
    const auto found = runOn(**device, **kernel, spec, operandsOf(chain));
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(std::memcmp((*found)[0].data(), (*expected)[0].data(), (*found)[0].bytes()), 0) << library << orders;
  }
  setenv("STEPSCOPE_NVRTC", "off", 1);
}

// Nothing is compiled or loaded while a graph is captured: a chain that has not run before is interpreted there.
TEST(GeneratedChains, AreNotCompiledWhileAGraphIsCaptured) {
  setenv("STEPSCOPE_NVRTC", SS_FAKE_NVRTC, 1);
  setenv("STEPSCOPE_FAKE_NVRTC", "", 1);
  ASSERT_TRUE(useFakeGpu());
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  const KernelSpec spec = specOf({"", {"Mul 0 1", "Tanh 2"}, {{DType::kF32, {6}}, {DType::kF32, {6}}}, {6}});
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value());
  const auto memory = (*device)->allocate(3 * 64);
  ASSERT_TRUE(memory.has_value());
  std::vector<TensorView> in, out;
  for (int i = 0; i < 3; ++i) {
    TensorView view;
    view.dtype = DType::kF32;
    view.dims = {6};
    view.data = memory->data() + 64 * i;
    (i < 2 ? in : out).push_back(view);
  }
  const std::int64_t before = compiledSources();
  ASSERT_TRUE(graphsOf(**device)->beginGraph(nullptr).has_value());
  const Status launched = (*device)->launch(**kernel, {in, out, {}, {}, 0, {}});
  const auto graph = graphsOf(**device)->endGraph();
  ASSERT_TRUE(launched.has_value()) << launched.error().message;
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ(compiledSources(), before);
  ASSERT_TRUE((*device)->launch(**kernel, {in, out, {}, {}, 0, {}}).has_value());
  EXPECT_EQ(compiledSources(), before + 1);
  ASSERT_TRUE((*device)->synchronise().has_value());
  setenv("STEPSCOPE_NVRTC", "off", 1);
}

}  // namespace
}  // namespace stepscope
