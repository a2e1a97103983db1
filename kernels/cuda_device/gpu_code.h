// The GPU code of kernels/cuda: what nvcc made of each .cu file, and the kernels in it.
#pragma once

#include <string>
#include <typeinfo>
#include <vector>

#include "kernels/status.h"

namespace stepscope::cuda {

// Of one .cu file.
struct GpuCode {
  std::string file;                  // its stem, "softmax"
  std::vector<char> image;           // a fat binary: sm_80, sm_90 and PTX
  std::vector<std::string> kernels;  // symbols
};

// What this build holds; where STEPSCOPE_GPU_CODE names a folder, its files NAME.fatbin, each with the symbols in
// NAME.names, one per line. Errors: kUnsupported where there is none, kIo for files that cannot be read.
Result<std::vector<GpuCode>> gpuCode();

// The name of a kernel in C++, with template arguments and without parameters, of the symbol in GPU code and of the type
// gpu::KernelTag<kernel>: by it a kernel of the host is found among those of the GPU. Empty for what is no kernel.
std::string kernelName(const std::string& symbol);
std::string kernelName(const std::type_info& tag);

}  // namespace stepscope::cuda
