// Collectives of the device `cuda` (kernels/device_ranks.h) by NCCL.
//
// Where the parts of a tensor are of one length, a gathering or scattering call of NCCL does it; else one Broadcast, or one
// Reduce, for the part of every rank, in one group. Sums of float16 and bfloat16 are NCCL's own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "kernels/cuda_device/nccl.h"
#include "kernels/device_ranks.h"

namespace stepscope::cuda {

class NcclRanks final : public DeviceRanks {
 public:
  // Puts work on a stream of the device: with its context, its lock and its records.
  using Put = std::function<Status(StreamId stream, const std::function<Status(CuStream)>& work)>;
  // Brings the context to the calling thread, without the lock: for abort().
  using Enter = std::function<void()>;

  // Waits for all ranks. Errors: those of NCCL. The device must outlive it.
  static Result<std::unique_ptr<DeviceRanks>> join(const Nccl& nccl, Device& device, Put put, Enter enter,
                                                   std::span<const std::byte> id, int rank, int size);
  ~NcclRanks() override;

  Device& device() override { return device_; }
  std::string name() const override { return "NCCL " + nccl_.versionText(); }
  Status allReduce(std::span<const TensorView> in, std::span<const TensorView> out, bool average, StreamId s) override;
  Status allGather(std::span<const TensorView> in, std::span<const TensorView> out, StreamId stream) override;
  Status reduceScatter(std::span<const TensorView> in, std::span<const TensorView> out, bool average,
                       StreamId stream) override;
  Status reduce(const TensorView& in, const TensorView& out, int root, StreamId stream) override;
  Status broadcast(std::span<const TensorView> tensors, int root, StreamId stream) override;
  Status allToAll(const TensorView& in, const TensorView& out, StreamId stream) override;
  Status send(const TensorView& tensor, int to, StreamId stream) override;
  Status receive(const TensorView& tensor, int from, StreamId stream) override;
  Status health() const override;
  void abort() override;

 private:
  NcclRanks(const Nccl& nccl, Device& device, Put put, Enter enter, NcclComm comm, int rank, int size)
      : nccl_(nccl),
        device_(device),
        put_(std::move(put)),
        enter_(std::move(enter)),
        comm_(comm),
        rank_(rank),
        size_(size) {}
  // Calls of `work` are one group. The first of them that fails is told as an error of `what`.
  template <typename Work>
  Status group(const char* what, StreamId stream, Work work);
  Status check(NcclResult result, const char* what) const;

  const Nccl& nccl_;
  Device& device_;
  const Put put_;
  const Enter enter_;
  std::atomic<NcclComm> comm_;  // null: given up
  const int rank_, size_;
};

}  // namespace stepscope::cuda
