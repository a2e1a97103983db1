// Names from files may hold any bytes; snapshots, JSON and the wire hold UTF-8 only.
#pragma once

#include <string>

namespace stepscope {

// The text itself when it is valid UTF-8 (no surrogates, no overlong forms); else with every offending byte as "\xNN".
std::string toUtf8(const std::string& text);

}  // namespace stepscope
