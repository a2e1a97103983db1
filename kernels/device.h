// What runs kernels: all that the engine knows of a processor and its memory.
//
// A device has one kind of memory, streams and events. Work that is put on one stream runs in order; work on two streams is
// ordered only where one waits for an event that the other has recorded. The CPU is a device too: its memory is host memory
// and its streams run at once (`immediate`), so a plan for it needs no copies and no waits.
//
// Errors are values: kOutOfMemory from allocate(), kUnsupported for what a device has not, kInternal for what a driver
// reports later than the call that caused it. A device belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "kernels/kernel.h"
#include "kernels/space.h"

namespace stepscope {

struct DeviceFacts {
  std::string name;            // as in the option `device`: "cpu", "mirror"
  std::string kernels;         // whose kernels it runs, as makeKernel() knows them: "cpu"
  Space space = Space::kHost;  // of its memory
  bool immediate = true;       // what is put on a stream has run when the call returns
  // Peaks; 0 = not known.
  std::int64_t memoryBytes = 0;
  double flopsPerSecond = 0;
  double bytesPerSecond = 0;
};

class Device;

// Memory of a device, freed when it goes. Its contents are zero at first.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device* device, std::byte* data, std::int64_t bytes) : device_(device), data_(data), bytes_(bytes) {}
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  std::byte* data() const { return data_; }  // an address of the device; null when empty
  std::int64_t bytes() const { return bytes_; }
  Device* device() const { return device_; }

 private:
  void swap(DeviceMemory& other) {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

// A place on a stream that others can wait for.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;
  bool onHost() const { return facts().space == Space::kHost; }

  // --- memory. Aligned to 64 bytes or more, zero-filled. Zero bytes give memory without an address.
  virtual Result<DeviceMemory> allocate(std::int64_t bytes) = 0;
  // How much of it plans may have: bytes that are free, and those that this process has taken; 0: not known, as of the host.
  virtual std::int64_t roomBytes() const { return 0; }
  // How much of it is really there, where the device can tell; else all.
  virtual std::int64_t touchedBytes(const DeviceMemory& memory) const { return memory.bytes(); }
  // Both addresses may be of this device or of the host. Ordered with the work of `stream`; host memory must stay as it is
  // until that has run.
  virtual Status copy(void* to, const void* from, std::int64_t bytes, StreamId stream) = 0;
  virtual Status fill(void* to, std::uint8_t value, std::int64_t bytes, StreamId stream) = 0;

  // --- streams and events
  virtual Status needStreams(int count) = 0;  // streams 0 … count-1 are there afterwards
  virtual Result<std::unique_ptr<DeviceEvent>> makeEvent() = 0;
  virtual Status record(DeviceEvent& event, StreamId stream) = 0;  // the event is reached when what is on the stream has run
  virtual Status wait(StreamId stream, const DeviceEvent& event) = 0;
  virtual Result<bool> reached(const DeviceEvent& event) const = 0;
  virtual Status synchronise(const DeviceEvent& event) = 0;  // the host waits
  virtual Status synchronise() = 0;                          // for all streams

  // --- kernels
  // Whether it runs this spec. The plan asks before memory is laid out; what is not taken runs on the CPU, between copies.
  virtual bool takes(const KernelSpec& spec) const = 0;
  // Puts a kernel that was made for `facts().kernels` on a stream. Addresses in the call are of the device, but for operands
  // that the op reads on the host.
  virtual Status launch(Kernel& kernel, const KernelCall& call) = 0;

 protected:
  friend class DeviceMemory;
  virtual void free(std::byte* data, std::int64_t bytes) noexcept = 0;
};
// Out of line because it calls the device.
inline DeviceMemory::~DeviceMemory() {
  if (data_) device_->free(data_, bytes_);
}

// kernel.run() for devices that run kernels in the calling thread: what a kernel or a library throws becomes an error.
Status runKernel(Kernel& kernel, const KernelCall& call);

// A tensor in the memory of a device; zero. On the CPU an ordinary tensor. Only kernels and Device::copy may follow its
// address where the device is not on the host.
Result<Tensor> makeTensor(Device& device, DType dtype, const Dims& dims);
// The contents of `view`, which lies in the memory of the device, as a tensor of the host; borrowed where the host can reach
// them. Waits for what has been put on the streams.
Result<Tensor> readTensor(Device& device, const TensorView& view);
// Overwrites `target`, which lies in the memory of the device, with as many bytes of the host.
Status writeTensor(Device& device, const TensorView& target, const TensorView& contents);

// The processor that this program runs on. Process-wide; lives until the end.
Device& cpuDevice();

// A device for tests (kernels/mirror): host memory that host code cannot touch, and the kernels of the CPU with the same
// bits. `name` is "mirror", or "mirror:Op,Op": it then takes no nodes of these ops, which run on the CPU between copies.
std::unique_ptr<Device> makeMirrorDevice(const std::string& name);

// By the name that option `device` takes: "cpu", "cuda" (kernels/cuda_device.h), "auto" (cuda where there is one, else cpu),
// "emulated" (kernels/emulated_device.h), "mirror", "mirror:Op,Op". One device per name, process-wide. Errors: kUnsupported
// for a device that build or machine have not, kInvalidArgument for a name that none has.
Result<Device*> findDevice(const std::string& name);

}  // namespace stepscope
