#include "kernels/available_memory.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

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

std::int64_t availableMemoryBytes() {
  std::ifstream meminfo("/proc/meminfo");
  // Pages that are free, where the system does not say more: files that were read lie in most of them soon.
  return availableBytes(meminfo).value_or(static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE));
}

}  // namespace stepscope
