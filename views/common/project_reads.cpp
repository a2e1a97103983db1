// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/project_reads.h"

#include <algorithm>

namespace stepscope {
namespace {
constexpr int kMomentMs = 100;
}  // namespace

ProjectReads::ProjectReads(ProjectFacts* project) : QObject(project) {
  moment_.setSingleShot(true);
  moment_.setInterval(kMomentMs);
  connect(&moment_, &QTimer::timeout, this, &ProjectReads::showOpen);
}

ProjectReads& ProjectReads::of(ProjectFacts& project) {
  return *project.findChild<ProjectReads*>(QString(), Qt::FindDirectChildrenOnly);
}

const ProjectReads& ProjectReads::of(const ProjectFacts& project) {
  return *project.findChild<ProjectReads*>(QString(), Qt::FindDirectChildrenOnly);
}

bool ProjectReads::shown(What what) const {
  const auto it = readings_.find(what);
  return it != readings_.end() && it->second.shown;
}

bool ProjectReads::anyShown() const {
  return std::ranges::any_of(readings_, [](const auto& reading) { return reading.second.shown; });
}

bool ProjectReads::leftOff(What what) const {
  const auto it = readings_.find(what);
  return it != readings_.end() && it->second.leftOff;
}

void ProjectReads::begin(What what) {
  Reading& reading = readings_[what];
  ++reading.open;
  if (!moment_.isActive()) moment_.start();
  if (std::exchange(reading.leftOff, false)) emit changed();
}

void ProjectReads::end(What what, bool cancelled) {
  Reading& reading = readings_[what];
  --reading.open;
  if (cancelled) reading.leftOff = true;
  const bool over = reading.open == 0 && std::exchange(reading.shown, false);
  if (over || cancelled) emit changed();
}

void ProjectReads::showOpen() {
  bool more = false;
  for (auto& [what, reading] : readings_)
    if (reading.open > 0 && !std::exchange(reading.shown, true)) more = true;
  if (more) emit changed();
}

}  // namespace stepscope
