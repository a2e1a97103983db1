#include <fcntl.h>
#include <fmt/format.h>

#include <csignal>

#include "app/cli/brief_waits.h"
#include "app/cli/command.h"
#include "app/cli/terminal.h"
#include "engine/wire/border.h"

namespace stepscope::cli {

int report(const Error& error) { return tellError(error.message); }

std::vector<Command> allCommands() {
  return {openCommand(),      buildCommand(),  trainCommand(),    runCommand(),     evaluateCommand(),  inspectCommand(),
          precisionCommand(), verifyCommand(), trialsCommand(),   bisectCommand(),  gradcheckCommand(), capacityCommand(),
          ledgerCommand(),    memoryCommand(), reportCommand(),   compareCommand(), importCommand(),    policyCommand(),
          sqlCommand(),       forgetCommand(), recoverCommand(),  optionsCommand(), pluginCommand(),    doctorCommand(),
          workerCommand(),    manualCommand(), artifactsCommand()};
}

namespace {

// A file that is opened while standard output is closed would get its number, and with it all that is printed. What stands
// in for it cannot be written, so the exit code tells.
void openClosedStreams() {
  for (const int stream : {0, 1, 2})
    if (fcntl(stream, F_GETFD) < 0) (void)open("/dev/null", O_RDONLY);
}

// The border of the program: what a library threw, or what the machine could not give, ends as an error like any other.
int runOrTell(int argc, char** argv) {
  int code = kFailed;
  const Status run = caught("program", [&]() -> Status {
    code = runCommandLine(argc, argv, allCommands());
    return {};
  });
  return run ? code : report(run.error());
}

}  // namespace
}  // namespace stepscope::cli

int main(int argc, char** argv) {
  using namespace stepscope::cli;
  openClosedStreams();
  stepscope::holdReserve();
  // A file that reaches the limit of `ulimit -f` is a disk without room, told like one, and no reason to lose a run.
  std::signal(SIGXFSZ, SIG_IGN);
  useBriefWaits(argc, argv);
  const int code = runOrTell(argc, argv);
  if (const std::string lost = outputFailure(); !lost.empty() && code == kSuccess)
    return tellError(fmt::format("standard output: {}; expected that all of the text can be written", lost));
  return code;
}
