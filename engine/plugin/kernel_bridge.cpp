#include "engine/plugin/kernel_bridge.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>

#include "engine/plugin/device_kernel.h"
#include "engine/plugin/kernel_create.h"
#include "engine/plugin/misuse.h"
#include "engine/plugin/red_zones.h"

namespace stepscope {
namespace {

// One run of a kernel; lives as long as the kernel, so that a run allocates nothing.
struct RunCall : ssp_kernel_call {
  explicit RunCall(const std::string& label) : ssp_kernel_call{}, partLabel(label) {
    size = sizeof(ssp_kernel_call);
    parallel = [](const ssp_kernel_call* c, std::uint32_t parts, void (*body)(void*, std::uint32_t), void* user) {
      return static_cast<const RunCall*>(c)->runParts(parts, body, user);
    };
    fail = [](const ssp_kernel_call* c, const char* message) {
      return static_cast<const RunCall*>(c)->misuse.fail(message);
    };
  }
  ssp_status runParts(std::uint32_t parts, void (*body)(void*, std::uint32_t), void* user) const {
    if (body == nullptr) {
      misuse.note("hands parallel no body", "one");
      return SSP_ERROR;
    }
    std::atomic<bool> threw = false;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (std::int64_t part = 0; part < static_cast<std::int64_t>(parts); ++part) {
      const Status done = guarded(partLabel, [&]() -> Status {
        body(user, static_cast<std::uint32_t>(part));
        return {};
      });
      if (!done) threw = true;
    }
    if (!threw) return SSP_OK;
    misuse.note("a body of parallel threw an exception", "that no exception leaves a function of a plugin");
    return SSP_ERROR;
  }

  const std::string& partLabel;
  std::vector<ssp_buffer> buffers;  // inputs, then outputs
  mutable Misuse misuse;
};

class PluginKernel final : public Kernel {
 public:
  PluginKernel(std::unique_ptr<KernelInstance> instance, const KernelSpec& spec)
      : bridge_(instance->bridge),
        instance_(std::move(instance)),
        threads_(spec.threads),
        call_(bridge_.partLabel),
        scratch_(instance_->scratch) {
    for (const auto* operands : {&spec.inputs, &spec.outputs})
      for (const OperandSpec& operand : *operands)
        call_.buffers.push_back({sizeof(ssp_buffer), static_cast<std::int32_t>(operand.dtype), nullptr, 0});
    inputs_ = spec.inputs.size();
    if (bridge_.checking) zones_.emplace(spec, scratch_);
  }
  std::size_t workspaceBytes() const override { return zones_ ? zones_->bytes() : scratch_; }
  bool mayFail() const override { return !instance_->cannotFail || bridge_.checking; }
  std::string implementation() const override {
    return fmt::format("{} (plugin {}){}", bridge_.kernel.implementation, bridge_.library.name(), zones_ ? ", checked" : "");
  }
  Determinism determinism() const override { return instance_->determinism; }

  Status run(const KernelCall& call) override {
    for (std::size_t i = 0; i < call_.buffers.size(); ++i) {
      const bool input = i < inputs_;
      const TensorView& view = input ? call.inputs[i] : call.outputs[i - inputs_];
      call_.buffers[i].data = view.present() ? view.data : nullptr;
      call_.buffers[i].bytes = view.present() ? view.bytes() : 0;
    }
    call_.input_count = static_cast<std::uint32_t>(inputs_);
    call_.output_count = static_cast<std::uint32_t>(call_.buffers.size() - inputs_);
    call_.inputs = call_.buffers.data();
    call_.outputs = call_.buffers.data() + inputs_;
    call_.scratch = scratch_ == 0 ? nullptr : call.workspace.data();
    call_.scratch_bytes = scratch_;
    call_.seed = call.random.seed, call_.step = call.random.step, call_.node = call.random.node;
    call_.threads = threads_;
    call_.misuse = {};
    if (zones_) call_.scratch = zones_->fill(call.workspace, call_.buffers, inputs_);
    ssp_status status = SSP_ERROR;
    SS_TRY(guarded(bridge_.runLabel, [&]() -> Status {
      status = bridge_.kernel.run(instance_->handle, &call_);
      return {};
    }));
    SS_TRY(call_.misuse.verdict(bridge_.runLabel, status, ""));
    if (!zones_) return {};
    if (const std::string wrong = zones_->check(call); !wrong.empty())
      return againstContract(bridge_.runLabel, wrong, "expected that it writes its outputs and scratch memory alone");
    zones_->copyOut(call);
    return {};
  }

 private:
  const KernelBridge& bridge_;
  std::unique_ptr<KernelInstance> instance_;
  int threads_;
  RunCall call_;
  std::size_t inputs_ = 0;
  std::uint64_t scratch_ = 0;
  std::optional<RedZones> zones_;
};

Result<std::unique_ptr<Kernel>> makePluginKernel(const KernelSpec& spec) {
  const auto& bridge = *static_cast<const KernelBridge*>(spec.user);
  if (bridge.code) return makeDeviceKernel(bridge, spec);
  SS_ASSIGN(auto instance, createInstance(bridge, spec));
  return std::make_unique<PluginKernel>(std::move(instance), spec);
}

std::string labelOf(const PluginLibrary& library, const ssp_kernel& kernel, const char* function) {
  return library.label(fmt::format("{} of kernel '{}.{}'", function, kernel.domain, kernel.op));
}

}  // namespace

KernelBridge::KernelBridge(const PluginLibrary& owner, const ssp_kernel& declared, bool checks)
    : library(owner),
      kernel(declared),
      op(*owner.findOp(declared.domain, declared.op)),
      checking(checks),
      createLabel(labelOf(owner, declared, "create")),
      runLabel(labelOf(owner, declared, "run")),
      destroyLabel(labelOf(owner, declared, "destroy")),
      partLabel(labelOf(owner, declared, "a body of parallel in run")),
      code(libraryCodeOf(owner, declared)),
      entry{declared.domain, declared.op, makePluginKernel, false, declared.dtypes, this} {}

}  // namespace stepscope
