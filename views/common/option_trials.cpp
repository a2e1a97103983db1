// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/option_trials.h"

#include <utility>

namespace stepscope {

void OptionTrials::begin() {
  before_ = std::exchange(report_, {});
  running_ = true;
  recorded_ = false;
  problem_.clear();
  what_.clear();
  done_ = total_ = 0;
  told_.now();
}

void OptionTrials::add(const snapshot::Trial& trial) {
  *report_.add_trials() = trial;
  told_.request();
}

void OptionTrials::setProgress(const QString& what, qint64 done, qint64 total) {
  what_ = what;
  done_ = done;
  total_ = total;
  told_.request();
}

void OptionTrials::end(snapshot::TrialsReport report) {
  report_ = std::move(report);
  before_.Clear();
  running_ = false;
  told_.now();
}

void OptionTrials::fail(const QString& problem) {
  problem_ = problem;
  running_ = false;
  if (report_.trials_size() == 0)
    report_ = std::exchange(before_, {});
  else
    report_.set_cancelled(true);
  told_.now();
}

void OptionTrials::showRecorded(snapshot::TrialsReport report) {
  report_ = std::move(report);
  recorded_ = true;
  told_.now();
}

void OptionTrials::clear() {
  report_.Clear();
  before_.Clear();
  running_ = recorded_ = false;
  problem_.clear();
  told_.now();
}

}  // namespace stepscope
