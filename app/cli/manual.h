// What the package says of the program, made of the commands and options themselves, so that it cannot tell of others.
#pragma once

#include <string>
#include <vector>

#include "app/cli/command.h"
#include "engine/build/options.h"

namespace stepscope::cli {

// `settings` is what --set takes: the table of `stepscope options`.
//
// stepscope(1) in the language of man (man-pages(7)).
std::string manPage(const std::vector<Command>& commands, const std::vector<OptionInfo>& settings);
// Completion of subcommands, their options, the values of options and arguments that have choices, names and values of
// --set; file names elsewhere.
std::string bashCompletion(const std::vector<Command>& commands, const std::vector<OptionInfo>& settings);
std::string zshCompletion(const std::vector<Command>& commands, const std::vector<OptionInfo>& settings);

}  // namespace stepscope::cli
