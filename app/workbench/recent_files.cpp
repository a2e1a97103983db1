// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/recent_files.h"

#include <QCryptographicHash>
#include <QDir>
#include <QFileInfo>
#include <QSettings>
#include <QStandardPaths>
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "app/workbench/capture_settings.h"
#include "app/workbench/sample_list.h"
#include "views/common/snapshot_store.h"

namespace stepscope {
namespace {

constexpr qsizetype kMostRecent = 24;       // that are listed: models and what was recorded of them
constexpr qsizetype kMostRemembered = 400;  // whose set-ups are remembered
const QString kRecent = QStringLiteral("recent");

QString setUpKey(const QString& model) {
  return QStringLiteral("set_up/") +
         QString::fromLatin1(QCryptographicHash::hash(model.toUtf8(), QCryptographicHash::Sha1).toHex());
}

// Windows that record one model beside each other count: NAME.stepscope, NAME-2.stepscope …
bool isOf(const QString& recording, const QString& name) {
  const QString base = QFileInfo(recording).completeBaseName();
  bool number = false;
  if (base.startsWith(name + '-')) (void)base.mid(name.size() + 1).toInt(&number);
  return base == name || number;
}

}  // namespace

QString RecentFiles::projectFolder() {
  return QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + QStringLiteral("/projects");
}

QString RecentFiles::projectName(const QString& host, const QString& model) {
  const QString hash =
      QString::fromLatin1(QCryptographicHash::hash((host + model).toUtf8(), QCryptographicHash::Sha1).toHex().left(8));
  const QFileInfo file(model);
  return (file.completeBaseName() == u"model" ? file.dir().dirName() : file.completeBaseName()) + '-' + hash;
}

void RecentFiles::note(const QString& path) {
  if (!settings_.remember()) return;
  QStringList recent = settings_.read().texts(kRecent);
  recent.removeAll(path);
  recent.prepend(path);
  QSettings settings;
  for (const QString& old : recent.mid(kMostRemembered)) settings.remove(setUpKey(old));
  settings.setValue(kRecent, recent.mid(0, kMostRemembered));
  list();
}

bool RecentFiles::lists(const QString& path) {
  return settings_.remember() && settings_.read().texts(kRecent).contains(path);
}

void RecentFiles::forget(const QString& path) {
  if (!settings_.remember()) return;
  QStringList recent = settings_.read().texts(kRecent);
  recent.removeAll(path);
  settings_.set(kRecent, recent);
  QSettings().remove(setUpKey(path));
  list();
}

QString RecentFiles::newest() { return settings_.remember() ? settings_.read().texts(kRecent).value(0) : QString(); }

void RecentFiles::noteSetUp(const QString& model, const snapshot::Configure& configuration) {
  // A state to begin with is asked for each time: nobody expects the next training to begin in the middle of this one. That
  // of a capture belongs to its model.
  const auto startState = [](const snapshot::Setting& s) { return s.name() == "start-state"; };
  snapshot::Configure lasting = configuration, captured = captureSettings(model);
  auto& settings = *lasting.mutable_settings();
  settings.erase(std::remove_if(settings.begin(), settings.end(), startState), settings.end());
  for (const snapshot::Setting& s : captured.settings())
    if (startState(s)) *lasting.add_settings() = s;
  const std::string text = lasting.SerializeAsString();
  settings_.set(setUpKey(model), QByteArray(text.data(), static_cast<qsizetype>(text.size())));
}

snapshot::Configure RecentFiles::lastSetUp(const QString& model) {
  snapshot::Configure last = captureSettings(model);
  if (!settings_.remember()) return last;
  const SettingsReader settings = settings_.read();
  const QByteArray text = settings.bytes(setUpKey(model));
  if (text.isEmpty() || last.ParseFromArray(text.constData(), static_cast<int>(text.size()))) return last;
  settings.refuse(setUpKey(model), QStringLiteral("%1 bytes").arg(text.size()), QStringLiteral("the set-up of a model"));
  return {};
}

void RecentFiles::list() {
  std::vector<FileEntry> files;
  if (settings_.remember()) {
    QStringList paths = settings_.read().texts(kRecent).mid(0, kMostRecent);
    paths.removeIf([](const QString& path) { return !QFileInfo::exists(path); });
    // A model stands with its newest recording, not beside it; that of a model that is no more stands alone.
    QStringList recordings;
    for (const QString& path : paths)
      if (QFileInfo(path).path() == projectFolder()) recordings << path;
    std::map<QString, QString> recordingOf;  // by model
    for (const QString& model : QStringList(paths)) {
      const QString name = projectName({}, model);
      const auto first = std::find_if(recordings.begin(), recordings.end(), [&](const QString& r) { return isOf(r, name); });
      if (first == recordings.end()) continue;
      recordingOf[model] = *first;
      paths.removeIf([&](const QString& path) { return recordings.contains(path) && isOf(path, name); });
    }
    for (const QString& path : paths) files.push_back({path, {}, false, recordingOf[path]});
  }
  for (const Sample& sample : samples()) files.push_back({sample.path, sample.detail, true});
  store_.project().setFiles(std::move(files));
}

}  // namespace stepscope
