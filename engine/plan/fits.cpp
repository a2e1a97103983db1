#include "engine/plan/fits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "kernels/device.h"

namespace stepscope {
namespace {

// `room`: of what is in the memory of the device alone.
std::string peakOwners(const ExecutionPlan& plan, bool room = false) {
  std::map<std::string_view, std::int64_t> owners;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.shares < 0 && (!room || buffer.space == Space::kDevice) &&
        (buffer.home != Home::kArena || (buffer.first <= plan.peakInstruction && plan.peakInstruction <= buffer.last)))
      owners[bufferClassName(buffer.bufferClass)] += buffer.bytes;
  std::string text;
  for (const auto& [name, bytes] : owners) text += fmt::format("{}{} {} bytes", text.empty() ? "" : ", ", name, bytes);
  return text;
}

// State and constants in the memory of the device.
std::int64_t besidesArena(const ExecutionPlan& plan) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.shares < 0 && buffer.home != Home::kArena && buffer.space == Space::kDevice) bytes += buffer.bytes;
  return bytes;
}

// What a step writes over of the state there is kept on a device whose errors come later, so that the step can be taken
// back.
std::int64_t keptState(const ExecutionPlan& plan, const Device& device) {
  if (device.facts().immediate) return 0;
  std::set<int> written;
  for (const Instruction& instruction : plan.instructions)
    for (const int out : instruction.outputs)
      if (out >= 0 && !instruction.view) written.insert(plan.root(out));
  std::int64_t bytes = 0;
  for (const int root : written)
    if (const Buffer& state = plan.buffers[static_cast<std::size_t>(root)];
        state.home == Home::kState && state.space == Space::kDevice)
      bytes += state.bytes;
  return bytes;
}

// The smallest memory.max of this process's control group and those around it; 0 where none is set.
std::int64_t groupLimit() {
  std::ifstream own("/proc/self/cgroup");
  std::int64_t smallest = 0;
  for (std::string line; std::getline(own, line);) {
    if (!line.starts_with("0::/")) continue;
    const std::filesystem::path root = "/sys/fs/cgroup";
    for (std::filesystem::path group = root / line.substr(4);; group = group.parent_path()) {
      std::ifstream file(group / "memory.max");
      std::int64_t bytes = 0;
      if (file >> bytes && bytes > 0) smallest = smallest == 0 ? bytes : std::min(smallest, bytes);
      if (group == root || !group.has_relative_path()) break;
    }
  }
  return smallest;
}

}  // namespace

std::int64_t machineMemoryBytes() {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const std::int64_t machine = pages > 0 && page > 0 ? pages * page : 0, group = groupLimit();
  return group > 0 && (machine == 0 || group < machine) ? group : machine;
}

std::int64_t deviceMemoryBytes(const std::string& device) {
  const auto found = findDevice(device);
  const std::int64_t room = found ? (*found)->roomBytes() : 0;
  return room > 0 ? room : machineMemoryBytes();
}

Status checkFits(const ExecutionPlan& plan, std::int64_t limit, std::int64_t besides) {
  const std::int64_t arena = std::max(plan.arenaBytes, plan.lowerBoundBytes);
  const std::int64_t need = plan.persistentBytes + plan.hostArenaBytes + (limit > 0 || !plan.arenaRoomBytes ? arena : 0);
  const std::int64_t more = limit > 0 ? 0 : besides, most = limit > 0 ? limit : machineMemoryBytes();
  if (most == 0 || need + more <= most) return {};
  return fail(
      ErrorCode::kOutOfMemory,
      fmt::format("plan '{}': needs {}{} bytes{}; expected at most {} bytes, {}; at the peak (instruction {}): {}; hint: a "
                  "smaller batch, or option recompute.budget",
                  plan.signature, plan.arenaBytes < plan.lowerBoundBytes ? "at least " : "", need,
                  more > 0 ? fmt::format(" and binding takes {} bytes more", more) : "", most,
                  limit > 0 ? "the option memory.limit" : "the memory of this machine", plan.peakInstruction,
                  peakOwners(plan)));
}

std::optional<std::int64_t> arenaRoom(const ExecutionPlan& plan, const Device& device) {
  const std::int64_t room = device.roomBytes();
  return room > 0 ? std::optional(room - besidesArena(plan) - keptState(plan, device)) : std::nullopt;
}

Status checkRoom(const ExecutionPlan& plan, const Device& device) {
  const std::int64_t room = device.roomBytes(), kept = keptState(plan, device);
  const std::int64_t need = besidesArena(plan) + kept + std::max(plan.arenaBytes, plan.lowerBoundBytes);
  if (room == 0 || need <= room) return {};
  return fail(
      ErrorCode::kOutOfMemory,
      fmt::format("plan '{}': needs {} bytes of device '{}', {} bytes of them to keep what the update writes over until the "
                  "step has ended; expected at most {} bytes, the memory that it has free; at the peak (instruction "
                  "{}): {}; hint: a smaller batch, or option recompute.budget",
                  plan.signature, need, device.facts().name, kept, room, plan.peakInstruction, peakOwners(plan, true)));
}

}  // namespace stepscope
