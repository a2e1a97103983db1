#include "engine/plugin/kernel_bridge.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>

#include "engine/plugin/attribute_views.h"
#include "engine/plugin/misuse.h"
#include "engine/plugin/red_zones.h"

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

Determinism determinismOf(std::int32_t kind, const char* reason) {
  switch (kind) {
    case SSP_DETERMINISM_THREADS: return {Determinism::Order::kThreadCount, reason};
    case SSP_DETERMINISM_KEYED_RANDOM: return {Determinism::Order::kKeyedRandom, reason};
    case SSP_DETERMINISM_UNORDERED: return {Determinism::Order::kUnordered, reason};
    default: return Determinism::fixed(reason);
  }
}

class PluginKernel final : public Kernel {
 public:
  PluginKernel(const KernelBridge& bridge, const KernelSpec& spec)
      : bridge_(bridge), threads_(spec.threads), call_(bridge.partLabel) {
    for (const auto* operands : {&spec.inputs, &spec.outputs})
      for (const OperandSpec& operand : *operands)
        call_.buffers.push_back({sizeof(ssp_buffer), static_cast<std::int32_t>(operand.dtype), nullptr, 0});
    inputs_ = spec.inputs.size();
  }
  ~PluginKernel() override {
    if (!made_ || bridge_.kernel.destroy == nullptr) return;
    (void)guarded(bridge_.destroyLabel, [&]() -> Status {
      bridge_.kernel.destroy(instance_);
      return {};
    });
  }

  Status create(const KernelSpec& spec) {
    CreateCall call(spec, bridge_);
    ssp_status status = SSP_ERROR;
    SS_TRY(guarded(bridge_.createLabel, [&]() -> Status {
      status = bridge_.kernel.create(&bridge_.kernel, &call, &instance_);
      return {};
    }));
    if (status == SSP_UNSUPPORTED)
      return unsupported(bridge_.createLabel + ": does not take these operands; expected others");
    made_ = status == SSP_OK;
    if (made_ && (call.determinism < SSP_DETERMINISM_FIXED || call.determinism > SSP_DETERMINISM_UNORDERED ||
                  call.determinism_reason == nullptr || *call.determinism_reason == '\0'))
      call.misuse.note("does not say what its bits depend on", "determinism and determinism_reason");
    if (made_ && call.scratch_bytes > kMostScratch)
      call.misuse.note(fmt::format("asks for {} bytes of scratch memory", call.scratch_bytes),
                       fmt::format("at most {}", kMostScratch));
    SS_TRY(call.misuse.verdict(bridge_.createLabel, status, ""));
    scratch_ = call.scratch_bytes;
    determinism_ = determinismOf(call.determinism, call.determinism_reason);
    mayFail_ = call.cannot_fail == 0 || bridge_.checking;
    if (bridge_.checking) zones_.emplace(spec, scratch_);
    return {};
  }

  std::size_t workspaceBytes() const override { return zones_ ? zones_->bytes() : scratch_; }
  bool mayFail() const override { return mayFail_; }
  std::string implementation() const override {
    return fmt::format("{} (plugin {}){}", bridge_.kernel.implementation, bridge_.library.name(), zones_ ? ", checked" : "");
  }
  Determinism determinism() const override { return determinism_; }

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
      status = bridge_.kernel.run(instance_, &call_);
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
  int threads_;
  RunCall call_;
  std::size_t inputs_ = 0;
  void* instance_ = nullptr;
  bool made_ = false, mayFail_ = true;
  std::uint64_t scratch_ = 0;
  Determinism determinism_;
  std::optional<RedZones> zones_;
};

Result<std::unique_ptr<Kernel>> makePluginKernel(const KernelSpec& spec) {
  const auto& bridge = *static_cast<const KernelBridge*>(spec.user);
  auto kernel = std::make_unique<PluginKernel>(bridge, spec);
  SS_TRY(kernel->create(spec));
  return kernel;
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
      entry{declared.domain, declared.op, makePluginKernel, false, declared.dtypes, this} {}

}  // namespace stepscope
