#include <algorithm>

#include "kernels/cpu/channels/channels.h"
#include "kernels/cpu/channels/lanes.h"
#include "kernels/threads.h"

namespace stepscope::cpu {
namespace {

SS_LANE_CLONES void gate(const float* dy, const float* y, float* dx, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

class ReluGradKernel final : public Kernel {
 public:
  explicit ReluGradKernel(int threads) : threads_(threads) {}
  Status run(const KernelCall& call) override {
    const auto *dy = static_cast<const float*>(call.inputs[0].data), *y = static_cast<const float*>(call.inputs[1].data);
    auto* dx = static_cast<float*>(call.outputs[0].data);
    constexpr std::int64_t kPart = 1 << 15;
    const std::int64_t n = call.outputs[0].elements(), parts = (n + kPart - 1) / kPart;
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (std::int64_t p = 0; p < parts; ++p)
      gate(dy + p * kPart, y + p * kPart, dx + p * kPart, std::min(kPart, n - p * kPart));
    return {};
  }
  std::string implementation() const override { return "vector loop"; }
  Determinism determinism() const override { return Determinism::fixed(); }

 private:
  int threads_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeReluGrad(const KernelSpec& spec) {
  SS_TRY(takesChannels(spec, {0, 1}, {0}, {}));
  return std::make_unique<ReluGradKernel>(threadsForElements(elementCount(spec.outputs[0].dims), spec.threads));
}

}  // namespace stepscope::cpu
