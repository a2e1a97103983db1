#include <array>

#include "kernels/cpu/loops/loops.h"

namespace stepscope::cpu {

std::span<const KernelEntry> loopKernels() {
  static constexpr std::array<KernelEntry, 7> kernels{{
      {"", "Add", makeBinary},
      {"", "Div", makeBinary},
      {"", "Mul", makeBinary},
      {"", "Sub", makeBinary},
      {"", "Transpose", makeTranspose},
      {"stepscope", "AdamUpdate", makeAdamUpdate},
      {"stepscope", "Pointwise", makePointwise},
  }};
  return kernels;
}

}  // namespace stepscope::cpu
