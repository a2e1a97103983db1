// The device `cuda`: an NVIDIA GPU, reached through the CUDA driver (libcuda.so.1), which is loaded when somebody asks for
// the device. Programs need neither driver nor toolkit to start.
//
// What it runs is the GPU code of kernels/cuda: built in by the preset `cuda`, or from the folder that the environment
// variable STEPSCOPE_GPU_CODE names (kernels/cuda_device/README.md).
#pragma once

#include <memory>
#include <string>

#include "kernels/device.h"

namespace stepscope {

// `name`: "cuda", or "cuda:" and the number of the GPU as the driver counts them. Errors: kInvalidArgument for another name;
// kUnsupported where GPU code, driver or GPU lack, or are too old for each other; kOutOfMemory; kInternal for what the
// driver reports else. After an error that a GPU does not survive every further call of the device answers with it.
Result<std::unique_ptr<Device>> makeCudaDevice(const std::string& name);

// What GPU 0 is, for people: "NVIDIA H200, compute capability 9.0, 139.8 GiB, driver for CUDA 13.0". The error says what
// build or machine lack.
Result<std::string> describeGpu();

}  // namespace stepscope
