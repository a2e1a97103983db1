#include <fmt/format.h>

#include "app/cli/manual.h"
#include "app/cli/terminal.h"

namespace stepscope::cli {

Command manualCommand() {
  auto what = std::make_shared<std::string>();
  Option which{"WHAT", what.get(), "man, bash or zsh", {}, true};
  which.choices = {"man", "bash", "zsh"};
  Command command{"manual", "the manual page, or completion for a shell, as installed with the program", {which}};
  command.run = [what] {
    std::string text;
    if (*what == "man") {
      text = manPage(allCommands(), optionTable());
    } else if (*what == "bash") {
      text = bashCompletion(allCommands(), optionTable());
    } else if (*what == "zsh") {
      text = zshCompletion(allCommands(), optionTable());
    } else {
      return tellError(fmt::format("manual '{}': not known; expected man, bash or zsh", *what)), kUsage;
    }
    say("{}", Ready{text});
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
