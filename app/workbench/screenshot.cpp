// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/screenshot.h"

#include <QApplication>
#include <QPixmap>
#include <cstdio>

#include "app/workbench/main_window.h"

namespace stepscope {
namespace {
constexpr int kTickMs = 60;
constexpr int kQuietTicks = 10;  // layouts and other threads need a moment after the worker is idle
constexpr int kGiveUpMs = 120'000;
}  // namespace

Script::Script(MainWindow& window, const Arguments& arguments, QObject* parent)
    : QObject(parent), window_(window), arguments_(arguments) {
  connect(&timer_, &QTimer::timeout, this, &Script::tick);
  timer_.start(kTickMs);
  since_.start();
}

void Script::tick() {
  const bool picture = !arguments_.screenshot.isEmpty();
  if (picture && since_.elapsed() > kGiveUpMs) {
    std::fprintf(stderr, "error: screenshot '%s': still busy after two minutes; expected an idle window\n",
                 qPrintable(arguments_.screenshot));
    timer_.stop();
    QApplication::exit(1);
    return;
  }
  if (!window_.idle()) {
    quiet_ = 0;
    return;
  }
  if (++quiet_ < kQuietTicks) return;
  quiet_ = 0;
  const bool built = window_.session().built();
  switch (stage_++) {
    case 0:
      if (built && arguments_.steps > 0) window_.session().train(arguments_.steps);
      return;
    case 1:
      if (built && arguments_.runTo >= 0) window_.session().runTo(arguments_.runTo);
      return;
    case 2:
      for (const QString& id : arguments_.show) window_.board().show(id);
      if (arguments_.selectInstruction >= 0)
        window_.selection().select(Selection::ofInstruction(arguments_.selectInstruction));
      return;
    default: break;
  }
  timer_.stop();
  if (!picture) return;
  const bool saved = window_.grab().save(arguments_.screenshot);
  if (!saved) std::fprintf(stderr, "error: screenshot '%s': cannot be written\n", qPrintable(arguments_.screenshot));
  window_.close();
  QApplication::exit(saved ? 0 : 1);
}

}  // namespace stepscope
