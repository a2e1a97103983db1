// Linked into every test: the graph is verified after every pass (engine/passes/run_passes.h), unless the environment says
// otherwise.
#include <cstdlib>

namespace {
[[maybe_unused]] const int kSet = setenv("STEPSCOPE_VERIFY_PASSES", "1", 0);
}
