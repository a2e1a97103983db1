#include "app/cli/machine.h"

#include <fmt/format.h>

#include <fstream>
#include <oneapi/dnnl/dnnl.hpp>

#include "engine/wire/machine_facts.h"

namespace stepscope::cli {

snapshot::MachineInfo machineInfo() {
  snapshot::MachineInfo info = machineFacts(SS_VERSION);
  const dnnl_version_t* dnnl = dnnl_version();
  info.add_libraries(fmt::format("oneDNN {}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch));
  return info;
}

std::string commandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text;
  for (std::string word; std::getline(file, word, '\0');) {
    const bool plain = !word.empty() &&
                       word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%") ==
                           std::string::npos;
    if (!text.empty()) text += ' ';
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace stepscope::cli
