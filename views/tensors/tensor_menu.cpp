// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/tensors/tensor_menu.h"

#include <QInputDialog>
#include <QMenu>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/script_drives.h"

namespace stepscope {
namespace {

void askFill(const ViewContext& context, int value, QWidget* parent) {
  auto* dialog = new QInputDialog(parent);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setTextValue(QStringLiteral("0"));
  dialog->setWindowTitle(QStringLiteral("Fill"));
  dialog->setLabelText(QStringLiteral("Every element of this tensor becomes:"));
  Wishes& wishes = context.wishes;
  QObject::connect(dialog, &QInputDialog::textValueSelected, parent, [&wishes, value](const QString& text) {
    if (const auto number = elementNumber(text))
      emit wishes.editTensor(value, {}, *number, true);
    else
      emit wishes.status(notANumber(text));
  });
  dialog->open();
}

}  // namespace

std::optional<double> elementNumber(const QString& text) {
  bool ok = false;
  // As tables write it, too.
  const double number = text.trimmed().replace(QChar(0x2212), '-').toDouble(&ok);
  return ok ? std::optional(number) : std::nullopt;
}

QString notANumber(const QString& text) {
  return QStringLiteral("element: '%1'; expected a number, nan or inf").arg(format::visible(text));
}

QMenu* makeTensorMenu(const ViewContext& context, int value, QWidget* parent, const std::function<void()>& keep) {
  auto* menu = new QMenu(parent);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->setObjectName(QStringLiteral("tensor_menu"));
  menu->setToolTipsVisible(true);
  const auto has = [value](const std::vector<int>& list) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  const bool watched = has(context.store.watched()), pinned = has(context.store.pinned());
  Wishes& wishes = context.wishes;
  const bool live = !context.store.readOnly();
  const auto add = [&](const QString& symbol, const QString& text, const char* name, auto&& then) {
    QAction* action =
        menu->addAction(symbol.isEmpty() ? QIcon() : icon(symbol), text, parent, std::forward<decltype(then)>(then));
    action->setObjectName(QLatin1String(name));
    action->setEnabled(live);
    return action;
  };
  const auto addChange = [&](auto&&... what) { allow(context.store, add(std::forward<decltype(what)>(what)...), live); };
  add(QStringLiteral("eye"), watched ? QStringLiteral("Stop watching") : QStringLiteral("Watch"), "tensor_watch",
      [&wishes, value, watched] { emit wishes.watch(value, !watched); });
  addChange(QStringLiteral("pin"), pinned ? QStringLiteral("Unpin") : QStringLiteral("Pin: keep its memory"), "tensor_pin",
            [&wishes, value, pinned] { emit wishes.pin(value, !pinned); });
  menu->addSeparator();
  add({}, QStringLiteral("Keep for comparison"), "tensor_keep", keep);
  add({}, QStringLiteral("Compare with .npy…"), "tensor_compare",
      [&wishes, value] { emit wishes.compareWithFile(value, {}); });
  menu->addSeparator();
  addChange(QString(), QStringLiteral("Fill with a number…"), "tensor_fill",
            [context, value, parent] { askFill(context, value, parent); });
  addChange(QStringLiteral("open"), QStringLiteral("Load from .npy…"), "tensor_load",
            [&wishes, value] { emit wishes.loadTensor(value, {}); });
  add(QStringLiteral("save"), QStringLiteral("Save as .npy…"), "tensor_save",
      [&wishes, value] { emit wishes.saveTensor(value); });
  menu->addSeparator();
  const auto* v = context.store.graph() ? context.store.graph()->value(value) : nullptr;
  add({}, QStringLiteral("Break when it holds a NaN"), "tensor_break", [&wishes, name = v ? v->name() : std::string()] {
    snapshot::Breakpoint b;
    b.set_predicate(name + " nan > 0");
    b.set_enabled(true);
    emit wishes.addBreakpoint(b);
  });
  return menu;
}

}  // namespace stepscope
