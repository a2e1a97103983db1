#include "engine/plugin/kernel_create.h"

#include <fmt/format.h>

#include "engine/plugin/attribute_views.h"
#include "engine/plugin/misuse.h"

namespace stepscope {
namespace {

constexpr std::uint64_t kMostScratch = std::uint64_t{1} << 40;

// What create sees.
struct CreateCall : ssp_kernel_context {
  CreateCall(const KernelSpec& kernelSpec, const KernelBridge& bridge)
      : ssp_kernel_context{}, spec(kernelSpec), attributes(bridge.schema()) {
    for (const OperandSpec& operand : spec.inputs) operands.push_back(viewOf(operand));
    for (const OperandSpec& operand : spec.outputs) operands.push_back(viewOf(operand));
    size = sizeof(ssp_kernel_context);
    input_count = static_cast<std::uint32_t>(spec.inputs.size());
    output_count = static_cast<std::uint32_t>(spec.outputs.size());
    inputs = operands.data();
    outputs = operands.data() + spec.inputs.size();
    threads = spec.threads;
    attr = [](ssp_kernel_context* c, const char* name) {
      return static_cast<CreateCall*>(c)->attributes.find(static_cast<CreateCall*>(c)->spec.attrs, name);
    };
    fail = [](ssp_kernel_context* c, const char* message) { return static_cast<CreateCall*>(c)->misuse.fail(message); };
  }
  static ssp_operand viewOf(const OperandSpec& operand) {
    return {sizeof(ssp_operand), static_cast<std::int32_t>(operand.dtype), static_cast<std::uint32_t>(operand.dims.size()),
            operand.dims.data(), operand.constant.valid() ? operand.constant.data() : nullptr};
  }

  const KernelSpec& spec;
  std::vector<ssp_operand> operands;
  AttributeViews attributes;
  Misuse misuse;
};

Determinism determinismOf(std::int32_t kind, const char* reason) {
  switch (kind) {
    case SSP_DETERMINISM_THREADS: return {Determinism::Order::kThreadCount, reason};
    case SSP_DETERMINISM_KEYED_RANDOM: return {Determinism::Order::kKeyedRandom, reason};
    case SSP_DETERMINISM_UNORDERED: return {Determinism::Order::kUnordered, reason};
    default: return Determinism::fixed(reason);
  }
}

}  // namespace

KernelInstance::~KernelInstance() {
  if (!made || bridge.kernel.destroy == nullptr) return;
  (void)guarded(bridge.destroyLabel, [&]() -> Status {
    bridge.kernel.destroy(handle);
    return {};
  });
}

Result<std::unique_ptr<KernelInstance>> createInstance(const KernelBridge& bridge, const KernelSpec& spec) {
  auto instance = std::make_unique<KernelInstance>(bridge);
  CreateCall call(spec, bridge);
  ssp_status status = SSP_ERROR;
  SS_TRY(guarded(bridge.createLabel, [&]() -> Status {
    status = bridge.kernel.create(&bridge.kernel, &call, &instance->handle);
    return {};
  }));
  if (status == SSP_UNSUPPORTED) return unsupported(bridge.createLabel + ": does not take these operands; expected others");
  instance->made = status == SSP_OK;
  if (instance->made && (call.determinism < SSP_DETERMINISM_FIXED || call.determinism > SSP_DETERMINISM_UNORDERED ||
                         call.determinism_reason == nullptr || *call.determinism_reason == '\0'))
    call.misuse.note("does not say what its bits depend on", "determinism and determinism_reason");
  if (instance->made && call.scratch_bytes > kMostScratch)
    call.misuse.note(fmt::format("asks for {} bytes of scratch memory", call.scratch_bytes),
                     fmt::format("at most {}", kMostScratch));
  SS_TRY(call.misuse.verdict(bridge.createLabel, status, ""));
  instance->scratch = call.scratch_bytes;
  instance->determinism = determinismOf(call.determinism, call.determinism_reason);
  instance->cannotFail = call.cannot_fail != 0;
  return instance;
}

}  // namespace stepscope
