#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <map>

#include "app/cli/command.h"

namespace stepscope::cli {

int report(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return kFailed;
}

namespace {

int runMain(int argc, char** argv) {
  CLI::App app{"Stepscope: neural-network training, opened up", "stepscope"};
  app.set_version_flag("--version", std::string(SS_VERSION));
  app.require_subcommand(0, 1);
  app.failure_message(CLI::FailureMessage::simple);
  const std::vector<std::pair<const char*, Run>> commands{
      {"open", addOpen(app)},       {"build", addBuild(app)},   {"train", addTrain(app)},     {"run", addRun(app)},
      {"inspect", addInspect(app)}, {"report", addReport(app)}, {"compare", addCompare(app)}, {"sql", addSql(app)},
      {"options", addOptions(app)}, {"doctor", addDoctor(app)}, {"worker", addWorker(app)},
  };
  if (argc <= 1) {
    fmt::print("{}", app.help());
    return kSuccess;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "error: {}\n", error.what());
    return kUsage;
  }
  for (const auto& [name, run] : commands)
    if (app.get_subcommand(name)->parsed()) return run();
  return kUsage;
}

}  // namespace
}  // namespace stepscope::cli

int main(int argc, char** argv) {
  // A file that reaches the limit of `ulimit -f` is a disk without room, told like one, and no reason to lose a run.
  std::signal(SIGXFSZ, SIG_IGN);
  return stepscope::cli::runMain(argc, argv);
}
