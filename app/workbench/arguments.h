// SPDX-License-Identifier: GPL-3.0-or-later
// The command line of stepscope-workbench.
#pragma once

#include <QSize>
#include <QString>
#include <QStringList>
#include <optional>

#include "app/workbench/remote_host.h"
#include "engine/snapshot/worker.pb.h"

namespace stepscope {

struct Arguments {
  QString path;            // model or project; empty: the start page
  RemoteHost host;         // where the worker runs, or the script that is attached to; empty: here
  QString layout;          // empty: as it was left
  QString theme;           // "light", "dark", empty: as it was left or the system's
  QString screenshot;      // PNG to write before leaving; implies a window that remembers nothing
  QStringList show;        // ids of views to bring to the front
  QSize size;              // of the window; empty: as it was left
  std::int64_t steps = 0;  // training steps to run first
  int runTo = -1;          // instruction to stop before, after those steps
  int selectInstruction = -1;
  snapshot::Configure configuration;  // --data, --set and the other options of `stepscope train`
};

// Prints help or what is wrong and returns the exit code when the program has to end.
std::optional<int> parseArguments(const QStringList& arguments, Arguments* out);

}  // namespace stepscope
