// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/view_commands.h"

#include <QApplication>
#include <QPointer>
#include <algorithm>
#include <utility>

#include "app/workbench/actions.h"
#include "app/workbench/exports.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/questions.h"
#include "app/workbench/status_line.h"
#include "app/workbench/window_settings.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/common/wishes.h"
#include "views/compare/compare_view.h"

namespace stepscope {

ViewCommands::ViewCommands(const WindowParts& parts, FileQuestions& questions, const WindowSettings& settings)
    : parts_(parts), questions_(questions), settings_(settings) {
  connectViews();
  connectGroups();
  connectPictures();
  connectLook();
}

void ViewCommands::connectViews() {
  const auto active = [this](const char* id, auto what) {
    connect(parts_.actions[QLatin1String(id)], &QAction::triggered, this, [this, what] {
      if (View* view = parts_.board.activeView()) (view->*what)();
    });
  };
  active("find", &View::find);
  active("fit", &View::fitAll);
  connect(parts_.actions[QStringLiteral("focus")], &QAction::triggered, this, &ViewCommands::focusOrFit);
  for (const auto& [id, shown] :
       {std::pair("options", "options"), std::pair("compare_runs", "compare"), std::pair("compare_other", "compare")}) {
    connect(parts_.actions[QLatin1String(id)], &QAction::triggered, this,
            [this, shown = QString::fromLatin1(shown)] { parts_.board.show(shown); });
  }
  for (const char* page :
       {"compare_settings", "compare_numbers", "compare_operators", "compare_phases", "compare_build", "compare_memory"}) {
    const QString id = QString::fromLatin1(page);  // of the action and of the page
    connect(parts_.actions[id], &QAction::triggered, this, [this, id] {
      if (auto* view = qobject_cast<CompareView*>(parts_.board.show(QStringLiteral("compare")))) view->showPage(id);
    });
  }
  connect(parts_.actions[QStringLiteral("compare_other")], &QAction::triggered, &parts_.wishes, &Wishes::openOtherProject);
}

void ViewCommands::connectGroups() {
  const auto groups = [this](const char* id, auto what) {
    connect(parts_.actions[QLatin1String(id)], &QAction::triggered, this, [this, what] {
      if (View* view = viewWithGroups())
        (view->*what)();
      else
        parts_.status.note(QStringLiteral("Groups are those of Graph and Model; neither is shown"));
    });
  };
  groups("enter_group", &View::enterGroup);
  groups("leave_group", &View::leaveGroup);
}

View* ViewCommands::viewWithGroups() const {
  const QString ids[] = {QStringLiteral("graph"), QStringLiteral("model")};
  View* active = parts_.board.activeView();
  for (const QString& id : ids)
    if (active && active == parts_.board.find(id)) return active;
  for (const QString& id : ids)
    if (View* shown = parts_.board.find(id); shown && shown->isVisible()) return shown;
  return nullptr;
}

void ViewCommands::focusOrFit() {
  View* view = parts_.board.activeView();
  if (!view) return;
  // Twice in a row shows everything.
  constexpr int kTwice = 1000;  // milliseconds
  const bool again = focused_.isValid() && focused_.elapsed() < kTwice;
  if (again) {
    focused_.invalidate();
    view->fitAll();
  } else {
    focused_.start();
    view->focusSelection();
  }
}

void ViewCommands::connectPictures() {
  connect(parts_.actions[QStringLiteral("picture_save")], &QAction::triggered, this, [this] {
    View* active = parts_.board.activeView();
    if (!active) return;
    questions_.askToSave(QStringLiteral("Picture of %1").arg(active->title()), active->objectName() + QStringLiteral(".png"),
                         QStringLiteral("Pictures (*.png *.svg *.pdf)"),
                         [this, view = QPointer<View>(active)](const QString& path) {
                           if (view) savePicture(*view, path);
                         });
  });
  connect(parts_.actions[QStringLiteral("picture_copy")], &QAction::triggered, this, [this] {
    View* view = parts_.board.activeView();
    if (!view) return;
    copyPicture(*view);
    parts_.status.note(QStringLiteral("The picture of %1 is in the clipboard").arg(view->title()));
  });
}

void ViewCommands::savePicture(View& view, const QString& path) {
  const QString why = writePicture(view, path);
  if (why.isEmpty())
    parts_.status.note(QStringLiteral("Saved %1").arg(format::visible(path)));
  else
    parts_.notice.showProblem(why, {}, {});
}

void ViewCommands::connectLook() {
  connect(parts_.actions[QStringLiteral("theme")], &QAction::triggered, this, &ViewCommands::switchTheme);
  for (const auto& [id, factor] : {std::pair("zoom_in", 1.1), std::pair("zoom_out", 1 / 1.1), std::pair("zoom_reset", 0.0)})
    connect(parts_.actions[QLatin1String(id)], &QAction::triggered, this, [this, factor = factor] { scaleText(factor); });
}

void ViewCommands::switchTheme() {
  const Theme next = Tokens::current().theme == Theme::kLight ? Theme::kDark : Theme::kLight;
  applyTheme(*qApp, next);
  emit themeChanged();
  settings_.set(QStringLiteral("theme"), next == Theme::kDark ? QStringLiteral("dark") : QStringLiteral("light"));
  for (QWidget* w : parts_.window.findChildren<QWidget*>()) w->update();
}

void ViewCommands::scaleText(double factor) {
  QFont font = QApplication::font();
  const double base = interfaceFont().pointSizeF();
  const double size = factor == 0 ? base : std::clamp(font.pointSizeF() * factor, 0.7 * base, 3.0 * base);
  font.setPointSizeF(size);
  QApplication::setFont(font);
  settings_.set(QStringLiteral("text_scale"), size / base);
  parts_.status.note(
      QStringLiteral("Text at %1 %; the layout follows when the window is opened again").arg(qRound(100 * size / base)));
}

}  // namespace stepscope
