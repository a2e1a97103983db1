// Every vectorised loop beside its reference kernel: random shapes, odd tails, broadcasts, special values, several threads,
// and results that lie over an operand. The table is in loop_cases_*.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/kernels/loop_cases.h"

namespace stepscope {
namespace {

std::vector<LoopCase> table() {
  std::vector<LoopCase> cases = elementwiseLoops();
  for (const auto& more : {movementLoops(), reductionLoops()}) cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

enum class Place { kBeside, kOverInput };

std::vector<Tensor> runKernel(const LoopCase& test, Backend backend, const Attributes& attrs, const Operands& operands,
                              int threads, Place place, std::string* implementation, Determinism* determinism = nullptr) {
  KernelSpec spec;
  spec.domain = test.domain;
  spec.op = test.op;
  spec.attrs = attrs;
  spec.threads = threads;
  std::vector<TensorView> in, out;
  std::vector<Tensor> inputs, results;
  for (const Tensor& tensor : operands.inputs) {
    inputs.push_back(tensor.valid() ? tensor.clone() : Tensor());
    spec.inputs.push_back(
        tensor.valid() ? OperandSpec{tensor.dtype(), tensor.dims(), false, tensor.dtype() == DType::kI64 ? tensor : Tensor()}
                       : OperandSpec{});
    in.push_back(inputs.back().view());
  }
  for (const auto& [dtype, dims] : operands.outputs) {
    spec.outputs.push_back({dtype, dims, false, {}});
    results.emplace_back(dtype, dims);
    std::memset(results.back().data(), 0xFF, results.back().bytes());  // NaN: an element that is left out shows
    out.push_back(results.back().view());
  }
  const auto over = static_cast<std::size_t>(test.inPlace);
  if (place == Place::kOverInput) {
    EXPECT_EQ(inputs[over].bytes(), results[0].bytes());
    results[0] = inputs[over].reshaped(operands.outputs[0].second);
    out[0].data = results[0].data();
  }
  const auto kernel = makeKernel(backend, spec);
  EXPECT_TRUE(kernel.has_value());
  if (!kernel) return {};
  *implementation = (*kernel)->implementation();
  if (determinism != nullptr) *determinism = (*kernel)->determinism();
  std::vector<std::byte> memory((*kernel)->workspaceBytes() + 64);
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  const Status status = (*kernel)->run({in, out, {aligned, (*kernel)->workspaceBytes()}, {7, 3, 11}, {}});
  EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
  return results;
}

void expectEqual(const LoopCase& test, const std::vector<Tensor>& fast, const std::vector<Tensor>& slow,
                 const std::string& what) {
  ASSERT_EQ(fast.size(), slow.size());
  for (std::size_t o = 0; o < fast.size(); ++o)
    for (std::int64_t i = 0; i < fast[o].elements(); ++i) {
      const double a = elementAsDouble(fast[o].view(), i), b = elementAsDouble(slow[o].view(), i);
      if (std::isnan(b)) {
        ASSERT_TRUE(std::isnan(a)) << test.op << " output " << o << " element " << i << ": " << a << ", expected NaN; "
                                   << what;
        continue;
      }
      if (a == b) continue;
      ASSERT_LE(std::abs(a - b), test.tolerance * std::max(1.0, std::abs(b)))
          << test.op << " output " << o << " element " << i << " expected " << b << "; " << what;
    }
}

// Loops that sum over the parts of their threads, of the operands in the table.
const std::set<std::string> kCutByThreads{"stepscope.LayerNormalizationGrad", "stepscope.SimplifiedLayerNormalizationGrad"};

class LoopTable : public testing::TestWithParam<LoopCase> {};

TEST_P(LoopTable, AgreesWithTheReferenceKernel) {
  const LoopCase& test = GetParam();
  Random random(static_cast<unsigned>(std::hash<std::string>{}(test.op + test.label)));
  for (int round = 0; round < 48; ++round) {
    Attributes attrs;
    const Operands operands = test.make(random, round, attrs);
    std::string what, name;
    for (const Tensor& x : operands.inputs) what += x.valid() ? dimsText(x.dims()) + " " : "- ";
    what += "round " + std::to_string(round);
    const auto slow = runKernel(test, Backend::kReference, attrs, operands, 1, Place::kBeside, &name);
    std::vector<Tensor> first;
    for (const int threads : {1, 2, 3}) {
      const auto fast = runKernel(test, Backend::kCpu, attrs, operands, threads, Place::kBeside, &name);
      ASSERT_NE(name, "reference") << test.op << " " << what;
      expectEqual(test, fast, slow, what + ", threads " + std::to_string(threads));
      if (testing::Test::HasFatalFailure()) return;
      // The same bits from run to run.
      const auto again = runKernel(test, Backend::kCpu, attrs, operands, threads, Place::kBeside, &name);
      for (std::size_t o = 0; o < fast.size(); ++o)
        ASSERT_EQ(std::memcmp(fast[o].data(), again[o].data(), fast[o].bytes()), 0) << test.op << " " << what;
    }
    if (test.inPlace < 0 || operands.inputs[static_cast<std::size_t>(test.inPlace)].bytes() !=
                                Tensor(operands.outputs[0].first, operands.outputs[0].second).bytes())
      continue;
    expectEqual(test, runKernel(test, Backend::kCpu, attrs, operands, 2, Place::kOverInput, &name), slow,
                what + ", in place");
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Whether results of one, two and three threads are the same bits.
bool sameBits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t o = 0; o < a.size(); ++o)
    if (std::memcmp(a[o].data(), b[o].data(), a[o].bytes()) != 0) return false;
  return true;
}

// What a kernel says of its bits holds: where it claims that they do not depend on the number of threads, one, two and three
// give the same; where it names that number, another one gives others somewhere, or the claim would cost without need.
TEST(LoopBits, AreWhatTheKernelSays) {
  std::map<std::string, bool> depends;  // ops that name the number of threads, and whether it was seen to matter
  for (const LoopCase& test : table()) {
    Random random(3);
    for (int round = 0; round < 48; ++round) {
      Attributes attrs;
      const Operands operands = test.make(random, round, attrs);
      std::string name;
      Determinism one, more;
      const auto alone = runKernel(test, Backend::kCpu, attrs, operands, 1, Place::kBeside, &name, &one);
      for (const int threads : {2, 3}) {
        const auto several = runKernel(test, Backend::kCpu, attrs, operands, threads, Place::kBeside, &name, &more);
        EXPECT_EQ(one.order, more.order) << test.op << ": the answer is about every number of threads";
        EXPECT_FALSE(more.reason.empty()) << test.op;
        const bool same = sameBits(alone, several);
        if (more.order == Determinism::Order::kThreadCount) {
          depends[test.domain + "." + test.op] |= !same;
        } else {
          ASSERT_TRUE(same) << test.op << test.label << " round " << round << ", threads " << threads << ": " << more.reason;
        }
      }
    }
  }
  std::set<std::string> named;
  for (const auto& [op, seen] : depends) {
    named.insert(op);
    EXPECT_TRUE(seen) << op << " names the number of threads, but gives the same bits for 1, 2 and 3";
  }
  EXPECT_EQ(named, kCutByThreads);
}

// More labels than one thread adds up alone: the loss names the number of threads. The gradient does where it divides by a
// sum of weights; without weights it divides by a count, which any order of addition gives exactly.
TEST(LoopBits, OfALossOverManyLabelsNameTheThreads) {
  constexpr std::int64_t kRows = 40000, kClasses = 3;
  const OperandSpec scores{DType::kF32, {kRows, kClasses}}, labels{DType::kI64, {kRows}}, weights{DType::kF32, {kClasses}},
      one{DType::kF32, {}};
  const auto orderOf = [&](const char* domain, const char* op, std::vector<OperandSpec> inputs, const OperandSpec& output) {
    KernelSpec spec;
    spec.domain = domain;
    spec.op = op;
    spec.inputs = std::move(inputs);
    spec.outputs = {output};
    spec.threads = 2;
    const auto kernel = makeKernel(Backend::kCpu, spec);
    EXPECT_TRUE(kernel.has_value() && (*kernel)->implementation() != "reference") << op;
    return kernel ? (*kernel)->determinism().order : Determinism::Order::kUnordered;
  };
  using Order = Determinism::Order;
  const char* grad = "SoftmaxCrossEntropyLossGrad";
  EXPECT_EQ(orderOf("", "SoftmaxCrossEntropyLoss", {scores, labels}, one), Order::kThreadCount);
  EXPECT_EQ(orderOf("stepscope", grad, {one, scores, labels}, scores), Order::kFixed);
  EXPECT_EQ(orderOf("stepscope", grad, {one, scores, labels, weights}, scores), Order::kThreadCount);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LoopTable, testing::ValuesIn(table()), [](const auto& info) {
  return (info.param.domain == "com.microsoft" ? "Microsoft" : "") + info.param.op + info.param.label;
});

// kernels/cpu/README.md says why: results of unknown extents, what names memory, integers, work that is small or done once.
TEST(KernelLists, TheseOpsHaveOnlyAReferenceKernel) {
  const std::set<std::string> expected{"BitShift",
                                       "BitwiseAnd",
                                       "BitwiseNot",
                                       "BitwiseOr",
                                       "BitwiseXor",
                                       "CenterCropPad",
                                       "Compress",
                                       "Constant",
                                       "ConstantOfShape",
                                       "ConvInteger",
                                       "CumProd",
                                       "Det",
                                       "DynamicQuantizeLinear",
                                       "Einsum",
                                       "EyeLike",
                                       "Flatten",
                                       "Identity",
                                       "MatMulInteger",
                                       "MelWeightMatrix",
                                       "Multinomial",
                                       "NonMaxSuppression",
                                       "NonZero",
                                       "QLinearConv",
                                       "QLinearMatMul",
                                       "Range",
                                       "Reshape",
                                       "ReverseSequence",
                                       "Shape",
                                       "Size",
                                       "Squeeze",
                                       "StringConcat",
                                       "StringNormalizer",
                                       "Unique",
                                       "Unsqueeze",
                                       "ai.onnx.preview.training.Adagrad",
                                       "ai.onnx.preview.training.Adam",
                                       "ai.onnx.preview.training.Momentum",
                                       "com.microsoft.Inverse",
                                       "stepscope.AllGather",
                                       "stepscope.AllGatherRows",
                                       "stepscope.AllReduce",
                                       "stepscope.AllToAll",
                                       "stepscope.Broadcast",
                                       "stepscope.Cholesky",
                                       "stepscope.ConcatTaken",
                                       "stepscope.CtcLoss",
                                       "stepscope.CtcLossGrad",
                                       "stepscope.CumProdGrad",
                                       "stepscope.CustomGradient",
                                       "stepscope.DetGrad",
                                       "stepscope.EinsumGrad",
                                       "stepscope.EpilogueProduct",
                                       "stepscope.Gate",
                                       "stepscope.GradientOf",
                                       "stepscope.LoopBound",
                                       "stepscope.RankPart",
                                       "stepscope.Recv",
                                       "stepscope.Reduce",
                                       "stepscope.ReduceScatter",
                                       "stepscope.ReduceScatterRows",
                                       "stepscope.Select",
                                       "stepscope.Send",
                                       "stepscope.StopGradient",
                                       "stepscope.StraightThrough",
                                       "stepscope.TriangularSolve"};
  std::set<std::string> found;
  for (const KernelEntry& entry : referenceKernels())
    if (!std::ranges::any_of(cpuKernels(),
                             [&](const KernelEntry& fast) { return fast.domain == entry.domain && fast.op == entry.op; }))
      found.insert((entry.domain.empty() ? "" : std::string(entry.domain) + ".") + std::string(entry.op));
  EXPECT_EQ(found, expected);
}

// What a loop does not take is the reference kernel's: nothing at all, and mistakes, which it names.
TEST(LoopEdges, EmptyOperandsAreServed) {
  for (const char* op : {"Add", "Exp", "Relu", "Sin", "Softmax", "Where", "Sum", "ReduceSum", "LayerNormalization"}) {
    const LoopCase test{"", op, {}, 0, -1, ""};
    Operands operands{{Tensor(DType::kF32, {3, 0})}, {{DType::kF32, {3, 0}}}};
    if (std::string(op) == "Add" || std::string(op) == "Sum") operands.inputs.push_back(Tensor(DType::kF32, {3, 0}));
    if (std::string(op) == "LayerNormalization") operands.inputs.push_back(Tensor(DType::kF32, {0}));
    if (std::string(op) == "Where")
      operands.inputs = {Tensor(DType::kBool, {3, 0}), Tensor(DType::kF32, {3, 0}), Tensor(DType::kF32, {3, 0})};
    if (std::string(op) == "ReduceSum") operands.outputs = {{DType::kF32, {1, 1}}};
    std::string name;
    const auto results = runKernel(test, Backend::kCpu, {}, operands, 2, Place::kBeside, &name);
    ASSERT_EQ(results.size(), 1U) << op;
    for (const float x : results[0].as<float>()) EXPECT_EQ(x, 0.0F) << op;
  }
}

TEST(LoopEdges, AScatterWithoutUpdatesIsACopy) {
  Random random(1);
  const Tensor data = floats(random, {4, 3}, -1, 1);
  for (const char* op : {"ScatterND", "ScatterElements"}) {
    const Dims none = std::string(op) == "ScatterND" ? Dims{0, 1} : Dims{0, 3};
    const Operands operands{{data, Tensor(DType::kI64, none), Tensor(DType::kF32, {0, 3})}, {{DType::kF32, {4, 3}}}};
    std::string name;
    const auto results = runKernel({"", op, {}, 0, -1, ""}, Backend::kCpu, {}, operands, 2, Place::kBeside, &name);
    ASSERT_EQ(results.size(), 1U) << op;
    EXPECT_EQ(std::memcmp(results[0].data(), data.data(), data.bytes()), 0) << op;
  }
}

TEST(LoopEdges, AnIndexOutOfRangeIsNamed) {
  struct Mistake {
    const char* op;
    std::vector<Tensor> inputs;
    std::pair<DType, Dims> output;
    const char* message;
  };
  const std::int64_t nine[] = {9};
  const Tensor rows(DType::kF32, {4, 3}), index = Tensor::ints(nine), one(DType::kF32, {1, 3});
  const Tensor tuple = index.reshaped({1, 1}), plane(DType::kI64, {1, 3});
  plane.as<std::int64_t>()[1] = -5;
  const Mistake mistakes[] = {{"Gather", {rows, index}, {DType::kF32, {1, 3}}, "index 9"},
                              {"GatherElements", {rows, plane}, {DType::kF32, {1, 3}}, "index -5"},
                              {"GatherND", {rows, tuple}, {DType::kF32, {1, 3}}, "index 9"},
                              {"ScatterElements", {rows, plane, one}, {DType::kF32, {4, 3}}, "index -5"},
                              {"ScatterND", {rows, tuple, one}, {DType::kF32, {4, 3}}, "index 9"},
                              {"SoftmaxCrossEntropyLoss", {one, index}, {DType::kF32, {}}, "label 9"}};
  for (const Mistake& mistake : mistakes) {
    KernelSpec spec;
    spec.op = mistake.op;
    std::vector<TensorView> in;
    for (const Tensor& x : mistake.inputs) {
      spec.inputs.push_back({x.dtype(), x.dims(), false, {}});
      in.push_back(x.view());
    }
    spec.outputs = {{mistake.output.first, mistake.output.second, false, {}}};
    Tensor y(mistake.output.first, mistake.output.second);
    std::vector<TensorView> out{y.view()};
    const auto kernel = makeKernel(Backend::kCpu, spec);
    ASSERT_TRUE(kernel.has_value());
    EXPECT_NE((*kernel)->implementation(), "reference");
    std::vector<std::byte> memory((*kernel)->workspaceBytes() + 64);
    const Status status = (*kernel)->run({in, out, memory, {}, {}});
    ASSERT_FALSE(status.has_value());
    EXPECT_NE(status.error().message.find(mistake.message), std::string::npos) << status.error().message;
  }
}

}  // namespace
}  // namespace stepscope
