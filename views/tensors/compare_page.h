// SPDX-License-Identifier: GPL-3.0-or-later
// The shown value compared with a .npy file, another value, or contents that were kept: of an earlier step, other options,
// another model. Whole tensors are compared, by the engine; the page asks again when the contents change.
#pragma once

#include <QComboBox>
#include <QToolButton>

#include "views/common/details.h"
#include "views/common/view.h"

namespace stepscope {

class ComparePage : public QWidget {
  Q_OBJECT

 public:
  explicit ComparePage(const ViewContext& context, QWidget* parent = nullptr);

  void setValue(int value);  // -1: none
  void contentsChanged();    // of the shown value, or of what it is compared with
  void compareWithFile(const QString& path);
  void keep();  // the present contents, and compares with them from now on

 signals:
  void elementWanted(const std::vector<qint64>& index);  // of the shown value

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void fillChoices();
  void choose(const QString& with);
  void ask();
  void fillResult();
  QString nameOf(const QString& with) const;

  ViewContext context_;
  QComboBox* with_;
  QToolButton* keep_;
  QToolButton* open_;
  Details* result_;
  int value_ = -1;
  QString chosen_;     // as TensorComparison::with; empty: nothing yet
  QStringList files_;  // compared with in this window, newest first
  bool keeping_ = false;
  bool stale_ = true;
};

}  // namespace stepscope
