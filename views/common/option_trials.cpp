// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/option_trials.h"

#include <utility>

namespace stepscope {

void OptionTrials::begin() {
  before_ = std::exchange(report_, {});
  recorded_ = false;
  Study::begin();
}

void OptionTrials::add(const snapshot::Trial& trial) {
  *report_.add_trials() = trial;
  tell();
}

void OptionTrials::end(snapshot::TrialsReport report) {
  report_ = std::move(report);
  before_.Clear();
  finish({});
}

void OptionTrials::fail(const QString& problem) {
  if (report_.trials_size() == 0)
    report_ = std::exchange(before_, {});
  else
    report_.set_cancelled(true);
  finish(problem);
}

void OptionTrials::showRecorded(snapshot::TrialsReport report) {
  report_ = std::move(report);
  recorded_ = true;
  finish({});
}

void OptionTrials::clear() {
  report_.Clear();
  before_.Clear();
  recorded_ = false;
  finish({});
}

}  // namespace stepscope
