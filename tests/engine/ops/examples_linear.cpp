#include "tests/engine/ops/op_example.h"

namespace stepscope::testing {

std::span<const OpExample> linearExamples() {
  return {};
}

}  // namespace stepscope::testing
