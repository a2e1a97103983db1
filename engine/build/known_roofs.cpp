#include "engine/build/known_roofs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#include "engine/build/build_cache.h"
#include "kernels/cuda_device/device_peak.h"

namespace stepscope {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::array<std::string_view, 3> kLevels{"core caches", "shared cache", "memory"};

std::string processor() {
  std::ifstream cpu("/proc/cpuinfo");
  std::string line, name = "unknown processor";
  while (std::getline(cpu, line))
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      name = line.substr(line.find(": ") + 2);
      break;
    }
  return fmt::format("{}, {} cores, caches of {} and {} bytes", name, std::thread::hardware_concurrency(),
                     sysconf(_SC_LEVEL2_CACHE_SIZE), sysconf(_SC_LEVEL3_CACHE_SIZE));
}

CacheQuestion question(int threads) {
  return {"roofs", {{"machine", processor()}, {"threads", std::to_string(threads)}, {"version", engineBuild()}}, kDay};
}

}  // namespace

std::string roofsText(const cpu::MachinePeak& peak) {
  std::string text = fmt::format("{} {} {} {} {}\n", peak.threads, peak.operationsPerSecond, peak.bfloat16PerSecond,
                                 peak.float16PerSecond, peak.ns);
  for (const cpu::MemoryLevel& level : peak.levels)
    text += fmt::format("{} {} {} {}\n", std::ranges::find(kLevels, level.name) - kLevels.begin(), level.capacity,
                        level.workingSet, level.bytesPerSecond);
  return text;
}

std::optional<cpu::MachinePeak> roofsFrom(const std::string& text) {
  cpu::MachinePeak peak;
  std::istringstream in(text);
  const auto isSpeed = [](double x) { return std::isfinite(x) && x >= 0; };
  if (!(in >> peak.threads >> peak.operationsPerSecond >> peak.bfloat16PerSecond >> peak.float16PerSecond >> peak.ns))
    return std::nullopt;
  for (const double speed : {peak.operationsPerSecond, peak.bfloat16PerSecond, peak.float16PerSecond})
    if (!isSpeed(speed)) return std::nullopt;
  if (peak.threads < 1) return std::nullopt;
  for (std::size_t name = 0; in >> name;) {
    cpu::MemoryLevel level;
    if (name >= kLevels.size() || !(in >> level.capacity >> level.workingSet >> level.bytesPerSecond)) return std::nullopt;
    if (level.capacity < 0 || level.workingSet < 0 || !isSpeed(level.bytesPerSecond)) return std::nullopt;
    level.name = kLevels[name];
    peak.levels.push_back(level);
  }
  if (!in.eof() || peak.levels.empty() || peak.levels.back().name != kLevels.back()) return std::nullopt;
  return peak;
}

const cpu::MachinePeak& roofsOf(const TrainOptions& options, int threads, BuildLog* log) {
  threads = std::max(1, threads);
  // Another device is measured through itself, by every process: that is quick, and its driver may have changed.
  if (const auto device = findDevice(options.device); device && (*device)->facts().kernels != "cpu")
    return peakOf(**device, threads);
  if (const cpu::MachinePeak* known = cpu::knownMachinePeak(threads)) return *known;
  std::optional<BuildLog::Scope> span;
  if (log) span.emplace(*log, "cache roofs");
  const BuildCache cache(options.cacheDir);
  CacheFound found = cache.find(question(threads));
  std::optional<cpu::MachinePeak> kept;
  if (found.answer) kept = roofsFrom(*found.answer);
  if (kept && kept->threads != threads) kept.reset();
  if (found.answer && !kept) found.reason = "miss: there is an entry, and it is damaged: it has no roofs";
  if (kept) cpu::adoptMachinePeak(std::move(*kept));
  const cpu::MachinePeak& peak = cpu::machinePeak(threads);
  Status written;
  if (!found.answer) written = cache.keep(question(threads), roofsText(peak));
  if (span) {
    span->pass().set_name("cache roofs");
    span->pass().add_notes(found.reason);
    span->count(found.answer ? 1 : 0);
  }
  if (log && !written) log->warn("cache", written.error().message);
  return peak;
}

const cpu::MachinePeak& measureRoofs(const TrainOptions& options, int threads) {
  const cpu::MachinePeak& peak = cpu::machinePeak(std::max(1, threads));
  // What cannot be kept is measured again by the next one.
  (void)BuildCache(options.cacheDir).keep(question(peak.threads), roofsText(peak));
  return peak;
}

}  // namespace stepscope
