// SPDX-License-Identifier: GPL-3.0-or-later
// What a bug report needs of a worker that died while it built: a folder with report.txt, log.txt and the last graph that
// the build kept (graph.pb, snapshot.Graph). Contents of the model stay out of it: names and shapes of the graph are there,
// numbers are not.
#pragma once

#include <QString>
#include <QStringList>

#include "app/workbench/build_trace.h"

namespace stepscope {

struct BugFacts {
  BuildDeath death;
  QString model, version;
  MachinePtr machine;
  snapshot::Configure configuration;
  QStringList log;
};

// A new folder in `among`, of which the newest twenty stay; from any thread. Empty where nothing could be written.
QString writeBugBundle(const QString& among, const BugFacts& facts);

}  // namespace stepscope
