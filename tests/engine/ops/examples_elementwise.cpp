#include "tests/engine/ops/op_example.h"

namespace stepscope::testing {

std::span<const OpExample> elementwiseExamples() {
  return {};
}

}  // namespace stepscope::testing
