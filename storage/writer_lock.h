// The right to write one project file, held by at most one open Project on this machine.
//
// It is an advisory lock on a side file "<project>.lock", never on the database itself: closing a descriptor of the
// database would drop SQLite's own locks. The operating system releases it when the holder dies, so no stale lock exists.
// The side file says who holds it: process id and start time.
#pragma once

#include <string>

#include "storage/error.h"

namespace stepscope::storage {

class WriterLock {
 public:
  // Errors: kLocked naming the process that holds it; kIo.
  static Result<WriterLock> acquire(const std::string& projectPath);

  // Whether a living process holds it. False where that cannot be told: no side file, or none that may be read.
  static bool isHeld(const std::string& projectPath);

  WriterLock() = default;
  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&& other) noexcept;
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;
  ~WriterLock();

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace stepscope::storage
