// NVRTC, NVIDIA's compiler as a library, as far as this folder calls it, found at run time. The declarations are our own, so
// that no build needs the toolkit; tests/kernels/toolkit_declarations.cu compares them with the toolkit's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/status.h"

namespace stepscope::cuda {

using NvrtcStatus = int;  // nvrtcResult; 0: success
using NvrtcProgram = void*;

// One line per function: member, symbol, parameters.
#define SS_NVRTC_FUNCTIONS(F)                                                                             \
  F(create, nvrtcCreateProgram,                                                                           \
    (NvrtcProgram * made, const char* source, const char* name, int headers, const char* const* contents, \
     const char* const* names))                                                                           \
  F(destroy, nvrtcDestroyProgram, (NvrtcProgram * program))                                               \
  F(compile, nvrtcCompileProgram, (NvrtcProgram program, int count, const char* const* options))          \
  F(codeSize, nvrtcGetCUBINSize, (NvrtcProgram program, std::size_t * bytes))                             \
  F(code, nvrtcGetCUBIN, (NvrtcProgram program, char* code))                                              \
  F(logSize, nvrtcGetProgramLogSize, (NvrtcProgram program, std::size_t * bytes))                         \
  F(log, nvrtcGetProgramLog, (NvrtcProgram program, char* log))

struct Nvrtc {
#define SS_NVRTC_MEMBER(member, symbol, parameters) NvrtcStatus(*member) parameters = nullptr;
  SS_NVRTC_FUNCTIONS(SS_NVRTC_MEMBER)
#undef SS_NVRTC_MEMBER

  // The library that STEPSCOPE_NVRTC names ("off": none), else that of the system or of /usr/local/cuda. Loaded once per
  // name. Errors: kUnsupported, for people.
  static Result<const Nvrtc*> load();

  // The code of `source` for GPUs of compute capability major.minor. Errors: kUnsupported with what the compiler says.
  Result<std::vector<char>> codeOf(const std::string& source, int major, int minor) const;
};

}  // namespace stepscope::cuda
