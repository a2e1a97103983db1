// Hot kernels (op_cases.h) of the CPU backend at the sizes of BERT-base and GPT-2 (batch 2, sequence 128) and ResNet-50
// (batch 4), beside what this machine can do, measured in the same run.
//
// Counters   GBps        bytes of operands and results per second
//            Gops        operations per second where arithmetic counts: additions, products, their fusions, comparisons,
//            blends,
//                        shifts and conversions of one element, as the AVX-512 inner loop has them
//            peak_GBps   a triad (a sum where a kernel hardly writes, a copy where it writes half) over as many bytes, on as
//            many threads share       the time that memory or arithmetic alone would take, divided by the time it took; the
//            peak of arithmetic is
//                        that of the fused products in a matrix product of 1024 x 1024 x 1024
// The triad writes past the caches where that is faster; it has the same fork and join, so small kernels are compared
// fairly.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <random>

#include "kernels/cpu/loops/machine_peak.h"
#include "kernels/cpu/loops/support.h"
#include "tests/bench/op_cases.h"

namespace stepscope::op_bench {
namespace {

using cpu::Traffic;

// Bytes per second over a working set of `bytes` that is read, read by two thirds, or by a half.
double peakBytes(std::int64_t bytes, Traffic traffic, int threads) {
  static std::map<std::pair<std::int64_t, Traffic>, double> known;
  auto [it, fresh] = known.try_emplace({bytes, traffic}, 0.0);
  if (fresh) it->second = cpu::trafficPeak(bytes, traffic, threads, 0.04);
  return it->second;
}

// A kernel with memory for one run.
class Runner {
 public:
  Runner(const Case& test, int threads) {
    for (const Source& make : test.inputs) inputs_.push_back(make());
    KernelSpec spec;
    spec.domain = test.domain;
    spec.op = test.op;
    spec.attrs = test.attrs;
    spec.threads = threads;
    const auto layoutOf = [&](const Dims& dims) { return dims.size() == 4 ? test.layout : Layout::kPlain; };
    for (const Tensor& x : inputs_) {
      spec.inputs.push_back(
          x.valid() ? OperandSpec{x.dtype(), x.dims(), false, x.dtype() == DType::kI64 ? x : Tensor(), layoutOf(x.dims())}
                    : OperandSpec{});
      in_.push_back(x.view());
    }
    for (std::size_t i = 0; i < test.outputs.size(); ++i) {
      const auto& [dtype, dims] = test.outputs[i];
      spec.outputs.push_back({dtype, dims, false, {}, layoutOf(dims)});
      outputs_.push_back(i == 0 && test.inPlace >= 0 ? inputs_[static_cast<std::size_t>(test.inPlace)].reshaped(dims)
                                                     : Tensor(dtype, dims));
      out_.push_back(outputs_.back().view());
    }
    auto kernel = makeKernel(Backend::kCpu, spec);
    if (!kernel) {
      error_ = kernel.error().message;
      return;
    }
    kernel_ = std::move(*kernel);
    workspace_ = Tensor(DType::kU8, {static_cast<std::int64_t>(kernel_->workspaceBytes()) + 64});
  }
  std::int64_t inputBytes(std::size_t i) const { return static_cast<std::int64_t>(inputs_[i].bytes()); }
  const std::string& error() const { return error_; }
  std::string implementation() const { return kernel_->implementation(); }
  void run() {
    const Status status =
        kernel_->run({in_, out_, {static_cast<std::byte*>(workspace_.data()), kernel_->workspaceBytes()}, {1, 2, 3}, {}});
    if (!status) error_ = status.error().message;
  }

 private:
  std::vector<Tensor> inputs_, outputs_;
  std::vector<TensorView> in_, out_;
  std::unique_ptr<Kernel> kernel_;
  Tensor workspace_;
  std::string error_;
};

// Fused products per second.
double peakOperations(int threads) {
  static const double peak = cpu::operationsPeak(threads, 0.1) / 2;
  return peak;
}

void measure(benchmark::State& state, const Case& test) {
  const int threads = omp_get_max_threads();
  Runner runner(test, threads);
  if (!runner.error().empty()) {
    state.SkipWithError(runner.error().c_str());
    return;
  }
  std::int64_t read = 0, written = 0;
  for (std::size_t i = 0; i < test.inputs.size(); ++i)
    if (std::find(test.unread.begin(), test.unread.end(), i) == test.unread.end()) read += runner.inputBytes(i) * test.reads;
  for (const auto& [dtype, dims] : test.outputs) written += elementCount(dims) * static_cast<std::int64_t>(dtypeSize(dtype));
  const double bytes = static_cast<double>(read + written), peak = peakBytes(read + written,
                                                                             written * 10 < read      ? Traffic::kSum
                                                                             : written * 4 > read * 3 ? Traffic::kCopy
                                                                                                      : Traffic::kTriad,
                                                                             threads);
  runner.run();
  double best = 1e9;
  for ([[maybe_unused]] auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    runner.run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  if (!runner.error().empty()) state.SkipWithError(runner.error().c_str());
  state.counters["GBps"] = bytes / best * 1e-9;
  state.counters["peak_GBps"] = peak * 1e-9;
  if (test.operations > 0) state.counters["Gops"] = test.operations / best * 1e-9;
  state.counters["share"] =
      std::max(bytes / peak, test.operations > 0 ? test.operations / peakOperations(threads) : 0) / best;
  state.SetLabel(runner.implementation());
}

}  // namespace
}  // namespace stepscope::op_bench

int main(int argc, char** argv) {
  const auto cases = stepscope::op_bench::cases();
  for (const auto& test : cases)
    benchmark::RegisterBenchmark(test.name.c_str(),
                                 [&test](benchmark::State& state) { stepscope::op_bench::measure(state, test); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
