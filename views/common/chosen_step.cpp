// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/chosen_step.h"

#include <algorithm>

#include "views/common/format.h"
#include "views/common/step_plans.h"

namespace stepscope {

ChosenStep::ChosenStep(SnapshotStore* store) : QObject(store), store_(*store) {
  connect(store, &SnapshotStore::modelChanged, this, [this] { choose(-1); });
  connect(store, &SnapshotStore::stepsChanged, this, &ChosenStep::followSteps);
  connect(store, &SnapshotStore::planChanged, this, &ChosenStep::changed);  // it may be of this plan, or of another
}

ChosenStep& ChosenStep::of(SnapshotStore& store) {
  return *store.findChild<ChosenStep*>(QString(), Qt::FindDirectChildrenOnly);
}

const ChosenStep& ChosenStep::of(const SnapshotStore& store) {
  return *store.findChild<ChosenStep*>(QString(), Qt::FindDirectChildrenOnly);
}

std::vector<StepPtr> ChosenStep::steps() const {
  if (state_ == State::kNewest) return store_.steps();
  return record_ ? std::vector<StepPtr>{record_} : std::vector<StepPtr>();
}

QString ChosenStep::title() const { return step_ < 0 ? QString() : QStringLiteral("step %1").arg(format::count(step_)); }

QString ChosenStep::text() const {
  switch (state_) {
    case State::kNewest: return {};
    case State::kReading: return QStringLiteral("Step %1 is read from the project …").arg(format::count(step_));
    case State::kMissing:
      return QStringLiteral("Step %1 cannot be shown: %2.\nChoose another step, or the newest ones.")
          .arg(format::count(step_), format::visible(problem_));
    case State::kShown: break;
  }
  return record_->spans_size() > 0
             ? QString()
             : QStringLiteral(
                   "Step %1 was recorded without the times of its instructions.\nA run at full speed keeps them only where "
                   "the option record asks for them; record.keep thins out those of old steps.")
                   .arg(format::count(step_));
}

QString ChosenStep::textOfPlan() const {
  QString words = text();
  if (!words.isEmpty() || state_ != State::kShown || StepPlans::of(store_).underPresent(*record_)) return words;
  return QStringLiteral(
             "Step %1 ran under another plan than the one that is open: its instructions have other numbers.\nThe timeline "
             "shows them.")
      .arg(format::count(step_));
}

bool ChosenStep::choose(std::int64_t step) {
  if (step == step_ && state_ != State::kMissing) return false;
  step_ = std::max<std::int64_t>(-1, step);
  record_ = nullptr;
  problem_.clear();
  if (step_ < 0) {
    become(State::kNewest);
    return false;
  }
  const auto& all = store_.steps();
  const auto found =
      std::lower_bound(all.begin(), all.end(), step_, [](const StepPtr& s, std::int64_t n) { return s->step() < n; });
  if (found != all.end() && (*found)->step() == step_ && (*found)->spans_size() > 0) {
    show(*found);
    return false;
  }
  become(State::kReading);
  return true;
}

void ChosenStep::set(std::int64_t step, StepPtr record, const QString& problem) {
  if (step != step_ || state_ != State::kReading) return;
  if (record) return show(std::move(record));
  problem_ = problem.isEmpty() ? QStringLiteral("the project has no such step of this run") : problem;
  become(State::kMissing);
}

void ChosenStep::show(StepPtr record) {
  record_ = std::move(record);
  become(State::kShown);
}

// A rewind takes steps back, a new run begins without any.
void ChosenStep::followSteps() {
  const auto& steps = store_.series().step();
  if (step_ >= 0 && state_ != State::kMissing && !std::binary_search(steps.begin(), steps.end(), step_)) choose(-1);
}

void ChosenStep::become(State state) {
  state_ = state;
  emit changed();
}

}  // namespace stepscope
