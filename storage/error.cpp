#include "storage/error.h"

namespace stepscope::storage {

std::string_view errorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kExists: return "exists";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kDiskFull: return "disk_full";
    case ErrorCode::kLocked: return "locked";
    case ErrorCode::kForeign: return "foreign";
    case ErrorCode::kNewer: return "newer";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kReadOnly: return "read_only";
    case ErrorCode::kLimitExceeded: return "limit_exceeded";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kSql: return "sql";
  }
  return "io";
}

}  // namespace stepscope::storage
