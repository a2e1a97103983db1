// Ranks of one machine: processes that the first of them starts, and threads of tests.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/comm/transport.h"

namespace stepscope {

// One transport for each of `ranks` threads of this process.
Result<std::vector<std::unique_ptr<Transport>>> makeLocalTransports(int ranks);

// Starts this program again, with the same arguments, as ranks 1 … ranks - 1, and is rank 0. A process that was started so
// finds what it is in its environment and starts nobody. The others print nothing on stdout; they end when rank 0 does.
// Errors kIo: no sockets, no processes.
class LocalProcesses {
 public:
  static Result<std::unique_ptr<Transport>> join(int ranks);
  // Whether this process was started by join().
  static bool started();
  // Rank 0: waits until the others have ended; the first exit code that is not zero.
  static int wait();
};

}  // namespace stepscope
