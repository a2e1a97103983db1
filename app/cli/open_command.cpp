#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "app/cli/command.h"
#include "app/cli/terminal.h"
#include "engine/wire/attach_socket.h"

namespace stepscope::cli {

Command openCommand() {
  auto path = std::make_shared<std::string>();
  auto attach = std::make_shared<std::string>();
  Command command{
      "open",
      "the window, on a model, a project or a running script",
      {{"PATH", path.get(), "ONNX file or project file"},
       {"--attach", attach.get(), "the loop of a running script that has called stepscope.attach()", "PID|SOCKET"}}};
  command.run = [path, attach] {
    if (!attach->empty()) {
      if (!path->empty()) return tellError(fmt::format("open '{}': beside --attach; expected one of both", *path)), kUsage;
      // Told here, in words, and not by a window that opens to say so.
      const auto connection = connectToScript(*attach);
      if (!connection) return report(connection.error());
      close(*connection);
    }
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    const std::string workbench = (self.parent_path() / "stepscope-workbench").string();
    if (!std::filesystem::exists(workbench, error)) {
      return tellError(
          fmt::format("window '{}': not part of this build; expected stepscope-workbench beside stepscope", workbench));
    }
    // Qt would end the process with a signal.
    const auto given = [](const char* name) {
      const char* value = std::getenv(name);
      return value != nullptr && *value != 0;
    };
    if (!given("DISPLAY") && !given("WAYLAND_DISPLAY") && !given("QT_QPA_PLATFORM")) {
      return tellError(
          fmt::format("window '{}': no display; expected DISPLAY or WAYLAND_DISPLAY; hint: `stepscope train` and "
                      "`stepscope report` need none",
                      workbench));
    }
    if (!attach->empty())
      execl(workbench.c_str(), workbench.c_str(), "--attach", attach->c_str(), static_cast<char*>(nullptr));
    else if (path->empty())
      execl(workbench.c_str(), workbench.c_str(), static_cast<char*>(nullptr));
    else
      execl(workbench.c_str(), workbench.c_str(), path->c_str(), static_cast<char*>(nullptr));
    return tellError(fmt::format("window '{}': could not be started", workbench));
  };
  return command;
}

}  // namespace stepscope::cli
