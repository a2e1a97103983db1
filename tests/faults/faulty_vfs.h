// A file system under SQLite that fails when it is told to: a call that is refused, a write that is cut short, a disk that
// is full, and a power cut that takes back everything that was not synced. As SQLite's own tests and LevelDB's
// fault_injection_test do. The files are real ones, so that the rest of storage sees them too.
//
// Thread: one test at a time; the threads of a recorder may use it.
#pragma once

#include <filesystem>
#include <string>

namespace stepscope::testing {

enum class Fault {
  kNone,
  kRefused,     // SQLITE_IOERR: the call did nothing
  kShortWrite,  // a write ends in the middle and says so
  kDiskFull,    // SQLITE_FULL
  kPowerCut,    // from this call on nothing works; restart() takes back what was not synced
};

class FaultyVfs {
 public:
  // Becomes what SQLite uses by default, until the end of the object. Only files below `folder` are touched.
  explicit FaultyVfs(std::filesystem::path folder);
  ~FaultyVfs();

  // The `call`-th call from now on that changes a file (write, truncate, sync, delete, create) fails. Calls after it work
  // again, except after a power cut.
  void failAt(Fault fault, int call);
  int calls() const;      // that changed a file, since failAt() or the beginning
  bool happened() const;  // the call was reached
  // The machine is switched on again: files are what was synced, nothing fails.
  void restart();
};

}  // namespace stepscope::testing
