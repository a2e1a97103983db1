// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/open_dialog/form_parts.h"

#include <QAbstractButton>
#include <QAbstractSpinBox>
#include <QComboBox>
#include <QEvent>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QVBoxLayout>

#include "views/common/tokens.h"

namespace stepscope {
namespace {

class WheelToPage : public QObject {
 public:
  using QObject::QObject;
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() != QEvent::Wheel || static_cast<QWidget*>(watched)->hasFocus()) return false;
    event->ignore();  // it goes to the parent
    return true;
  }
};

}  // namespace

QLabel* quiet(const QString& text) {
  auto* label = new QLabel(text);
  label->setTextFormat(Qt::PlainText);
  label->setProperty("role", "muted");
  label->setFont(smallFont());
  label->setWordWrap(true);
  return label;
}

QWidget* column(std::initializer_list<QWidget*> widgets) {
  auto* box = new QWidget;
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(3);
  for (QWidget* w : widgets) layout->addWidget(w);
  return box;
}

QWidget* line(std::initializer_list<QWidget*> widgets) {
  auto* box = new QWidget;
  auto* layout = new QHBoxLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  for (QWidget* w : widgets) layout->addWidget(w, qobject_cast<QAbstractButton*>(w) ? 0 : 1);
  return box;
}

QWidget* grid(int nameWidth, std::initializer_list<std::vector<std::pair<QString, QWidget*>>> rows) {
  auto* box = new QWidget;
  auto* layout = new QGridLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  // A layout leaves the spacing out where a column has no widget of its own; a column between two fields is always as wide.
  const int gap = layout->horizontalSpacing() >= 0 ? layout->horizontalSpacing() : 6;
  layout->setHorizontalSpacing(0);
  int row = 0;
  for (const auto& fields : rows) {
    int column = 0;
    for (const auto& [text, w] : fields) {
      if (text.isEmpty()) {
        w->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // its longest text moves no column
        layout->addWidget(w, row, column, 1, 2);
      } else {
        auto* label = quiet(text);
        label->setWordWrap(false);
        layout->addWidget(label, row, column);
        layout->addWidget(w, row, column + 1);
      }
      layout->setColumnMinimumWidth(column, nameWidth);
      layout->setColumnMinimumWidth(column + 1, 7 * Metrics::current().unit);
      layout->setColumnStretch(column + 1, 1);
      if (&fields.back().second != &w) layout->setColumnMinimumWidth(column + 2, gap);
      column += 3;
    }
    ++row;
  }
  return box;
}

void leaveWheelToPage(QWidget& page) {
  auto* filter = new WheelToPage(&page);
  const auto leave = [filter](QWidget* field) {
    field->setFocusPolicy(Qt::StrongFocus);  // the wheel alone gives it no focus
    field->installEventFilter(filter);
  };
  for (auto* box : page.findChildren<QComboBox*>()) leave(box);
  for (auto* box : page.findChildren<QAbstractSpinBox*>()) leave(box);
}

}  // namespace stepscope
