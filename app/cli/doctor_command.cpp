#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/machine.h"
#include "app/cli/message_json.h"
#include "app/cli/output.h"
#include "app/cli/terminal.h"
#include "engine/build/environment.h"
#include "engine/build/known_roofs.h"
#include "engine/comm/mpi_library.h"
#include "engine/profile/roofline.h"
#include "engine/snapshot/units.h"
#include "kernels/cuda_device/device_peak.h"
#include "kernels/device_ranks.h"

namespace stepscope::cli {
namespace {

// What --precision computes in its type here.
std::string precisionText(const snapshot::MachineInfo& info, const cpu::MachinePeak& peak) {
  std::string unit;
  for (const std::string& feature : info.cpu_features())
    if (feature == "avx512_bf16" || feature == "amx_bf16") unit = feature;
  if (peak.bfloat16PerSecond > 0)
    return fmt::format(
        "bf16: matrix products by {}, other operators in f32 and rounded; fp16: all operators in f32 and rounded", unit);
  return fmt::format("bf16 and fp16: all operators in f32 and rounded; {}",
                     unit.empty() ? "this processor has no products of bf16"
                                  : fmt::format("the products of {} are slower here than those in f32", unit));
}

// What `train --distributed` can take.
std::string ranksText() {
  const auto mpi = MpiLibrary::load();
  const auto nccl = describeDeviceRanks();
  return "local; " + (mpi ? "mpi: " + (*mpi)->version() : "no mpi: " + mpi.error().message) +
         (nccl ? "; nccl: " + *nccl : "; no nccl: " + nccl.error().message);
}

}  // namespace

Command doctorCommand() {
  auto json = std::make_shared<bool>(false);
  Command command{"doctor",
                  "what this machine has and reaches: CPU features, memory, GPU, measured peaks, libraries",
                  {{"--json", json.get(), "machine-readable"}}};
  command.run = [json] {
    snapshot::MachineInfo info = machineInfo();
    TrainOptions options;  // where the cache lies
    (void)applyEnvironment(options);
    const cpu::MachinePeak& measured = measureRoofs(options, info.cores());
    *info.mutable_peak() = toSnapshot(measured);
    const auto gpu = findDevice("cuda");
    const cpu::MachinePeak* const ofGpu = gpu ? &peakOf(**gpu, 0) : nullptr;
    if (*json) {
      nlohmann::json machine = messageJson(info);
      machine["event"] = "machine";
      machine["peak"]["bfloat16_operations_per_second"] = measured.bfloat16PerSecond;
      machine["peak"]["waiting"] = measured.waiting;
      machine["peak"]["note"] = disturbanceText(measured);
      if (ofGpu) machine["gpu_peak"] = messageJson(toSnapshot(*ofGpu));
      machine["ranks"] = ranksText();
      sayJson(machine);
      return kSuccess;
    }
    std::string features;
    for (const std::string& feature : info.cpu_features()) features += (features.empty() ? "" : " ") + feature;
    say("stepscope  {}\ncpu        {}, {} cores\nfeatures   {}\nmemory     {}\ngpu        {}\n", info.version(), info.cpu(),
        info.cores(), features, units::bytes(info.memory_bytes()),
        info.gpu().empty() ? "none: " + info.gpu_note() : info.gpu());
    say("peak       {:.1f} GF/s in f32 matrix products, {} threads\n", info.peak().operations_per_second() * 1e-9,
        info.peak().threads());
    if (measured.bfloat16PerSecond > 0)
      say("peak       {:.1f} GF/s in bf16 matrix products\n", measured.bfloat16PerSecond * 1e-9);
    for (const snapshot::MemoryLevel& level : info.peak().levels())
      say("bandwidth  {:.1f} GB/s, {}{}\n", level.bytes_per_second() * 1e-9, level.name(),
          level.capacity() > 0 ? " of " + units::bytes(level.capacity()) : "");
    if (disturbed(measured)) say("warning    peak and bandwidth: {}\n", disturbanceText(measured));
    if (ofGpu) say("gpu peak   {}\n", peakText(*ofGpu));
    say("precision  {}\n", precisionText(info, measured));
    say("bits       equal for an equal number of threads; for any number with --set deterministic=threads\n");
    say("ranks      {}\n", ranksText());
    for (const std::string& library : info.libraries()) say("library    {}\n", library);
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
