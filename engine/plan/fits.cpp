#include "engine/plan/fits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "kernels/device.h"

namespace stepscope {
namespace {

std::string peakOwners(const ExecutionPlan& plan) {
  std::map<std::string_view, std::int64_t> owners;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.shares < 0 &&
        (buffer.home != Home::kArena || (buffer.first <= plan.peakInstruction && plan.peakInstruction <= buffer.last)))
      owners[bufferClassName(buffer.bufferClass)] += buffer.bytes;
  std::string text;
  for (const auto& [name, bytes] : owners) text += fmt::format("{}{} {} bytes", text.empty() ? "" : ", ", name, bytes);
  return text;
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
  const bool own = found && (*found)->facts().space == Space::kDevice && (*found)->facts().memoryBytes > 0;
  return own ? (*found)->facts().memoryBytes : machineMemoryBytes();
}

Status checkFits(const ExecutionPlan& plan, std::int64_t limit, std::int64_t besides) {
  const std::int64_t need = plan.persistentBytes + plan.hostArenaBytes + std::max(plan.arenaBytes, plan.lowerBoundBytes);
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

}  // namespace stepscope
