// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/settings_reader.h"

#include <algorithm>

#include "views/common/format.h"

namespace stepscope {

SettingsReader::SettingsReader(Tell tell) : tell_(std::move(tell)) {
  settings_.sync();
  if (settings_.status() == QSettings::FormatError)
    tell_(QStringLiteral("settings '%1': found lines that are no settings; expected KEY=VALUE; the others are used")
              .arg(format::visible(settings_.fileName())));
  else if (settings_.status() == QSettings::AccessError)
    tell_(QStringLiteral("settings '%1': cannot be read or written; defaults are used")
              .arg(format::visible(settings_.fileName())));
}

QVariant SettingsReader::value(const QString& key, std::initializer_list<int> types, const QString& expected) const {
  QVariant value = settings_.value(key);
  const bool known = std::find(types.begin(), types.end(), value.typeId()) != types.end();
  if (known || !value.isValid()) return value;
  refuse(key, QStringLiteral("a value of type %1").arg(QString::fromLatin1(value.typeName())), expected);
  return {};
}

QByteArray SettingsReader::bytes(const QString& key) const {
  return value(key, {QMetaType::QByteArray, QMetaType::QString}, QStringLiteral("bytes")).toByteArray();
}

QString SettingsReader::text(const QString& key) const {
  return value(key, {QMetaType::QString, QMetaType::QByteArray}, QStringLiteral("text")).toString();
}

QStringList SettingsReader::texts(const QString& key) const {
  return value(key, {QMetaType::QStringList, QMetaType::QString}, QStringLiteral("a list of texts")).toStringList();
}

QJsonDocument SettingsReader::json(const QString& key) const {
  const QByteArray text = bytes(key);
  if (text.isEmpty()) return {};
  QJsonParseError error;
  const QJsonDocument document = QJsonDocument::fromJson(text, &error);
  if (document.isNull())
    refuse(key, QStringLiteral("%1 at byte %2").arg(error.errorString()).arg(error.offset), QStringLiteral("JSON"));
  return document;
}

void SettingsReader::refuse(const QString& key, const QString& found, const QString& expected) const {
  tell_(QStringLiteral("settings '%1': found %2; expected %3; the default is used")
            .arg(format::visible(key), found, expected));
}

}  // namespace stepscope
