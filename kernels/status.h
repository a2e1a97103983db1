// Errors as values. `Result<T>` carries a T or an Error; `Status` is Result<void>.
//
// Use Status for what the world may do (bad files, unsupported models, no memory) and SS_CHECK for our own bugs.
// Message form: "<what> '<name>': <found>; <expected>[; hint]", no trailing full stop.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace stepscope {

enum class ErrorCode {
  kInvalidArgument,  // a value the caller gave is outside what is allowed
  kNotFound,         // a named thing does not exist
  kUnsupported,      // well formed, but not available in this build
  kLimitExceeded,    // a count or size above a limit of engine/onnx/limits.h
  kCorrupt,          // bytes that do not parse
  kOutOfMemory,      // the plan or an allocation does not fit
  kIo,               // the operating system refused
  kCancelled,        // the user asked to stop
  kInternal,         // a bug of ours that could be reported instead of aborting
};

// Stable lower-case name used on the wire and in JSON, e.g. "invalid_argument".
std::string_view errorCodeName(ErrorCode code);

// Why something failed: for programs, and for people.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string option = {};  // name of the option at fault, as `stepscope options` lists it; empty: none
};

// A value or an error; success or an error.
template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// Errors to return, of any code and of the two most frequent ones.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message)});
}
// kInvalidArgument and kUnsupported.
inline tl::unexpected<Error> invalid(std::string message) { return fail(ErrorCode::kInvalidArgument, std::move(message)); }
inline tl::unexpected<Error> unsupported(std::string message) { return fail(ErrorCode::kUnsupported, std::move(message)); }

// Errors of an option's value: the message is "option '<name>': <rest>", and `option` is set.
tl::unexpected<Error> failOption(ErrorCode code, std::string_view name, std::string_view rest);
tl::unexpected<Error> invalidOption(std::string_view name, std::string_view rest);  // kInvalidArgument

// Prints the condition with its place and aborts. Never for input from outside.
[[noreturn]] void checkFailed(const char* condition, const char* file, int line);

}  // namespace stepscope

#define SS_CHECK(condition) ((condition) ? static_cast<void>(0) : ::stepscope::checkFailed(#condition, __FILE__, __LINE__))

#define SS_CONCAT_INNER(a, b) a##b
#define SS_CONCAT(a, b) SS_CONCAT_INNER(a, b)

// SS_TRY(expr): returns the error of a Status/Result expression to the caller.
#define SS_TRY(expr)                                                                                           \
  do {                                                                                                         \
    if (auto ssTryResult = (expr); !ssTryResult) return ::tl::make_unexpected(std::move(ssTryResult).error()); \
  } while (false)

// SS_ASSIGN(declaration, expr): declares a variable from the value of a Result expression, or returns its error.
#define SS_ASSIGN(declaration, expr) SS_ASSIGN_INNER(SS_CONCAT(ssResult, __LINE__), declaration, expr)
#define SS_ASSIGN_INNER(result, declaration, expr)                      \
  auto result = (expr);                                                 \
  if (!result) return ::tl::make_unexpected(std::move(result).error()); \
  declaration = std::move(*result)
