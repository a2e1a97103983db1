#include "engine/build/known_roofs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "engine/build/build_cache.h"
#include "engine/profile/processor_meter.h"
#include "engine/profile/roofline.h"
#include "kernels/cache_sizes.h"
#include "kernels/cuda_device/device_peak.h"

namespace stepscope {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr int kMostAtOnce = 3;  // further measurements, of a machine that is busy
constexpr std::array<std::string_view, 3> kLevels{"core caches", "shared cache", "memory"};

std::string processor() {
  std::ifstream cpu("/proc/cpuinfo");
  std::string line, name = "unknown processor";
  while (std::getline(cpu, line))
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      name = line.substr(line.find(": ") + 2);
      break;
    }
  const CacheSizes caches = cacheSizes();
  return fmt::format("{}, {} cores, caches of {} and {} x {} bytes", name, std::thread::hardware_concurrency(), caches.core,
                     caches.sharedCaches, caches.shared);
}

// One process measures once at a time: its threads would wait for each other.
std::mutex& measuring() {
  static std::mutex mutex;
  return mutex;
}

cpu::MachinePeak measured(int threads) {
  const std::map<int, std::int64_t> before = queuedByThread();
  cpu::MachinePeak peak = cpu::measureMachinePeak(threads);
  std::int64_t waited = 0;
  for (const auto& [thread, queued] : queuedByThread()) {
    const auto had = before.find(thread);
    waited += queued - (had == before.end() ? 0 : had->second);
  }
  if (peak.ns > 0)
    peak.waiting = std::clamp(static_cast<double>(waited) / static_cast<double>(peak.ns) / std::max(1, threads), 0.0, 1.0);
  return peak;
}

// Of any age; absent where the entry is damaged.
std::optional<cpu::MachinePeak> keptIn(const BuildCache& cache, int threads) {
  CacheQuestion question = roofsQuestion(threads);
  question.mostSeconds = 0;
  const CacheFound found = cache.find(question);
  std::optional<cpu::MachinePeak> kept;
  if (found.answer) kept = roofsFrom(*found.answer);
  return kept && kept->threads == threads ? kept : std::nullopt;
}

}  // namespace

CacheQuestion roofsQuestion(int threads) {
  return {"roofs", {{"machine", processor()}, {"threads", std::to_string(threads)}, {"version", engineBuild()}}, kDay};
}

cpu::MachinePeak bestOf(cpu::MachinePeak peak, const cpu::MachinePeak& other) {
  peak.operationsPerSecond = std::max(peak.operationsPerSecond, other.operationsPerSecond);
  peak.bfloat16PerSecond = std::max(peak.bfloat16PerSecond, other.bfloat16PerSecond);
  peak.float16PerSecond = std::max(peak.float16PerSecond, other.float16PerSecond);
  for (cpu::MemoryLevel& level : peak.levels)
    for (const cpu::MemoryLevel& same : other.levels)
      if (same.name == level.name && same.capacity == level.capacity && same.bytesPerSecond > level.bytesPerSecond)
        level = same;
  peak.waiting = std::min(peak.waiting, other.waiting);
  peak.measurements = std::min(peak.measurements, 1 << 20) + std::min(other.measurements, 1 << 20);
  return peak;
}

std::string roofsText(const cpu::MachinePeak& peak) {
  std::string text = fmt::format("{} {} {} {} {} {} {}\n", peak.threads, peak.operationsPerSecond, peak.bfloat16PerSecond,
                                 peak.float16PerSecond, peak.ns, peak.waiting, peak.measurements);
  for (const cpu::MemoryLevel& level : peak.levels)
    text += fmt::format("{} {} {} {}\n", std::ranges::find(kLevels, level.name) - kLevels.begin(), level.capacity,
                        level.workingSet, level.bytesPerSecond);
  return text;
}

std::optional<cpu::MachinePeak> roofsFrom(const std::string& text) {
  cpu::MachinePeak peak;
  std::istringstream in(text);
  const auto isSpeed = [](double x) { return std::isfinite(x) && x >= 0; };
  if (!(in >> peak.threads >> peak.operationsPerSecond >> peak.bfloat16PerSecond >> peak.float16PerSecond >> peak.ns >>
        peak.waiting >> peak.measurements))
    return std::nullopt;
  for (const double speed : {peak.operationsPerSecond, peak.bfloat16PerSecond, peak.float16PerSecond, peak.waiting})
    if (!isSpeed(speed)) return std::nullopt;
  if (peak.threads < 1 || peak.waiting > 1 || peak.measurements < 1) return std::nullopt;
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
  const std::lock_guard lock(measuring());
  if (const cpu::MachinePeak* known = cpu::knownMachinePeak(threads)) return *known;
  std::optional<BuildLog::Scope> span;
  if (log) span.emplace(*log, "cache roofs");
  const BuildCache cache(options.cacheDir);
  CacheFound found = cache.find(roofsQuestion(threads));
  const std::optional<cpu::MachinePeak> kept = keptIn(cache, threads);
  if (found.answer && !kept) found.reason = "miss: there is an entry, and it is damaged: it has no roofs";
  const bool trusted = kept && (!disturbed(*kept) || kept->measurements >= kMostDisturbed);
  Status written;
  if (found.answer && trusted) {
    cpu::adoptMachinePeak(*kept);
  } else {
    if (found.answer && kept) found.reason += "; it was " + disturbanceText(*kept) + ", and was measured again";
    cpu::MachinePeak peak = measured(threads);
    if (kept) peak = bestOf(std::move(peak), *kept);
    written = cache.keep(roofsQuestion(threads), roofsText(peak));
    cpu::adoptMachinePeak(std::move(peak));
  }
  if (span) {
    span->pass().set_name("cache roofs");
    span->pass().add_notes(found.reason);
    span->count(found.answer && trusted ? 1 : 0);
  }
  if (log && !written) log->warn("cache", written.error().message);
  return *cpu::knownMachinePeak(threads);
}

const cpu::MachinePeak& measureRoofs(const TrainOptions& options, int threads) {
  threads = std::max(1, threads);
  const std::lock_guard lock(measuring());
  const BuildCache cache(options.cacheDir);
  const cpu::MachinePeak* const known = cpu::knownMachinePeak(threads);
  cpu::MachinePeak peak = known ? *known : measured(threads);
  for (int again = 0; !known && again < kMostAtOnce && disturbed(peak); ++again)
    peak = bestOf(std::move(peak), measured(threads));
  if (const auto kept = keptIn(cache, threads)) peak = bestOf(std::move(peak), *kept);
  // What cannot be kept is measured again by the next one.
  (void)cache.keep(roofsQuestion(threads), roofsText(peak));
  cpu::adoptMachinePeak(std::move(peak));
  return *cpu::knownMachinePeak(threads);
}

}  // namespace stepscope
