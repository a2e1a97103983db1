#include "engine/lab/free_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "engine/plan/fits.h"

namespace stepscope {

std::optional<std::int64_t> availableBytes(std::istream& meminfo) {
  for (std::string line; std::getline(meminfo, line);) {
    std::istringstream words(line);
    std::string name, unit;
    std::int64_t number = 0;
    if (words >> name >> number >> unit && name == "MemAvailable:" && unit == "kB") return number * 1024;
  }
  return std::nullopt;
}

std::int64_t freeMemoryBytes() {
  std::ifstream meminfo("/proc/meminfo");
  // Pages that are free, where the system does not say more: files that were read lie in most of them soon.
  const std::int64_t available =
      availableBytes(meminfo).value_or(static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  const std::int64_t most = machineMemoryBytes();
  return most > 0 ? std::min(available, most) : available;
}

}  // namespace stepscope
