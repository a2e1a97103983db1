// SPDX-License-Identifier: GPL-3.0-or-later
// Settings of the training that the first page has no field for: betas, schedule, parameter groups, padding, precision …
// Made of the options' metadata: a new option has its field here without a line of ours.
#pragma once

#include <QString>
#include <QWidget>
#include <string>
#include <utility>
#include <vector>

#include "engine/snapshot/run.pb.h"

class QAction;
class QLineEdit;

namespace stepscope {

class MoreSettings : public QWidget {
  Q_OBJECT

 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  // `before`: what they begin with; settings of other names are left alone.
  // `folder`: where files are looked for.
  MoreSettings(const std::vector<snapshot::Option>& options, const Settings& before, const QString& folder,
               QWidget* parent = nullptr);

  void setRemote();  // files are those of another machine: they are named, not chosen

  // Whether there is a field for it.
  bool has(const std::string& setting) const;
  // Those that differ from their defaults, or were set before.
  Settings settings() const;
  QWidget* fieldOf(const std::string& setting) const;  // nullptr where there is none

 private:
  struct Field {
    std::string name, defaultValue;
    QWidget* editor = nullptr;  // a line or a box of choices
    bool wasSet = false;
  };
  QWidget* makeEditor(const snapshot::Option& option, const QString& value);
  void addChooser(QLineEdit* text);
  static QString textOf(const QWidget* editor);

  std::vector<Field> fields_;
  QString folder_;
  QAction* chooser_ = nullptr;
};

}  // namespace stepscope
