// SPDX-License-Identifier: GPL-3.0-or-later
// The field in the header of a view that says which step it shows: the newest ones, or one by its number.
#pragma once

#include <QSpinBox>

#include "views/common/view.h"

namespace stepscope {

class StepChooser : public QSpinBox {
  Q_OBJECT

 public:
  // Hidden until a header takes it.
  explicit StepChooser(const ViewContext& context, QWidget* parent);

 protected:
  QString textFromValue(int value) const override;
  int valueFromText(const QString& text) const override;
  QValidator::State validate(QString& text, int& at) const override;
  void stepBy(int steps) override;

 private:
  void follow();

  ViewContext context_;
};

}  // namespace stepscope
