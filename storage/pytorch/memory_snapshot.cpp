#include "storage/pytorch/memory_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "storage/pytorch/kineto_trace.h"
#include "storage/pytorch/pickle.h"

namespace stepscope::storage {
namespace {

using Json = nlohmann::json;

std::int64_t integer(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

// Of a block: sums over millions of them have to fit.
std::int64_t sizeOf(const Json& entry) { return std::clamp<std::int64_t>(integer(entry, "size"), 0, std::int64_t{1} << 40); }

std::string text(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Allocation allocation(const Json& event) {
  Allocation out;
  out.bytes = sizeOf(event);
  const auto frames = event.find("frames");
  if (frames == event.end() || !frames->is_array()) return out;
  bool forward = false;
  for (const Json& frame : *frames) {
    if (!frame.is_object()) continue;
    std::string file = text(frame, "filename");
    file = file.substr(file.find_last_of("/\\") + 1);
    if (!file.ends_with(".py")) continue;
    out.python.emplace_back(file, static_cast<int>(integer(frame, "line")));
    const bool here = text(frame, "name") == "forward";
    if (out.where.empty() || (here && !forward)) out.where = fmt::format("{}:{}", file, out.python.back().second);
    forward = forward || here;
  }
  return out;
}

// Addresses of what is allocated at the end, with their bytes.
std::map<std::int64_t, std::int64_t> activeBlocks(const Json& segments) {
  std::map<std::int64_t, std::int64_t> out;
  for (const Json& segment : segments) {
    if (!segment.is_object()) continue;
    const auto blocks = segment.find("blocks");
    if (blocks == segment.end() || !blocks->is_array()) continue;
    std::int64_t address = integer(segment, "address");  // blocks of older versions have none of their own
    for (const Json& block : *blocks) {
      if (!block.is_object()) continue;
      const std::int64_t size = sizeOf(block);
      if (text(block, "state").starts_with("active"))
        out[block.contains("address") ? integer(block, "address") : address] = size;
      address = static_cast<std::int64_t>(static_cast<std::uint64_t>(address) + static_cast<std::uint64_t>(size));
    }
  }
  return out;
}

}  // namespace

Result<MemorySnapshot> readMemorySnapshot(const std::filesystem::path& path) {
  SS_STORE_ASSIGN(const std::string contents, readForeignFile(path, kMostTraceBytes));
  SS_STORE_ASSIGN(const Json root, parsePickle(contents, path.string()));
  const auto foreign = [&](std::string_view found) {
    return fail(ErrorCode::kForeign, fmt::format("memory snapshot '{}': {}", path.string(), found));
  };
  if (!root.is_object() || !root.contains("segments") || !root.contains("device_traces") || !root["segments"].is_array() ||
      !root["device_traces"].is_array())
    return foreign(
        "no dict with lists 'segments' and 'device_traces'; expected what torch.cuda.memory._dump_snapshot writes");
  const Json* history = nullptr;
  for (const Json& device : root["device_traces"])
    if (device.is_array() && !device.empty() && (!history || device.size() > history->size())) history = &device;
  if (!history)
    return foreign("no history; expected torch.cuda.memory._record_memory_history() to be called before the step");

  MemorySnapshot out;
  // What is freed or still there without having been allocated in the history was there before it.
  std::map<std::int64_t, std::int64_t> before, live = activeBlocks(root["segments"]);
  std::map<std::int64_t, bool> allocated;
  for (const Json& event : *history) {
    if (!event.is_object()) return foreign("an entry of its history is no dict");
    const std::string action = text(event, "action");
    const std::int64_t address = integer(event, "addr");
    if (action == "alloc")
      allocated[address] = true;
    else if (action == "free_completed" && !allocated.contains(address))
      before[address] = sizeOf(event);
  }
  for (const auto& [address, size] : live)
    if (!allocated.contains(address)) before[address] = size;
  std::int64_t old = 0;
  for (const auto& [address, size] : before) old += size;

  std::map<std::int64_t, std::size_t> open;  // address -> number of the event that allocated it
  std::int64_t sum = old;
  out.peakBytes = old;
  out.beforeBytes = old;
  std::size_t peakAt = 0, at = 0;
  for (const Json& event : *history) {
    const std::string action = text(event, "action");
    const std::int64_t address = integer(event, "addr");
    ++at;
    if (action == "alloc") {
      sum += sizeOf(event);
      if (sum > out.peakBytes) out.peakBytes = sum, peakAt = at, out.beforeBytes = old;
    } else if (action == "free_completed") {
      sum -= sizeOf(event);
      if (before.erase(address) > 0) old -= sizeOf(event);
    }
  }
  at = 0;
  for (const Json& event : *history) {
    if (at++ == peakAt) break;
    const std::string action = text(event, "action");
    if (action == "alloc")
      open[integer(event, "addr")] = at;
    else if (action == "free_completed")
      open.erase(integer(event, "addr"));
  }
  std::map<std::size_t, bool> kept;
  for (const auto& [address, event] : open) kept[event] = true;
  for (const auto& [event, yes] : kept) out.live.push_back(allocation((*history)[event - 1]));
  out.events = std::ssize(*history);
  return out;
}

}  // namespace stepscope::storage
