// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/screenshot.h"

#include <QApplication>
#include <QPixmap>
#include <cstdio>

#include "app/workbench/main_window.h"
#include "app/workbench/notice_bar.h"

namespace stepscope {
namespace {
constexpr int kTickMs = 60;
constexpr int kQuietTicks = 10;  // layouts and other threads need a moment after the worker is idle
constexpr int kGiveUpMs = 120'000;
}  // namespace

Script::Script(MainWindow& window, const Arguments& arguments, QObject* parent)
    : QObject(parent), window_(window), arguments_(arguments) {
  connect(&timer_, &QTimer::timeout, this, &Script::tick);
  const auto keep = [this](const QString& text) { problem_ = text; };
  connect(&window.session(), &ModelSession::problem, this, keep);
  connect(&window.session(), &ModelSession::buildRefused, this, [keep](const auto&, const QString& text) { keep(text); });
  timer_.start(kTickMs);
  since_.start();
}

bool Script::opened() const {
  if (arguments_.path.isEmpty()) return true;
  const SnapshotStore& store = window_.store();
  const bool runs = arguments_.steps > 0 || arguments_.runTo >= 0 || arguments_.configuration.settings_size() > 0;
  return window_.session().built() || (store.graph() && !runs) || store.readOnly();
}

QString Script::beyond() const {
  const PlanPtr& plan = window_.store().plan();
  const auto of = [&plan](const char* option, int wanted, int most) {
    return plan && wanted > most
               ? QStringLiteral("option '%1': %2; expected a number from 0 to %3, this plan has %4 instructions")
                     .arg(QLatin1String(option))
                     .arg(wanted)
                     .arg(most)
                     .arg(plan->size())
               : QString();
  };
  const QString runTo = plan ? of("run-to", arguments_.runTo, plan->size()) : QString();
  return runTo.isEmpty() && plan ? of("select", arguments_.selectInstruction, plan->size() - 1) : runTo;
}

void Script::fail(const QString& why) {
  std::fprintf(stderr, "error: %s\n", qPrintable(why));
  timer_.stop();
  if (arguments_.screenshot.isEmpty()) {
    if (!window_.notice().isProblem()) window_.notice().showProblem(why, {}, {});
    return;
  }
  window_.close();
  QApplication::exit(1);
}

void Script::tick() {
  const bool picture = !arguments_.screenshot.isEmpty();
  if (picture && since_.elapsed() > kGiveUpMs) {
    return fail(
        QStringLiteral("screenshot '%1': still busy after two minutes; expected an idle window").arg(arguments_.screenshot));
  }
  if (!window_.idle()) {
    quiet_ = 0;
    return;
  }
  if (++quiet_ < kQuietTicks) return;
  quiet_ = 0;
  const bool built = window_.session().built();
  if (!opened() && (!arguments_.host.local() || arguments_.host.attached()) && problem_.isEmpty()) return;  // not there yet
  if (!opened()) {
    const QString why = !problem_.isEmpty()            ? problem_
                        : window_.notice().isProblem() ? window_.notice().text()
                                                       : QStringLiteral("not opened");
    return fail(QStringLiteral("'%1': %2").arg(arguments_.path, why));
  }
  if (const QString why = beyond(); !why.isEmpty()) return fail(why);
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
  if (!window_.grab().save(arguments_.screenshot))
    return fail(QStringLiteral("screenshot '%1': cannot be written").arg(arguments_.screenshot));
  window_.close();
  QApplication::exit(0);
}

}  // namespace stepscope
