#include "kernels/cache_sizes.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

namespace stepscope {
namespace {

std::string lineOf(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// "1024K", "32M"; else 0.
std::int64_t sizeOf(const std::string& text) {
  std::size_t digits = 0;
  while (digits < text.size() && digits < 12 && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0) return 0;
  const std::int64_t number = std::stoll(text.substr(0, digits));
  const char unit = digits < text.size() ? text[digits] : ' ';
  return number << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
}

std::vector<int> usableProcessors() {
  std::vector<int> usable;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) usable.push_back(i);
  return usable;
}

}  // namespace

CacheSizes describedCaches(const std::filesystem::path& cpus, const std::vector<int>& processors) {
  CacheSizes sizes;
  std::set<std::string> groups;
  for (const int processor : processors) {
    for (int index = 0; index < 8; ++index) {
      const auto cache = cpus / ("cpu" + std::to_string(processor)) / "cache" / ("index" + std::to_string(index));
      if (lineOf(cache / "type") == "Instruction") continue;
      const std::string level = lineOf(cache / "level");
      const std::int64_t size = sizeOf(lineOf(cache / "size"));
      if (level == "2") sizes.core = std::max(sizes.core, size);
      if (level == "3" && size > 0) {
        sizes.shared = std::max(sizes.shared, size);
        groups.insert(lineOf(cache / "shared_cpu_list"));
      }
    }
  }
  sizes.sharedCaches = static_cast<int>(groups.size());
  return sizes;
}

CacheSizes cacheSizes() {
  CacheSizes sizes = describedCaches("/sys/devices/system/cpu", usableProcessors());
  if (sizes.core > 0) return sizes;
  const auto known = [](int name) { return std::max<std::int64_t>(sysconf(name), 0); };
  sizes = {known(_SC_LEVEL2_CACHE_SIZE), known(_SC_LEVEL3_CACHE_SIZE), 1};
  if (sizes.core == 0) sizes.core = 1 << 20;
  return sizes;
}

}  // namespace stepscope
