// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/state_ring.h"

#include <QFile>
#include <QFileInfo>
#include <QStorageInfo>
#include <algorithm>

#include "app/workbench/scratch_folder.h"

namespace stepscope {
namespace {

class Here : public StatePlace {
 public:
  explicit Here(KeptStates::Free free) : free_(std::move(free)) {}
  QString filePath(const QString& name) const override { return folder_.isValid() ? folder_.filePath(name) : QString(); }
  std::int64_t freeBytes() const override { return free_(folder_.path()); }
  std::int64_t bytesOf(const QString& path, std::int64_t) const override { return QFileInfo(path).size(); }
  void remove(const QString& path) override { QFile::remove(path); }

 private:
  ScratchFolder folder_;
  KeptStates::Free free_;
};

}  // namespace

KeptStates::KeptStates(Free free) : free_(std::move(free)), place_(std::make_unique<Here>(free_)) {}

void KeptStates::moveTo(std::unique_ptr<StatePlace> place) {
  states_.clear();
  place_ = std::move(place);
}

void KeptStates::moveHere() { moveTo(std::make_unique<Here>(free_)); }

std::int64_t KeptStates::freeBytes(const QString& folder) {
  return std::max<qint64>(0, QStorageInfo(folder).bytesAvailable());
}

std::int64_t KeptStates::held() const {
  std::int64_t bytes = 0;
  for (const State& s : states_) bytes += s.bytes;
  return bytes;
}

std::int64_t KeptStates::budget() const {
  constexpr std::int64_t kShare = 4;
  return (place_->freeBytes() + held()) / kShare;
}

QString KeptStates::freshPath() { return place_->filePath(QStringLiteral("state-%1.safetensors").arg(made_++)); }

void KeptStates::add(std::int64_t step, const QString& path, std::size_t edits, std::int64_t about) {
  const auto remove = [this](const State& s) {
    place_->remove(s.path);
    return true;
  };
  std::erase_if(states_, [&](const State& s) { return s.step == step && remove(s); });
  const auto place = std::find_if(states_.begin(), states_.end(), [step](const State& s) { return s.step > step; });
  states_.insert(place, {step, path, edits, place_->bytesOf(path, about)});
  const std::int64_t most = budget();
  for (std::int64_t bytes = held(); states_.size() > 1 && bytes > most;) {
    bytes -= states_.front().bytes;
    remove(states_.front());
    states_.erase(states_.begin());
  }
}

std::optional<KeptStates::State> KeptStates::newest(std::int64_t step) const {
  std::optional<State> found;
  for (const State& s : states_) {
    if (s.step <= step) found = s;
  }
  return found;
}

std::optional<KeptStates::State> KeptStates::exactly(std::int64_t step) const {
  const auto found = newest(step);
  return found && found->step == step ? found : std::nullopt;
}

std::vector<std::int64_t> KeptStates::steps() const {
  std::vector<std::int64_t> steps;
  for (const State& s : states_) steps.push_back(s.step);
  return steps;
}

void KeptStates::dropAfter(std::int64_t step) {
  std::erase_if(states_, [this, step](const State& s) {
    if (s.step > step) place_->remove(s.path);
    return s.step > step;
  });
}

}  // namespace stepscope
