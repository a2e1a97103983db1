// How many threads work gets, and that fewer threads compute the same.
#include "kernels/threads.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <vector>

#include "kernels/cpu/loops/support.h"

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
