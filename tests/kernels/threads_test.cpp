// How many threads work gets, and that fewer threads compute the same.
#include "kernels/threads.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <vector>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/subnormals.h"
#include "tests/kernels/trial.h"

namespace stepscope {
namespace {

TEST(Threads, AScopePutsBackWhatWasThere) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  {
    const ThreadScope outer(5);
    EXPECT_EQ(omp_get_max_threads(), 5);
    {
      const ThreadScope inner(1);
      EXPECT_EQ(omp_get_max_threads(), 1);
    }
    EXPECT_EQ(omp_get_max_threads(), 5);
  }
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(before);
}

TEST(Threads, WorkDecidesHowManyAndNeverMoreThanThereAre) {
  EXPECT_EQ(threadsForFlops(0, 8), 1);
  EXPECT_EQ(threadsForFlops(kFlopsPerThread * 1.9, 8), 1);
  EXPECT_EQ(threadsForFlops(kFlopsPerThread * 3.5, 8), 3);
  EXPECT_EQ(threadsForFlops(1e18, 8), 8);
  EXPECT_EQ(threadsForElements(kElementsPerThread * 2 - 1, 8), 1);
  EXPECT_EQ(threadsForElements(kElementsPerThread * 2, 8), 2);
  EXPECT_EQ(threadsForElements(std::int64_t{1} << 60, 8), 8);
  EXPECT_EQ(threadsForElements(std::int64_t{1} << 60, 1), 1);
}

// Products in all forms, and the sums that kernels cut among their threads, large enough to be cut.
std::vector<Trial> largeSums() {
  std::mt19937_64 engine(7);
  const auto attrs = [](std::initializer_list<std::pair<const char*, std::int64_t>> list) {
    Attributes made;
    for (const auto& [name, value] : list) made.set(name, value);
    return made;
  };
  Tensor labels(DType::kI64, {40'000});
  for (std::int64_t& label : labels.as<std::int64_t>()) label = static_cast<std::int64_t>(engine() % 3);
  Tensor perRow = random(engine, {1000}), inverse = random(engine, {1000});
  std::vector<Trial> trials{
      {"", "MatMul", {}, {random(engine, {300, 500}), random(engine, {500, 260})}, {{300, 260}}},
      {"", "MatMul", {}, {random(engine, {3, 200, 130}), random(engine, {3, 130, 210})}, {{3, 200, 210}}},
      {"", "MatMul", {}, {random(engine, {40, 90, 64}), random(engine, {40, 64, 90})}, {{40, 90, 90}}},
      {"",
       "Gemm",
       attrs({{"transA", 1}}),
       {random(engine, {700, 200}), random(engine, {700, 90}), random(engine, {90})},
       {{200, 90}}},
      {"", "Gemm", attrs({{"transB", 1}}), {random(engine, {64, 512}), random(engine, {400, 512})}, {{64, 400}}},
      {"",
       "Gemm",
       attrs({{"transA", 1}, {"transB", 1}}),
       {random(engine, {300, 128}), random(engine, {150, 300})},
       {{128, 150}}},
      {"", "SoftmaxCrossEntropyLoss", {}, {random(engine, {40'000, 3}), labels}, {{}}},
      {"stepscope",
       "LayerNormalizationGrad",
       {},
       {random(engine, {1000, 96}), random(engine, {1000, 96}), random(engine, {96}), perRow, inverse},
       {{1000, 96}, {96}, {96}},
       {DType::kF32, DType::kF32, DType::kF32}},
  };
  // Images whose number no number of threads divides; a window, a stride, and one pixel with its images apart and summed.
  const Dims x{5, 48, 20, 20}, y{5, 64, 20, 20}, w{64, 48, 3, 3}, half{5, 64, 10, 10}, point{64, 48, 1, 1};
  Attributes window = attrs({}), strided = attrs({});
  window.set("pads", Ints{1, 1, 1, 1});
  strided.set("pads", Ints{1, 1, 1, 1});
  strided.set("strides", Ints{2, 2});
  trials.push_back({"", "Conv", window, {random(engine, x), random(engine, w), random(engine, {64})}, {y}});
  trials.push_back({"stepscope", "ConvInputGrad", window, {random(engine, y), random(engine, w), Tensor::ints(x)}, {x}});
  trials.push_back({"stepscope", "ConvWeightGrad", window, {random(engine, y), random(engine, x), Tensor::ints(w)}, {w}});
  trials.push_back(
      {"stepscope", "ConvWeightGrad", strided, {random(engine, half), random(engine, x), Tensor::ints(w)}, {w}});
  trials.push_back({"", "Conv", {}, {random(engine, x), random(engine, point)}, {y}});
  trials.push_back(
      {"stepscope", "ConvWeightGrad", {}, {random(engine, y), random(engine, x), Tensor::ints(point)}, {point}});
  return trials;
}

// The library's answers are errors like any other; none of them is thrown.
TEST(Dnnl, AnswersAreTypedErrors) {
  EXPECT_TRUE(cpu::dnnlStatus(dnnl_success, "product").has_value());
  EXPECT_EQ(cpu::dnnlStatus(dnnl_out_of_memory, "product").error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(cpu::dnnlStatus(dnnl_unimplemented, "product").error().code, ErrorCode::kUnsupported);
  const Status wrong = cpu::dnnlStatus(dnnl_invalid_arguments, "product");
  EXPECT_EQ(wrong.error().code, ErrorCode::kInternal);
  EXPECT_EQ(wrong.error().message.find("product: oneDNN answered"), 0U) << wrong.error().message;
  cpu::DnnlFailure failure;
  failure.note(dnnl_sgemm('X', 'N', 2, 2, 2, 1, nullptr, 2, nullptr, 2, 0, nullptr, 2));  // no such form
  failure.note(dnnl_success);
  EXPECT_FALSE(failure.status("product").has_value());
  // A primitive that lacks its operands.
  const auto desc = cpu::plainDesc({4, 4});
  const dnnl::reorder reorder(dnnl::reorder::primitive_desc(cpu::dnnlEngine(), desc, cpu::dnnlEngine(), desc));
  const dnnl::stream stream(cpu::dnnlEngine());
  EXPECT_FALSE(cpu::execute(reorder, stream, {}).has_value());
  EXPECT_TRUE(cpu::wait(stream).has_value());
}

TEST(Threads, SumsCutBySizeHaveTheSameBitsForAnyNumber) {
  int differed = 0;
  for (const Trial& trial : largeSums()) {
    std::vector<Outcome> plain, fixed;
    for (const int threads : {1, 2, 3, 4, 7})
      for (const bool bySize : {false, true}) {
        const FixedParts scope(bySize);
        auto outcome = execute(Backend::kCpu, trial, false, 0, threads);
        ASSERT_TRUE(outcome.has_value()) << trial.op << ": " << outcome.error().message;
        EXPECT_NE(outcome->implementation, "reference") << trial.op;
        EXPECT_EQ(outcome->determinism.order, bySize ? Determinism::Order::kFixed : Determinism::Order::kThreadCount)
            << trial.op << " " << outcome->implementation;
        (bySize ? fixed : plain).push_back(std::move(*outcome));
      }
    const auto same = [](const Outcome& a, const Outcome& b) {
      for (std::size_t o = 0; o < a.outputs.size(); ++o)
        if (std::memcmp(a.outputs[o].data(), b.outputs[o].data(), a.outputs[o].bytes()) != 0) return false;
      return true;
    };
    bool equal = true;
    for (std::size_t i = 1; i < fixed.size(); ++i) {
      EXPECT_TRUE(same(fixed[0], fixed[i])) << trial.op << " " << fixed[i].implementation;
      equal = equal && same(plain[0], plain[i]);
    }
    differed += equal ? 0 : 1;
    const auto exact = execute(Backend::kReference, trial, true);
    ASSERT_TRUE(exact.has_value());
    const auto got = fixed[0].outputs[0].as<float>();
    const auto expected = exact->outputs[0].as<double>();
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(static_cast<double>(got[i]), expected[i], 1e-3 * (1 + std::abs(expected[i]))) << trial.op << " " << i;
  }
  EXPECT_GT(differed, 0) << "none of them depends on the number of threads: the trials are too small";
}

struct Part {
  std::int64_t begin = 0, end = 0;
  int team = 0;
};

TEST(Threads, FewerThreadsThanPartsComputeTheSameParts) {
  for (const std::int64_t count : {1, 3, 64, 1000, 4096})
    for (const std::int64_t grain : {1, 64}) {
      std::vector<std::vector<Part>> all;
      for (const int team : {1, 2, 4}) {
        std::vector<Part>& parts = all.emplace_back(4);
        cpu::parallelParts(count, {4, team}, grain, [&](int part, std::int64_t begin, std::int64_t end) {
          parts[static_cast<std::size_t>(part)] = {begin, end, omp_get_num_threads()};
        });
        std::int64_t covered = 0;
        for (std::size_t p = 0; p < parts.size(); ++p) {
          covered += parts[p].end - parts[p].begin;
          EXPECT_EQ(parts[p].begin, all[0][p].begin);
          EXPECT_EQ(parts[p].end, all[0][p].end);
          EXPECT_LE(parts[p].team, team);
        }
        EXPECT_EQ(covered, count);
      }
    }
}

TEST(Threads, PartsAreThoseOfTheThreadCountAndTheTeamIsWhatTheWorkIsWorth) {
  const cpu::Parts few = cpu::partsOf(1000, 1, 8), some = cpu::partsOf(1 << 15, 1, 8), more = cpu::partsOf(1 << 17, 1, 8),
                   many = cpu::partsOf(1 << 20, 4, 8);
  EXPECT_EQ(std::pair(few.count, few.team), std::pair(1, 1));
  EXPECT_EQ(std::pair(some.count, some.team), std::pair(8, 1));
  EXPECT_EQ(std::pair(more.count, more.team), std::pair(8, 2));
  EXPECT_EQ(std::pair(many.count, many.team), std::pair(8, 8));
}

std::int64_t tasks() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

Status multiply(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  const Tensor a(DType::kF32, {rows, depth}), b(DType::kF32, {depth, columns}), y(DType::kF32, {rows, columns});
  KernelSpec spec;
  spec.op = "MatMul";
  spec.threads = 4;
  spec.inputs = {{DType::kF32, a.dims(), false, {}}, {DType::kF32, b.dims(), false, {}}};
  spec.outputs = {{DType::kF32, y.dims(), false, {}}};
  SS_ASSIGN(const auto kernel, makeKernel(Backend::kCpu, spec));
  const Tensor workspace(DType::kU8, {static_cast<std::int64_t>(kernel->workspaceBytes()) + 64});
  const std::array<TensorView, 2> inputs{a.view(), b.view()};
  std::array<TensorView, 1> outputs{y.view()};
  return kernel->run({inputs, outputs, {static_cast<std::byte*>(workspace.data()), kernel->workspaceBytes()}, {}, {}});
}

// Computed when it is called, not by the compiler.
__attribute__((noipa)) float product(float a, float b) { return a * b; }

// On every thread of the team, and only while the scope lives.
TEST(Subnormals, AreZeroOnEveryThreadOfTheScope) {
  if (!canFlushSubnormals()) GTEST_SKIP() << "this processor cannot flush subnormal numbers";
  const auto kept = [] {
    int count = 0;
#pragma omp parallel num_threads(4) reduction(+ : count)
    count += product(1e-40F, 0.5F) > 0 ? 1 : 0;
    return count;
  };
  EXPECT_EQ(kept(), 4);
  {
    const SubnormalScope scope(true, 4);
    EXPECT_EQ(kept(), 0);
    const SubnormalScope nothing(false, 4);
    EXPECT_EQ(kept(), 0);
  }
  EXPECT_EQ(kept(), 4);
}

TEST(Threads, OnlyALargeProductStartsThreads) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a thread of its own";
#endif
  if (tasks() > 1) GTEST_SKIP() << "another test of this process has started threads; ctest runs this one alone";
  ASSERT_TRUE(multiply(128, 64, 64).has_value());
  EXPECT_EQ(tasks(), 1);
  ASSERT_TRUE(multiply(512, 512, 512).has_value());
  EXPECT_EQ(tasks(), 4);
}

}  // namespace
}  // namespace stepscope
