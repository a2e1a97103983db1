// Errors of the project file and its reports, as values.
//
// storage may not include kernels/, so it has its own small pair; programs translate it where the two meet.
// Message form: "<what> '<name>': <found>; <expected>[; hint]", no trailing full stop.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace stepscope::storage {

enum class ErrorCode {
  kInvalidArgument,  // a value the caller gave is outside what is allowed
  kNotFound,         // the file, run or table does not exist
  kExists,           // the file exists already
  kIo,               // the operating system refused
  kDiskFull,         // no space left
  kLocked,           // another process writes this project
  kForeign,          // a sound file, but not a project of ours
  kNewer,            // made by a newer version that this one may not read
  kCorrupt,          // bytes that do not parse
  kReadOnly,         // a write to a project opened for reading
  kLimitExceeded,    // rows, bytes or time above a limit
  kCancelled,        // the user asked to stop
  kSql,              // the user's SQL has a mistake
};

// Stable lower-case name, e.g. "invalid_argument".
std::string_view errorCodeName(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kIo;
  std::string message;
};

// A value or an error; success or an error.
template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// An error to return.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message)});
}

}  // namespace stepscope::storage

// SS_STORE_TRY(expr) returns the error of a Status or Result to the caller; SS_STORE_ASSIGN declares from its value.
#define SS_STORE_TRY(expr)                                                                                           \
  do {                                                                                                               \
    if (auto ssStoreResult = (expr); !ssStoreResult) return ::tl::make_unexpected(std::move(ssStoreResult).error()); \
  } while (false)
#define SS_STORE_CONCAT_INNER(a, b) a##b
#define SS_STORE_CONCAT(a, b) SS_STORE_CONCAT_INNER(a, b)
#define SS_STORE_ASSIGN(declaration, expr) SS_STORE_ASSIGN_INNER(SS_STORE_CONCAT(ssStoreResult, __LINE__), declaration, expr)
#define SS_STORE_ASSIGN_INNER(result, declaration, expr)                \
  auto result = (expr);                                                 \
  if (!result) return ::tl::make_unexpected(std::move(result).error()); \
  declaration = std::move(*result)
