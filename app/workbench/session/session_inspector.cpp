// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_inspector.h"

#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_answers.h"
#include "app/workbench/session/session_model.h"
#include "app/workbench/session/session_trainer.h"
#include "views/common/findings.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr std::size_t kMostKept = 16;
}  // namespace

void SessionInspector::fetchTensor(int value, const std::vector<qint64>& begin, const std::vector<qint64>& extent) {
  if (!parts_.model.built() || !link_.client().alive()) return;
  snapshot::Request request;
  auto* fetch = request.mutable_fetch();
  fetch->set_value(value);
  fetch->set_statistics(true);
  for (const qint64 b : begin) fetch->add_begin(b);
  for (const qint64 e : extent) fetch->add_extent(e);
  fetch->set_whole(extent.empty() && begin.empty());
  link_.request(std::move(request), QStringLiteral("reading a tensor"), [this, value](const Delivery& d) {
    if (d.response->has_tensor()) {
      parts_.answers.absorb(d);
    } else if (d.response->has_error()) {
      // Shown where the values would stand.
      auto tensor = std::make_shared<snapshot::TensorData>();
      tensor->set_value(value);
      tensor->set_unavailable(d.response->error().message());
      store_.addTensor(tensor);
    }
  });
}

void SessionInspector::saveTensor(int value, const QString& path) {
  if (!parts_.model.built()) return;
  snapshot::Request request;
  request.mutable_save_tensor()->set_value(value);
  request.mutable_save_tensor()->set_path(path.toStdString());
  link_.ask(std::move(request), QStringLiteral("saving"),
            [this, path](const Delivery&) { emit session_.note(QStringLiteral("Saved %1").arg(format::visible(path))); });
}

void SessionInspector::saveState(const QString& path) {
  if (link_.refuse()) return;
  snapshot::Request request;
  request.mutable_save_state()->set_path(path.toStdString());
  link_.move(std::move(request), QStringLiteral("saving"),
             [this, path] { emit session_.note(QStringLiteral("Saved %1").arg(format::visible(path))); });
}

void SessionInspector::saveState(const QString& path, std::function<void(bool)> then) {
  snapshot::Request request;
  request.mutable_save_state()->set_path(path.toStdString());
  link_.move(
      std::move(request), QStringLiteral("keeping the state"), [then] { then(true); }, [then] { then(false); },
      [](const QString&) {});
}

void SessionInspector::compare(snapshot::Request request, const QString& with) {
  if (!parts_.model.built() || !link_.client().alive()) return;
  const int value = request.compare_tensor().value();
  link_.request(std::move(request), QStringLiteral("comparing"), [this, value, with](const Delivery& d) {
    if (!d.response->done()) return;
    TensorComparison found{value, with, {}, {}};
    if (d.response->has_compare() && d.response->compare().values_size() == 1) {
      found.result = d.response->compare().values(0);
    } else if (d.response->has_error()) {
      found.problem = QString::fromStdString(d.response->error().message());
    } else {
      found.problem = QStringLiteral("the worker gave no answer");
    }
    store_.findings().setTensorComparison(std::move(found));
  });
}

void SessionInspector::compareWithFile(int value, const QString& path) {
  snapshot::Request request;
  request.mutable_compare_tensor()->set_value(value);
  request.mutable_compare_tensor()->set_path(path.toStdString());
  compare(std::move(request), path);
}

void SessionInspector::compareWithValue(int value, int other) {
  snapshot::Request request;
  request.mutable_compare_tensor()->set_value(value);
  request.mutable_compare_tensor()->set_other(other);
  compare(std::move(request), QStringLiteral("value:%1").arg(other));
}

void SessionInspector::keepTensor(int value) {
  if (!parts_.model.built() || !link_.client().alive()) return;
  const auto* named = store_.graph() ? store_.graph()->value(value) : nullptr;
  const TensorPtr shown = store_.tensor(value);
  const QString path = parts_.trainer.ring().filePath(QStringLiteral("kept-%1.npy").arg(++kept_));
  if (path.isEmpty()) {
    emit session_.note(QStringLiteral("There is no folder for it yet"));
    return;
  }
  const KeptTensor kept{path, named ? QString::fromStdString(named->name()) : QString::number(value),
                        shown ? shown->step() : store_.position().step()};
  snapshot::Request request;
  request.mutable_save_tensor()->set_value(value);
  request.mutable_save_tensor()->set_path(path.toStdString());
  link_.ask(std::move(request), QStringLiteral("keeping"), [this, kept](const Delivery&) {
    if (store_.findings().kept().size() >= kMostKept) parts_.trainer.ring().remove(store_.findings().dropOldestKept());
    store_.findings().addKept(kept);
  });
}

void SessionInspector::rowLosses() {
  if (!parts_.model.built() || !link_.client().alive()) return;
  snapshot::Request request;
  request.mutable_row_losses();
  // Quietly: a page asks, and what cannot be read is a part of the answer.
  link_.request(std::move(request), QStringLiteral("reading the losses of the rows"),
                [this](const Delivery& d) { parts_.answers.absorb(d); });
}

}  // namespace stepscope
