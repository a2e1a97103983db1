// The caches of the processor, as the system describes them: what it tells a virtual machine of the whole processor is more
// than the machine's cores reach.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace stepscope {

struct CacheSizes {
  std::int64_t core = 0;    // bytes of the second level, of one core
  std::int64_t shared = 0;  // bytes of one cache of the third level; 0: there is none
  int sharedCaches = 0;     // how many of these the processors reach
};

// Of the processors with these numbers, from a folder like /sys/devices/system/cpu. What it does not say is 0.
CacheSizes describedCaches(const std::filesystem::path& cpus, const std::vector<int>& processors);

// Of the processors that this process may use. Where the system describes none, as sysconf has them; a core's at least 1.
CacheSizes cacheSizes();

}  // namespace stepscope
