// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/element_editor.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QStyle>
#include <algorithm>

#include "views/common/tokens.h"
#include "views/tensors/tensor_menu.h"

namespace stepscope {
namespace {

void markRefused(QLineEdit& editor, const QString& why) {
  editor.setProperty("role", why.isEmpty() ? QVariant() : QStringLiteral("error"));
  editor.setToolTip(why);
  editor.style()->unpolish(&editor);
  editor.style()->polish(&editor);
}

}  // namespace

void ElementEditor::refuse(const QModelIndex& index, const QString& typed, const QString& why) {
  refused_ = index;
  typed_ = typed;
  why_ = why;
}

QWidget* ElementEditor::createEditor(QWidget* parent, const QStyleOptionViewItem&, const QModelIndex&) const {
  auto* editor = new QLineEdit(parent);
  editor->setObjectName(QStringLiteral("element_editor"));
  editor->setAccessibleName(QStringLiteral("Element"));
  editor->setFont(monoFont());
  editor->setAlignment(Qt::AlignRight);
  editor->setFrame(false);
  connect(editor, &QLineEdit::textEdited, editor, [editor] { markRefused(*editor, {}); });
  return editor;
}

void ElementEditor::setEditorData(QWidget* editor, const QModelIndex& index) const {
  auto* line = static_cast<QLineEdit*>(editor);
  const bool again = refused_.isValid() && refused_ == index;
  line->setText(again ? typed_ : index.data(Qt::EditRole).toString());
  if (again)
    markRefused(*line, why_);
  else
    line->setToolTip(QStringLiteral("The number itself, without the factor that stands over the table"));
  line->selectAll();
}

void ElementEditor::updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                                         const QModelIndex& index) const {
  const int room = editor->parentWidget()->width();
  QRect place = option.rect;
  const int wanted = editor->fontMetrics().horizontalAdvance(index.data(Qt::EditRole).toString() + QStringLiteral("000"));
  place.setWidth(std::min(room, std::max(place.width(), wanted)));
  place.moveRight(std::min(std::max(option.rect.right(), place.width() - 1), room - 1));
  editor->setGeometry(place);
}

void ElementEditor::setModelData(QWidget* editor, QAbstractItemModel*, const QModelIndex& index) const {
  const QString text = static_cast<QLineEdit*>(editor)->text();
  const auto number = elementNumber(text);
  if (!number || text == index.data(Qt::EditRole).toString()) return;
  // The model shows what the worker has; the number comes back as a fact.
  emit const_cast<ElementEditor*>(this)->typed(index, *number, text);
}

bool ElementEditor::eventFilter(QObject* editor, QEvent* event) {
  auto* line = qobject_cast<QLineEdit*>(editor);
  if (line && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if ((key == Qt::Key_Return || key == Qt::Key_Enter || key == Qt::Key_Tab || key == Qt::Key_Backtab) &&
        !elementNumber(line->text())) {
      const QString why = stepscope::notANumber(line->text());
      markRefused(*line, why);
      emit notANumber(why);
      return true;
    }
    if (key == Qt::Key_Escape) refused_ = QPersistentModelIndex();
  }
  return QStyledItemDelegate::eventFilter(editor, event);
}

}  // namespace stepscope
