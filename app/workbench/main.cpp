// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QSettings>
#include <QThreadPool>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "app/workbench/arguments.h"
#include "app/workbench/end_signals.h"
#include "app/workbench/end_watch.h"
#include "app/workbench/main_window.h"
#include "app/workbench/scratch_folder.h"
#include "app/workbench/screenshot.h"
#include "engine/wire/border.h"
#include "views/common/tokens.h"

namespace {

using namespace stepscope;

// No exception crosses Qt's event loop: without memory the window ends, and with it the recording closes its file.
class Application : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override {
    bool handled = true;
    const Status status = caught("window", [&]() -> Status {
      handled = QApplication::notify(receiver, event);
      return {};
    });
    if (status) return handled;
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    QApplication::exit(1);
    return true;
  }
};

// What is answered with text needs no display.
std::optional<int> answeredInText(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const bool asked = std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word == "--help" || word == "-h" || word == "--help-all" || word == "--version" || word == "-v" ||
           word == "--manual";
  });
  if (!asked) return std::nullopt;
  const QCoreApplication app(argc, argv);
  Arguments arguments;
  return parseArguments(QCoreApplication::arguments(), &arguments);
}

bool given(const char* name) { return !qEnvironmentVariableIsEmpty(name); }

// Without a display Qt would end the process with a signal. A picture needs none.
bool hasPlatform(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const auto is = [&words](std::string_view option) {
    return std::any_of(words.begin(), words.end(), [option](std::string_view word) {
      const std::size_t dashes = std::min(word.find_first_not_of('-'), word.size());
      return dashes > 0 && word.substr(dashes, word.find('=') - dashes) == option;
    });
  };
  if (given("DISPLAY") || given("WAYLAND_DISPLAY") || given("QT_QPA_PLATFORM") || is("platform")) return true;
  if (!is("screenshot")) return false;
  qputenv("QT_QPA_PLATFORM", "offscreen");
  return true;
}

// The end of a session and `kill` are as Ctrl+Q, but nobody sees how long it takes.
constexpr int kKeepSeconds = 25;

void endKeeping(MainWindow& window) {
  if (!window.closeKeeping()) return QApplication::exit(0);
  endWithin(kKeepSeconds + 2);
  QObject::connect(&window, &MainWindow::closed, qApp, [] { QApplication::exit(0); });
  QTimer::singleShot(kKeepSeconds * 1000, &window, [&window] { window.closeAtOnce(); });
}

int run(int argc, char** argv) {
  if (const auto code = answeredInText(argc, argv)) return *code;
  if (!hasPlatform(argc, argv)) {
    std::fputs(
        "error: window: no display; expected DISPLAY or WAYLAND_DISPLAY, or QT_QPA_PLATFORM=offscreen; hint: "
        "`stepscope train` and `stepscope report` work without\n",
        stderr);
    return 1;
  }
  Application app(argc, argv);
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
  if (!arguments.size.isEmpty()) window.resize(arguments.size);
  if (!arguments.layout.isEmpty()) {
    const QStringList known = window.layoutNames();
    if (!known.contains(arguments.layout, Qt::CaseInsensitive)) {
      std::fprintf(stderr, "error: option 'layout': %s; expected one of %s\n", qPrintable(arguments.layout),
                   qPrintable(known.join(QStringLiteral(", "))));
      return 2;
    }
    window.applyLayout(arguments.layout);
  }
  window.show();
  EndSignals ends(endSoon);
  if (remember) {  // pictures take the time that they take
    QObject::connect(&app, &QGuiApplication::lastWindowClosed, endSoon);
    QObject::connect(&app, &QCoreApplication::aboutToQuit, endSoon);
  }
  QObject::connect(&ends, &EndSignals::asked, &window, [&window] { endKeeping(window); });
  QObject::connect(&app, &QGuiApplication::commitDataRequest, &window,
                   [&window] { window.leaveKeeping(kKeepSeconds * 1000); });
  const bool scripted = !arguments.screenshot.isEmpty() || arguments.steps > 0 || arguments.runTo >= 0 ||
                        arguments.configuration.settings_size() > 0;
  std::unique_ptr<Script> script;
  const auto open = [&window, &arguments, scripted] {
    if (scripted && !arguments.path.endsWith(QStringLiteral(".stepscope"))) {
      window.openAndBuild(arguments.path, arguments.configuration);
    } else {
      window.openPath(arguments.path);
    }
  };
  const bool here = arguments.host.local() && !arguments.host.attached();
  if (here && arguments.path.isEmpty()) window.offerReturn();
  if (here) {
    if (!arguments.path.isEmpty()) open();
  } else {
    const auto reached = &ModelSession::hostChanged;
    if (!arguments.path.isEmpty()) QObject::connect(&window.session(), reached, &window, open, Qt::SingleShotConnection);
    window.connectTo(arguments.host);
  }
  if (scripted || !arguments.show.isEmpty()) script = std::make_unique<Script>(window, arguments);
  return QApplication::exec();
}

}  // namespace

int main(int argc, char** argv) {
  int code = 1;
  const Status status = caught("window", [&]() -> Status {
    code = run(argc, argv);
    return {};
  });
  if (!status) std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
  return code;
}
