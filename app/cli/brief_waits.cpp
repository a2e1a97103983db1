#include "app/cli/brief_waits.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace stepscope::cli {

void useBriefWaits(int argc, char** argv) {
  constexpr std::array<std::string_view, 6> kComputing{"train", "run", "precision", "trials", "ledger", "worker"};
  if (argc < 2 || std::find(kComputing.begin(), kComputing.end(), argv[1]) == kComputing.end()) return;
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  // A turn of the loop takes 50 to 60 ns on recent processors.
  if (setenv("GOMP_SPINCOUNT", "2000", 1) != 0) return;
  (void)execv("/proc/self/exe", argv);
}

}  // namespace stepscope::cli
