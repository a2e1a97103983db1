// Bytes between the ranks of a run. What collectives are made of; it knows nothing of them.
//
// Bytes from one rank to another arrive in the order in which they were sent; what is sent as one transfer is received as
// one. Every rank may send to and receive from all others at once: advance() goes on with whatever can go on, so that nobody
// waits for a peer that waits for him. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/status.h"

namespace stepscope {

// Memory that goes to or comes from another rank; it stays where it is until advance() has said that all is done.
struct Transfer {
  int rank = 0;  // the other one
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::int64_t doneNs = 0;  // of the monotonic clock, when the last byte came or went
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;  // "mpi (Open MPI v4.1.4 …)", "local": for people

  // Whether that may be another one than the one that made it.
  virtual bool anyThread() const { return true; }

  // Begins to send and to receive; transfers with one rank are in the order of the list. Nothing else is under way.
  virtual Status begin(std::span<Transfer> sends, std::span<Transfer> receives) = 0;
  // Goes on, and waits at most `waitMs` for something to do. True: all is done. Error kIo: a rank that is still needed is
  // gone; `lost` says which.
  virtual Result<bool> advance(int waitMs, int* lost) = 0;
  // A rank that is gone; -1: none, as far as can be told without looking at what was sent. Any thread, at any time before
  // end().
  virtual int lostRank() const { return -1; }
  // No word from this rank is to be expected any more: others find that out at once.
  virtual void end() = 0;
};

// Nanoseconds of the monotonic clock.
std::int64_t rankClockNs();

}  // namespace stepscope
