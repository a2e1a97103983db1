// The ranks of a run as one of them sees them while it steps: what is exchanged, once for each step, and what is kept of it.
//
// A step that is taken back, walked through or replayed meets its collectives again. The other ranks do not: they are sent
// nothing a second time. What was received is used where it was kept, and is an error where it was not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/rank_thread.h"

namespace stepscope {

class Ranks {
 public:
  explicit Ranks(std::unique_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  Communicator& communicator() { return *communicator_; }

  // From here on results of collectives are kept until the next step: bytes as large as they are. Without it those are whose
  // place says that they are asked for again.
  void keepReceived(bool on) { keeps_ = on; }

  // The sum over ranks, or the mean. Errors: those of Communicator; kNotFound: the step exchanged it before and it was not
  // kept.
  Status allReduce(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out,
                   bool average);
  // Parts of tensors (kernels/rank_part.h): this rank's of the sum, or mean; and all of them together.
  Status reduceScatter(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out,
                       bool average);
  Status allGather(const CollectivePlace& place, std::span<const TensorView> in, std::span<const TensorView> out);
  // `out` = `in` of rank `root`; the sum over ranks on rank `root` and zeros on the others; parts of the first axis from
  // all. Only the last has operands that must not share memory.
  Status broadcast(const CollectivePlace& place, const TensorView& in, const TensorView& out, int root);
  Status reduce(const CollectivePlace& place, const TensorView& in, const TensorView& out, int root);
  Status allToAll(const CollectivePlace& place, const TensorView& in, const TensorView& out);
  // `out` = `in` of rank `from` on rank `to`, zeros on the others, which are not waited for.
  Status message(const CollectivePlace& place, const TensorView& in, const TensorView& out, int from, int to);
  // `out` = `in`, both where the place says.
  Status copyOver(const CollectivePlace& place, const TensorView& in, const TensorView& out);
  // On rank 0 `whole` gets the parts of all; others do not read it. Between steps: a second call sends again.
  Status gatherToFirst(const CollectivePlace& place, const TensorView& part, const TensorView& whole);
  // `parts` gets the elements of every rank, one rank behind the other.
  Status gather(const CollectivePlace& place, std::span<const double> mine, std::vector<double>& parts);
  // The smallest of all ranks' values takes the place of each.
  Status smallest(const std::string& what, std::int64_t step, double& value);

  // A thread for collectives that run beside others; null where the transport takes calls of one thread alone. While a job
  // of it runs nothing else here may be called.
  RankThread* thread();
  // What a collective of this step left in `out` is kept although nobody had asked for that.
  Status keep(const CollectivePlace& place, std::span<const TensorView> out);
  // It ran beside others, which waited so long for it in the end.
  void ranBeside(const std::string& node, std::int64_t exposedNs) { beside_.emplace_back(node, exposedNs); }

  // What collectives took since this was asked before: together, and each one in its order.
  CollectiveTimes takeTimes();
  struct Exchanged {
    std::string node;
    CollectiveTimes times;
    std::int64_t beginNs = 0;    // of the monotonic clock
    std::int64_t exposedNs = 0;  // during which this rank did nothing else
  };
  std::vector<Exchanged> takeExchanges();

 private:
  Status zero(const CollectivePlace& place, const TensorView& out);
  template <typename Exchange>
  Status once(const CollectivePlace& place, std::span<const TensorView> out, Exchange exchange);

  std::unique_ptr<Communicator> communicator_;
  bool keeps_ = false;
  std::int64_t step_ = -1;
  std::map<std::string, std::vector<Tensor>> done_;  // of the step, by node; empty where results were not kept
  CollectiveTimes told_;
  std::vector<Exchanged> exchanges_;
  std::vector<std::pair<std::string, std::int64_t>> beside_;
  std::unique_ptr<RankThread> thread_;  // the last member: it uses the others
};

}  // namespace stepscope
