// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/build_trace.h"

#include <algorithm>

#include "engine/snapshot/build_phases.h"
#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {
namespace {
constexpr int kMostNodes = 400'000;  // of all graphs that are kept
}

void BuildTrace::phase(const snapshot::PhaseSpan& span) {
  const auto depth = static_cast<std::size_t>(std::max(0, span.depth()));
  if (open_.size() > depth) open_.resize(depth);
  if (span.ns() == -1) open_.push_back({format::visible(span.name()), span.pass().name() == span.name()});
}

void BuildTrace::graph(const GraphPtr& graph) {
  const auto same = std::find_if(graphs_.begin(), graphs_.end(),
                                 [&](const GraphPtr& g) { return g->graph().phase() == graph->graph().phase(); });
  graphs_.erase(same, graphs_.end());
  graphs_.push_back(graph);
  int nodes = 0;
  const auto fits = [&nodes](const GraphPtr& g) { return (nodes += g->graph().nodes_size()) <= kMostNodes; };
  const auto tooMany = std::find_if_not(graphs_.rbegin() + 1, graphs_.rend(), fits);
  graphs_.erase(graphs_.begin(), tooMany.base());
}

void BuildTrace::clear() {
  open_.clear();
  graphs_.clear();
}

QString BuildTrace::text() const {
  if (!running()) return {};
  const QString inside = passName().isEmpty() ? QString() : QStringLiteral(", ") + names::buildPhase(passName());
  const QString what = names::buildPhase(phaseName()) + inside;
  return place() == 0 ? what : QStringLiteral("stage %1 of %2: %3").arg(place()).arg(kBuildPhases.size()).arg(what);
}

int BuildTrace::place() const { return placeOfPhase(phaseName().toStdString()); }

QString BuildTrace::phaseName() const { return open_.empty() ? QString() : open_.front().name; }
QString BuildTrace::passName() const { return open_.size() < 2 ? QString() : open_.back().name; }
bool BuildTrace::passCanBeOff() const { return open_.size() >= 2 && open_.back().canBeOff; }

}  // namespace stepscope
