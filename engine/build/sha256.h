// SHA-256 (FIPS 180-4): what tells one build of a plugin from another in the record of a run, and an entry of the build
// cache from a damaged one.
#pragma once

#include <string>
#include <string_view>

namespace stepscope {

std::string sha256(std::string_view bytes);  // 64 hexadecimals in lower case

}  // namespace stepscope
