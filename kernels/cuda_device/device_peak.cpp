#include "kernels/cuda_device/device_peak.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/kernel_registry.h"

namespace stepscope {
namespace {

constexpr double kLongEnough = 2e-3;  // seconds
constexpr std::int64_t kLeastSide = 32, kMostSide = 4096, kLeastElements = 1 << 12, kMostElements = 1 << 26;

// Seconds of one call of z = op(x, y), all of them of these extents; nothing where that cannot be done.
std::optional<double> secondsOf(Device& device, const char* op, DType dtype, const Dims& dims) {
  using Clock = std::chrono::steady_clock;
  const OperandSpec operand{dtype, dims, false, {}, Layout::kPlain, device.facts().space};
  const KernelSpec spec{"", op, {}, {operand, operand}, {operand}};
  if (!device.takes(spec)) return std::nullopt;
  const auto kernel = builtInKernels().make(device.facts().kernels, spec);
  if (!kernel) return std::nullopt;
  const auto x = makeTensor(device, dtype, dims), y = makeTensor(device, dtype, dims), z = makeTensor(device, dtype, dims);
  const auto room = makeTensor(device, DType::kU8, {static_cast<std::int64_t>((*kernel)->workspaceBytes())});
  if (!x || !y || !z || !room) return std::nullopt;
  const std::vector<TensorView> in{x->view(), y->view()};
  std::vector<TensorView> out{z->view()};
  const KernelCall call{in, out, {static_cast<std::byte*>(room->data()), room->bytes()}, {}, 0, {}};
  const auto round = [&](int calls) -> std::optional<double> {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i)
      if (!device.launch(**kernel, call)) return std::nullopt;
    if (!device.synchronise()) return std::nullopt;
    return std::chrono::duration<double>(Clock::now() - begin).count() / calls;
  };
  auto best = round(1);  // loads what is loaded once
  const int calls = best && *best > kLongEnough ? 1 : 8;
  for (int i = 0; best && i < 3; ++i) {
    const auto next = round(calls);
    best = next ? std::optional(std::min(*best, *next)) : std::nullopt;
  }
  return best;
}

double operationsOf(Device& device, DType dtype) {
  double most = 0;
  for (std::int64_t side = kLeastSide; side <= kMostSide; side *= 2) {
    const auto seconds = secondsOf(device, "MatMul", dtype, {side, side});
    if (!seconds) break;
    const auto n = static_cast<double>(side);
    most = std::max(most, 2 * n * n * n / *seconds);
    if (*seconds >= kLongEnough) break;
  }
  return most;
}

cpu::MachinePeak measured(Device& device) {
  const auto begin = std::chrono::steady_clock::now();
  const DeviceFacts& facts = device.facts();
  cpu::MachinePeak peak;
  peak.operationsPerSecond = operationsOf(device, DType::kF32);
  if (peak.operationsPerSecond == 0) peak.operationsPerSecond = facts.flopsPerSecond;
  peak.float16PerSecond = operationsOf(device, DType::kF16);
  peak.bfloat16PerSecond = operationsOf(device, DType::kBF16);
  cpu::MemoryLevel memory{"memory", 0, 0, 0};
  const std::int64_t most = facts.memoryBytes > 0 ? std::min(kMostElements, facts.memoryBytes / 8 / 12) : kMostElements;
  for (std::int64_t n = kLeastElements; n <= most; n *= 2) {
    const auto seconds = secondsOf(device, "Add", DType::kF32, {n});
    if (!seconds) break;
    memory.workingSet = 12 * n;
    memory.bytesPerSecond = static_cast<double>(memory.workingSet) / *seconds;
    if (*seconds >= kLongEnough) break;
  }
  if (memory.workingSet == 0) memory.bytesPerSecond = facts.bytesPerSecond;
  peak.levels.push_back(memory);
  peak.ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
  return peak;
}

}  // namespace

const cpu::MachinePeak& peakOf(Device& device, int threads) {
  if (device.facts().kernels == "cpu") return cpu::machinePeak(threads);
  static std::mutex mutex;
  static std::map<std::string, cpu::MachinePeak> known;
  const std::lock_guard lock(mutex);
  const auto [it, fresh] = known.try_emplace(device.facts().name);
  if (fresh) it->second = measured(device);
  return it->second;
}

}  // namespace stepscope
