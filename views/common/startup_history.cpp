// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/startup_history.h"

#include <algorithm>
#include <set>

namespace stepscope {

QStringList phasePaths(const std::vector<snapshot::PhaseSpan>& phases) {
  std::vector<QString> whole;
  std::map<QString, int> seen;
  QStringList paths;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    QString path = QString::fromStdString(phases[i].name());
    const int parent = phases[i].parent();
    if (phases[i].depth() > 0 && parent >= 0 && static_cast<std::size_t>(parent) < i &&
        whole[static_cast<std::size_t>(parent)].size() < 1'000) {
      path = whole[static_cast<std::size_t>(parent)] + '/' + path;
    }
    whole.push_back(path);
    const int times = ++seen[path];
    paths << (times == 1 ? path : path + QStringLiteral(" #%1").arg(times));
  }
  return paths;
}

EarlierStartups::EarlierStartups(const StartupHistory& history) : shown_(static_cast<int>(history.startups.size()) - 1) {
  std::map<int, PhaseHistory::Point> whole;
  for (const PhaseHistory& phase : history.phases) {
    points_[phase.path] = phase.points;
    if (phase.path.contains('/')) continue;
    for (const auto& p : phase.points) {
      auto& sum = whole[p.startup];
      sum.startup = p.startup;
      sum.ns += p.ns;
      sum.failed = sum.failed || p.failed;
    }
  }
  std::set<int> read;  // start-ups that read the file; the others built again what was read before
  for (const auto& p : points(QStringLiteral("load"))) read.insert(p.startup);
  for (const auto& [startup, p] : whole)
    if (read.contains(startup) == read.contains(shown_)) points_[{}].push_back(p);
}

EarlierTimes EarlierStartups::of(const QString& path) const {
  EarlierTimes out;
  std::vector<std::int64_t> times;
  for (const auto& p : points(path)) {
    if (p.failed || p.startup >= shown_) continue;
    times.push_back(p.ns);
    out.previous = p.ns;
  }
  if (times.empty()) return out;
  std::sort(times.begin(), times.end());
  out.n = static_cast<int>(times.size());
  out.median = times[(times.size() - 1) / 2];
  out.min = times.front();
  out.max = times.back();
  return out;
}

int EarlierTimes::news(std::int64_t ns) const {
  constexpr int kEnough = 3;
  constexpr std::int64_t kLeastNs = 100'000;
  const std::int64_t away = ns - median;
  if (n < kEnough || std::abs(away) < kLeastNs || 20 * std::abs(away) < median) return 0;
  return ns > max ? 1 : ns < min ? -1 : 0;
}

std::vector<PhaseHistory::Point> EarlierStartups::points(const QString& path) const {
  const auto found = points_.find(path);
  return found == points_.end() ? std::vector<PhaseHistory::Point>() : found->second;
}

}  // namespace stepscope
