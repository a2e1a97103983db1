#include "engine/plugin/device_kernel.h"

#include <fmt/format.h>

#include <array>

#include "engine/plugin/kernel_create.h"
#include "engine/plugin/misuse.h"
#include "kernels/device_graph.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMostBlocks = 0x7fffffff;
constexpr std::uint32_t kMostThreads = 1024;

// One run; lives as long as the kernel.
struct DeviceCall : ssp_kernel_call {
  explicit DeviceCall(const KernelBridge& owner) : ssp_kernel_call{}, bridge(owner) {
    size = sizeof(ssp_kernel_call);
    parallel = [](const ssp_kernel_call* c, std::uint32_t, void (*)(void*, std::uint32_t), void*) -> ssp_status {
      return of(c).wrong("calls parallel on a device", "launch");
    };
    fail = [](const ssp_kernel_call* c, const char* message) { return of(c).misuse.fail(message); };
    ssp_kernel_call::launch = [](const ssp_kernel_call* c, const ssp_launch* one) { return of(c).put(one); };
  }
  static const DeviceCall& of(const ssp_kernel_call* c) { return *static_cast<const DeviceCall*>(c); }
  ssp_status wrong(std::string found, std::string expected) const {
    misuse.note(std::move(found), std::move(expected));
    return SSP_ERROR;
  }

  ssp_status put(const ssp_launch* one) const {
    if (one == nullptr || one->size != sizeof(ssp_launch))
      return wrong(fmt::format("launches with size {}", one == nullptr ? 0 : one->size),
                   fmt::format("size {}", sizeof(ssp_launch)));
    const ssp_kernel& kernel = bridge.kernel;
    if (one->function < kernel.functions || one->function >= kernel.functions + kernel.function_count)
      return wrong("launches a function that the kernel does not list", "one of its functions");
    const ssp_device_function& function = *one->function;
    const std::string name = fmt::format("launches '{}' with ", function.name);
    if (one->blocks < 1 || one->blocks > kMostBlocks)
      return wrong(name + fmt::format("{} blocks", one->blocks), fmt::format("1 to {}", kMostBlocks));
    if (one->threads < 1 || one->threads > kMostThreads)
      return wrong(name + fmt::format("blocks of {} threads", one->threads), fmt::format("1 to {}", kMostThreads));
    if (one->argument_count != function.parameter_count || (one->argument_count > 0 && one->arguments == nullptr))
      return wrong(name + fmt::format("{} arguments", one->argument_count), fmt::format("{}", function.parameter_count));
    std::array<LibraryArgument, SSP_MOST_PARAMETERS> made;
    for (std::uint32_t i = 0; i < one->argument_count; ++i) {
      const ssp_argument& argument = one->arguments[i];
      if (argument.size != sizeof(ssp_argument))
        return wrong(name + fmt::format("argument {} of size {}", i, argument.size),
                     fmt::format("size {}", sizeof(ssp_argument)));
      const std::uint64_t bytes = argument.kind == SSP_ARGUMENT_VALUE ? argument.value_bytes
                                  : argument.kind == SSP_ARGUMENT_KEY ? sizeof(ssp_random_key)
                                                                      : sizeof(void*);
      if (bytes != function.parameter_bytes[i])
        return wrong(name + fmt::format("argument {} of {} bytes", i, bytes),
                     fmt::format("{}, those of the parameter", function.parameter_bytes[i]));
      if (describe(argument, name + fmt::format("argument {}: ", i), made[i]) != SSP_OK) return SSP_ERROR;
    }
    status = device->launch({bridge.code,
                             static_cast<std::size_t>(one->function - kernel.functions),
                             static_cast<std::int64_t>(one->blocks),
                             static_cast<int>(one->threads),
                             {made.data(), one->argument_count},
                             streamId});
    return status ? SSP_OK : SSP_ERROR;
  }

  ssp_status describe(const ssp_argument& argument, const std::string& where, LibraryArgument& made) const {
    if (argument.kind == SSP_ARGUMENT_VALUE) {
      if (argument.value == nullptr) return wrong(where + "a value at no address", "its bytes");
      made.value = argument.value;
      made.valueBytes = static_cast<std::size_t>(argument.value_bytes);
      return SSP_OK;
    }
    if (argument.kind == SSP_ARGUMENT_KEY) {
      if (!draws)
        return wrong(where + "the random key, and create does not say that bits depend on it",
                     "SSP_DETERMINISM_KEYED_RANDOM");
      made.value = &key;
      made.valueBytes = sizeof(key);
      made.wordsAt = offsetof(ssp_random_key, now);
      return SSP_OK;
    }
    const std::uint32_t size = argument.element_bytes;
    if (size == 0 || size > 16 || (size & (size - 1)) != 0)
      return wrong(where + fmt::format("elements of {} bytes", size), "1, 2, 4, 8 or 16");
    if (argument.access < SSP_ACCESS_READ || argument.access > SSP_ACCESS_READ_WRITE)
      return wrong(where + fmt::format("access {}", argument.access), "one of SSP_ACCESS_…");
    made.elementBytes = size;
    made.access = static_cast<LibraryAccess>(argument.access);
    switch (argument.kind) {
      case SSP_ARGUMENT_INPUT:
        if (argument.index >= input_count)
          return wrong(where + fmt::format("input {} of {}", argument.index, input_count), "one that is there");
        if (argument.index < 32 && (bridge.op.host_inputs >> argument.index & 1u) != 0)
          return wrong(where + fmt::format("input {}, which host_inputs keeps on the host", argument.index), "a value");
        if (argument.access != SSP_ACCESS_READ)
          return wrong(where + fmt::format("input {} to be written", argument.index), "SSP_ACCESS_READ");
        return memory("input", argument.index, inputs[argument.index], made);
      case SSP_ARGUMENT_OUTPUT:
        if (argument.index >= output_count)
          return wrong(where + fmt::format("output {} of {}", argument.index, output_count), "one that is there");
        return memory("output", argument.index, outputs[argument.index], made);
      case SSP_ARGUMENT_SCRATCH:
        if (argument.offset > scratch_bytes || argument.count > (scratch_bytes - argument.offset) / size ||
            argument.offset % size != 0)
          return wrong(where + fmt::format("{} elements of {} bytes from byte {} of {} bytes of scratch memory",
                                           argument.count, size, argument.offset, scratch_bytes),
                       "a part of it");
        made.what = "scratch memory from byte";
        made.index = static_cast<std::size_t>(argument.offset);
        made.address = static_cast<std::byte*>(scratch) + argument.offset;
        made.count = static_cast<std::int64_t>(argument.count);
        return SSP_OK;
      default: return wrong(where + fmt::format("of kind {}", argument.kind), "one of SSP_ARGUMENT_…");
    }
  }
  static ssp_status memory(const char* what, std::uint32_t index, const ssp_buffer& buffer, LibraryArgument& made) {
    made.what = what;
    made.index = index;
    made.address = static_cast<std::byte*>(buffer.data);
    made.count = static_cast<std::int64_t>(buffer.bytes / made.elementBytes);
    return SSP_OK;
  }

  const KernelBridge& bridge;
  LibraryLaunches* device = nullptr;
  StreamId streamId = 0;
  std::vector<ssp_buffer> buffers;  // inputs, then outputs
  ssp_random_key key{};
  bool draws = false;
  mutable Misuse misuse;
  mutable Status status;  // what the device says
};

class PluginDeviceKernel final : public Kernel, public LibraryKernel {
 public:
  PluginDeviceKernel(std::unique_ptr<KernelInstance> instance, const KernelSpec& spec)
      : bridge_(instance->bridge), instance_(std::move(instance)), call_(bridge_), inputs_(spec.inputs.size()) {
    for (const auto* operands : {&spec.inputs, &spec.outputs})
      for (const OperandSpec& operand : *operands)
        call_.buffers.push_back({sizeof(ssp_buffer), static_cast<std::int32_t>(operand.dtype), nullptr, 0});
    call_.threads = spec.threads;
    call_.draws = instance_->determinism.order == Determinism::Order::kKeyedRandom;
  }
  const std::shared_ptr<const LibraryCode>& code() const override { return bridge_.code; }
  std::size_t workspaceBytes() const override { return instance_->scratch; }
  bool mayFail() const override { return !instance_->cannotFail; }
  std::string implementation() const override {
    return fmt::format("{} (plugin {})", bridge_.kernel.implementation, bridge_.library.name());
  }
  Determinism determinism() const override { return instance_->determinism; }

  Status run(const KernelCall& call) override {
    if (libraryLaunches == nullptr)
      return fail(ErrorCode::kInternal, bridge_.runLabel + ": was run without its device; expected Device::launch");
    for (std::size_t i = 0; i < call_.buffers.size(); ++i) {
      const TensorView& view = i < inputs_ ? call.inputs[i] : call.outputs[i - inputs_];
      call_.buffers[i].data = view.present() ? view.data : nullptr;
      call_.buffers[i].bytes = view.present() ? view.bytes() : 0;
    }
    call_.input_count = static_cast<std::uint32_t>(inputs_);
    call_.output_count = static_cast<std::uint32_t>(call_.buffers.size() - inputs_);
    call_.inputs = call_.buffers.data();
    call_.outputs = call_.buffers.data() + inputs_;
    call_.scratch = instance_->scratch == 0 ? nullptr : call.workspace.data();
    call_.scratch_bytes = instance_->scratch;
    call_.device = libraryLaunches;
    call_.streamId = call.stream;
    SS_ASSIGN(call_.stream, call_.device->nativeStream(call.stream));
    call_.key = {sizeof(ssp_random_key), call.random.node, call.random.seed, call.random.step, gpu::recordedKey};
    call_.misuse = {};
    call_.status = {};
    ssp_status status = SSP_ERROR;
    SS_TRY(guarded(bridge_.runLabel, [&]() -> Status {
      status = bridge_.kernel.run(instance_->handle, &call_);
      return {};
    }));
    if (!call_.status) return std::move(call_.status);
    return call_.misuse.verdict(bridge_.runLabel, status, "");
  }

 private:
  const KernelBridge& bridge_;
  std::unique_ptr<KernelInstance> instance_;
  DeviceCall call_;
  std::size_t inputs_;
};

}  // namespace

std::shared_ptr<const LibraryCode> libraryCodeOf(const PluginLibrary& library, const ssp_kernel& kernel) {
  if (std::string_view(kernel.device) != "cuda") return nullptr;
  const std::string name = fmt::format("kernel '{}.{}'", kernel.domain, kernel.op);
  auto code = std::make_shared<LibraryCode>();
  code->owner = library.label(name);
  code->library = fmt::format("plugin '{}'", library.name());
  if (kernel.image != nullptr)
    code->image = {static_cast<const std::byte*>(kernel.image), static_cast<std::size_t>(kernel.image_bytes)};
  for (std::uint32_t f = 0; f < kernel.function_count; ++f) {
    // The host only hands the table through.
    const auto body =
        reinterpret_cast<void (*)(const void*, void* const*)>(reinterpret_cast<void*>(kernel.functions[f].body));
    code->functions.push_back({kernel.functions[f].name, body});
  }
  code->table = &emulatorTable();
  code->guarded = [label = library.label("a device function of " + name)](const std::function<Status()>& work) {
    return guarded(label, work);
  };
  return code;
}

Result<std::unique_ptr<Kernel>> makeDeviceKernel(const KernelBridge& bridge, const KernelSpec& spec) {
  for (const auto* operands : {&spec.inputs, &spec.outputs})
    for (const OperandSpec& operand : *operands)
      if (operand.present() && (operand.dynamic || elementCount(operand.dims) == 0))
        return unsupported(bridge.createLabel + ": operands without elements; a device takes others");
  SS_ASSIGN(auto instance, createInstance(bridge, spec));
  if (instance->determinism.order == Determinism::Order::kKeyedRandom && bridge.library.entry().abi_minor < 2)
    return againstContract(bridge.createLabel, "says SSP_DETERMINISM_KEYED_RANDOM",
                           "expected a plugin of ABI 1.2, whose kernels for 'cuda' get the key");
  return std::make_unique<PluginDeviceKernel>(std::move(instance), spec);
}

}  // namespace stepscope
