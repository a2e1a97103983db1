#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "app/cli/capture_folder.h"
#include "app/cli/command.h"
#include "app/cli/machine.h"
#include "app/cli/terminal.h"
#include "engine/wire/attach_socket.h"
#include "engine/wire/server.h"
#include "engine/wire/stage_teller.h"

namespace stepscope::cli {
namespace {

Result<std::optional<Golden>> goldenOf(const std::filesystem::path& folder, const TrainOptions& options) {
  SS_ASSIGN(auto captured, readGolden(folder, options));
  SS_ASSIGN(auto notes, captureNotes(folder));
  if (!captured && notes.empty()) return std::optional<Golden>();
  Golden golden = captured ? std::move(captured->golden) : Golden();
  golden.notes = std::move(notes);
  return std::optional(std::move(golden));
}

// Stands between the window and a script of this machine, which serves the protocol itself.
int relay(const std::string& target, int out) {
  const auto connection = connectToScript(target);
  if (!connection) return report(connection.error());
  return relayBetween(STDIN_FILENO, out, *connection) ? kSuccess
                                                      : tellError(fmt::format("script '{}': it has ended", target));
}

void onEnd(int) {}

// Who ends a desktop session, or presses Ctrl+C, tells every process of it. The client still has the state of its training
// to ask for; its end closes the pipe, and that ends the worker. A second signal of a kind ends it at once.
void leaveTheEndToTheClient() {
  struct sigaction action = {};
  action.sa_handler = onEnd;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
}

}  // namespace

Command workerCommand() {
  auto attach = std::make_shared<std::string>();
  Command command{"worker",
                  "the protocol on stdin and stdout; started by the window, or behind ssh",
                  {{"--attach", attach.get(), "that of a running script, instead of a worker's own", "PID|SOCKET"}}};
  command.run = [attach] {
    std::signal(SIGPIPE, SIG_IGN);
    leaveTheEndToTheClient();
    if (!attach->empty()) return relay(*attach, STDOUT_FILENO);
    StageTeller::waitBeforeDying();
    // Whatever a library prints must not get between the frames.
    const int out = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    static const snapshot::MachineInfo machine = machineInfo();
    if (Status status = serveWorker(STDIN_FILENO, out, machine, kLargestMessage, goldenOf); !status) {
      tellError(status.error().message);
      return kFailed;
    }
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
