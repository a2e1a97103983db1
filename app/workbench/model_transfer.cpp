// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/model_transfer.h"

#include <QCryptographicHash>
#include <QDir>
#include <utility>

#include "views/common/format.h"

namespace stepscope {

// The archive goes from one process to the other without passing through this one.
struct ModelTransfer::Processes {
  QProcess archive, there;
  ~Processes() {
    for (QProcess* process : {&archive, &there}) {
      process->disconnect();
      process->kill();
      process->waitForFinished(200);
    }
  }
};

QFileInfoList ModelTransfer::filesOf(const QString& model) {
  const QFileInfo info(model);
  const QString name = info.completeBaseName();
  QFileInfoList files;
  for (const QFileInfo& file : info.dir().entryInfoList(QDir::Files, QDir::Name)) {
    const bool data = file.fileName().startsWith(name) || file.suffix() == u"data" || file.suffix() == u"bin" ||
                      file.suffix() == u"npz" || file.suffix() == u"safetensors" || file.suffix() == u"json" ||
                      file.suffix() == u"pb" || file.suffix() == u"weight";
    if (file.fileName() == info.fileName() || (data && file.suffix() != u"onnx")) files << file;
  }
  return files;
}

void ModelTransfer::send(const RemoteHost& host, const QString& path, const QFileInfoList& files) {
  cancel();
  host_ = host;
  path_ = path;
  const QFileInfo info(path);
  QStringList names{QStringLiteral("-c"), QStringLiteral("-C"), info.absolutePath(), QStringLiteral("--")};
  for (const QFileInfo& file : files) names << file.fileName();
  const QString hash = QString::fromLatin1(
      QCryptographicHash::hash(info.absoluteFilePath().toUtf8(), QCryptographicHash::Sha1).toHex().left(8));
  const QString folder = quoted(info.dir().dirName() + '-' + hash);
  const HostCommand command = shellCommand(
      host,
      QStringLiteral(
          "d=\"$HOME\"/.cache/stepscope/models/%1 && mkdir -p \"$d\" && tar -x -C \"$d\" -f - && printf '%s\\n' \"$d\"")
          .arg(folder));
  processes_ = std::make_shared<Processes>();
  connect(&processes_->there, &QProcess::finished, this, &ModelTransfer::ended);
  connect(&processes_->there, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) ended();
  });
  processes_->archive.setStandardOutputProcess(&processes_->there);
  processes_->there.start(command.program, command.arguments);
  processes_->archive.start(QStringLiteral("tar"), names);
}

void ModelTransfer::ended() {
  const auto done = std::exchange(processes_, nullptr);
  if (!done) return;
  done->archive.waitForFinished(200);
  const QString folder = QString::fromUtf8(done->there.readAllStandardOutput()).trimmed();
  const QString said =
      QString::fromUtf8(done->there.readAllStandardError() + done->archive.readAllStandardError()).trimmed();
  const bool sound = done->there.exitStatus() == QProcess::NormalExit && done->there.exitCode() == 0 &&
                     done->archive.exitCode() == 0 && folder.startsWith('/');
  if (sound) {
    emit sent(folder + '/' + QFileInfo(path_).fileName());
    return;
  }
  emit failed(QStringLiteral("file '%1': not sent to '%2': %3; expected a folder there that can be written")
                  .arg(format::visible(path_), format::visible(host_.host),
                       said.isEmpty() ? QStringLiteral("the connection ended") : format::visible(said.section('\n', -1))));
}

void ModelTransfer::cancel() { processes_.reset(); }

}  // namespace stepscope
