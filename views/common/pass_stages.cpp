// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/pass_stages.h"

#include <map>
#include <utility>
#include <vector>

namespace stepscope {

PassStages::PassStages(SnapshotStore* store) : QObject(store), store_(*store) {
  connect(store, &SnapshotStore::stagesChanged, this, [this] {
    QStringList phases = stops_;
    phases.removeIf(&PassStages::isPass);
    if (phases != store_.stages()) stops_.clear();  // of another build
  });
}

PassStages& PassStages::of(SnapshotStore& store) {
  return *store.findChild<PassStages*>(QString(), Qt::FindDirectChildrenOnly);
}

const PassStages& PassStages::of(const SnapshotStore& store) {
  return *store.findChild<PassStages*>(QString(), Qt::FindDirectChildrenOnly);
}

const QStringList& PassStages::stops() const { return stops_.isEmpty() ? store_.stages() : stops_; }

PassStages::Range PassStages::around(int span) const {
  const auto& phases = store_.phases();
  const QStringList& all = stops();
  std::map<std::pair<int, std::string>, int> runs;  // of a pass within its phase
  std::vector<Range> ranges;
  QString here, phase;  // the newest stop; of the phase that is open
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const snapshot::PhaseSpan& p = phases[i];
    const QString name = QString::fromStdString(p.name());
    Range range{here, here};
    if (p.depth() == 0) {
      if (all.contains(phase)) here = range.before = phase;
      phase = name;
      range.after = all.contains(name) ? name : here;
    } else if (p.parent() >= 0 && static_cast<std::size_t>(p.parent()) < i) {
      const int run = ++runs[{p.parent(), p.name()}];
      QString stop = QString::fromStdString(phases[static_cast<std::size_t>(p.parent())].name()) + '/' + name;
      if (run > 1) stop += QStringLiteral(" #%1").arg(run);
      if (all.contains(stop)) here = stop;
      range.after = here;
    }
    ranges.push_back(range);
  }
  return span >= 0 && static_cast<std::size_t>(span) < ranges.size() ? ranges[static_cast<std::size_t>(span)] : Range{};
}

}  // namespace stepscope
