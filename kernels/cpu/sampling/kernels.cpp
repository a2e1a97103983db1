#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/sampling/sampling.h"

namespace stepscope::cpu {

std::span<const KernelEntry> samplingKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "AffineGrid", makeAffineGrid},
      {"", "GridSample", makeGridSample},
      {"", "RoiAlign", makeRoiAlign},
      {"stepscope", "GridSampleGridGrad", makeGridSampleGridGrad},
      {"stepscope", "GridSampleInputGrad", makeGridSampleInputGrad},
      {"stepscope", "RoiAlignGrad", makeRoiAlignGrad},
  };
  return kEntries;
}

}  // namespace stepscope::cpu
