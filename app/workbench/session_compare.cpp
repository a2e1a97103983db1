// SPDX-License-Identifier: GPL-3.0-or-later
// Values beside files, other values and kept contents; contents that come from a file; what each row adds to the loss.
#include <QDir>
#include <QFile>
#include <QFileInfo>

#include "app/workbench/session.h"
#include "views/common/findings.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr std::size_t kMostKept = 16;
constexpr qint64 kMostFileBytes = 4LL << 30;  // of a file that is copied
}  // namespace

void Session::compare(snapshot::Request request, const QString& with) {
  if (!built_ || !client_.alive()) return;
  const int value = request.compare_tensor().value();
  this->request(std::move(request), tr("comparing"), [this, value, with](const Delivery& d) {
    if (!d.response->done()) return;
    TensorComparison found{value, with, {}, {}};
    if (d.response->has_compare() && d.response->compare().values_size() == 1) {
      found.result = d.response->compare().values(0);
    } else if (d.response->has_error()) {
      found.problem = QString::fromStdString(d.response->error().message());
    } else {
      found.problem = tr("the worker gave no answer");
    }
    store_.findings().setTensorComparison(std::move(found));
  });
}

void Session::compareWithFile(int value, const QString& path) {
  snapshot::Request request;
  request.mutable_compare_tensor()->set_value(value);
  request.mutable_compare_tensor()->set_path(path.toStdString());
  compare(std::move(request), path);
}

void Session::compareWithValue(int value, int other) {
  snapshot::Request request;
  request.mutable_compare_tensor()->set_value(value);
  request.mutable_compare_tensor()->set_other(other);
  compare(std::move(request), QStringLiteral("value:%1").arg(other));
}

void Session::keepTensor(int value) {
  if (!built_ || !client_.alive()) return;
  const auto* named = store_.graph() ? store_.graph()->value(value) : nullptr;
  const TensorPtr shown = store_.tensor(value);
  const QString path = scratch_.filePath(QStringLiteral("kept-%1.npy").arg(++copies_));
  const KeptTensor kept{path, named ? QString::fromStdString(named->name()) : QString::number(value),
                        shown ? shown->step() : store_.position().step()};
  snapshot::Request request;
  request.mutable_save_tensor()->set_value(value);
  request.mutable_save_tensor()->set_path(path.toStdString());
  ask(std::move(request), tr("keeping"), [this, kept](const Delivery&) {
    if (store_.findings().kept().size() >= kMostKept) QFile::remove(store_.findings().dropOldestKept());
    store_.findings().addKept(kept);
  });
}

void Session::loadTensor(int value, const QString& path) {
  if (refuse()) return;
  // A copy: the edit is repeated from it when a worker that died comes back, whatever became of the file.
  const QString folder = QString::number(++copies_);  // its own, so that messages name the file as the user does
  QDir(scratch_.path()).mkdir(folder);
  const QString copy = scratch_.filePath(folder + '/' + QFileInfo(path).fileName());
  setBusy(true);
  files_.start([this, value, path, copy] {
    QString why;
    const QFileInfo info(path);
    QFile file(path);
    if (!info.isFile()) {
      why = tr("not a file; expected a .npy array");
    } else if (info.size() > kMostFileBytes) {
      why = tr("%1 bytes; expected at most %2").arg(info.size()).arg(kMostFileBytes);
    } else if (!file.copy(copy)) {
      why = file.errorString();
    }
    QMetaObject::invokeMethod(
        this,
        [this, value, path, copy, why] {
          setBusy(false);
          if (!why.isEmpty()) {
            emit problem(tr("array '%1': %2").arg(format::visible(path), why), {});
            return;
          }
          snapshot::Request request;
          request.mutable_edit()->set_value(value);
          request.mutable_edit()->set_path(copy.toStdString());
          edit(std::move(request));
        },
        Qt::QueuedConnection);
  });
}

void Session::rowLosses() {
  if (!built_ || !client_.alive()) return;
  snapshot::Request request;
  request.mutable_row_losses();
  // Quietly: a page asks, and what cannot be read is a part of the answer.
  this->request(std::move(request), tr("reading the losses of the rows"), [this](const Delivery& d) { absorb(d); });
}

}  // namespace stepscope
