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

tl::unexpected<Error> failOption(ErrorCode code, std::string_view name, std::string_view rest) {
  std::string message = "option '";
  message.append(name).append("': ").append(rest);
  return tl::make_unexpected(Error{code, std::move(message), std::string(name)});
}

tl::unexpected<Error> invalidOption(std::string_view name, std::string_view rest) {
  return failOption(ErrorCode::kInvalidArgument, name, rest);
}

void checkFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "stepscope: internal check failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace stepscope
