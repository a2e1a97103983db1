// Kernels that are compiled at run time (kernels/generated_kernel.h): NVRTC once per source, a module of the driver each.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "kernels/cuda_device/driver.h"
#include "kernels/cuda_device/nvrtc.h"

namespace stepscope::cuda {

class CompiledSources {
 public:
  // For GPUs of compute capability major.minor. The context of `driver` is current wherever a function of this class is
  // called.
  CompiledSources(const Driver& driver, int major, int minor) : driver_(driver), major_(major), minor_(minor) {}
  ~CompiledSources();
  CompiledSources(const CompiledSources&) = delete;
  CompiledSources& operator=(const CompiledSources&) = delete;

  // The kernel of the source. Null: there is no compiler, it does not take the source (lacking()), or the source is new and
  // `mayCompile` is false. Errors: what the driver answers.
  CuResult find(std::string_view prelude, const std::string& source, bool mayCompile, CuFunction* function);
  // Why a source is not compiled; empty: all were.
  const std::string& lacking() const { return lacking_; }

 private:
  struct Compiled {
    CuModule module = nullptr;
    CuFunction function = nullptr;
  };
  const Driver& driver_;
  const int major_, minor_;
  std::unordered_map<std::string, Compiled> known_;
  std::string lacking_;
};

}  // namespace stepscope::cuda
