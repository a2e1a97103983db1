// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QSettings>
#include <QThreadPool>
#include <memory>

#include "app/workbench/arguments.h"
#include "app/workbench/end_signals.h"
#include "app/workbench/main_window.h"
#include "app/workbench/scratch_folder.h"
#include "app/workbench/screenshot.h"
#include "views/common/tokens.h"

int main(int argc, char** argv) {
  using namespace stepscope;
  QApplication app(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("stepscope"));
  QApplication::setApplicationName(QStringLiteral("stepscope-workbench"));
  QApplication::setApplicationVersion(QStringLiteral(STEPSCOPE_VERSION));
  Arguments arguments;
  if (const auto code = parseArguments(QApplication::arguments(), &arguments)) return *code;

  QThreadPool::globalInstance()->start([] { ScratchFolder::sweep(); });
  const bool remember = arguments.screenshot.isEmpty();
  QString theme = arguments.theme;
  if (theme.isEmpty() && remember) theme = QSettings().value(QStringLiteral("theme")).toString();
  applyTheme(app, theme == u"dark" ? Theme::kDark : theme == u"light" ? Theme::kLight : systemTheme());

  MainWindow window(remember);
  if (const QStringList size = arguments.size.split('x'); size.size() == 2 && size[0].toInt() > 0 && size[1].toInt() > 0) {
    window.resize(size[0].toInt(), size[1].toInt());
  }
  if (!arguments.layout.isEmpty()) window.applyLayout(arguments.layout);
  window.show();
  EndSignals ends;
  QObject::connect(&ends, &EndSignals::asked, &window, [&window] {
    window.close();
    QApplication::exit(0);
  });
  QObject::connect(&app, &QGuiApplication::commitDataRequest, &window, &MainWindow::leave);
  const bool scripted = !arguments.screenshot.isEmpty() || arguments.steps > 0 || arguments.runTo >= 0 ||
                        arguments.configuration.settings_size() > 0;
  std::unique_ptr<Script> script;
  if (arguments.path.isEmpty()) {
    window.offerReturn();
  } else {
    if (scripted && !arguments.path.endsWith(QStringLiteral(".stepscope"))) {
      window.openAndBuild(arguments.path, arguments.configuration);
    } else {
      window.openPath(arguments.path);
    }
  }
  if (scripted || !arguments.show.isEmpty()) script = std::make_unique<Script>(window, arguments);
  return QApplication::exec();
}
