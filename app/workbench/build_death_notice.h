// SPDX-License-Identifier: GPL-3.0-or-later
// Tells of a worker that died while it built: where, what can be done about it, and the folder that a bug report needs,
// which is written on a thread of its own. GUI thread.
#pragma once

#include <QObject>
#include <QThreadPool>

#include "app/workbench/build_trace.h"
#include "app/workbench/window_parts.h"

namespace stepscope {

class BuildDeathNotice : public QObject {
  Q_OBJECT

 public:
  explicit BuildDeathNotice(const WindowParts& parts);

 private:
  void tell(const BuildDeath& death);
  void show(const BuildDeath& death, const QString& text);
  void writeBundle(const BuildDeath& death, const QString& text);

  WindowParts parts_;
  QThreadPool bundles_;  // last: waits for its threads before the rest goes
};

}  // namespace stepscope
