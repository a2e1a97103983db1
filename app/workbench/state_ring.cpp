// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/state_ring.h"

#include <QFile>
#include <QFileInfo>
#include <QStorageInfo>
#include <algorithm>

namespace stepscope {

std::int64_t StateRing::freeBytes(const QString& folder) {
  return std::max<qint64>(0, QStorageInfo(folder).bytesAvailable());
}

std::int64_t StateRing::held() const {
  std::int64_t bytes = 0;
  for (const State& s : states_) bytes += s.bytes;
  return bytes;
}

std::int64_t StateRing::budget() const {
  constexpr std::int64_t kShare = 4;
  return (free_(folder_.path()) + held()) / kShare;
}

QString StateRing::freshPath() {
  return folder_.isValid() ? folder_.filePath(QStringLiteral("state-%1.safetensors").arg(made_++)) : QString();
}

void StateRing::add(std::int64_t step, const QString& path, std::size_t edits) {
  const auto remove = [](const State& s) {
    QFile::remove(s.path);
    return true;
  };
  std::erase_if(states_, [&](const State& s) { return s.step == step && remove(s); });
  const auto place = std::find_if(states_.begin(), states_.end(), [step](const State& s) { return s.step > step; });
  states_.insert(place, {step, path, edits, QFileInfo(path).size()});
  const std::int64_t most = budget();
  for (std::int64_t bytes = held(); states_.size() > 1 && bytes > most;) {
    bytes -= states_.front().bytes;
    remove(states_.front());
    states_.erase(states_.begin());
  }
}

std::optional<StateRing::State> StateRing::newest(std::int64_t step) const {
  std::optional<State> found;
  for (const State& s : states_) {
    if (s.step <= step) found = s;
  }
  return found;
}

std::optional<StateRing::State> StateRing::exactly(std::int64_t step) const {
  const auto found = newest(step);
  return found && found->step == step ? found : std::nullopt;
}

void StateRing::dropAfter(std::int64_t step) {
  std::erase_if(states_, [step](const State& s) { return s.step > step && QFile::remove(s.path); });
  std::erase_if(states_, [step](const State& s) { return s.step > step; });
}

}  // namespace stepscope
