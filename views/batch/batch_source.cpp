// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/batch_source.h"

#include "views/batch/batch_inputs.h"

namespace stepscope {

bool BatchSource::show(StepPtr recorded) {
  if (recorded == recorded_ && missing_.isEmpty()) return false;
  recorded_ = std::move(recorded);
  without_ = nullptr;
  missing_.clear();
  return true;
}

bool BatchSource::showWithout(StepPtr step, const QString& why) {
  if (step == without_ && why == missing_) return false;
  recorded_ = nullptr;
  without_ = std::move(step);
  missing_ = why;
  return true;
}

std::int64_t BatchSource::step() const {
  if (recorded_) return recorded_->step();
  return live() ? store_.presentStep() : -1;
}

const snapshot::TensorData* BatchSource::kept(int input) const {
  const auto* v = recorded_ && store_.graph() ? store_.graph()->value(input) : nullptr;
  if (!v) return nullptr;
  for (const auto& data : recorded_->inputs()) {
    if (data.name() == v->name()) return &data;
  }
  return nullptr;
}

const snapshot::TensorStatistics* BatchSource::statistics(int input) const {
  if (live()) return store_.statisticsStep(input) == store_.presentStep() ? store_.statistics(input) : nullptr;
  const auto* data = kept(input);
  return data && data->has_statistics() ? &data->statistics() : nullptr;
}

TensorPtr BatchSource::contents(int input) const {
  const auto* data = kept(input);
  return data && !data->data().empty() ? TensorPtr(recorded_, data) : nullptr;
}

std::shared_ptr<const snapshot::RowLosses> BatchSource::rowLosses() const {
  if (!recorded_ || !recorded_->has_row_losses()) return nullptr;
  return {recorded_, &recorded_->row_losses()};
}

bool hasBatch(const snapshot::StepRecord& step) { return step.inputs_size() > 0 || step.has_row_losses(); }

std::vector<StepPtr> recordedBatches(const SnapshotStore& store, std::size_t most) {
  std::vector<StepPtr> found;
  for (auto step = store.steps().rbegin(); step != store.steps().rend() && found.size() < most; ++step) {
    if (hasBatch(**step)) found.push_back(*step);
  }
  return found;
}

}  // namespace stepscope
