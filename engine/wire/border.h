// What a library throws, or the lack of memory or threads, as an error like any other. No exception crosses a border.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "kernels/status.h"

namespace stepscope {

// A piece of memory that is given back when the system gives no more, so that what is under way comes to its end: protobuf
// and others do not survive a refusal. After that a program looks at reserveIsSpent() where it can stop, and stops.
void holdReserve();     // at the start of a program, and again after a request was ended for the lack of memory
bool reserveIsSpent();  // from any thread
// The error to stop with.
inline Error outOfMemory(const std::string& what) {
  return {ErrorCode::kOutOfMemory, what + ": the system gave no more memory; expected enough for the model and its step"};
}

// Runs `work`, which returns a Status. `what` names it in the messages.
// Errors: what `work` returns; kOutOfMemory for std::bad_alloc and for a thread that the system does not give; kInternal for
// any other exception.
template <typename Work>
Status caught(const std::string& what, Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return tl::make_unexpected(outOfMemory(what));
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kOutOfMemory, fmt::format("{}: {}; expected that a thread can be started", what, error.what()));
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInternal,
                fmt::format("{}: {}; expected no such failure; hint: please report it", what, error.what()));
  }
}

}  // namespace stepscope
