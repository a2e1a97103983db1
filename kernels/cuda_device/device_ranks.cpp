// The collectives of the device: NCCL with the device's context, lock and records.
#include "kernels/cuda_device/cuda_device.h"
#include "kernels/cuda_device/nccl_ranks.h"

namespace stepscope::cuda {

Result<std::vector<std::byte>> CudaDevice::ranksId() {
  SS_ASSIGN(const Nccl* const nccl, Nccl::load());
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  NcclId id{};
  if (const NcclResult result = nccl->uniqueId(&id); result != kNcclSuccess)
    return fail(ErrorCode::kInternal, "NCCL: no id for the ranks: " + nccl->describe(result, nullptr));
  const auto* const bytes = reinterpret_cast<const std::byte*>(&id);
  return std::vector<std::byte>(bytes, bytes + sizeof(id));
}

// Without the lock: other ranks may be long in coming, and abort() has to be heard while a wait of the host holds it.
Result<std::unique_ptr<DeviceRanks>> CudaDevice::joinRanks(std::span<const std::byte> id, int rank, int size) {
  SS_ASSIGN(const Nccl* const nccl, Nccl::load());
  return NcclRanks::join(
      *nccl, *this,
      [this](StreamId stream, const std::function<Status(CuStream)>& work) { return putCollective(stream, work); },
      [this] { driver_.contextSet(context_); }, id, rank, size);
}

Status CudaDevice::putCollective(StreamId stream, const std::function<Status(CuStream)>& work) {
  static const ActivityKernel kByNccl{"NCCL", 0, 0, 0, 0, 0};
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  SS_TRY(notCapturing("a collective"));
  SS_ASSIGN(CuStream on, streamOf(stream));
  failures_.notePut(kByNccl.name);
  recorder_.begin(on, stream, {ActivityKind::kKernel, 0, &kByNccl});
  Status put = work(on);
  recorder_.end(on);
  return put;
}

}  // namespace stepscope::cuda
