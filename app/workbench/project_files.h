// SPDX-License-Identifier: GPL-3.0-or-later
// Project files as the window opens them for writing: one to record into, one to delete or name a run of. Both block: on the
// thread that records.
#pragma once

#include <QString>
#include <memory>
#include <string>

#include "storage/recorder.h"

namespace stepscope {

struct StartedRecorder {
  std::unique_ptr<storage::Recorder> recorder;  // null: nothing can be recorded
  QString path;                                 // it records into
  bool refuge = false;                          // a folder for temporary files, which stays there
  std::string why;                              // the wanted file was not taken
};
// Records into `path`, which is created when it is not there; next to it while another window writes it; in a refuge where
// it cannot be written.
StartedRecorder startRecorder(const QString& path);

// Takes a run out of a project that nobody records. Whether it was the newest one.
storage::Result<bool> deleteFromFile(const std::string& path, std::int64_t run);

// Gives a run of a project that nobody records another name.
storage::Status nameInFile(const std::string& path, std::int64_t run, const std::string& name);

// Why the project cannot be written now; empty: it can be, as far as a look tells. Does not block.
QString whyNotWritable(const QString& path);

}  // namespace stepscope
