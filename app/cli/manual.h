// What the package says of the program, made of the commands and options themselves, so that it cannot tell of others.
#pragma once

#include <string>
#include <vector>

#include "app/cli/command.h"

namespace stepscope::cli {

// stepscope(1) in the language of man (man-pages(7)).
std::string manPage(const std::vector<Command>& commands);
// Completion of subcommands, their options, and the values of options that have choices; file names elsewhere.
std::string bashCompletion(const std::vector<Command>& commands);
std::string zshCompletion(const std::vector<Command>& commands);

}  // namespace stepscope::cli
