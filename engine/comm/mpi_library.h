// The few functions of MPI that carry bytes, from a library that is looked for when it is asked for: a machine without MPI
// builds and runs everything else.
//
// MPI has no binary interface of its own: what MPI_COMM_WORLD is differs. Here that is known of Open MPI, whose constants
// are symbols (ompi_mpi_comm_world), and of those with the interface of MPICH (MPICH, MVAPICH, Intel MPI), where they are
// numbers. Which of the two a library is, its own symbols tell.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/status.h"

namespace stepscope {

class MpiLibrary {
 public:
  using Handle = void*;  // a pointer, or a number in it

  // `path`: a file, or empty for the names that libraries have. Errors kUnsupported: none is there, with what was looked
  // for; one that is neither of the two.
  static Result<const MpiLibrary*> load(const std::string& path = {});

  Handle world() const { return world_; }
  Handle byte() const { return byte_; }
  std::string version() const;

  // As MPI has them; 0 = success. A request is as large as a pointer in both.
  int (*initThread)(int*, char***, int, int*) = nullptr;
  int (*queryThread)(int*) = nullptr;
  int (*initialized)(int*) = nullptr;
  int (*commRank)(Handle, int*) = nullptr;
  int (*commSize)(Handle, int*) = nullptr;
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*test)(Handle*, int*, void*) = nullptr;
  int (*finalize)() = nullptr;
  int (*getLibraryVersion)(char*, int*) = nullptr;
  int (*setErrorHandler)(Handle, Handle) = nullptr;
  Handle errorsReturn() const { return errorsReturn_; }
  void* statusIgnore() const { return statusIgnore_; }

 private:
  Handle world_ = nullptr, byte_ = nullptr, errorsReturn_ = nullptr;
  void* statusIgnore_ = nullptr;
};

}  // namespace stepscope
