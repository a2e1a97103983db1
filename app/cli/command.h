// What one subcommand of `stepscope` is: its options as data, and what runs when it was chosen.
// Exit codes: 0 success, 1 the work failed, 2 wrong usage. Errors go to stderr as "error: <what> '<name>': …".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/status.h"

namespace stepscope::cli {

inline constexpr int kSuccess = 0, kFailed = 1, kUsage = 2;

// Where the value of an option is written; it keeps what it holds when the option is not given. bool: a switch without a
// value. A list: the option may be given several times, one value each.
using Target = std::variant<bool*, std::string*, double*, std::int64_t*, std::vector<std::string>*>;

struct Option {
  std::string names;  // "--json"; "-o,--output"; "MODEL": an argument that is told by its place
  Target target;      // what it points to lives as long as the command's `run`
  std::string help;   // what it does, its default in brackets
  std::string type;   // the word for the value in the help: FILE, X …; empty: the one of the target
  bool required = false;
  bool hidden = false;               // taken, but not in the help
  std::vector<std::string> choices;  // values it takes, for completion; empty: any
};

struct Command {
  std::string name, help;
  std::vector<Option> options;  // in the order of the help
  std::function<int()> run;     // returns the exit code
};

// Parses, runs the command that was chosen and returns its exit code. Without arguments: prints the help.
int runCommandLine(int argc, char** argv, const std::vector<Command>& commands);

// The subcommands, one file each.
Command openCommand();
Command buildCommand();
Command trainCommand();
Command runCommand();
Command inspectCommand();
Command precisionCommand();
Command evaluateCommand();
Command artifactsCommand();
Command trialsCommand();
Command bisectCommand();
Command gradcheckCommand();
Command memoryCommand();
Command capacityCommand();
Command ledgerCommand();
Command verifyCommand();
Command reportCommand();
Command compareCommand();
Command importCommand();
Command policyCommand();
Command sqlCommand();
Command forgetCommand();
Command recoverCommand();
Command optionsCommand();
Command pluginCommand();
Command doctorCommand();
Command workerCommand();
Command manualCommand();

// All of them, in the order of the help.
std::vector<Command> allCommands();

// Prints "error: …" and returns the exit code that fits it.
int report(const Error& error);

}  // namespace stepscope::cli
