#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "app/cli/brief_waits.h"
#include "app/cli/command.h"

namespace stepscope::cli {

int report(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return kFailed;
}

}  // namespace stepscope::cli

int main(int argc, char** argv) {
  using namespace stepscope::cli;
  // A file that reaches the limit of `ulimit -f` is a disk without room, told like one, and no reason to lose a run.
  std::signal(SIGXFSZ, SIG_IGN);
  useBriefWaits(argc, argv);
  return runCommandLine(argc, argv,
                        {openCommand(), buildCommand(), trainCommand(), runCommand(), inspectCommand(), reportCommand(),
                         compareCommand(), sqlCommand(), optionsCommand(), doctorCommand(), workerCommand()});
}
