// Launches of functions that a shared library has compiled for the emulator (kernels/library_code.h).
#pragma once

#include <memory>

#include "kernels/emulated/launch.h"
#include "kernels/library_code.h"

namespace stepscope::emulated {

// What `described` says, ready to be run. What its body throws is a fault of the launch.
std::unique_ptr<Launch> libraryLaunch(const LibraryLaunch& described);

}  // namespace stepscope::emulated
