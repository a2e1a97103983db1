// Collectives between the ranks of a run: processes that train one model together, each with its own part of the data.
//
// All algorithms are written over Transport, so that MPI, and whatever else carries bytes, gives the same bits: sums are
// made by one rank for each element, in the order of the ranks (rank_order_sum.h), and sent to the others. A call returns
// when its results are there. It ends in a typed error, on every rank, where
//   a rank ends or is killed          kIo, naming the rank and the node that waits for it
//   ranks are at different collectives  kInvalidArgument, naming both ranks and both nodes (collective_header.h)
//   nothing comes for too long        kIo, naming the ranks that have not come
//   this rank is told to end          kIo, naming the ranks that have not come
// After an error every further call returns it again. One thread at a time; which one, see Transport::anyThread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/comm/collective_bytes.h"
#include "engine/comm/collective_header.h"
#include "engine/comm/device_watch.h"
#include "engine/comm/transport.h"
#include "kernels/tensor.h"

namespace stepscope {

// Where a collective stands: the same on every rank.
struct CollectivePlace {
  std::string node;
  std::int64_t step = 0;
  bool askedAgain = false;  // this rank may replay it before its step is done
  // Where tensors are memory of the device (moveBy), the stream of it that they belong to; -1: they are memory of the host.
  StreamId stream = -1;
  bool onDevice() const { return stream >= 0; }
};

// What one collective took on this rank, or several of them together.
struct CollectiveTimes {
  std::int64_t waitNs = 0;  // until all ranks had come
  std::int64_t moveNs = 0;  // then, until the results were there
  std::int64_t sentBytes = 0, receivedBytes = 0;
  std::int64_t count = 0;
  int last = -1;  // the rank that came last, of the newest one
};

class Communicator {
 public:
  // `timeoutSeconds`: how long a rank may let others wait.
  Communicator(std::unique_ptr<Transport> transport, double timeoutSeconds);
  ~Communicator();
  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  std::string transport() const { return transport_->name(); }
  bool anyThread() const { return transport_->anyThread(); }

  // From here on collectives of places with a stream are put there, and run by `ranks`. The call returns when that is done;
  // what it took, in newest(), is the meeting and the putting. They end in the same errors: by the next call, or by
  // deviceEnded().
  void moveBy(std::unique_ptr<DeviceRanks> ranks);
  DeviceRanks* deviceRanks() { return watch_ ? &watch_->ranks() : nullptr; }
  // The device has been waited for: what became of those that were put there.
  Status deviceEnded();

  // Contiguous tensors of one type, the same list on all ranks; `out[i]` may be the memory of `in[i]`.
  // The sum over ranks, or the mean, on all of them.
  Status allReduce(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out,
                   bool average);
  // out[i] = the parts of all ranks (kernels/rank_part.h), of which this one has in[i].
  Status allGather(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out);
  // out[i] = part rank() of the sum, or mean, of in[i] over ranks.
  Status reduceScatter(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out,
                       bool average);
  // The sum over ranks in `out` of `root`, which may be the memory of `in`; others have no `out`.
  Status reduce(const CollectivePlace& place, const TensorView& in, const TensorView& out, int root);
  // Contents of `root` on all.
  Status broadcast(const CollectivePlace& place, std::span<const TensorView> tensors, int root);
  // in, out = size() parts; part r of `in` becomes part rank() of rank r's `out`.
  Status allToAll(const CollectivePlace& place, const TensorView& in, const TensorView& out);
  // Between two ranks, both of which know type and extents, and find others to be an error.
  Status send(const CollectivePlace& place, const TensorView& tensor, int to);
  Status receive(const CollectivePlace& place, const TensorView& tensor, int from);

  // Tells the others why this rank ends, and that it is not to be waited for. Nothing can be sent after it.
  void end(const std::string& why);

  // From a signal handler too: what waits for others gives up at that time of the monotonic clock; 0: it does not.
  void giveUpAt(std::int64_t ns) { giveUpAt_ = ns; }

  const CollectiveTimes& newest() const { return newest_; }
  const CollectiveTimes& total() const { return total_; }

 private:
  Status meet(CollectiveHeader header, const CollectivePlace& place, std::span<const TensorView> tensors);
  tl::unexpected<Error> otherEnded(int said, const CollectiveHeader& theirs);
  Status meetRank(CollectiveHeader header, const CollectivePlace& place, const TensorView& tensor, int peer);
  Status move(std::vector<Transfer>& sends, std::vector<Transfer>& receives);
  Status wait(std::span<Transfer> sends, std::span<Transfer> receives);
  Status reduceRange(std::span<const TensorView> in, std::span<const TensorView> out, std::int64_t first, std::int64_t count,
                     bool average);
  Status scatterRange(std::span<const TensorView> in, std::span<const TensorView> out, std::int64_t first,
                      std::int64_t count, bool average);
  // After the ranks have met: lets the device move `whole`, and counts what plans say is sent of it.
  Status putOnDevice(std::string_view op, std::span<const TensorView> whole, CollectiveEnds ends,
                     const std::function<Status(DeviceRanks&)>& put);
  void count();
  Status failed(Error error);
  bool peers() const { return size() > 1; }

  std::unique_ptr<Transport> transport_;
  const std::int64_t timeoutNs_;
  std::atomic<std::int64_t> giveUpAt_ = 0;
  std::int64_t number_ = 0;
  CollectiveHeader now_;  // of the collective that runs: for messages
  std::optional<Error> error_;
  int culprit_ = -1;
  bool ended_ = false;
  bool waited_ = false;  // whether the newest transfers were not there at once
  CollectiveTimes newest_, total_;
  std::int64_t metNs_ = 0;
  std::vector<std::vector<std::byte>> scratch_;  // by rank: its part of a sum
  std::unique_ptr<DeviceWatch> watch_;           // null: no device moves anything
};

}  // namespace stepscope
