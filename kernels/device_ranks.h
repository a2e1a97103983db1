// Collectives between processes that a device runs itself, in the order of its streams: what NCCL does for GPUs.
//
// Operands are memory of the device. A call puts work on a stream and returns; it runs when all ranks have put theirs, in
// the same order. One thread at a time, but for health() and abort(), which any thread may call at any time.
//
// Errors: kInvalidArgument for what the library refuses, kIo for what it says of the others, kInternal for the rest, each
// with the library's own words.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/device.h"

namespace stepscope {

class DeviceRanks {
 public:
  virtual ~DeviceRanks() = default;
  virtual Device& device() = 0;
  virtual std::string name() const = 0;  // "NCCL 2.21.5", for people

  // As Communicator has them (engine/comm/communicator.h), with parts as in kernels/rank_part.h; all shapes were checked.
  virtual Status allReduce(std::span<const TensorView> in, std::span<const TensorView> out, bool average, StreamId s) = 0;
  virtual Status allGather(std::span<const TensorView> in, std::span<const TensorView> out, StreamId stream) = 0;
  virtual Status reduceScatter(std::span<const TensorView> in, std::span<const TensorView> out, bool average,
                               StreamId stream) = 0;
  virtual Status reduce(const TensorView& in, const TensorView& out, int root, StreamId stream) = 0;
  virtual Status broadcast(std::span<const TensorView> tensors, int root, StreamId stream) = 0;
  virtual Status allToAll(const TensorView& in, const TensorView& out, StreamId stream) = 0;
  virtual Status send(const TensorView& tensor, int to, StreamId stream) = 0;
  virtual Status receive(const TensorView& tensor, int from, StreamId stream) = 0;

  // An error that came after the call that caused it.
  virtual Status health() const = 0;
  // What waits on streams for others gives up, and what is put there later does nothing.
  virtual void abort() = 0;
};

// Of what ranks find each other by.
inline constexpr std::size_t kDeviceRanksIdBytes = 128;

// A device that has such.
class DeviceRanksSource {
 public:
  virtual ~DeviceRanksSource() = default;
  // What rank 0 gives to all of them: kDeviceRanksIdBytes of them. Errors: kUnsupported: the library is not here, with its
  // name.
  virtual Result<std::vector<std::byte>> ranksId() = 0;
  // Waits for all `size` ranks.
  virtual Result<std::unique_ptr<DeviceRanks>> joinRanks(std::span<const std::byte> id, int rank, int size) = 0;
};

// The device as one; null: it has no such collectives.
inline DeviceRanksSource* ranksOf(Device& device) { return dynamic_cast<DeviceRanksSource*>(&device); }

// Whether they sum up elements of this type; bytes of all types but strings are moved.
constexpr bool deviceRanksAdd(DType dtype) {
  return isFloating(dtype) || dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI32 || dtype == DType::kU32 ||
         dtype == DType::kI64 || dtype == DType::kU64;
}

// The version of the library of GPUs, for people. Error: what is missing.
Result<std::string> describeDeviceRanks();

}  // namespace stepscope
