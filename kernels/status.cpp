#include "kernels/status.h"

#include <cstdio>
#include <cstdlib>

namespace stepscope {

std::string_view errorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kLimitExceeded: return "limit_exceeded";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kOutOfMemory: return "out_of_memory";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

void checkFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "stepscope: internal check failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace stepscope
