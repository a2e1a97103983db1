#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include "app/cli/command.h"
#include "app/cli/machine.h"
#include "app/cli/output.h"

namespace stepscope::cli {

Run addDoctor(CLI::App& parent) {
  auto* app = parent.add_subcommand("doctor", "what this machine has: CPU features, memory, GPU, libraries");
  auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "machine-readable");
  return [json] {
    const snapshot::MachineInfo info = machineInfo();
    if (*json) {
      std::string text;
      google::protobuf::util::JsonPrintOptions print;
      print.preserve_proto_field_names = true;
      if (!google::protobuf::util::MessageToJsonString(info, &text, print).ok()) return kFailed;
      fmt::print("{}\n", text);
      return kSuccess;
    }
    std::string features;
    for (const std::string& feature : info.cpu_features()) features += (features.empty() ? "" : " ") + feature;
    fmt::print("stepscope  {}\ncpu        {}, {} cores\nfeatures   {}\nmemory     {}\ngpu        {}\n", info.version(), info.cpu(), info.cores(), features,
               bytesText(info.memory_bytes()), info.gpu().empty() ? "none: " + info.gpu_note() : info.gpu());
    for (const std::string& library : info.libraries()) fmt::print("library    {}\n", library);
    return kSuccess;
  };
}

}  // namespace stepscope::cli
