#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "app/cli/command.h"
#include "app/cli/machine.h"
#include "app/cli/output.h"
#include "engine/profile/roofline.h"

namespace stepscope::cli {

Command doctorCommand() {
  auto json = std::make_shared<bool>(false);
  Command command{"doctor",
                  "what this machine has and reaches: CPU features, memory, GPU, measured peaks, libraries",
                  {{"--json", json.get(), "machine-readable"}}};
  command.run = [json] {
    snapshot::MachineInfo info = machineInfo();
    *info.mutable_peak() = toSnapshot(cpu::machinePeak(std::max(1, info.cores())));
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
    fmt::print("stepscope  {}\ncpu        {}, {} cores\nfeatures   {}\nmemory     {}\ngpu        {}\n", info.version(),
               info.cpu(), info.cores(), features, bytesText(info.memory_bytes()),
               info.gpu().empty() ? "none: " + info.gpu_note() : info.gpu());
    fmt::print("peak       {:.1f} GF/s in f32 matrix products, {} threads\n", info.peak().operations_per_second() * 1e-9,
               info.peak().threads());
    for (const snapshot::MemoryLevel& level : info.peak().levels())
      fmt::print("bandwidth  {:.1f} GB/s, {}{}\n", level.bytes_per_second() * 1e-9, level.name(),
                 level.capacity() > 0 ? " of " + bytesText(level.capacity()) : "");
    for (const std::string& library : info.libraries()) fmt::print("library    {}\n", library);
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
