#include "engine/ops/operators.h"

namespace stepscope {

const Operators& builtInOperators() {
  static const Operators operators = [] {
    Operators made;
    SS_CHECK(made.ops.add(allOps()));
    made.kernels = builtInKernels();
    return made;
  }();
  return operators;
}

}  // namespace stepscope
