// SPDX-License-Identifier: GPL-3.0-or-later
// Menus, and what the window remembers between sessions.
#include <QActionGroup>
#include <QApplication>
#include <QJsonArray>
#include <QJsonDocument>
#include <QMenu>
#include <QScreen>
#include <QSettings>
#include <algorithm>

#include "app/workbench/main_window.h"
#include "app/workbench/view_list.h"
#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

// It has a name, and a view that there is.
bool isSound(const Layout& layout) {
  const auto& all = viewList();
  const auto known = [&all](const QString& id) {
    return std::any_of(all.begin(), all.end(), [&id](const ViewEntry& entry) { return id == QLatin1String(entry.id); });
  };
  return !layout.name.isEmpty() && std::any_of(layout.views.begin(), layout.views.end(), [&known](const QStringList& ids) {
    return std::any_of(ids.begin(), ids.end(), known);
  });
}

}  // namespace

void MainWindow::makeMenus() {
  for (const ViewEntry& entry : viewList()) {
    if (QLatin1String(entry.id) == QLatin1String("start")) continue;
    QAction* action =
        actions_->add(QStringLiteral("view_") + QLatin1String(entry.id), QStringLiteral("Views"),
                      QString::fromUtf8(entry.title), tr("Show the view %1").arg(QString::fromUtf8(entry.title)));
    connect(action, &QAction::triggered, this, [this, id = QString::fromLatin1(entry.id)] {
      showStartPage(false);
      if (View* view = board_->show(id)) board_->focus(*view);
    });
  }
  for (const Layout& layout : shippedLayouts()) {
    QAction* action = actions_->add(QStringLiteral("layout_") + layout.name.toLower(), QStringLiteral("Layouts"),
                                    tr("Layout %1").arg(layout.name), tr("Arrange the views for this work"));
    action->setShortcut(QKeySequence(QStringLiteral("Ctrl+%1").arg(1 + (&layout - shippedLayouts().data()))));
    connect(action, &QAction::triggered, this, [this, name = layout.name] {
      showStartPage(false);
      changeLayout(name);
    });
  }

  mainMenu_ = new QMenu(this);
  for (const char* group : {"File", "Run", "Select", "View", "Views", "Tools"}) {
    QMenu* menu = mainMenu_->addMenu(tr(group));
    menu->setToolTipsVisible(true);  // they say what an action that is not offered waits for
    for (QAction* action : actions_->all()) {
      if (Actions::groupOf(action) == QLatin1String(group)) menu->addAction(action);
    }
  }
  layoutMenu_ = new QMenu(this);
  connect(layoutMenu_, &QMenu::aboutToShow, this, [this] {
    layoutMenu_->clear();
    for (const QString& name : layoutNames()) {
      QAction* shipped = actions_->find(QStringLiteral("layout_") + name.toLower());
      QAction* action = layoutMenu_->addAction(name, this, [this, name] {
        showStartPage(false);
        changeLayout(name);
      });
      if (shipped) action->setText(name + '\t' + shipped->shortcut().toString(QKeySequence::NativeText));
      action->setCheckable(true);
      action->setChecked(name == layoutName_);
    }
    layoutMenu_->addSeparator();
    layoutMenu_->addAction((*actions_)[QStringLiteral("layout_save")]);
    layoutMenu_->addAction((*actions_)[QStringLiteral("layout_reset")]);
    layoutMenu_->addAction((*actions_)[QStringLiteral("layout_delete")]);
  });
  exportMenu_ = new QMenu(this);
  exportMenu_->setToolTipsVisible(true);
  for (const char* id : {"report_html", "report_pdf", "report_json", "report_csv", "report_trace"})
    exportMenu_->addAction((*actions_)[QLatin1String(id)]);
  exportMenu_->addSeparator();
  for (const char* id : {"picture_save", "picture_copy"}) exportMenu_->addAction((*actions_)[QLatin1String(id)]);
  exportMenu_->addSeparator();
  exportMenu_->addAction((*actions_)[QStringLiteral("save_state")]);
  breakMenu_ = new QMenu(this);
  const auto breakOn = [this](const QString& text, bool nan, bool inf) {
    breakMenu_->addAction(text, this, [this, nan, inf] { setBreakOn(nan, inf); });
  };
  breakOn(tr("NaN and new infinities"), true, true);
  breakOn(tr("NaN"), true, false);
  breakOn(tr("New infinities"), false, true);
  breakOn(tr("Nothing"), false, false);
  breakMenu_->addSeparator();
  breakMenu_->addAction((*actions_)[QStringLiteral("breakpoint_add")]);
  toolbar_->setMenus(mainMenu_, breakMenu_, layoutMenu_, exportMenu_);
}

void MainWindow::scaleText(double factor) {
  QFont font = QApplication::font();
  const double base = interfaceFont().pointSizeF();
  const double size = factor == 0 ? base : std::clamp(font.pointSizeF() * factor, 0.7 * base, 3.0 * base);
  font.setPointSizeF(size);
  QApplication::setFont(font);
  if (remember_) QSettings().setValue(QStringLiteral("text_scale"), size / base);
  status_->note(tr("Text at %1 %; the layout follows when the window is opened again").arg(qRound(100 * size / base)));
}

void MainWindow::remember() {
  if (!remember_) return;
  QSettings settings;
  settings.setValue(QStringLiteral("geometry"), saveGeometry());
  settings.setValue(QStringLiteral("layout"), layoutName_);
  QJsonArray saved;
  for (const Layout& l : saved_) saved << l.toJson();
  settings.setValue(QStringLiteral("layouts"), QJsonDocument(saved).toJson(QJsonDocument::Compact));
  settings.setValue(QStringLiteral("present"),
                    QJsonDocument(board_->present(layoutName_).toJson()).toJson(QJsonDocument::Compact));
  for (const ViewEntry& entry : viewList()) {
    const QString id = QString::fromLatin1(entry.id);
    if (const View* view = board_->find(id)) settings.setValue(QStringLiteral("view/") + id, view->saveState());
  }
}

void MainWindow::restore() {
  if (!remember_) return;
  const SettingsReader settings = remembered();
  const QByteArray geometry = settings.bytes(QStringLiteral("geometry"));
  if (!geometry.isEmpty() && !restoreGeometry(geometry))
    settings.refuse(QStringLiteral("geometry"), tr("%1 bytes").arg(geometry.size()), tr("the place of a window"));
  // The screen may be another one than the window was left on.
  if (const QScreen* on = screen(); on && !isMaximized() && !isFullScreen()) resize(size().boundedTo(on->availableSize()));
  const QString layouts = QStringLiteral("layouts"), present = QStringLiteral("present");
  for (const QJsonValue& value : settings.json(layouts).array()) {
    const Layout layout = Layout::fromJson(value.toObject());
    if (isSound(layout))
      saved_.push_back(layout);
    else
      settings.refuse(layouts, tr("a layout '%1' without a view").arg(format::visible(layout.name)), tr("a name and views"));
  }
  const QJsonDocument last = settings.json(present);
  if (last.isNull()) return;
  const Layout layout = Layout::fromJson(last.object());
  if (!isSound(layout))
    return settings.refuse(present, tr("a layout '%1' without a view").arg(format::visible(layout.name)),
                           tr("a name and views"));
  arrange(layout);
}

SettingsReader MainWindow::remembered() {
  return SettingsReader([this](const QString& problem) {
    if (toldOfSettings_.contains(problem)) return;
    toldOfSettings_ << problem;
    store_.addLog({QStringLiteral("warning"), problem, 0});
  });
}

}  // namespace stepscope
