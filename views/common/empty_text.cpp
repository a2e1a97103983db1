// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/empty_text.h"

#include "views/common/format.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

QString noTimesText(const SnapshotStore& store, const QString& appear) {
  if (store.readingSteps()) return QStringLiteral("The steps that stand are read from the project …");
  const std::vector<std::int64_t>& steps = store.series().step();
  if (steps.empty()) return QStringLiteral("Nothing recorded yet.\nRun a training step (F8); %1.").arg(appear);
  return QStringLiteral(
             "None of the newest steps, up to step %1, has times of its instructions: a run at full speed keeps them only "
             "where the option record asks for them.\nChoose an older step above, or run one with recording on.")
      .arg(format::count(steps.back()));
}

}  // namespace stepscope
