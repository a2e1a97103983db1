#include "kernels/cuda_device/nccl_ranks.h"

#include <fmt/format.h>

#include <cstring>

#include "kernels/rank_part.h"

namespace stepscope::cuda {
namespace {

// By deviceRanksAdd() there is one.
int typeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32: return kNcclF32;
    case DType::kF64: return kNcclF64;
    case DType::kF16: return kNcclF16;
    case DType::kBF16: return kNcclBF16;
    case DType::kI8: return kNcclI8;
    case DType::kI32: return kNcclI32;
    case DType::kU32: return kNcclU32;
    case DType::kI64: return kNcclI64;
    case DType::kU64: return kNcclU64;
    default: return kNcclU8;
  }
}

ErrorCode codeOf(NcclResult result) {
  if (result == kNcclSystemError || result == kNcclRemoteError) return ErrorCode::kIo;
  return result == kNcclInvalidArgument || result == kNcclInvalidUsage ? ErrorCode::kInvalidArgument : ErrorCode::kInternal;
}

std::byte* bytesOf(const TensorView& tensor) { return static_cast<std::byte*>(tensor.data); }
std::size_t count(std::int64_t elements) { return static_cast<std::size_t>(elements); }

}  // namespace

Result<std::unique_ptr<DeviceRanks>> NcclRanks::join(const Nccl& nccl, Device& device, Put put, Enter enter,
                                                     std::span<const std::byte> id, int rank, int size) {
  NcclId unique{};
  if (id.size() != sizeof(unique))
    return invalid(fmt::format("NCCL: an id of {} bytes; expected {}", id.size(), sizeof(unique)));
  std::memcpy(&unique, id.data(), sizeof(unique));
  enter();
  NcclComm comm = nullptr;
  if (const NcclResult result = nccl.init(&comm, size, unique, rank); result != kNcclSuccess)
    return fail(codeOf(result), fmt::format("NCCL: rank {} of {} on device '{}': {}; expected that it joins the others",
                                            rank, size, device.facts().name, nccl.describe(result, nullptr)));
  return std::unique_ptr<DeviceRanks>(new NcclRanks(nccl, device, std::move(put), std::move(enter), comm, rank, size));
}

NcclRanks::~NcclRanks() {
  enter_();
  if (NcclComm const comm = comm_.exchange(nullptr)) nccl_.destroy(comm);
}

Status NcclRanks::check(NcclResult result, const char* what) const {
  if (result == kNcclSuccess || result == kNcclInProgress) return {};
  return fail(codeOf(result), fmt::format("NCCL: {}: {}", what, nccl_.describe(result, comm_)));
}

template <typename Work>
Status NcclRanks::group(const char* what, StreamId stream, Work work) {
  return put_(stream, [&](CuStream on) -> Status {
    NcclComm const comm = comm_;
    if (!comm) return fail(ErrorCode::kIo, fmt::format("NCCL: {}: it was given up; expected a communicator", what));
    SS_TRY(check(nccl_.groupStart(), what));
    const NcclResult wrong = work(comm, on);
    const NcclResult ended = nccl_.groupEnd();
    return check(wrong != kNcclSuccess ? wrong : ended, what);
  });
}

Status NcclRanks::allReduce(std::span<const TensorView> in, std::span<const TensorView> out, bool average, StreamId s) {
  return group("AllReduce", s, [&](NcclComm comm, CuStream on) {
    for (std::size_t i = 0; i < in.size(); ++i)
      if (in[i].elements() > 0)
        if (const NcclResult result = nccl_.allReduce(in[i].data, out[i].data, count(in[i].elements()), typeOf(in[i].dtype),
                                                      average ? kNcclAverage : kNcclSum, comm, on);
            result != kNcclSuccess)
          return result;
    return NcclResult{kNcclSuccess};
  });
}

Status NcclRanks::allGather(std::span<const TensorView> in, std::span<const TensorView> out, StreamId stream) {
  return group("AllGather", stream, [&](NcclComm comm, CuStream on) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int64_t elements = out[i].elements(), length = partLength(elements, size_);
      const std::size_t bytes = dtypeSize(out[i].dtype);
      NcclResult result = kNcclSuccess;
      if (elements > 0 && elements == length * size_)
        result = nccl_.allGather(in[i].data, out[i].data, count(length) * bytes, kNcclU8, comm, on);
      else
        for (int r = 0; r < size_ && result == kNcclSuccess; ++r)
          if (const std::int64_t filled = partFilled(elements, r, size_); filled > 0) {
            std::byte* const to = bytesOf(out[i]) + count(r * length) * bytes;
            result = nccl_.broadcast(r == rank_ ? bytesOf(in[i]) : to, to, count(filled) * bytes, kNcclU8, r, comm, on);
          }
      if (result != kNcclSuccess) return result;
    }
    return NcclResult{kNcclSuccess};
  });
}

Status NcclRanks::reduceScatter(std::span<const TensorView> in, std::span<const TensorView> out, bool average,
                                StreamId stream) {
  // What lies behind the end of a tensor is zero in its last parts.
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto filled = count(partFilled(in[i].elements(), rank_, size_)) * dtypeSize(in[i].dtype);
    if (filled < out[i].bytes())
      SS_TRY(device_.fill(bytesOf(out[i]) + filled, 0, static_cast<std::int64_t>(out[i].bytes() - filled), stream));
  }
  return group("ReduceScatter", stream, [&](NcclComm comm, CuStream on) {
    const int op = average ? kNcclAverage : kNcclSum;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::int64_t elements = in[i].elements(), length = partLength(elements, size_);
      const int type = typeOf(in[i].dtype);
      NcclResult result = kNcclSuccess;
      if (elements > 0 && elements == length * size_)
        result = nccl_.reduceScatter(in[i].data, out[i].data, count(length), type, op, comm, on);
      else
        for (int r = 0; r < size_ && result == kNcclSuccess; ++r)
          if (const std::int64_t filled = partFilled(elements, r, size_); filled > 0)
            result = nccl_.reduce(bytesOf(in[i]) + count(r * length) * dtypeSize(in[i].dtype), out[i].data, count(filled),
                                  type, op, r, comm, on);
      if (result != kNcclSuccess) return result;
    }
    return NcclResult{kNcclSuccess};
  });
}

Status NcclRanks::reduce(const TensorView& in, const TensorView& out, int root, StreamId stream) {
  if (in.elements() == 0) return {};
  return group("Reduce", stream, [&](NcclComm comm, CuStream on) {
    return nccl_.reduce(in.data, out.data, count(in.elements()), typeOf(in.dtype), kNcclSum, root, comm, on);
  });
}

Status NcclRanks::broadcast(std::span<const TensorView> tensors, int root, StreamId stream) {
  return group("Broadcast", stream, [&](NcclComm comm, CuStream on) {
    for (const TensorView& tensor : tensors)
      if (tensor.bytes() > 0)
        if (const NcclResult result = nccl_.broadcast(tensor.data, tensor.data, tensor.bytes(), kNcclU8, root, comm, on);
            result != kNcclSuccess)
          return result;
    return NcclResult{kNcclSuccess};
  });
}

Status NcclRanks::allToAll(const TensorView& in, const TensorView& out, StreamId stream) {
  const std::size_t bytes = in.bytes() / count(size_);
  if (bytes == 0) return {};
  return group("AllToAll", stream, [&](NcclComm comm, CuStream on) {
    for (int r = 0; r < size_; ++r) {
      if (const NcclResult sent = nccl_.send(bytesOf(in) + count(r) * bytes, bytes, kNcclU8, r, comm, on);
          sent != kNcclSuccess)
        return sent;
      if (const NcclResult got = nccl_.receive(bytesOf(out) + count(r) * bytes, bytes, kNcclU8, r, comm, on);
          got != kNcclSuccess)
        return got;
    }
    return NcclResult{kNcclSuccess};
  });
}

Status NcclRanks::send(const TensorView& tensor, int to, StreamId stream) {
  if (tensor.bytes() == 0) return {};
  return group("Send", stream,
               [&](NcclComm comm, CuStream on) { return nccl_.send(tensor.data, tensor.bytes(), kNcclU8, to, comm, on); });
}

Status NcclRanks::receive(const TensorView& tensor, int from, StreamId stream) {
  if (tensor.bytes() == 0) return {};
  return group("Recv", stream, [&](NcclComm comm, CuStream on) {
    return nccl_.receive(tensor.data, tensor.bytes(), kNcclU8, from, comm, on);
  });
}

Status NcclRanks::health() const {
  NcclComm const comm = comm_;
  if (!comm) return {};
  NcclResult error = kNcclSuccess;
  const NcclResult asked = nccl_.asyncError(comm, &error);
  return check(asked != kNcclSuccess ? asked : error, "a collective that runs");
}

void NcclRanks::abort() {
  enter_();
  if (NcclComm const comm = comm_.exchange(nullptr)) nccl_.abort(comm);
}

}  // namespace stepscope::cuda
