// Ranks that `mpirun` started, over MPI's non-blocking messages of bytes.
#pragma once

#include <memory>

#include "engine/comm/mpi_library.h"
#include "engine/comm/transport.h"

namespace stepscope {

// Begins MPI where nobody has. One in a process at a time. Errors: those of MpiLibrary::load.
// A process that ends without finish() ends all ranks: mpirun tells them with SIGTERM and, a second later, SIGKILL.
class MpiRanks {
 public:
  static Result<std::unique_ptr<Transport>> join();
  // At the end of a run that went well: waits for the others.
  static void finish();
};

}  // namespace stepscope
