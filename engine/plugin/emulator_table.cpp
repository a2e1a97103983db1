// What device functions ask the emulator. A fault leaves by an exception, through the plugin's frames, to the fibre.
#include <algorithm>

#include "engine/plugin/device_kernel.h"
#include "kernels/emulated/launch.h"

namespace stepscope {
namespace {

using emulated::Access;
using emulated::Launch;
using emulated::Memory;
using emulated::runningLaunch;

const Memory& checked(const ssp_emulated_memory* handle, std::int64_t i, std::uint32_t count) {
  if (handle == nullptr) emulated::absentOperand();
  const Memory& memory = *reinterpret_cast<const Memory*>(handle);
  if (i < 0 || i > memory.count - static_cast<std::int64_t>(count)) emulated::outOfBounds(memory, i, count);
  const std::size_t bytes = std::min<std::size_t>(16, count * memory.size);
  if (count > 1 &&
      (reinterpret_cast<std::uintptr_t>(memory.address) + static_cast<std::size_t>(i) * memory.size) % bytes != 0)
    emulated::misaligned(memory, i, bytes);
  return memory;
}
std::byte* placeOf(const Memory& memory, std::int64_t i) { return memory.open + static_cast<std::size_t>(i) * memory.size; }

const void* readElements(const ssp_emulated_memory* handle, std::int64_t i, std::uint32_t count) {
  const Memory& memory = checked(handle, i, count);
  for (std::uint32_t k = 0; memory.cells != nullptr && k < count; ++k) emulated::noteRead(memory, i + k);
  return placeOf(memory, i);
}
const Memory& writable(const ssp_emulated_memory* handle, std::int64_t i, std::uint32_t count) {
  const Memory& memory = checked(handle, i, count);
  if (memory.access == Access::kRead) emulated::readOnly(memory, i);
  return memory;
}
void* writeElements(const ssp_emulated_memory* handle, std::int64_t i, std::uint32_t count) {
  const Memory& memory = writable(handle, i, count);
  for (std::uint32_t k = 0; memory.cells != nullptr && k < count; ++k) emulated::noteWrite(memory, i + k);
  return placeOf(memory, i);
}
void* addTo(const ssp_emulated_memory* handle, std::int64_t i) {
  const Memory& memory = writable(handle, i, 1);
  if (memory.cells != nullptr) emulated::noteWrite(memory, i, true);
  return placeOf(memory, i);
}

}  // namespace

const ssp_emulator& emulatorTable() {
  static const ssp_emulator table = [] {
    ssp_emulator made{};
    made.size = sizeof(ssp_emulator);
    made.thread_index = [] { return runningLaunch->lane->thread; };
    made.block_size = [] { return runningLaunch->threads(); };
    made.block_index = [] { return runningLaunch->block; };
    made.grid_size = [] { return runningLaunch->blocks(); };
    made.read = readElements;
    made.write = writeElements;
    made.add_to = addTo;
    made.barrier = [](std::int32_t vote, std::int32_t line) -> std::int32_t {
      return runningLaunch->barrierOr(vote != 0, line) ? 1 : 0;
    };
    made.warp_barrier = [](std::uint32_t mask, std::int32_t line) {
      runningLaunch->inWarp(Launch::kSync, mask, 0, 0, line);
    };
    made.shuffle = [](std::uint32_t mask, std::uint64_t value, std::int32_t source, std::int32_t line) {
      return runningLaunch->inWarp(Launch::kShuffle, mask, value, source, line);
    };
    made.ballot = [](std::uint32_t mask, std::int32_t vote, std::int32_t line) {
      return static_cast<std::uint32_t>(runningLaunch->inWarp(Launch::kBallot, mask, vote != 0 ? 1 : 0, 0, line));
    };
    made.shared = [](const void* key, std::int64_t count, std::uint32_t bytes) {
      return reinterpret_cast<const ssp_emulated_memory*>(runningLaunch->sharedArray(key, count, bytes));
    };
    return made;
  }();
  return table;
}

}  // namespace stepscope
