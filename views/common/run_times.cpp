// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/run_times.h"

namespace stepscope {

RunTimes& RunTimes::of(ProjectFacts& project) {
  return *project.findChild<RunTimes*>(QString(), Qt::FindDirectChildrenOnly);
}

const RunTimes& RunTimes::of(const ProjectFacts& project) {
  return *project.findChild<RunTimes*>(QString(), Qt::FindDirectChildrenOnly);
}

QString PairTimes::unlike() const {
  if (a.speed.isEmpty() || b.speed.isEmpty() || (a.speed == b.speed && !a.speed.contains(','))) return {};
  return QStringLiteral("A %1, B %2").arg(a.speed, b.speed);
}

bool PairTimes::comparable() const { return !a.busy && !b.busy && unlike().isEmpty(); }

RunStepTimes RunTimes::step(std::int64_t run, const QString& otherProject) const {
  const auto project = times_.find(otherProject);
  if (project == times_.end()) return {};
  const auto it = project->second.find(run);
  return it == project->second.end() ? RunStepTimes() : it->second;
}

PairTimes RunTimes::pair(const CompareRequest& request) const {
  const bool told = pair_.a == request.a && pair_.b == request.b && pair_.otherProject == request.otherProject;
  return {step(request.a), step(request.b, request.otherProject), told ? notes_ : QString(), !told || alike_};
}

void RunTimes::setNotes(const CompareRequest& request, const QString& text, bool alike) {
  pair_ = request;
  notes_ = text;
  alike_ = alike;
  emit changed();
}

void RunTimes::set(std::map<std::int64_t, RunStepTimes> times) { setOther({}, std::move(times)); }

void RunTimes::setOther(const QString& project, std::map<std::int64_t, RunStepTimes> times) {
  times_[project] = std::move(times);
  emit changed();
}

}  // namespace stepscope
