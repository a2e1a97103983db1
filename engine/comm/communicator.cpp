#include "engine/comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/comm/rank_order_sum.h"
#include "kernels/index.h"
#include "kernels/rank_part.h"

namespace stepscope {
namespace {

std::byte* bytesOf(const TensorView& tensor) { return static_cast<std::byte*>(tensor.data); }

// Elements [first, first + count) of a list of tensors that are thought of as one.
template <typename F>
void forSlices(std::span<const TensorView> tensors, std::int64_t first, std::int64_t count, F slice) {
  for (const TensorView& tensor : tensors) {
    const std::int64_t elements = tensor.elements(), take = std::min(count, elements - first);
    if (take > 0) {
      const auto size = static_cast<std::int64_t>(dtypeSize(tensor.dtype));
      slice(bytesOf(tensor) + first * size, static_cast<std::size_t>(take * size));
      count -= take;
      first = 0;
    } else {
      first -= elements;
    }
    if (count <= 0) return;
  }
}

Status checkParts(std::string_view what, std::span<const TensorView> whole, std::span<const TensorView> parts, int ranks) {
  if (whole.size() != parts.size())
    return invalid(fmt::format("{}: {} tensors and {} parts; expected a part of each", what, whole.size(), parts.size()));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool fits = whole[i].dtype == whole[0].dtype && parts[i].dtype == whole[0].dtype &&
                      whole[i].dtype != DType::kString && parts[i].elements() == partLength(whole[i].elements(), ranks);
    if (!fits)
      return invalid(fmt::format("{}: {}{} and a part of {}{}; expected one type without strings, and parts of {} elements",
                                 what, dtypeName(whole[i].dtype), dimsText(whole[i].dims), dtypeName(parts[i].dtype),
                                 dimsText(parts[i].dims), partLength(whole[i].elements(), ranks)));
  }
  return {};
}

// Of the parts that a rank has of some tensors, thought of as one list: elements [first, first + count). `slice` is told
// where they are in that range, the tensor, and where in it they lie; elements behind the end of a tensor are left out.
template <typename F>
void forPart(std::span<const TensorView> whole, int rank, int ranks, std::int64_t first, std::int64_t count, F slice) {
  std::int64_t begin = 0;  // of the tensor's part in the list
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const std::int64_t elements = whole[i].elements(), length = partLength(elements, ranks);
    const std::int64_t from = std::max(first, begin), filled = begin + partFilled(elements, rank, ranks);
    const std::int64_t to = std::min(first + count, filled);
    if (from < to) slice(from - first, i, rank * length + from - begin, to - from);
    begin += length;
  }
}

}  // namespace

Communicator::Communicator(std::unique_ptr<Transport> transport, double timeoutSeconds)
    : transport_(std::move(transport)),
      timeoutNs_(static_cast<std::int64_t>(timeoutSeconds * 1e9)),
      scratch_(at(transport_->size())) {}

Communicator::~Communicator() {
  watch_.reset();
  transport_->end();
}

// Of elements [first, first + count) every rank adds up its share and sends it to all.
Status Communicator::reduceRange(std::span<const TensorView> in, std::span<const TensorView> out, std::int64_t first,
                                 std::int64_t count, bool average) {
  const DType dtype = in[0].dtype;
  const auto size = static_cast<std::int64_t>(dtypeSize(dtype));
  const int ranks = this->size();
  const auto share = [&](int r) { return first + count * r / ranks; };
  const std::int64_t mine = share(rank()), mineCount = share(rank() + 1) - mine;
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < ranks; ++r) {
    std::vector<std::byte>& part = scratch_[at(r)];
    part.resize(static_cast<std::size_t>(mineCount * size));
    if (r == rank()) {
      std::size_t done = 0;
      forSlices(in, mine, mineCount, [&](std::byte* data, std::size_t bytes) {
        std::memcpy(part.data() + done, data, bytes);
        done += bytes;
      });
      continue;
    }
    forSlices(in, share(r), share(r + 1) - share(r), [&](std::byte* data, std::size_t bytes) {
      sends.push_back({r, data, bytes});
    });
    std::size_t done = 0;  // pieces as they are sent
    forSlices(in, mine, mineCount, [&](std::byte*, std::size_t bytes) {
      receives.push_back({r, part.data() + done, bytes});
      done += bytes;
    });
  }
  SS_TRY(move(sends, receives));
  std::vector<const std::byte*> parts;
  for (const std::vector<std::byte>& part : scratch_) parts.push_back(part.data());
  std::vector<std::byte>& sum = scratch_[0];
  if (Status summed = sumInRankOrder(dtype, parts, mineCount, average ? 1.0 / ranks : 1.0, sum.data()); !summed)
    return failed(summed.error());
  std::size_t done = 0;
  forSlices(out, mine, mineCount, [&](std::byte* data, std::size_t bytes) {
    std::memcpy(data, sum.data() + done, bytes);
    done += bytes;
  });
  sends.clear();
  receives.clear();
  for (int r = 0; r < ranks; ++r) {
    if (r == rank()) continue;
    std::size_t sent = 0;
    forSlices(out, mine, mineCount, [&](std::byte*, std::size_t bytes) {
      sends.push_back({r, sum.data() + sent, bytes});
      sent += bytes;
    });
    forSlices(out, share(r), share(r + 1) - share(r), [&](std::byte* data, std::size_t bytes) {
      receives.push_back({r, data, bytes});
    });
  }
  return move(sends, receives);
}

Status Communicator::allReduce(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out,
                               bool average) {
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].dtype != in[0].dtype || out[i].dtype != in[0].dtype || out[i].elements() != in[i].elements())
      return invalid(fmt::format("AllReduce '{}': {}{} beside {}{}; expected one type, and results as large as operands",
                                 place.node, dtypeName(in[i].dtype), dimsText(in[i].dims), dtypeName(out[i].dtype),
                                 dimsText(out[i].dims)));
    elements += in[i].elements();
  }
  CollectiveHeader header;
  header.kind = CollectiveKind::kAllReduce;
  header.average = average;
  SS_TRY(meet(header, place, in));
  if (place.onDevice())
    return putOnDevice("AllReduce", in, {},
                       [&](DeviceRanks& ranks) { return ranks.allReduce(in, out, average, place.stream); });
  const std::int64_t piece =
      in.empty()
          ? 1
          : std::max<std::int64_t>(1, kCollectivePieceBytes / static_cast<std::int64_t>(dtypeSize(in[0].dtype))) * size();
  for (std::int64_t first = 0; first < elements; first += piece)
    SS_TRY(reduceRange(in, out, first, std::min(piece, elements - first), average));
  count();
  return {};
}

Status Communicator::allGather(const CollectivePlace& place, std::span<const TensorView> in,
                               std::span<const TensorView> out) {
  SS_TRY(checkParts(fmt::format("AllGather '{}'", place.node), out, in, size()));
  CollectiveHeader header;
  header.kind = CollectiveKind::kAllGather;
  SS_TRY(meet(header, place, out));
  if (place.onDevice())
    return putOnDevice("AllGather", out, {}, [&](DeviceRanks& ranks) { return ranks.allGather(in, out, place.stream); });
  std::vector<Transfer> sends, receives;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto bytes = static_cast<std::int64_t>(dtypeSize(out[i].dtype));
    const std::int64_t elements = out[i].elements(), length = partLength(elements, size());
    for (int r = 0; r < size(); ++r) {
      const std::int64_t theirs = partFilled(elements, r, size()), mine = partFilled(elements, rank(), size());
      std::byte* const target = bytesOf(out[i]) + r * length * bytes;
      if (r != rank()) {
        if (mine > 0) sends.push_back({r, bytesOf(in[i]), static_cast<std::size_t>(mine * bytes)});
        if (theirs > 0) receives.push_back({r, target, static_cast<std::size_t>(theirs * bytes)});
      } else if (mine > 0 && target != bytesOf(in[i])) {
        std::memmove(target, in[i].data, static_cast<std::size_t>(mine * bytes));
      }
    }
  }
  SS_TRY(move(sends, receives));
  count();
  return {};
}

// Of the list of parts, elements [first, first + count): every rank gets those of its own from all others, and adds them up.
Status Communicator::scatterRange(std::span<const TensorView> in, std::span<const TensorView> out, std::int64_t first,
                                  std::int64_t count, bool average) {
  const auto size = static_cast<std::int64_t>(dtypeSize(in[0].dtype));
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < this->size(); ++r) {
    std::vector<std::byte>& part = scratch_[at(r)];
    part.assign(static_cast<std::size_t>(count * size), std::byte{0});
    forPart(in, rank(), this->size(), first, count,
            [&](std::int64_t where, std::size_t i, std::int64_t from, std::int64_t elements) {
              const auto bytes = static_cast<std::size_t>(elements * size);
              if (r == rank())
                std::memcpy(part.data() + where * size, bytesOf(in[i]) + from * size, bytes);
              else
                receives.push_back({r, part.data() + where * size, bytes});
            });
    if (r == rank()) continue;
    forPart(in, r, this->size(), first, count, [&](std::int64_t, std::size_t i, std::int64_t from, std::int64_t elements) {
      sends.push_back({r, bytesOf(in[i]) + from * size, static_cast<std::size_t>(elements * size)});
    });
  }
  SS_TRY(move(sends, receives));
  std::vector<const std::byte*> parts;
  for (const std::vector<std::byte>& part : scratch_) parts.push_back(part.data());
  std::vector<std::byte>& sum = scratch_[0];
  if (Status summed = sumInRankOrder(in[0].dtype, parts, count, average ? 1.0 / this->size() : 1.0, sum.data()); !summed)
    return failed(summed.error());
  std::size_t done = 0;
  forSlices(out, first, count, [&](std::byte* data, std::size_t bytes) {
    std::memcpy(data, sum.data() + done, bytes);
    done += bytes;
  });
  return {};
}

Status Communicator::reduceScatter(const CollectivePlace& place, std::span<const TensorView> in,
                                   std::span<const TensorView> out, bool average) {
  SS_TRY(checkParts(fmt::format("ReduceScatter '{}'", place.node), in, out, size()));
  CollectiveHeader header;
  header.kind = CollectiveKind::kReduceScatter;
  header.average = average;
  SS_TRY(meet(header, place, in));
  if (place.onDevice())
    return putOnDevice("ReduceScatter", in, {},
                       [&](DeviceRanks& ranks) { return ranks.reduceScatter(in, out, average, place.stream); });
  std::int64_t elements = 0;
  for (const TensorView& part : out) elements += part.elements();
  const std::int64_t piece =
      in.empty() ? 1 : std::max<std::int64_t>(1, kCollectivePieceBytes / static_cast<std::int64_t>(dtypeSize(in[0].dtype)));
  for (std::int64_t first = 0; first < elements; first += piece)
    SS_TRY(scatterRange(in, out, first, std::min(piece, elements - first), average));
  count();
  return {};
}

// Every rank sends all it has to the root, a piece at a time.
Status Communicator::reduce(const CollectivePlace& place, const TensorView& in, const TensorView& out, int root) {
  const bool mine = rank() == root;
  if (root < 0 || root >= size() || (mine && (out.dtype != in.dtype || out.elements() != in.elements())))
    return invalid(fmt::format(
        "Reduce '{}': {}{} to {}{} of rank {}; expected one type and extents, and a rank from 0 to {}", place.node,
        dtypeName(in.dtype), dimsText(in.dims), dtypeName(out.dtype), dimsText(out.dims), root, size() - 1));
  CollectiveHeader header;
  header.kind = CollectiveKind::kReduce;
  header.root = root;
  SS_TRY(meet(header, place, std::span(&in, 1)));
  if (place.onDevice())
    return putOnDevice("Reduce", std::span(&in, 1), {.to = root},
                       [&](DeviceRanks& ranks) { return ranks.reduce(in, out, root, place.stream); });
  const std::int64_t bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(dtypeSize(in.dtype)));
  const std::int64_t elements = in.elements(), piece = std::max<std::int64_t>(1, kCollectivePieceBytes / bytes);
  for (std::int64_t first = 0; first < elements; first += piece) {
    const std::int64_t count = std::min(piece, elements - first);
    const auto part = static_cast<std::size_t>(count * bytes);
    std::vector<Transfer> sends, receives;
    std::vector<const std::byte*> parts;
    for (int r = 0; mine && r < size(); ++r) {
      if (r == rank()) {
        parts.push_back(bytesOf(in) + first * bytes);
        continue;
      }
      scratch_[at(r)].resize(part);
      receives.push_back({r, scratch_[at(r)].data(), part});
      parts.push_back(scratch_[at(r)].data());
    }
    if (!mine) sends.push_back({root, bytesOf(in) + first * bytes, part});
    SS_TRY(move(sends, receives));
    if (!mine) continue;
    if (Status summed = sumInRankOrder(in.dtype, parts, count, 1, bytesOf(out) + first * bytes); !summed)
      return failed(summed.error());
  }
  count();
  return {};
}

Status Communicator::broadcast(const CollectivePlace& place, std::span<const TensorView> tensors, int root) {
  if (root < 0 || root >= size())
    return invalid(fmt::format("Broadcast '{}': from rank {}; expected 0 to {}", place.node, root, size() - 1));
  CollectiveHeader header;
  header.kind = CollectiveKind::kBroadcast;
  header.root = root;
  SS_TRY(meet(header, place, tensors));
  if (place.onDevice())
    return putOnDevice("Broadcast", tensors, {.from = root},
                       [&](DeviceRanks& ranks) { return ranks.broadcast(tensors, root, place.stream); });
  std::vector<Transfer> sends, receives;
  for (const TensorView& tensor : tensors)
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      if (rank() == root) sends.push_back({r, bytesOf(tensor), tensor.bytes()});
      if (r == root) receives.push_back({r, bytesOf(tensor), tensor.bytes()});
    }
  SS_TRY(move(sends, receives));
  count();
  return {};
}

Status Communicator::allToAll(const CollectivePlace& place, const TensorView& in, const TensorView& out) {
  if (in.dtype != out.dtype || in.elements() != out.elements() || in.elements() % size() != 0 ||
      (in.data == out.data && in.bytes() > 0))
    return invalid(fmt::format("AllToAll '{}': {}{} and {}{}; expected two tensors of one type and extent, a multiple of {}",
                               place.node, dtypeName(in.dtype), dimsText(in.dims), dtypeName(out.dtype), dimsText(out.dims),
                               size()));
  CollectiveHeader header;
  header.kind = CollectiveKind::kAllToAll;
  SS_TRY(meet(header, place, std::span(&in, 1)));
  if (place.onDevice())
    return putOnDevice("AllToAll", std::span(&in, 1), {},
                       [&](DeviceRanks& ranks) { return ranks.allToAll(in, out, place.stream); });
  const std::size_t bytes = in.bytes() / at(size());
  std::vector<Transfer> sends, receives;
  for (int r = 0; bytes > 0 && r < size(); ++r) {
    std::byte *const from = bytesOf(in) + at(r) * bytes, *const to = bytesOf(out) + at(r) * bytes;
    if (r == rank()) {
      std::memcpy(to, from, bytes);
      continue;
    }
    sends.push_back({r, from, bytes});
    receives.push_back({r, to, bytes});
  }
  SS_TRY(move(sends, receives));
  count();
  return {};
}

Status Communicator::send(const CollectivePlace& place, const TensorView& tensor, int to) {
  CollectiveHeader header;
  header.kind = CollectiveKind::kSend;
  header.root = to;
  SS_TRY(meetRank(header, place, tensor, to));
  if (place.onDevice())
    return putOnDevice("Recv", std::span(&tensor, 1), {.from = rank(), .to = to},
                       [&](DeviceRanks& ranks) { return ranks.send(tensor, to, place.stream); });
  std::vector<Transfer> sends{{to, bytesOf(tensor), tensor.bytes()}}, receives;
  SS_TRY(move(sends, receives));
  count();
  return {};
}

Status Communicator::receive(const CollectivePlace& place, const TensorView& tensor, int from) {
  CollectiveHeader header;
  header.kind = CollectiveKind::kReceive;
  header.root = rank();
  SS_TRY(meetRank(header, place, tensor, from));
  if (place.onDevice())
    return putOnDevice("Recv", std::span(&tensor, 1), {.from = from, .to = rank()},
                       [&](DeviceRanks& ranks) { return ranks.receive(tensor, from, place.stream); });
  std::vector<Transfer> sends, receives{{from, bytesOf(tensor), tensor.bytes()}};
  SS_TRY(move(sends, receives));
  count();
  return {};
}

}  // namespace stepscope
