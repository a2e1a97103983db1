#include "engine/exec/complete_plan.h"

#include "engine/exec/make_kernel.h"
#include "engine/ops/operators.h"
#include "kernels/threads.h"

namespace stepscope {
namespace {

constexpr std::int64_t kNotAsked = -1;

}  // namespace

Status completePlan(ExecutionPlan& plan, const Graph& graph, Backend backend, const Operators& operators, Device& device,
                    bool reuse, const Cancel& cancel, KnownWorkspaces* known) {
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    SS_TRY(cancel.check("bind"));
    const Instruction& instruction = plan.instructions[i];
    if (instruction.kind != InstructionKind::kKernel || instruction.view || instruction.dynamic) continue;
    std::int64_t* told = nullptr;
    if (known) {
      const auto [entry, isNew] =
          known->bytes.try_emplace({known->specs.share(instruction.spec()).get(), instruction.onHost}, kNotAsked);
      told = &entry->second;
      if (!isNew && *told != kNotAsked) {
        if (*told > 0) addWorkspace(plan, i, *told);
        continue;
      }
    }
    const ThreadScope scope(instruction.spec().threads);
    const std::string_view kernels = backend == Backend::kReference
                                         ? kReferenceDevice
                                         : std::string_view((instruction.onHost ? cpuDevice() : device).facts().kernels);
    const auto made = makeKernel(operators.kernels, kernels, instruction.spec(), plan.anyThreads);
    if (!made)
      return fail(made.error().code, instructionLabel(plan, graph, static_cast<int>(i)) + ": " + made.error().message);
    const auto bytes = static_cast<std::int64_t>(made->kernel->workspaceBytes());
    if (told) *told = bytes;
    if (bytes > 0) addWorkspace(plan, i, bytes);
  }
  packArena(plan, graph, reuse);
  return {};
}

}  // namespace stepscope
