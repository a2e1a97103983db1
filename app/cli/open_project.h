// A project to read, as every command that reads one opens it.
#pragma once

#include <optional>
#include <string>

#include "storage/project.h"

namespace stepscope::cli {

// Tells the warnings of the project (damaged, newer, not checked to its end), or the error; empty: it cannot be read.
std::optional<storage::Project> openProject(const std::string& path);

}  // namespace stepscope::cli
