// One `.stepscope` file: a SQLite database that holds runs, their graphs, plans, steps and what was seen.
//
// Writing     one writer per file (WriterLock). WAL with synchronous=FULL: a commit survives a kill and a power cut. Only
// the
//             writer ever checkpoints. Closed cleanly, the file is a single file again (journal mode DELETE).
// Reading     any number of readers, also while it is being written. A reader treats the file as hostile: schema not
//             trusted, defensive mode, no triggers, no views, limits on sizes, bounded memory, `quick_check` first. Of a
//             damaged one it reads a copy of what can still be read (salvage.h), and its warnings say what cannot.
// Thread      a Project is used by one thread at a time; give every thread its own.
// Errors      kNotFound, kExists, kLocked, kForeign (no database, or not ours), kNewer, kCorrupt, kIo.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "storage/error.h"

namespace stepscope::storage {

class Connection;

class Project {
 public:
  // Creates a new file. Fails with kExists when there is one with contents.
  static Result<Project> create(const std::filesystem::path& path);
  // Opens an existing project for writing and migrates it, or creates it. Runs whose writer died become "interrupted".
  static Result<Project> openForWriting(const std::filesystem::path& path);
  // What is read ends with kCancelled once `stop` is set, from any thread; who puts a result together of several queries
  // asks stopped() before it is used. It outlives the project. runSql() has a flag of its own.
  static Result<Project> openReadOnly(const std::filesystem::path& path, const std::atomic<bool>* stop = nullptr);

  Project(Project&& other) noexcept;
  Project& operator=(Project&& other) noexcept;
  ~Project();

  // Closes the file; a writer folds the WAL back first. The destructor does the same and drops the error.
  Status close();

  const std::string& path() const;  // absolute, symbolic links resolved
  // Whether the file is still the one at path(). kNotFound: it was deleted; kIo: it was moved, or another took its place.
  Status checkPlace() const;
  bool writable() const;
  int schemaVersion() const;                         // as found in the file
  const std::vector<std::string>& warnings() const;  // "made by a newer version", "damaged", "network folder" …
  // What can be read of the file is in memory; warnings() begins with why, then names what is not there.
  bool damaged() const;
  bool stopped() const;

  // For the other files of storage.
  Connection& connection() const;

 private:
  struct State;
  explicit Project(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stepscope::storage
