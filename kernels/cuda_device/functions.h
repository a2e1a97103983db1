// The kernels of the GPU code, loaded into the context of one GPU.
#pragma once

#include <map>
#include <string>
#include <typeindex>
#include <vector>

#include "kernels/cuda_device/driver.h"
#include "kernels/cuda_device/gpu_code.h"

namespace stepscope::cuda {

class Functions {
 public:
  // The context of `driver` is current wherever a function of this class is called.
  explicit Functions(const Driver& driver) : driver_(driver) {}
  ~Functions();
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  // Errors: kUnsupported where the driver cannot run the code on this GPU, kInternal for what it answers else.
  Status load(const std::vector<GpuCode>& code);
  // Of gpu::KernelTag<kernel>. Errors: kUnsupported where no code has it.
  Result<CuFunction> find(const std::type_info& tag);

 private:
  struct Place {
    CuModule module = nullptr;
    std::string symbol;
  };
  const Driver& driver_;
  std::vector<CuModule> modules_;
  std::map<std::string, Place> places_;  // by the kernel's name in C++
  std::map<std::type_index, CuFunction> found_;
};

}  // namespace stepscope::cuda
