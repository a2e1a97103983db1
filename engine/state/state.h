// What training changes: parameters, running statistics, optimizer state, counters. Keyed by imported name, in logical
// layout.
//
// A micro step is a transaction. Between begin and commit, keep() saves what the step is about to write over; rollback()
// puts all of it back, bit for bit. Counters change only in commit(). Plans borrow the tensors: their addresses stay the
// same for the life of the State. Not thread-safe.
//
// Tensors are in the memory of one device at a time, to which bring() moves them; memory on other devices stays, because
// plans are bound to it. Host code reads and writes contents with read() and write(). A device that cannot copy any more
// ends the process: nobody could go on with half a state.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/state/counters.h"
#include "kernels/device.h"

namespace stepscope {

// A copy of the state at the start of a micro step; the ring holds some.
struct StateSnapshot {
  StateCounters counters;
  std::map<std::string, Tensor> tensors;
  std::int64_t bytes() const;
};

class State {
  using Tensors = std::map<std::string, Tensor>;

 public:
  StateCounters counters;

  // The tensor of an initializer or state value, made with its initial contents when the name is new or its extents are
  // others. They are taken over, not copied (engine/ir/initial_contents.h), and converted from another floating type.
  // `writes`: as writesOver(). Errors: an extent that is not a number; more elements than fit; contents that are gone.
  Result<Tensor> obtain(const Value& value, bool writes = true);
  // Steps or edits write over the memory of the tensor from now on: the model gives up what it shares of it. Functions of
  // the State that write do so too.
  void writesOver(const std::string& name);
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const Tensor* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Which tensors there are, and on which device: what obtain(), set() and bring() change. A bind that does not come to its
  // end puts them back. Contents that were written in place stay.
  struct Held;
  Held hold() const;
  void putBack(Held held);
  // The contents live in `memory` from now on, which a caller shares: what it writes there counts from the next step on.
  // `take`: they become what is there; else what the state has is copied into it. Plans that borrowed the tensor before are
  // to be bound again. Errors: an unknown name; another type or extents; a state whose memory the host cannot reach.
  Status place(const std::string& name, Tensor memory, bool take);
  // Takes over a tensor of the host.
  Status set(std::string name, Tensor tensor);

  // --- devices
  Device& device() const { return *device_; }
  Status bring(Device& device);  // nothing to do where it is there already
  // Contents on the host: borrowed where it can reach them, else a copy that holds until they are read again. The name is
  // known.
  Tensor read(const std::string& name) const;
  void write(const std::string& name, const TensorView& contents);
  std::int64_t bytes() const;

  // --- copies of parameters in a low type (engine/ir/low_copy.h). They follow their parameter: obtain() makes them, copies
  // of the state leave them out, and whatever changes the parameter but the step's own updates makes them stale.
  bool isLowCopy(const std::string& name) const { return lowCopies_.contains(name); }
  std::vector<std::string> lowCopiesOf(std::string_view parameter) const;
  // A step of a plan begins that reads these copies and keeps them up to date: stale ones are made anew. All others are
  // stale from here on, because the step may write their parameters.
  void beginLowCopies(const std::set<std::string>& names);
  // The contents of the parameter were changed in its memory.
  void refreshLowCopiesOf(std::string_view parameter);

  // --- the running step
  // Saves the contents of `name` unless this step has saved them before. The copy belongs to the State; it is shared, so
  // that the undo log need not make another one.
  const Tensor& keep(const std::string& name);
  // How many names are kept; entries from `first` on are those that keep() has added since there were `first`.
  std::size_t keptCount() const { return kept_.size(); }
  const std::pair<std::string, Tensor>& kept(std::size_t i) const { return kept_[i]; }
  // Puts back what was kept, and forgets it. Counters have not changed.
  void rollback();
  // The step is done. `roundEnds`: so does a round of accumulation. `updated`: the optimizer ran; not where the gradients of
  // the round were not finite.
  void commit(bool roundEnds, bool updated);
  // How many entries of the data all ranks together take in a step.
  void setRanks(std::int64_t ranks) { ranks_ = ranks; }

  // --- whole copies
  StateSnapshot copy() const;
  // Contents and counters of the copy, converted where the floating type differs; tensors that it lacks become zeros. Kept
  // contents are forgotten.
  void restore(const StateSnapshot& snapshot);

 private:
  Result<Tensor> obtainLowCopy(const Value& value);
  Result<Tensor> borrowed(const Value& value);  // initial contents
  void fillLowCopy(const std::string& name);
  void lowCopiesAreStale(std::string_view parameter);
  void writeContents(const std::string& name, const TensorView& contents);
  Result<Tensor> brought(const Tensor& onHost) const;  // the tensor itself on the CPU, else a copy on the device

  Device* device_ = &cpuDevice();
  std::int64_t ranks_ = 1;
  Tensors tensors_;                                     // in the memory of device_
  std::map<Device*, Tensors> away_;                     // memory on other devices; its contents are out of date
  mutable Tensors copies_;                              // on the host, of what was read from a device
  std::map<std::string, bool> lowCopies_;               // by name: whether it is stale
  std::set<std::string> placed_;                        // in memory that a caller shares
  std::map<std::string, InitialContents::Loan> loans_;  // in memory that is still the model's; nobody has written there
  std::vector<std::pair<std::string, Tensor>> kept_;    // on the host, in the order of the writes
};

struct State::Held {
  Device* device;
  Tensors tensors;
  std::map<Device*, Tensors> away;
  std::map<std::string, bool> lowCopies;
  std::map<std::string, InitialContents::Loan> loans;
};

}  // namespace stepscope
