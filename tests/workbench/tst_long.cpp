// SPDX-License-Identifier: GPL-3.0-or-later
// A long run through the window: memory stays where it is after the first thousand steps, the loop stays free, views are
// told at most 30 times a second, and the worker never runs far ahead. STEPSCOPE_LONG_STEPS asks for more steps than the
// test does.
#include <malloc.h>

#include <QElapsedTimer>
#include <QFile>
#include <QTest>
#include <cinttypes>

#include "app/workbench/recording.h"
#include "tests/workbench/window_driver.h"

using namespace stepscope;

namespace {

constexpr std::int64_t kSteps = 24'000, kFirst = 4'000;
constexpr std::int64_t kMostGrowth = 24LL << 20, kColumnBytes = 100;  // bytes; of each step: six columns, as vectors grow
constexpr int kMs = 4'000'000;

std::int64_t residentBytes() {
  malloc_trim(0);  // what was freed counts for nobody
  QFile file(QStringLiteral("/proc/self/statm"));
  if (!file.open(QIODevice::ReadOnly)) return 0;
  return file.readAll().split(' ').value(1).toLongLong() * sysconf(_SC_PAGESIZE);
}

}  // namespace

class LongTest : public QObject {
  Q_OBJECT

 private slots:
  void aLongRunTakesNoMoreMemory() {
    const std::int64_t steps = std::max<std::int64_t>(kSteps, qEnvironmentVariableIntValue("STEPSCOPE_LONG_STEPS"));
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY(w.settled());
    int told = 0;
    std::int64_t most = 0, seen = 0;
    QElapsedTimer clock;
    QObject::connect(&w->store(), &SnapshotStore::stepsChanged, &w->session(), [&told] { ++told; });
    QObject::connect(&w->session(), &ModelSession::stepRecorded, &w->session(), [&] {
      ++seen;
      most = std::max<std::int64_t>(most, static_cast<std::int64_t>(w->store().steps().size()));
    });
    w.loop().act([&] { w->session().train(steps); });
    QVERIFY(w->session().running());
    clock.start();
    std::int64_t first = 0, next = kFirst;
    while (next < steps) {
      QVERIFY(w.loop().wait([&] { return seen >= next; }, kMs));
      const std::int64_t now = residentBytes();
      if (first == 0) first = now;
      qInfo("%8" PRId64 " steps: %6.1f MiB, %d signals, %lld ms", seen, static_cast<double>(now) / (1 << 20), told,
            static_cast<long long>(clock.elapsed()));
      next = std::min(steps, next * 2);
    }
    QVERIFY(w.loop().wait([&] { return w->store().position().step() == steps && !w->session().running(); }, kMs));
    const std::int64_t signalsAllowed =
        (clock.elapsed() / 1000 + 2) * SignalRate::kPerSecond;  // and those it may be late with
    QVERIFY(w.recorded());
    const std::int64_t last = residentBytes();
    qInfo("%8" PRId64 " steps: %6.1f MiB, %d signals, at most %" PRId64 " records held", seen,
          static_cast<double>(last) / (1 << 20), told, most);
    QCOMPARE(seen, steps);
    QVERIFY2(last - first < kMostGrowth + kColumnBytes * steps,
             qPrintable(QStringLiteral("%1 bytes more").arg(last - first)));
    QVERIFY2(most < 4096, qPrintable(QString::number(most)));
    QVERIFY2(told <= signalsAllowed, qPrintable(QStringLiteral("%1 of %2").arg(told).arg(signalsAllowed)));
    // The views have every step, and the file too.
    QCOMPARE(static_cast<std::int64_t>(w->store().series().size()), steps);
    QVERIFY_LOOP(w);
  }
};

QTEST_MAIN(LongTest)
#include "tst_long.moc"
