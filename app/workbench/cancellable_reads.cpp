// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/cancellable_reads.h"

#include <algorithm>
#include <utility>

namespace stepscope {
namespace {
constexpr int kLongMs = 1'000;
}  // namespace

CancellableReads::~CancellableReads() {
  for (const Reading& reading : open_) reading.stop->store(true);
}

CancellableReads::Stop CancellableReads::begin(ProjectReads::What what, const QString& text,
                                               std::function<void()> cancelled) {
  Reading reading{std::make_shared<std::atomic<bool>>(false), what, text, std::move(cancelled), {}};
  reading.since.start();
  open_.push_back(reading);
  ProjectReads::of(facts_).begin(what);
  return reading.stop;
}

bool CancellableReads::end(const Stop& stop) {
  const auto found = std::ranges::find(open_, stop, &Reading::stop);
  if (found == open_.end()) return false;
  const ProjectReads::What what = found->what;
  open_.erase(found);
  ProjectReads::of(facts_).end(what);
  return true;
}

void CancellableReads::drop(const Stop& stop) {
  if (stop && end(stop)) stop->store(true);
}

void CancellableReads::dropAll() {
  while (!open_.empty()) drop(Stop(open_.back().stop));
}

void CancellableReads::cancel() {
  for (const Reading& reading : std::exchange(open_, {})) {
    reading.stop->store(true);
    ProjectReads::of(facts_).end(reading.what, true);
    if (reading.cancelled) reading.cancelled();
  }
}

QString CancellableReads::longText() const {
  const auto found = std::ranges::find_if(
      open_, [](const Reading& reading) { return !reading.text.isEmpty() && reading.since.elapsed() > kLongMs; });
  return found == open_.end() ? QString() : found->text;
}

}  // namespace stepscope
