// SPDX-License-Identifier: GPL-3.0-or-later
// A boxed toolbar button that shows a quiet label and its present value: "Layout  Step ▾".
#pragma once

#include <QAbstractButton>
#include <QIcon>

class QMenu;

namespace stepscope {

class LabelButton : public QAbstractButton {
  Q_OBJECT

 public:
  explicit LabelButton(const QString& label, QWidget* parent = nullptr);
  void setValue(const QString& value);
  const QString& value() const { return value_; }
  void setMenu(QMenu* menu);  // opens on click; not owned. Draws the arrow.
  void setBoxed(bool boxed);
  void setColour(const QColor& colour);  // of icon and text; invalid = the theme's
  // Value only, with the icon of setCompactIcon; with setLabelStays the label only; without a value the icon only.
  void setCompact(bool compact);
  void setCompactIcon(const QIcon& icon) { compactIcon_ = icon; }
  void setLabelStays(bool stays) { labelStays_ = stays; }
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void enterEvent(QEnterEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  struct Parts {
    QIcon icon;
    bool label = false, value = false;
  };
  Parts parts() const;  // that are shown

  QString value_;
  QIcon compactIcon_;
  bool labelStays_ = false;
  QMenu* menu_ = nullptr;
  bool boxed_ = true;
  bool compact_ = false;
  QColor colour_;
};

}  // namespace stepscope
