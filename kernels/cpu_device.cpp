// The CPU as a device: host memory, and streams that run in the calling thread.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/device.h"

namespace stepscope {
namespace {

class CpuDevice final : public Device {
 public:
  const DeviceFacts& facts() const override { return facts_; }

  Result<DeviceMemory> allocate(std::int64_t bytes) override {
    if (bytes == 0) return DeviceMemory();
    void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return fail(ErrorCode::kOutOfMemory,
                  fmt::format("arena: the system refused {} bytes; expected that much address space", bytes));
    // Huge pages save page faults where the arena is large; below that they would only blur what is touched.
    constexpr std::int64_t kHuge = std::int64_t{64} << 20;
    madvise(memory, static_cast<std::size_t>(bytes), bytes >= kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return DeviceMemory(this, static_cast<std::byte*>(memory), bytes);
  }

  std::int64_t touchedBytes(const DeviceMemory& memory) const override {
    if (!memory.data()) return 0;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), bytes = static_cast<std::size_t>(memory.bytes());
    std::vector<unsigned char> resident((bytes + page - 1) / page);
    if (mincore(memory.data(), bytes, resident.data()) != 0) return 0;
    std::int64_t touched = 0;
    for (std::size_t i = 0; i < resident.size(); ++i)
      if (resident[i] & 1) touched += static_cast<std::int64_t>(std::min(page, bytes - i * page));
    return touched;
  }

  Status copy(void* to, const void* from, std::int64_t bytes, StreamId) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return {};
  }
  Status fill(void* to, std::uint8_t value, std::int64_t bytes, StreamId) override {
    if (bytes > 0) std::memset(to, value, static_cast<std::size_t>(bytes));
    return {};
  }

  Status needStreams(int) override { return {}; }
  Result<std::unique_ptr<DeviceEvent>> makeEvent() override { return std::make_unique<DeviceEvent>(); }
  Status record(DeviceEvent&, StreamId) override { return {}; }
  Status wait(StreamId, const DeviceEvent&) override { return {}; }
  Result<bool> reached(const DeviceEvent&) const override { return true; }
  Status synchronise(const DeviceEvent&) override { return {}; }
  Status synchronise() override { return {}; }

  bool takes(const KernelSpec&) const override { return true; }
  Status launch(Kernel& kernel, const KernelCall& call) override { return runKernel(kernel, call); }

 private:
  void free(std::byte* data, std::int64_t bytes) noexcept override { munmap(data, static_cast<std::size_t>(bytes)); }

  DeviceFacts facts_{.name = "cpu",
                     .kernels = "cpu",
                     .memoryBytes = std::max<std::int64_t>(0, sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)};
};

}  // namespace

Device& cpuDevice() {
  static CpuDevice device;
  return device;
}

}  // namespace stepscope
