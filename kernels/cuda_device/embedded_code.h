// GPU code that lies in the program. The preset `cuda` writes it; other builds have none (no_embedded_code.cpp).
#pragma once

#include <span>

namespace stepscope::cuda {

struct EmbeddedCode {
  const char* file;           // stem of the .cu file
  const char *begin, *end;    // the fat binary
  const char *names, *after;  // symbols of its kernels, one per line
};
std::span<const EmbeddedCode> embeddedCode();

}  // namespace stepscope::cuda
