// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window_menus.h"

#include <algorithm>

#include "app/workbench/actions.h"
#include "app/workbench/layouts.h"
#include "app/workbench/toolbar.h"
#include "app/workbench/view_list.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

WindowMenus::WindowMenus(const WindowParts& parts, Toolbar& toolbar) : parts_(parts) {
  addViews();
  addLayouts();
  toolbar.setMenus(mainMenu(), breakMenu(), layoutMenu(), exportMenu());
}

void WindowMenus::addViews() {
  for (const ViewEntry& entry : viewList()) {
    const QString id = QString::fromLatin1(entry.id), title = QString::fromUtf8(entry.title);
    if (id == u"start") continue;
    QAction* action = parts_.actions.add(QStringLiteral("view_") + id, QStringLiteral("Views"), title,
                                         QStringLiteral("Show the view %1").arg(title));
    connect(action, &QAction::triggered, this, [this, id] { emit viewWanted(id); });
  }
}

void WindowMenus::addLayouts() {
  int number = 0;
  for (const ViewLayout& layout : shippedLayouts()) {
    QAction* action =
        parts_.actions.add(QStringLiteral("layout_") + layout.name.toLower(), QStringLiteral("Layouts"),
                           QStringLiteral("Layout %1").arg(layout.name), QStringLiteral("Arrange the views for this work"));
    action->setShortcut(QKeySequence(QStringLiteral("Ctrl+%1").arg(++number)));
    connect(action, &QAction::triggered, this, [this, name = layout.name] { emit layoutWanted(name); });
  }
}

QMenu* WindowMenus::mainMenu() {
  auto* main = new QMenu(&parts_.window);
  for (const char* group : {"File", "Run", "Select", "View", "Views", "Tools", "Help"}) {
    QMenu* menu = main->addMenu(QString::fromUtf8(group));
    menu->setToolTipsVisible(true);  // they say what an action that is not offered waits for
    for (QAction* action : parts_.actions.all()) {
      if (Actions::groupOf(action) == QLatin1String(group)) menu->addAction(action);
    }
  }
  return main;
}

QMenu* WindowMenus::breakMenu() {
  auto* menu = new QMenu(&parts_.window);
  const auto breakOn = [this, menu](const QString& text, bool nan, bool inf) {
    QAction* choice = menu->addAction(text, this, [this, nan, inf] { emit breakOnWanted(nan, inf); });
    choice->setCheckable(true);
    connect(menu, &QMenu::aboutToShow, choice, [this, choice, nan, inf] {
      const auto breaks = [this](auto kind) {
        const auto& all = parts_.store.breakpoints();
        return std::any_of(all.begin(), all.end(),
                           [kind](const auto& b) { return b.condition_case() == kind && b.enabled(); });
      };
      choice->setChecked(breaks(snapshot::Breakpoint::kNan) == nan && breaks(snapshot::Breakpoint::kNewInf) == inf);
    });
  };
  breakOn(QStringLiteral("NaN and new infinities"), true, true);
  breakOn(QStringLiteral("NaN"), true, false);
  breakOn(QStringLiteral("New infinities"), false, true);
  breakOn(QStringLiteral("Nothing"), false, false);
  menu->addSeparator();
  menu->addAction(parts_.actions[QStringLiteral("breakpoint_add")]);
  return menu;
}

QMenu* WindowMenus::layoutMenu() {
  auto* menu = new QMenu(&parts_.window);
  connect(menu, &QMenu::aboutToShow, this, [this, menu] { fillLayouts(menu); });
  return menu;
}

void WindowMenus::fillLayouts(QMenu* menu) {
  menu->clear();
  QStringList names;
  QString present;
  emit layoutsAsked(&names, &present);
  for (const QString& name : names) {
    const QAction* shipped = parts_.actions.find(QStringLiteral("layout_") + name.toLower());
    QAction* action = menu->addAction(name, this, [this, name] { emit layoutWanted(name); });
    if (shipped) action->setText(name + '\t' + shipped->shortcut().toString(QKeySequence::NativeText));
    action->setCheckable(true);
    action->setChecked(name == present);
  }
  menu->addSeparator();
  for (const char* id : {"layout_save", "layout_reset", "layout_delete"}) menu->addAction(parts_.actions[QLatin1String(id)]);
}

QMenu* WindowMenus::exportMenu() {
  auto* menu = new QMenu(&parts_.window);
  menu->setToolTipsVisible(true);
  for (const char* id : {"report_html", "report_pdf", "report_json", "report_csv", "report_trace"})
    menu->addAction(parts_.actions[QLatin1String(id)]);
  menu->addSeparator();
  for (const char* id : {"picture_save", "picture_copy"}) menu->addAction(parts_.actions[QLatin1String(id)]);
  menu->addSeparator();
  menu->addAction(parts_.actions[QStringLiteral("save_state")]);
  return menu;
}

}  // namespace stepscope
