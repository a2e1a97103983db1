// SPDX-License-Identifier: GPL-3.0-or-later
// Passes, worker, recorder and window all speak in the log, with their levels; a rule hides a speaker and says how much.
#include <QTest>
#include <algorithm>

#include "app/workbench/panel_board.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"

using namespace stepscope;

class LogTest : public QObject {
  Q_OBJECT

  static std::ptrdiff_t count(const SnapshotStore& store, const char* level, const char* who) {
    return std::count_if(store.log().begin(), store.log().end(), [&](const LogLine& line) {
      return line.level == QLatin1String(level) && line.text.startsWith(QLatin1String(who));
    });
  }

 private slots:
  void everyPartSpeaks() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    std::ptrdiff_t passes = 0, matched = 0;
    for (const auto& span : w->store().phases()) {
      passes += span.has_pass();
      matched += span.has_pass() && span.pass().matches() > 0;
    }
    QVERIFY(passes > 5 && matched > 0);
    QVERIFY(count(w->store(), "info", "pass: ") >= matched);
    QCOMPARE(count(w->store(), "debug", "pass: "), passes - matched);
    QVERIFY(count(w->store(), "debug", "phase: ") > 5);
    QVERIFY(w.loop().wait([&] { return count(w->store(), "info", "recorder: ") == 1; }));
    // What the window answers, and what the worker refuses.
    w.loop().act([&] { w->session().loadTensor(0, QStringLiteral("/nowhere.npy")); });
    QVERIFY(w.loop().wait([&] { return count(w->store(), "error", "worker: ") == 1; }));
    w.loop().act([&] { w->session().goTo(77, -1); });
    QVERIFY(count(w->store(), "info", "window: ") >= 1);
  }
};

SS_QT_CLASS(QApplication, LogTest)
#include "tst_log.moc"
