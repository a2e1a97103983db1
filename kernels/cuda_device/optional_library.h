// A library of the toolkit that a machine may have: its functions by their names.
#pragma once

#include <initializer_list>
#include <map>
#include <mutex>
#include <string>

#include "kernels/status.h"

namespace stepscope::cuda {

// The handle of the first of `names` that the system finds, or of the one that the environment variable names; that is "off"
// where none is wanted. Errors: kUnsupported, for people, who know the library as `title`.
Result<void*> openLibrary(const char* title, const char* variable, std::initializer_list<const char*> names);

// The address of the symbol. Errors: kUnsupported.
Result<void*> findSymbol(void* library, const char* title, const char* symbol);

}  // namespace stepscope::cuda
