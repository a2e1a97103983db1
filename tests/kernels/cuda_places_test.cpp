// Kernels of kernels/cuda that pick places and parts, beside their reference kernels in f64: pooling, scatters, orders,
// attention, choices. Devices: cuda_agreement.h.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "tests/kernels/cuda_agreement.h"

namespace stepscope {
namespace {

// Strides, pads on either side, dilations, windows that end beyond the padding, one to three axes, columns counted first. A
// gradient of MaxPool takes the positions that the reference kernel of MaxPool finds.
TEST(CudaPools, AgreeWithTheReferenceKernel) {
  SS_NEEDS_DEVICE();
  const auto windows = [](const Dims& kernel, const Dims& strides, const Dims& pads, const Dims& dilations) {
    return Attributes{{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}, {"dilations", dilations}};
  };
  Attributes columns = windows({2, 3}, {2, 1}, {1, 0, 0, 2}, {1, 2}), beyond = windows({3, 3}, {2, 2}, {0, 1, 1, 1}, {1, 1}),
             counted = beyond;
  columns.set("storage_order", std::int64_t{1});
  beyond.set("ceil_mode", std::int64_t{1});
  counted.set("ceil_mode", std::int64_t{1});
  counted.set("count_include_pad", std::int64_t{1});
  struct Pool {
    Attributes attrs;
    Dims x, y;
  };
  Random random(11);
  for (const Pool& pool :
       std::vector<Pool>{{windows({2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}), {2, 3, 6, 8}, {2, 3, 3, 4}},
                         {columns, {2, 2, 5, 7}, {2, 2, 3, 5}},
                         {beyond, {1, 3, 8, 9}, {1, 3, 4, 5}},
                         {counted, {1, 3, 8, 9}, {1, 3, 4, 5}},
                         {windows({3}, {1}, {1, 1}, {1}), {2, 4, 9}, {2, 4, 9}},
                         {windows({2, 1, 2}, {1, 2, 2}, {0, 0, 0, 1, 0, 1}, {1, 1, 1}), {1, 2, 3, 4, 5}, {1, 2, 3, 2, 3}}}) {
    if (!pool.attrs.has("count_include_pad")) {
      Operands forward{{floats(random, pool.x, -1, 1)}, {{DType::kF32, pool.y}, {DType::kI64, pool.y}}};
      const auto found = agreeing(specOf("", "MaxPool", pool.attrs, forward), forward);
      Operands gradient{{floats(random, pool.y, -1, 1), found[1], Tensor::ints(pool.x)}, {{DType::kF32, pool.x}}};
      agreeing(specOf("stepscope", "MaxPoolGrad", pool.attrs, gradient), gradient);
    }
    Operands mean{{floats(random, pool.x, -1, 1)}, {{DType::kF32, pool.y}}},
        gradient{{floats(random, pool.y, -1, 1), Tensor::ints(pool.x)}, {{DType::kF32, pool.x}}};
    agreeing(specOf("", "AveragePool", pool.attrs, mean), mean);
    agreeing(specOf("stepscope", "AveragePoolGrad", pool.attrs, gradient), gradient);
  }
}

TEST(CudaPools, APositionThatIsNotUnderItsWindowIsNamed) {
  SS_NEEDS_DEVICE();
  const Attributes attrs{{"kernel_shape", Dims{2}}, {"strides", Dims{2}}};
  Operands operands{{Tensor(DType::kF32, {1, 1, 2}), Tensor(DType::kI64, {1, 1, 2}), Tensor::ints(Dims{1, 1, 4})},
                    {{DType::kF32, {1, 1, 4}}}};
  for (const std::int64_t i : {0, 1}) storeElement(operands.inputs[1].view(), i, 1);
  const KernelSpec spec = specOf("stepscope", "MaxPoolGrad", attrs, operands);
  const auto kernel = builtInKernels().make("cuda", spec);
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  const auto found = runOn(deviceNamed(testedDevices().names[1]), **kernel, spec, operands.inputs);
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message.find("index 1 at position 1; expected one under its window"), std::string::npos)
      << found.error().message;
  EXPECT_TRUE(deviceNamed(testedDevices().names[1]).synchronise().has_value());
}

// More keys than a tile of the sort holds, few and many places, places that nothing names: the bits of a loop in order.
TEST(CudaScatters, CombineManyUpdatesInTheirOrder) {
  SS_NEEDS_DEVICE();
  Random random(12);
  for (const std::int64_t places : {1, 3, 700})
    for (const std::int64_t updates : {1, 2047, 4100}) {
      Operands operands{{floats(random, {places}, -1, 1), integers<std::int64_t>(random, {updates, 1}, -places, places - 1),
                         floats(random, {updates}, -1, 1)},
                        {{DType::kF32, {places}}}};
      const KernelSpec spec = specOf("", "ScatterND", {{"reduction", std::string("add")}}, operands);
      const auto found = agreeing(spec, operands);
      if (found.empty()) return;
      const auto expected = reference(spec, operands);
      EXPECT_EQ(std::memcmp(found[0].data(), expected[0].data(), expected[0].bytes()), 0) << updates << " to " << places;
    }
}

// With attribute `unordered` sums are atomic: the numbers of the reference kernel within rounding, other bits in some order
// of threads, and a verdict that says so. Indices out of range are named as before, integers stay in order.
TEST(CudaScatters, AddInAnyOrderWhereTheyMay) {
  SS_NEEDS_DEVICE();
  Random random(17);
  const Tensor picks = integers<std::int64_t>(random, {300}, -5, 4), lines = integers<std::int32_t>(random, {300, 3}, -5, 4),
               tuples = integers<std::int64_t>(random, {300, 1}, -5, 4);
  const Tensor rows = floats(random, {300, 3}, -1, 1), start = floats(random, {5, 3}, -1, 1);
  const Attributes any{{"unordered", std::int64_t{1}}};
  Attributes adding = any;
  adding.set("reduction", std::string("add"));
  const std::vector<std::pair<DType, Dims>> y{{DType::kF32, {5, 3}}};
  struct Case {
    const char *domain, *op;
    Attributes attrs;
    Operands operands;
  };
  for (const auto& [domain, op, attrs, operands] :
       {Case{"stepscope", "GatherGrad", any, {{rows, picks, Tensor::ints(Dims{5, 3})}, y}},
        Case{"stepscope", "GatherGrad", any, {{rows, picks, Tensor::ints(Dims{5, 3}), start}, y}},
        Case{"stepscope", "GatherElementsGrad", any, {{rows, lines, Tensor::ints(Dims{5, 3})}, y}},
        Case{"stepscope", "GatherNDGrad", any, {{rows, tuples, Tensor::ints(Dims{5, 3})}, y}},
        Case{"", "ScatterElements", adding, {{start, lines, rows}, y}},
        Case{"", "ScatterND", adding, {{start, tuples, rows}, y}}}) {
    const KernelSpec spec = specOf(domain, op, attrs, operands);
    const auto kernel = builtInKernels().make("cuda", spec);
    ASSERT_TRUE(kernel.has_value()) << op << kernel.error().message;
    EXPECT_EQ((*kernel)->determinism().order, Determinism::Order::kUnordered) << op;
    EXPECT_NE((*kernel)->implementation().find("atomic"), std::string::npos) << (*kernel)->implementation();
    std::set<std::string> bits;
    for (const std::string& name : testedDevices().names) {
      const auto found = runOn(deviceNamed(name), **kernel, spec, operands.inputs);
      ASSERT_TRUE(found.has_value()) << op << ": " << found.error().message;
      expectNear(*found, reference(spec, operands), 1e-5, op);
      bits.emplace(static_cast<const char*>((*found)[0].data()), (*found)[0].bytes());
    }
    if (testedDevices().names[0] == "emulated") EXPECT_GT(bits.size(), 1u) << op << ": the same bits in ten orders";
    Operands wrong = operands;
    wrong.inputs[1] = operands.inputs[1].clone();
    storeElement(wrong.inputs[1].view(), 7, 5);
    const auto named = runOn(deviceNamed(testedDevices().names[1]), **kernel, spec, wrong.inputs);
    ASSERT_FALSE(named.has_value()) << op;
    EXPECT_NE(named.error().message.find("index 5"), std::string::npos) << named.error().message;
    EXPECT_TRUE(deviceNamed(testedDevices().names[1]).synchronise().has_value());
  }
  Operands whole{{integers<std::int64_t>(random, {5, 3}, -9, 9), tuples, integers<std::int64_t>(random, {300, 3}, -9, 9)},
                 {{DType::kI64, {5, 3}}}};
  const auto kernel = builtInKernels().make("cuda", specOf("", "ScatterND", adding, whole));
  ASSERT_TRUE(kernel.has_value());
  EXPECT_EQ((*kernel)->determinism().order, Determinism::Order::kFixed);
}

// Equal elements, both zeros and NaN, along any axis; values or positions alone.
TEST(CudaOrders, AgreeWithTheReferenceKernel) {
  SS_NEEDS_DEVICE();
  Random random(13);
  for (int round = 0; round < 12; ++round) {
    const Dims dims = round % 2 ? Dims{3, 70, 2} : Dims{4, 300};
    const std::int64_t axis = 1, k = 1 + below(random, 9);
    Dims picked = dims, one = dims;
    picked[1] = k;
    one[1] = 1;
    Tensor x = round % 3 == 2 ? integers<std::int64_t>(random, dims, -20, 20) : floats(random, dims, -1, 1, round % 3 == 1);
    const Attributes attrs{{"axis", axis}, {"largest", std::int64_t{round % 4 < 2}}};
    Operands top{{x, Tensor::scalar(DType::kI64, static_cast<double>(k))}, {{x.dtype(), picked}, {DType::kI64, picked}}};
    agreeing(specOf("", "TopK", attrs, top), top);
    if (x.dtype() != DType::kF32) x = integers<std::int32_t>(random, dims, -20, 20);
    Operands arg{{x}, {{DType::kI64, one}}};
    agreeing(specOf("", round % 2 ? "ArgMax" : "ArgMin",
                    {{"axis", axis}, {"select_last_index", std::int64_t{round % 4 > 1}}}, arg),
             arg);
    x = round % 3 == 2 ? integers<std::int64_t>(random, dims, -20, 20) : floats(random, dims, -1, 1);
    Operands sum{{x, Tensor::scalar(DType::kI64, 1)}, {{x.dtype(), dims}}};
    agreeing(
        specOf("", "CumSum", {{"reverse", std::int64_t{round % 4 > 1}}, {"exclusive", std::int64_t{round % 3 > 0}}}, sum),
        sum);
  }
}

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// Of two batch entries [2, 1, 1, keys]: the first keeps keys [from, to), the second all before `to`.
Tensor paddedKeys(std::int64_t keys, std::int64_t from, std::int64_t to) {
  Tensor mask(DType::kBool, {2, 1, 1, keys});
  for (std::int64_t i = 0; i < 2 * keys; ++i)
    storeElement(mask.view(), i, i % keys < to && (i >= keys || i >= from) ? 1.0 : 0.0);
  return mask;
}

// [rows, rows] to be added: `dropped` for keys behind a row, and for all keys of row `none`.
Tensor causalMask(std::int64_t rows, float dropped, std::int64_t none = -1) {
  Tensor mask(DType::kF32, {rows, rows});
  for (std::int64_t i = 0; i < rows * rows; ++i)
    storeElement(mask.view(), i, i % rows > i / rows || i / rows == none ? static_cast<double>(dropped) : 0.0);
  return mask;
}

// Rows and keys that fill no tile, heads wider than a warp, operands and results stored in other orders of their axes, masks
// that are added or choose, broadcast, rows that see nothing, dropout, bounded scores, heads that share keys; the gradient
// from the statistics of the kernel.
TEST(CudaAttention, AgreesWithTheReferenceKernelInBothDirections) {
  SS_NEEDS_DEVICE();
  Random random(14);
  struct Heads {
    Attributes attrs;
    Dims q, k, v, y;
    Tensor mask;
  };
  Tensor nothing(DType::kBool, {2, 1, 9, 40});
  for (std::int64_t i = 0; i < nothing.elements(); ++i)
    storeElement(nothing.view(), i, i / 40 % 9 == 3 ? 0.0 : static_cast<double>(below(random, 2)));
  const Dims exchanged{0, 2, 1, 3};
  const std::vector<Heads> cases{
      {{{"scale", 0.3F}}, {2, 3, 7, 5}, {2, 3, 6, 5}, {2, 3, 6, 4}, {2, 3, 7, 4}, Tensor()},
      {{{"scale", 0.1F}}, {1, 33, 70}, {1, 65, 70}, {1, 65, 128}, {1, 33, 128}, floats(random, {33, 65}, -2, 0)},
      {{{"permQ", exchanged}, {"permK", exchanged}, {"permV", exchanged}, {"permY", exchanged}},
       {2, 9, 3, 8},
       {2, 40, 3, 8},
       {2, 40, 3, 8},
       {2, 9, 3, 8},
       floats(random, {2, 1, 1, 40}, -2, 0)},
      {{{"safe", std::int64_t{1}}, {"fill", -std::numeric_limits<float>::infinity()}},
       {2, 2, 9, 6},
       {2, 2, 40, 6},
       {2, 2, 40, 6},
       {2, 2, 9, 6},
       nothing},
      {{{"dropout", 0.4F}, {"scale", 0.5F}}, {2, 2, 9, 6}, {2, 2, 40, 6}, {2, 2, 40, 6}, {2, 2, 9, 6}, Tensor()},
      {{{"softcap", 0.8F}}, {2, 2, 9, 6}, {2, 2, 40, 6}, {2, 2, 40, 6}, {2, 2, 9, 6}, floats(random, {9, 40}, -2, 0)},
      {{{"dropout", 0.4F}, {"softcap", 1.5F}},
       {2, 2, 3, 9, 6},
       {2, 2, 1, 40, 6},
       {2, 2, 1, 40, 5},
       {2, 2, 3, 9, 5},
       Tensor()},
      {{}, {4, 33, 7}, {1, 65, 7}, {1, 65, 8}, {4, 33, 8}, Tensor()},
      {{{"permQ", exchanged}, {"permK", exchanged}, {"permV", exchanged}, {"permY", exchanged}, {"groups", std::int64_t{2}}},
       {2, 9, 6, 8},
       {2, 40, 3, 8},
       {2, 40, 3, 8},
       {2, 9, 6, 8},
       floats(random, {6, 9, 40}, -2, 0)},
      // Tiles of keys that nobody keeps: padding at either end, a causal mask, a row that keeps none.
      {{{"fill", -kInfinite}}, {2, 2, 9, 6}, {2, 2, 130, 6}, {2, 2, 130, 5}, {2, 2, 9, 5}, paddedKeys(130, 40, 90)},
      {{}, {2, 100, 6}, {2, 100, 6}, {2, 100, 6}, {2, 100, 6}, causalMask(100, -kInfinite)},
      {{}, {1, 100, 6}, {1, 100, 6}, {1, 100, 6}, {1, 100, 6}, causalMask(100, -1e32F)},
      {{{"safe", std::int64_t{1}}}, {1, 70, 6}, {1, 70, 6}, {1, 70, 6}, {1, 70, 6}, causalMask(70, -kInfinite, 40)},
      {{{"fill", -1e4F}}, {2, 2, 9, 6}, {2, 2, 130, 6}, {2, 2, 130, 5}, {2, 2, 9, 5}, paddedKeys(130, 40, 90)},
      {{{"permQ", exchanged},
        {"permK", exchanged},
        {"permV", exchanged},
        {"permY", exchanged},
        {"groups", std::int64_t{2}},
        {"fill", -kInfinite},
        {"dropout", 0.4F}},
       {2, 9, 6, 8},
       {2, 130, 3, 8},
       {2, 130, 3, 8},
       {2, 9, 6, 8},
       paddedKeys(130, 64, 96)},
  };
  for (const Heads& heads : cases) {
    Operands forward{{floats(random, heads.q, -1, 1), floats(random, heads.k, -1, 1), floats(random, heads.v, -1, 1)}, {}};
    if (heads.mask.valid()) forward.inputs.push_back(heads.mask);
    const bool permuted = heads.attrs.has("permQ");
    Dims statistics(heads.q.begin(), heads.q.end());
    if (permuted) std::swap(statistics[1], statistics[2]);
    statistics.back() = 2;
    forward.outputs = {{DType::kF32, heads.y}, {DType::kF32, statistics}};
    const auto found = agreeing(specOf("stepscope", "FusedAttention", heads.attrs, forward), forward);
    ASSERT_EQ(found.size(), 2u);
    Operands gradient{{floats(random, heads.y, -1, 1), found[1]}, {}};
    for (const Tensor& x : forward.inputs) gradient.inputs.push_back(x);
    for (const Dims& dims : {heads.q, heads.k, heads.v}) gradient.outputs.emplace_back(DType::kF32, dims);
    agreeing(specOf("stepscope", "FusedAttentionGrad", heads.attrs, gradient), gradient);
  }
}

TEST(CudaChoices, AConstantIsWrittenOnTheDevice) {
  SS_NEEDS_DEVICE();
  Random random(4);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kBool}) {
    const Tensor value = convertTensor(floats(random, {3, 5}, 0, 9).view(), dtype);
    agreeing(specOf("", "Constant", {{"value", value}}, {{}, {{dtype, {3, 5}}}}), {{}, {{dtype, {3, 5}}}});
  }
  const Tensor large(DType::kF32, {65});
  EXPECT_FALSE(
      deviceNamed(testedDevices().names[0]).takes(specOf("", "Constant", {{"value", large}}, {{}, {{DType::kF32, {65}}}})));
}

// What lies at keys that a mask drops for all rows is not read, so that a NaN there reaches no result.
TEST(CudaAttention, LeavesOutTilesOfKeysThatNobodyKeeps) {
  SS_NEEDS_DEVICE();
  Random random(17);
  const Attributes attrs{{"fill", -kInfinite}};
  Tensor k = floats(random, {1, 2, 130, 6}, -1, 1), v = floats(random, {1, 2, 130, 6}, -1, 1);
  const auto spoil = [](const Tensor& x) {
    Tensor spoilt = x.clone();
    for (std::int64_t i = 0; i < x.elements(); ++i)
      if (const std::int64_t key = i / 6 % 130; key < 32 || key >= 96) storeElement(spoilt.view(), i, NAN);
    return spoilt;
  };
  const Tensor q = floats(random, {1, 2, 9, 6}, -1, 1), dy = floats(random, {1, 2, 9, 6}, -1, 1);
  Tensor mask = paddedKeys(130, 40, 90);
  const Tensor one(DType::kBool, {1, 1, 1, 130});
  std::copy_n(static_cast<const std::uint8_t*>(mask.data()), 130, static_cast<std::uint8_t*>(one.data()));
  const std::vector<std::pair<DType, Dims>> results{{DType::kF32, {1, 2, 9, 6}}, {DType::kF32, {1, 2, 9, 2}}};
  const auto found = [&](const char* op, Operands operands) {
    const KernelSpec spec = specOf("stepscope", op, attrs, operands);
    const auto kernel = builtInKernels().make("cuda", spec);
    EXPECT_TRUE(kernel.has_value());
    auto ran = runOn(deviceNamed(testedDevices().names[0]), **kernel, spec, operands.inputs);
    EXPECT_TRUE(ran.has_value());
    return std::move(*ran);
  };
  const std::vector<Tensor> clean = found("FusedAttention", {{q, k, v, one}, results}),
                            spoilt = found("FusedAttention", {{q, spoil(k), spoil(v), one}, results});
  const auto same = [](const Tensor& a, const Tensor& b) { return std::memcmp(a.data(), b.data(), a.bytes()) == 0; };
  EXPECT_TRUE(same(clean[0], spoilt[0]));
  EXPECT_TRUE(same(clean[1], spoilt[1]));
  std::vector<std::pair<DType, Dims>> slopes{{DType::kF32, {1, 2, 9, 6}}};
  slopes.resize(3, {DType::kF32, {1, 2, 130, 6}});
  const std::vector<Tensor> wanted = found("FusedAttentionGrad", {{dy, clean[1], q, k, v, one}, slopes}),
                            got = found("FusedAttentionGrad", {{dy, clean[1], q, spoil(k), spoil(v), one}, slopes});
  for (std::size_t o = 0; o < 3; ++o) EXPECT_TRUE(same(wanted[o], got[o])) << o;
}

// What an If leaves: the branch that was computed, of elements of every size.
TEST(CudaChoices, TakeTheBranchThatWasComputed) {
  SS_NEEDS_DEVICE();
  Random random(15);
  for (const DType dtype : {DType::kBool, DType::kF32, DType::kI64})
    for (const double holds : {0.0, 1.0}) {
      const Tensor condition = Tensor::scalar(DType::kBool, holds);
      Operands both{{condition, valuesOf(random, dtype, {3, 70}, false), valuesOf(random, dtype, {3, 70}, false)},
                    {{dtype, {3, 70}}}};
      agreeing(specOf("stepscope", "Select", {}, both), both);
      Operands one{{condition, both.inputs[1]}, {{dtype, {3, 70}}}};
      for (const std::int64_t expected : {0, 1}) agreeing(specOf("stepscope", "Gate", {{"expected", expected}}, one), one);
    }
}

// As clipping adds up the squares of a hundred gradients.
TEST(CudaSums, AddUpMoreTensorsThanAChainTakes) {
  SS_NEEDS_DEVICE();
  Random random(16);
  for (const int count : {25, 64, 65, 150}) {
    Operands operands{{}, {{DType::kF32, {3, 5}}}};
    for (int i = 0; i < count; ++i) operands.inputs.push_back(floats(random, {3, 5}, -1, 1));
    agreeing(specOf("", "Sum", {}, operands), operands);
  }
}

// Few results: their elements are added up in parts.
TEST(CudaSums, OfChainsInParts) {
  SS_NEEDS_DEVICE();
  Random random(3);
  const auto sum = [&](const Dims& x, const Dims& beside, const Dims& axes, const Dims& y, std::int64_t mean) {
    const Operands operands{{floats(random, x, -2, 3), floats(random, beside, -2, 3)}, {{DType::kF32, y}}};
    const Attributes attrs{{"steps", std::vector<std::string>{"Mul 0 1", "Add 2 0"}}, {"axes", axes}, {"mean", mean}};
    agreeing(specOf("stepscope", "PointwiseSum", attrs, operands), operands);
  };
  sum({300, 5}, {5}, {0}, {5}, 0);
  sum({2, 150, 7}, {150, 1}, {0, 1}, {7}, 1);
  sum({9000}, {}, {0}, {}, 1);
  sum({2, 8500}, {2, 1}, {1}, {2, 1}, 0);
}

}  // namespace
}  // namespace stepscope
