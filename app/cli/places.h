// Whether files can be written at their places, told before the work: hours of training must not end with a file that cannot
// be written.
#pragma once

#include <string>
#include <string_view>

#include "kernels/status.h"

namespace stepscope::cli {

// "save 'out/x.safetensors': no folder 'out'; …". `option` without dashes. No file: fine.
Status checkPlace(std::string_view option, const std::string& file);

}  // namespace stepscope::cli
