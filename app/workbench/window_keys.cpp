// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window_keys.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QDialog>
#include <QKeyEvent>

#include "app/workbench/actions.h"
#include "app/workbench/session/model_session.h"

namespace stepscope {
namespace {

// Space fits the view, but whoever has the keyboard on a button, a box of choices or a check box presses it.
bool presses(const QWidget* focus, const QKeyEvent& key) {
  if (key.key() != Qt::Key_Space || key.modifiers() != Qt::NoModifier) return false;
  const auto* items = qobject_cast<const QAbstractItemView*>(focus);
  return qobject_cast<const QAbstractButton*>(focus) || qobject_cast<const QComboBox*>(focus) ||
         (items && items->currentIndex().flags() & Qt::ItemIsUserCheckable);
}

}  // namespace

// Whatever has the keyboard, Esc is for a build that runs; but a dialog, the set-up among them, closes.
bool WindowKeys::endsBuild(const QWidget& focus, const QKeyEvent& key) const {
  if (!parts_.store.building() || key.key() != Qt::Key_Escape || key.modifiers() != Qt::NoModifier) return false;
  if (focus.windowType() == Qt::Popup) return false;
  for (const QWidget* widget = &focus; widget; widget = widget->parentWidget()) {
    if (qobject_cast<const QDialog*>(widget)) return false;
    if (widget == &parts_.window) return true;
  }
  return false;
}

// On this system a line of text takes Ctrl+E for the way to its end, which the End key is for; whoever filters a view
// exports it too.
bool WindowKeys::exportsView(const QWidget& focus, const QKeyEvent& key) const {
  return focus.window() == &parts_.window &&
         parts_.actions[QStringLiteral("picture_save")]->shortcut() == QKeySequence(key.keyCombination());
}

bool WindowKeys::eventFilter(QObject* watched, QEvent* event) {
  if (!watched->isWidgetType()) return false;
  const auto& widget = *static_cast<QWidget*>(watched);
  if (event->type() == QEvent::KeyPress && endsBuild(widget, *static_cast<QKeyEvent*>(event))) {
    parts_.session.pause();
    return true;
  }
  if (event->type() != QEvent::ShortcutOverride) return false;
  const auto& key = *static_cast<QKeyEvent*>(event);
  if (watched == &parts_.window && presses(QApplication::focusWidget(), key)) {
    event->accept();
    return true;
  }
  if (!exportsView(widget, key)) return false;
  event->ignore();
  return true;
}

}  // namespace stepscope
