// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/earlier_steps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "app/workbench/project_steps.h"

namespace stepscope {
namespace {

constexpr std::size_t kMost = 64;  // as many as the store keeps with spans

bool hasTimes(const SnapshotStore& store, std::int64_t step) {
  const auto& all = store.steps();
  const auto at =
      std::lower_bound(all.begin(), all.end(), step, [](const StepPtr& s, std::int64_t n) { return s->step() < n; });
  return at != all.end() && (*at)->step() == step && (*at)->spans_size() > 0;
}

}  // namespace

EarlierSteps::EarlierSteps(SnapshotStore& store, ProjectThreads& threads, CancellableReads& reads)
    : store_(store), threads_(threads), reads_(reads) {
  connect(&store_, &SnapshotStore::stepsTakenBack, this, &EarlierSteps::read);
  connect(&store_, &SnapshotStore::modelChanged, this, &EarlierSteps::forget);
}

void EarlierSteps::forget() {
  reads_.drop(std::exchange(asked_, nullptr));
  store_.setReadingSteps(false);
}

void EarlierSteps::read() {
  forget();
  if (store_.readOnly()) return;
  const auto& stand = store_.series().step();
  const auto& losses = store_.series().loss();
  std::vector<StandingStep> wanted;
  for (std::size_t i = stand.size() - std::min(kMost, stand.size()); i < stand.size(); ++i)
    if (!hasTimes(store_, stand[i])) wanted.push_back({stand[i], losses[i]});
  if (wanted.empty()) return;
  store_.setReadingSteps(true);
  asked_ = reads_.begin(ProjectReads::What::kStep, {}, [this] { store_.setReadingSteps(false); });
  threads_.read(
      [this, wanted, stop = asked_](const QString& path) {
        std::vector<StepPtr> found;
        std::map<std::int64_t, PlanOfStep> plans;
        if (!*stop && !path.isEmpty())
          if (const auto project = storage::Project::openReadOnly(path.toStdString(), stop.get()))
            found = readStepRecords(*project, wanted, plans);
        threads_.back([this, stop, found = std::move(found), plans = std::move(plans)] {
          if (!reads_.end(stop)) return;
          StepPlans::of(store_).restore(plans);
          store_.setReadingSteps(false);
          store_.restoreSteps(found);
        });
      },
      ProjectThreads::Reader::kRefill);
}

}  // namespace stepscope
