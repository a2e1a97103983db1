// Every allocation is mapped twice. The address that everybody sees has no access rights, so that a copy that was forgotten
// ends the test with SIGSEGV, as it would end a program on a GPU with wrong numbers. A launch gives the kernels of the CPU
// the second address.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "kernels/device.h"

namespace stepscope {
namespace {

std::set<std::string> opsAfterColon(const std::string& name) {
  std::set<std::string> ops;
  for (std::size_t from = name.find(':'); from != std::string::npos;) {
    const std::size_t to = name.find(',', ++from);
    ops.insert(name.substr(from, to == std::string::npos ? to : to - from));
    from = to;
  }
  return ops;
}

class MirrorDevice final : public Device {
 public:
  explicit MirrorDevice(const std::string& name) : lacks_(opsAfterColon(name)) {
    facts_.name = name;
    facts_.kernels = "cpu";
    facts_.space = Space::kDevice;
  }
  const DeviceFacts& facts() const override { return facts_; }

  Result<DeviceMemory> allocate(std::int64_t bytes) override {
    if (bytes == 0) return DeviceMemory();
    const std::size_t size = mapped(bytes);
    void* const closed = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void* const open = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (closed == MAP_FAILED || open == MAP_FAILED) {
      if (closed != MAP_FAILED) munmap(closed, size);
      if (open != MAP_FAILED) munmap(open, size);
      return fail(
          ErrorCode::kOutOfMemory,
          fmt::format("device '{}': the system refused {} bytes; expected that much address space", facts_.name, bytes));
    }
    auto* const address = static_cast<std::byte*>(closed);
    const std::lock_guard lock(mutex_);
    regions_[address] = {static_cast<std::byte*>(open), bytes};
    return DeviceMemory(this, address, bytes);
  }

  Status copy(void* to, const void* from, std::int64_t bytes, StreamId) override {
    if (bytes > 0) std::memcpy(reachable(to), reachable(const_cast<void*>(from)), static_cast<std::size_t>(bytes));
    return {};
  }
  Status fill(void* to, std::uint8_t value, std::int64_t bytes, StreamId) override {
    if (bytes > 0) std::memset(reachable(to), value, static_cast<std::size_t>(bytes));
    return {};
  }

  Status needStreams(int) override { return {}; }
  Result<std::unique_ptr<DeviceEvent>> makeEvent() override { return std::make_unique<DeviceEvent>(); }
  Status record(DeviceEvent&, StreamId) override { return {}; }
  Status wait(StreamId, const DeviceEvent&) override { return {}; }
  Result<bool> reached(const DeviceEvent&) const override { return true; }
  Status synchronise(const DeviceEvent&) override { return {}; }
  Status synchronise() override { return {}; }

  bool takes(const KernelSpec& spec) const override { return !lacks_.contains(spec.op); }

  Status launch(Kernel& kernel, const KernelCall& call) override {
    std::vector<TensorView> inputs(call.inputs.begin(), call.inputs.end()),
        outputs(call.outputs.begin(), call.outputs.end());
    for (auto* views : {&inputs, &outputs})
      for (TensorView& view : *views) view.data = reachable(view.data);
    KernelCall reached = call;
    reached.inputs = inputs;
    reached.outputs = outputs;
    reached.workspace = {static_cast<std::byte*>(reachable(call.workspace.data())), call.workspace.size()};
    return runKernel(kernel, reached);
  }

 private:
  struct Region {
    std::byte* open = nullptr;
    std::int64_t bytes = 0;
  };

  // Whole pages, and one more, so that two allocations never touch.
  static std::size_t mapped(std::int64_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (static_cast<std::size_t>(bytes) + page - 1) / page * page + page;
  }

  // The second address of memory of this device; any other address as it is.
  void* reachable(void* address) const {
    auto* const place = static_cast<std::byte*>(address);
    const std::lock_guard lock(mutex_);
    auto it = regions_.upper_bound(place);
    if (it == regions_.begin()) return address;
    --it;
    // One past the end too: where an empty tensor may lie.
    return place - it->first <= it->second.bytes ? it->second.open + (place - it->first) : address;
  }

  void free(std::byte* data, std::int64_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto it = regions_.find(data);
    munmap(it->second.open, mapped(bytes));
    munmap(data, mapped(bytes));
    regions_.erase(it);
  }

  DeviceFacts facts_;
  std::set<std::string> lacks_;
  mutable std::mutex mutex_;  // sessions of several threads share the device
  std::map<std::byte*, Region> regions_;
};

}  // namespace

std::unique_ptr<Device> makeMirrorDevice(const std::string& name) { return std::make_unique<MirrorDevice>(name); }

}  // namespace stepscope
