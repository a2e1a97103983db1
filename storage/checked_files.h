// Which files this process has checked to their end (quick_check), so that a list of runs that is read twice a second does
// not read a gigabyte each time.
//
// A file is known by device, inode, size and time of its last change, and those of its WAL; while a writer of this process
// has it open, by device and inode alone: it was checked when the writer opened it, and nobody else writes it. A file that
// changed within the last moment is checked again, because a second change could bear the same time. Thread: any.
#pragma once

#include <sys/types.h>

#include <string>

namespace stepscope::storage {

class CheckedFiles {
 public:
  static bool contains(const std::string& path);
  static void add(const std::string& path);
  // Between the two, what a writer of this process writes needs no check.
  static void beginWriting(dev_t device, ino_t inode);
  static void endWriting(dev_t device, ino_t inode);
};

// How often a whole file was checked; for tests.
int wholeChecks();
void countWholeCheck();

}  // namespace stepscope::storage
