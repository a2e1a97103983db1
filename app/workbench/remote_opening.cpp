// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/remote_opening.h"

#include <QTimer>

#include "app/workbench/actions.h"
#include "app/workbench/connect_dialog.h"
#include "app/workbench/model_opening.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/questions.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/status_line.h"
#include "app/workbench/window_settings.h"
#include "views/common/file_name.h"
#include "views/common/format.h"
#include "views/common/worker_host.h"

namespace stepscope {
namespace {
constexpr qsizetype kMostHosts = 12;
const QString kHosts = QStringLiteral("hosts");
}  // namespace

RemoteOpening::RemoteOpening(const WindowParts& parts, ModelOpening& opening, FileQuestions& questions,
                             WindowSettings& settings)
    : parts_(parts), opening_(opening), questions_(questions), settings_(settings) {
  connect(parts_.actions[QStringLiteral("connect")], &QAction::triggered, this, &RemoteOpening::ask);
  connect(parts_.actions[QStringLiteral("detach")], &QAction::triggered, this, [this] { connectTo({}); });
  parts_.actions[QStringLiteral("detach")]->setEnabled(false);
  // Nothing came of it: back to a worker of our own.
  connect(&parts_.session, &ModelSession::problem, this, [this](const QString&, const QString& code) {
    if (code != u"worker_died" || !parts_.session.client().host().attached() || parts_.session.attached()) return;
    QTimer::singleShot(0, this, [this] { parts_.session.connectTo({}); });
  });
  connect(parts_.actions[QStringLiteral("send_model")], &QAction::triggered, this, &RemoteOpening::askToSend);
  connect(&opening_, &ModelOpening::askedThere, this, &RemoteOpening::askModel);
  connect(&parts_.session, &ModelSession::hostChanged, this, &RemoteOpening::hostChanged);
  connect(&transfer_, &ModelTransfer::sent, this, [this](const QString& path) {
    parts_.notice.clear();
    parts_.status.note(QStringLiteral("Sent to %1").arg(format::visible(path)));
    opening_.open(path);
  });
  connect(&opening_, &ModelOpening::sendingWanted, this, &RemoteOpening::sendData);
  connect(&batches_, &ModelTransfer::sent, this, [this](const QString& path) {
    parts_.notice.clear();
    opening_.dataSent(path);
  });
  for (ModelTransfer* transfer : {&transfer_, &batches_})
    connect(transfer, &ModelTransfer::failed, this,
            [this](const QString& text) { parts_.notice.showProblem(text, {}, {}); });
  parts_.actions[QStringLiteral("send_model")]->setEnabled(false);
}

QList<RemoteHost> RemoteOpening::known() {
  QList<RemoteHost> hosts;
  if (!settings_.remember()) return hosts;
  for (const QString& line : settings_.read().texts(kHosts))
    if (const RemoteHost host{line.section('\t', 0, 0), line.section('\t', 1)}; problemOf(host).isEmpty()) hosts << host;
  return hosts;
}

void RemoteOpening::remember(const RemoteHost& host) {
  QStringList lines{host.host + '\t' + host.program};
  for (const RemoteHost& other : known())
    if (other.host != host.host && lines.size() < kMostHosts) lines << other.host + '\t' + other.program;
  settings_.set(kHosts, lines);
}

void RemoteOpening::ask() {
  auto* dialog = new ConnectDialog(known(), parts_.session.client().host(), &parts_.window);
  connect(dialog, &ConnectDialog::wanted, this, &RemoteOpening::connectTo);
  dialog->open();
}

void RemoteOpening::connectTo(const RemoteHost& host) {
  if (!host.local())
    if (const QString problem = problemOf(host); !problem.isEmpty()) return parts_.notice.showProblem(problem, {}, {});
  parts_.notice.clear();
  transfer_.cancel();
  batches_.cancel();
  opening_.leave();
  parts_.session.connectTo(host);
}

void RemoteOpening::hostChanged() {
  const RemoteHost& host = parts_.session.client().host();
  parts_.actions[QStringLiteral("send_model")]->setEnabled(!host.local() && !host.attached());
  parts_.actions[QStringLiteral("detach")]->setEnabled(host.attached());
  WorkerHost::of(parts_.store).set(host.host, host.attached());
  if (host.attached()) return opening_.openAttached();
  if (host.local()) {
    parts_.status.note(QStringLiteral("Working on this machine"));
    return;
  }
  remember(host);
  parts_.status.note(QStringLiteral("Connected to %1; Ctrl+O opens a model there").arg(format::visible(host.host)));
}

void RemoteOpening::askModel() {
  askText(&parts_.window, QStringLiteral("Open on %1").arg(format::visible(parts_.session.client().host().host)),
          QStringLiteral("Path of the model on that machine; a relative one begins where ssh logs in:"), lastPath_,
          QStringLiteral("open_there_dialog"), [this](const QString& path) {
            lastPath_ = path;
            opening_.open(path);
          });
}

void RemoteOpening::sendData(const QString& path) {
  const RemoteHost& host = parts_.session.client().host();
  parts_.notice.showStop(QStringLiteral("Sending %1, %2, to %3")
                             .arg(format::fileName(path), format::bytes(QFileInfo(path).size()), format::visible(host.host)),
                         QStringLiteral("Cancel"), [this] {
                           batches_.cancel();
                           parts_.notice.clear();
                         });
  batches_.sendFile(host, path);
}

void RemoteOpening::askToSend() {
  questions_.askExisting(QStringLiteral("Send a model"), QStringLiteral("Models (*.onnx)"), [this](const QString& path) {
    qint64 bytes = 0;
    const QFileInfoList files = ModelTransfer::filesOf(path);
    for (const QFileInfo& file : files) bytes += file.size();
    const RemoteHost& host = parts_.session.client().host();
    parts_.notice.showStop(QStringLiteral("Sending %1 files, %2, to %3")
                               .arg(format::count(files.size()), format::bytes(bytes), format::visible(host.host)),
                           QStringLiteral("Cancel"), [this] {
                             transfer_.cancel();
                             parts_.notice.clear();
                           });
    transfer_.send(host, path);
  });
}

}  // namespace stepscope
