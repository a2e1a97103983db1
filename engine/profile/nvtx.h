// Ranges for NVIDIA's tools: NVTX without its headers. A tool that wants them sets NVTX_INJECTION64_PATH to a library of its
// own; this program loads it and hands it a table of slots, which the library fills with its functions. Names, numbers and
// structures are those of NVTX 3 (nvtx3/nvtxDetail/nvtxTypes.h; tests/kernels/toolkit_declarations.cu compares them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/status.h"

namespace stepscope::nvtx {

struct Event {  // nvtxEventAttributes_v2
  std::uint16_t version = 3, size = 48;
  std::uint32_t category = 0;
  std::int32_t colourType = 0;
  std::uint32_t colour = 0;
  std::int32_t payloadType = 0, reserved = 0;
  std::uint64_t payload = 0;
  std::int32_t messageType = 0;
  const void* message = nullptr;
};
inline constexpr std::int32_t kText = 1, kColourArgb = 1;  // NVTX_MESSAGE_TYPE_ASCII, NVTX_COLOR_ARGB
using Domain = void*;
enum : unsigned { kCore2 = 5, kModules = 7 };  // NvtxCallbackModule
enum : unsigned { kRangeStart = 2, kRangeEnd = 3, kRangePush = 4, kRangePop = 5, kDomainCreate = 12, kFunctions = 16 };

// Where the tool puts a function, and what it is called as.
using Slot = void (*)();
struct Callbacks {  // NvtxExportTableCallbacks
  std::size_t size;
  int (*functionsOf)(unsigned module, Slot*** table, unsigned* count);
};

// The domain `stepscope` of the tool. Ranges of `push` nest in a thread; those of `start` may end in another one.
class Tool {
 public:
  // Process-wide, loaded by the first call. Errors: kUnsupported: no tool asks for ranges, or its library cannot be used.
  static Result<const Tool*> load();

  void push(const std::string& text, std::uint32_t colour) const;
  void pop() const;
  std::uint64_t start(const std::string& text, std::uint32_t colour) const;
  void end(std::uint64_t range) const;

 private:
  Domain domain_ = nullptr;
};

}  // namespace stepscope::nvtx
