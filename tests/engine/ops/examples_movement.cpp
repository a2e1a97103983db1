#include "tests/engine/ops/op_example.h"

namespace stepscope::testing {

std::span<const OpExample> movementExamples() {
  return {};
}

}  // namespace stepscope::testing
