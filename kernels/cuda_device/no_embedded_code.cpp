#include "kernels/cuda_device/embedded_code.h"

namespace stepscope::cuda {

std::span<const EmbeddedCode> embeddedCode() { return {}; }

}  // namespace stepscope::cuda
