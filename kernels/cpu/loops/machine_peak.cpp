#include "kernels/cpu/loops/machine_peak.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

#include "kernels/available_memory.h"
#include "kernels/cache_sizes.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

template <typename Work>
double bestSeconds(double budget, Work&& work) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const auto all = Clock::now();
  double best = 1e9;
  for (int round = 0; round < 3 || since(all) < budget; ++round) {
    const auto begin = Clock::now();
    work();
    best = std::min(best, since(begin));
  }
  return std::max(best, 1e-9);
}

SS_CLONES void triad(const float* a, const float* b, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] + 3.0F * b[i];
}
SS_CLONES void scale(const float* a, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = 3.0F * a[i];
}
SS_CLONES float total(const float* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

}  // namespace

double trafficPeak(std::int64_t bytes, Traffic traffic, int threads, double seconds) {
  const bool sums = traffic == Traffic::kSum, updates = traffic == Traffic::kUpdate;
  const std::int64_t moved = sums ? 4 : traffic == Traffic::kCopy ? 8 : 12, held = updates ? 8 : moved;  // bytes per element
  const std::int64_t n = std::max<std::int64_t>(bytes / held / 64 * 64, 64);
  const Tensor x(DType::kF32, {n}), z(DType::kF32, {traffic == Traffic::kTriad ? n : 64}), y(DType::kF32, {sums ? 64 : n});
  // Memory that was never written is one page of zeros for all of it, which a cache holds.
  for (const Tensor* each : {&x, &z, &y}) std::ranges::fill(each->as<float>(), 1.0F);
  const float *a = x.as<float>().data(), *b = z.as<float>().data();
  float* out = y.as<float>().data();
  const double budget = sums || updates ? seconds : seconds / 2;  // writing is tried in two ways
  const auto measure = [&](auto&& part) { return bestSeconds(budget, [&] { parallelElements(n, threads, part); }); };
  double best = 0;
  if (sums) {
    std::atomic<float> sink = 0;  // the sums count as used
    best = measure(
        [&](std::int64_t begin, std::int64_t end) { sink.store(total(a + begin, end - begin), std::memory_order_relaxed); });
  } else if (updates) {
    best = measure([&](std::int64_t begin, std::int64_t end) { triad(a + begin, out + begin, out + begin, end - begin); });
  } else {
    const auto part = [&](std::int64_t from, float* to, std::int64_t count) {
      traffic == Traffic::kCopy ? scale(a + from, to, count) : triad(a + from, b + from, to, count);
    };
    best = measure([&](std::int64_t begin, std::int64_t end) { part(begin, out + begin, end - begin); });
    best = std::min(best, measure([&](std::int64_t begin, std::int64_t end) {
                      std::array<float, 1024> block;
                      for (std::int64_t i = begin; i < end; i += 1024) {
                        const std::int64_t count = std::min<std::int64_t>(1024, end - i);
                        part(i, block.data(), count);
                        streamCopy(out + i, block.data(), count);
                      }
                      finishStreams();
                    }));
  }
  return static_cast<double>(n * moved) / best;
}

double operationsPeak(int threads, double seconds, DType dtype) {
  constexpr std::int64_t kSide = 1024;
  const Tensor a(dtype, {kSide, kSide}), b(dtype, {kSide, kSide}), y(dtype, {kSide, kSide});
  KernelSpec spec;
  spec.op = "MatMul";
  spec.threads = threads;
  spec.inputs = {{dtype, a.dims(), false, {}}, {dtype, b.dims(), false, {}}};
  spec.outputs = {{dtype, y.dims(), false, {}}};
  const auto kernel = makeKernel(Backend::kCpu, spec);
  if (!kernel || (*kernel)->implementation() == "reference" || (*kernel)->implementation().ends_with("in float32")) return 0;
  const Tensor workspace(DType::kU8, {static_cast<std::int64_t>((*kernel)->workspaceBytes()) + 64});
  const std::array<TensorView, 2> inputs{a.view(), b.view()};
  std::array<TensorView, 1> outputs{y.view()};
  bool failed = false;
  const KernelCall call{inputs, outputs, {static_cast<std::byte*>(workspace.data()), (*kernel)->workspaceBytes()}, {}, {}};
  // oneDNN takes as many threads as OpenMP would.
  const ThreadScope scope(threads);
  const double best = bestSeconds(seconds, [&] { failed = !(*kernel)->run(call) || failed; });
  return failed ? 0 : 2.0 * kSide * kSide * kSide / best;
}

MachinePeak measureMachinePeak(int threads) {
  constexpr std::int64_t kMiB = 1 << 20;
  const auto begin = std::chrono::steady_clock::now();
  MachinePeak peak;
  peak.threads = threads;
  peak.operationsPerSecond = operationsPeak(threads, 0.05);
  peak.bfloat16PerSecond = operationsPeak(threads, 0.05, DType::kBF16);
  const CacheSizes caches = cacheSizes();
  const std::int64_t core = caches.core * threads, shared = caches.shared * std::min(threads, caches.sharedCaches);
  // Where half of a working set lies in a cache, memory would seem faster by half.
  const std::int64_t beyond = std::clamp(8 * std::max(shared, core), 64 * kMiB,
                                         std::max(64 * kMiB, std::min(512 * kMiB, availableMemoryBytes() / 4)));
  peak.levels.push_back({"core caches", core, core / 2, 0});
  if (shared > core) peak.levels.push_back({"shared cache", shared, std::min(shared / 2, beyond / 2), 0});
  peak.levels.push_back({"memory", 0, beyond, 0});
  double slower = 0;
  for (auto level = peak.levels.rbegin(); level != peak.levels.rend(); ++level) {
    for (const Traffic traffic : {Traffic::kTriad, Traffic::kUpdate})
      slower = std::max(slower, trafficPeak(level->workingSet, traffic, threads, 0.02));
    level->bytesPerSecond = slower;
  }
  // Once more, some time later: a neighbour on the machine may have disturbed the first try.
  peak.operationsPerSecond = std::max(peak.operationsPerSecond, operationsPeak(threads, 0.05));
  if (peak.bfloat16PerSecond > 0)
    peak.bfloat16PerSecond = std::max(peak.bfloat16PerSecond, operationsPeak(threads, 0.05, DType::kBF16));
  peak.ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
  return peak;
}

namespace {

struct KnownPeaks {
  std::mutex mutex;
  std::map<int, MachinePeak> peaks;  // by threads; what is here stays as it is
};

KnownPeaks& knownPeaks() {
  static KnownPeaks known;
  return known;
}

}  // namespace

const MachinePeak& machinePeak(int threads) {
  KnownPeaks& known = knownPeaks();
  const std::lock_guard lock(known.mutex);
  const auto [it, fresh] = known.peaks.try_emplace(threads);
  if (fresh) it->second = measureMachinePeak(threads);
  return it->second;
}

const MachinePeak* knownMachinePeak(int threads) {
  KnownPeaks& known = knownPeaks();
  const std::lock_guard lock(known.mutex);
  const auto it = known.peaks.find(threads);
  return it == known.peaks.end() ? nullptr : &it->second;
}

void adoptMachinePeak(MachinePeak peak) {
  KnownPeaks& known = knownPeaks();
  const std::lock_guard lock(known.mutex);
  const int threads = peak.threads;
  known.peaks.try_emplace(threads, std::move(peak));
}

}  // namespace stepscope::cpu
