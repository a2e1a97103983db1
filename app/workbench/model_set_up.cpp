// SPDX-License-Identifier: GPL-3.0-or-later
// The set-up of a model that is opened: shown beside the views, built, left.
#include <QBoxLayout>
#include <QPointer>
#include <algorithm>
#include <utility>

#include "app/workbench/capture_settings.h"
#include "app/workbench/model_opening.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/recent_files.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/side_room.h"
#include "views/common/file_name.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

namespace stepscope {

void ModelOpening::showSetUp() {
  if (!store_.model()) return;
  const QString path = session_.modelPath();
  const auto before = [this, &path] {
    if (!session_.built() && wantedFor_ == path) return wanted_;  // it was cancelled
    return session_.configuration().settings_size() > 0 ? session_.configuration() : files_.lastSetUp(path);
  };
  showSetUpOf(store_.model(), before(), path);
}

void ModelOpening::closeSetUp() {
  ++setUps_;
  peek_.cancel();
  for (auto* dialog : parts_.window.findChildren<SetUpDialog*>()) dialog->close();
}

void ModelOpening::inPlaceOfARun(const QString& path, std::function<void()> open) {
  const auto kept = [this, open = std::move(open)] { keeper_(open); };
  if (!session_.running()) return kept();
  parts_.notice.showProblem(
      QStringLiteral("%1 is running, at step %2: %3 in its place ends the run. What is recorded stays.")
          .arg(format::fileName(session_.modelPath()), format::count(store_.position().step()), format::fileName(path)),
      QStringLiteral("End the run"), [this, kept] {
        parts_.notice.clear();
        kept();
      });
}

bool ModelOpening::setUpShown() const {
  const auto all = parts_.window.findChildren<SetUpDialog*>();
  return std::any_of(all.begin(), all.end(), [](const SetUpDialog* dialog) { return dialog->isVisible(); });
}

bool ModelOpening::leaveSetUp() {
  for (auto* dialog : parts_.window.findChildren<SetUpDialog*>()) {
    if (!dialog->isVisible()) continue;
    dialog->reject();
    return true;
  }
  return false;
}

// The worker knows what can be set; a dialog that is gone when it answers needs nothing.
void ModelOpening::offerMore(SetUpDialog& dialog) {
  if (!store_.options().empty()) return dialog.offerMore(store_.options());
  if (!session_.client().alive()) return;
  snapshot::Request request;
  request.mutable_options();
  session_.client().request(
      std::move(request), QStringLiteral("reading the options"),
      [shown = QPointer<SetUpDialog>(&dialog)](const Delivery& d) {
        if (!shown || !d.response->has_options()) return;
        shown->offerMore({d.response->options().options().begin(), d.response->options().options().end()});
      },
      true);
}

void ModelOpening::offerSending(SetUpDialog& dialog) {
  dialog.setHost(session_.client().host().host);
  connect(&dialog, &SetUpDialog::sendWanted, this, &ModelOpening::sendingWanted);
}

void ModelOpening::dataSent(const QString& path) {
  for (auto* dialog : parts_.window.findChildren<SetUpDialog*>()) dialog->setData(path);
}

// What a plan needs is known when it is built: without its limit first. No step has touched the memory when it is to fit.
void ModelOpening::buildToFit(const snapshot::Configure& configuration, const QString& limit) {
  parts_.notice.clear();
  scripted_ = false;
  wanted_ = configuration;
  wantedFor_ = session_.modelPath();
  auto* once = new QObject(this);
  connect(&session_, &ModelSession::builtChanged, once, [this, once, limit] {
    once->deleteLater();
    if (session_.built()) emit fitWanted(limit);
  });
  connect(&session_, &ModelSession::problem, once, &QObject::deleteLater);
  session_.build(configuration);
}

SetUpDialog* ModelOpening::showSetUpOf(const ModelPtr& model, const snapshot::Configure& before, const QString& path,
                                       const QString& missingWeights) {
  closeSetUp();
  auto* dialog = new SetUpDialog(model, before, &parts_.window);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  // The model that is open, or another one.
  const bool other = model != store_.model();
  const bool graph = model->problems_size() == 0 || model->node_count() > 0;
  if (other && graph && session_.built()) dialog->offerLook();
  if (!other) {
    auto tellStep = [this, dialog, shown = std::int64_t{0}]() mutable {
      const std::int64_t step = store_.position().step();
      if (session_.built() && std::exchange(shown, step) != step) dialog->offerToGoOn(step);
    };
    tellStep();
    connect(&store_, &SnapshotStore::positionChanged, dialog, tellStep);
  }
  connect(dialog, &SetUpDialog::buildWanted, this,
          [this, dialog, other, model, path, missingWeights](const snapshot::Configure& configuration) {
            parts_.notice.clear();
            emit choosing();
            scripted_ = false;
            wanted_ = configuration;
            wantedFor_ = path;
            wantedModel_ = model;
            wantedWeights_ = missingWeights;
            if (other)
              inPlaceOfARun(path, [this, path, configuration, missingWeights] {
                session_.openAndBuild(path, configuration, missingWeights);
              });
            else if (dialog->beginsAgain())
              session_.newRun(configuration);
            else
              session_.build(configuration);
          });
  if (session_.client().host().local())
    dialog->tellNotes(captureNotes(path));
  else
    offerSending(*dialog);
  connect(dialog, &SetUpDialog::fitWanted, this, &ModelOpening::buildToFit);
  connect(dialog, &SetUpDialog::lookWanted, this, [this, path, missingWeights] {
    inPlaceOfARun(path, [this, path, missingWeights] { session_.inspect(path, missingWeights); });
  });
  connect(dialog, &SetUpDialog::openWithRandomWeights, this, [this, path] {
    parts_.notice.clear();
    read(path, QStringLiteral("random"));
  });
  // The keyboard goes where the next key is wanted, not to the first button of the window.
  connect(dialog, &QDialog::finished, this, [this] {
    QTimer::singleShot(0, this, [this] {
      if (setUpShown() || !parts_.board.isVisible()) return;
      const View* view = parts_.board.front(QStringLiteral("instructions"));
      if (!view) view = parts_.board.activeView();
      if (view) parts_.board.focus(*view);
    });
  });
  dialog->setWindowFlags(Qt::Widget);
  dialog->setFixedWidth(std::min(parts_.window.width() * 11 / 20, 58 * Metrics::current().unit));
  middle_.addWidget(dialog);
  giveWay(pages_, *dialog);
  dialog->show();
  dialog->setFocus();
  offerMore(*dialog);
  return dialog;
}

}  // namespace stepscope
