// SPDX-License-Identifier: GPL-3.0-or-later
// What the window remembers from one start to the next (QSettings), read as what a file may be: cut, edited, of another
// version. A value that cannot be understood is as if it were not there, and is told with its key, what was found and what
// was expected. GUI thread.
#pragma once

#include <QByteArray>
#include <QJsonDocument>
#include <QSettings>
#include <QStringList>
#include <functional>
#include <initializer_list>

namespace stepscope {

class SettingsReader {
 public:
  using Tell = std::function<void(const QString& problem)>;
  // Reads the settings of the application. Tells when lines of the file are no settings: those are left out.
  explicit SettingsReader(Tell tell);

  // Empty where there is none.
  QByteArray bytes(const QString& key) const;
  QString text(const QString& key) const;
  QStringList texts(const QString& key) const;
  // Null where there is none; an array or an object.
  QJsonDocument json(const QString& key) const;
  // Of what a reader could not use for a reason of its own.
  void refuse(const QString& key, const QString& found, const QString& expected) const;

 private:
  // The value, when it is of one of these types.
  QVariant value(const QString& key, std::initializer_list<int> types, const QString& expected) const;

  QSettings settings_;
  Tell tell_;
};

}  // namespace stepscope
