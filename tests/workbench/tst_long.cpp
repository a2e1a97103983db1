// SPDX-License-Identifier: GPL-3.0-or-later
// A long run through the window: memory of window and worker stays where it is after the first thousand steps, the loop
// stays free, views are told at most 30 times a second, and the worker never runs far ahead. And a long run that was
// recorded, opened. STEPSCOPE_LONG_STEPS asks for more steps than the test does, of STEPSCOPE_LONG_MODEL:
// tests/bench/million_steps.py.
#include <malloc.h>

#include <QElapsedTimer>
#include <QFile>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>
#include <cinttypes>

#include "app/workbench/recording.h"
#include "tests/storage/sample_run.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/batch/batch_view.h"
#include "views/common/chosen_step.h"
#include "views/common/step_chooser.h"
#include "views/timeline/timeline_view.h"

using namespace stepscope;

namespace {

constexpr std::int64_t kSteps = 24'000, kFirst = 4'000;
constexpr std::int64_t kMostGrowth = 24LL << 20, kColumnBytes = 100;  // bytes; of each step: six columns, as vectors grow
constexpr std::int64_t kMostWorkerGrowth = 8LL << 20;
constexpr int kMs = 4'000'000;

std::int64_t residentBytesOf(const QString& process) {
  QFile file(QStringLiteral("/proc/%1/statm").arg(process));
  if (!file.open(QIODevice::ReadOnly)) return 0;
  return file.readAll().split(' ').value(1).toLongLong() * sysconf(_SC_PAGESIZE);
}

std::int64_t residentBytes() {
  malloc_trim(0);  // what was freed counts for nobody
  return residentBytesOf(QStringLiteral("self"));
}

double mebibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

class LongTest : public QObject {
  Q_OBJECT

 private slots:
  // The first one, because the others leave memory in pieces that would count here. What the views hold of it is columns and
  // few records; the file has the rest.
  void aLongRecordedRunOpens() {
    constexpr int kRecorded = 100'000;
    const QTemporaryDir folder;
    const QString project = folder.filePath(QStringLiteral("long.stepscope"));
    storage::testing::recordSample(project.toStdString(), {1, kRecorded});
    WindowDriver w;
    const std::int64_t before = residentBytes();
    QElapsedTimer clock;
    clock.start();
    QVERIFY_DONE(w.openRecorded(project), w);
    const std::int64_t after = residentBytes();
    qInfo("opened in %lld ms, %.1f MiB more, %zu records", static_cast<long long>(clock.elapsed()),
          mebibytes(after - before), w->store().steps().size());
    QCOMPARE(static_cast<int>(w->store().series().size()), kRecorded);
    QCOMPARE(w->store().series().step().back(), std::int64_t{kRecorded - 1});
    QCOMPARE(w->store().steps().back()->step(), std::int64_t{kRecorded - 1});
    QVERIFY(w->store().steps().back()->spans_size() > 0);
    QVERIFY2(w->store().steps().size() < 4096, qPrintable(QString::number(w->store().steps().size())));
    QVERIFY2(after - before < kMostGrowth + kColumnBytes * kRecorded,
             qPrintable(QStringLiteral("%1 bytes more").arg(after - before)));
    // An old step comes from the file: by its number in the header of the timeline.
    ChosenStep& chosen = ChosenStep::of(w->store());
    auto* timeline = static_cast<TimelineView*>(w.view(QStringLiteral("timeline")));
    auto* field = w->findChild<StepChooser*>();
    for (const int step : {12'345, 3}) {
      w.loop().act([&] {
        field = qobject_cast<StepChooser*>(timeline->headerWidget());
        field->selectAll();
        QTest::keyClicks(field, QString::number(step));
        QTest::keyClick(field, Qt::Key_Return);
      });
      QVERIFY(w.loop().wait([&] { return chosen.state() != ChosenStep::State::kReading; }));
      QVERIFY2(chosen.record() && chosen.record()->step() == step, qPrintable(chosen.text()));
      const auto shown = [&] {
        const auto& model = timeline->canvas().model();
        return model && model->steps().size() == 1 && model->steps()[0].step == step;
      };
      QVERIFY(w.loop().wait(shown));
      QVERIFY2(timeline->headerText().startsWith(chosen.title()), qPrintable(timeline->headerText()));
      w.picture(QStringLiteral("old-step-%1").arg(step));
    }
    QVERIFY(
        w.loop().wait([&] { return w.view(QStringLiteral("hot_ops"))->headerText().contains(QStringLiteral("step 3")); }));
    // The batch follows: step 3 recorded none, step 12,345 is older than those that the window holds.
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    w.loop().act([batch] { batch->openPage(BatchView::kWorst); });
    const auto said = [batch] { return batch->findChild<WorstPage*>()->toPlainText(); };
    QVERIFY2(said().contains(QStringLiteral("Step 3 did not record its batch")), qPrintable(said()));
    w.loop().act([&] { emit w->wishes().showStep(12'345); });
    QVERIFY(w.loop().wait([&] { return batch->headerText().startsWith(QStringLiteral("step 12345:")); }));
    QVERIFY2(said().contains(QStringLiteral("row 5 of 8")), qPrintable(said()));
    w.view(QStringLiteral("timeline"));
    // One that the run does not have, and back to the newest.
    w.loop().act([&] { emit w->wishes().showStep(kRecorded + 7); });
    QVERIFY(w.loop().wait([&] { return chosen.state() == ChosenStep::State::kMissing; }));
    QVERIFY(timeline->emptyText().contains(QStringLiteral("no such step")));
    w.loop().act([&] { emit w->wishes().showStep(-1); });
    QVERIFY(w.loop().wait([&] { return timeline->canvas().model()->steps().size() > 1; }));
    for (const char* id : {"training", "value_history", "batch", "timeline", "hot_ops", "runs"}) w.view(QLatin1String(id));
    QVERIFY(w.settled());
    const QString pdf = folder.filePath(QStringLiteral("long.pdf"));
    clock.restart();
    w.loop().act([&] { w->recording().queries().report(pdf); });
    QVERIFY(w.loop().wait([&] { return w->recording().idle() && QFileInfo(pdf).size() > 0; }));
    qInfo("reported as .pdf in %lld ms, %lld bytes", static_cast<long long>(clock.elapsed()),
          static_cast<long long>(QFileInfo(pdf).size()));
    QVERIFY_LOOP(w);
  }

  void aLongRunTakesNoMoreMemory() {
    const std::int64_t steps = std::max<std::int64_t>(kSteps, qEnvironmentVariableIntValue("STEPSCOPE_LONG_STEPS"));
    WindowDriver w;
    // Another model than the bundled one is trained on synthetic data, by its first output.
    if (const QString other = qEnvironmentVariable("STEPSCOPE_LONG_MODEL"); !other.isEmpty())
      QVERIFY_DONE(w.openBuilt({QStringLiteral("long"), other, {}}, {{"loss-fn", "mse"}}), w);
    else
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
    const auto workers = childProcesses();
    QCOMPARE(workers.size(), std::size_t{1});
    const QString worker = QString::number(workers[0]);
    std::int64_t first = 0, firstOfWorker = 0, next = kFirst;
    while (next < steps) {
      QVERIFY(w.loop().wait([&] { return seen >= next; }, kMs));
      const std::int64_t now = residentBytes(), ofWorker = residentBytesOf(worker);
      if (first == 0) first = now, firstOfWorker = ofWorker;
      qInfo("%8" PRId64 " steps: window %6.1f MiB, worker %6.1f MiB, %d signals, %lld ms", seen, mebibytes(now),
            mebibytes(ofWorker), told, static_cast<long long>(clock.elapsed()));
      next = std::min(steps, next * 2);
    }
    QVERIFY(w.loop().wait([&] { return w->store().position().step() == steps && !w->session().running(); }, kMs));
    const std::int64_t signalsAllowed =
        (clock.elapsed() / 1000 + 2) * SignalRate::kPerSecond;  // and those it may be late with
    QVERIFY(w.recorded());
    const std::int64_t last = residentBytes(), lastOfWorker = residentBytesOf(worker);
    qInfo("%8" PRId64 " steps: window %6.1f MiB, worker %6.1f MiB, %d signals, at most %" PRId64 " records held", seen,
          mebibytes(last), mebibytes(lastOfWorker), told, most);
    QCOMPARE(seen, steps);
    QVERIFY2(last - first < kMostGrowth + kColumnBytes * steps,
             qPrintable(QStringLiteral("%1 bytes more").arg(last - first)));
    QVERIFY2(lastOfWorker - firstOfWorker < kMostWorkerGrowth,
             qPrintable(QStringLiteral("%1 bytes more in the worker").arg(lastOfWorker - firstOfWorker)));
    QVERIFY2(most < 4096, qPrintable(QString::number(most)));
    QVERIFY2(told <= signalsAllowed, qPrintable(QStringLiteral("%1 of %2").arg(told).arg(signalsAllowed)));
    // The views have every step, and the file too.
    QCOMPARE(static_cast<std::int64_t>(w->store().series().size()), steps);
    QVERIFY_LOOP(w);
  }

  // While a run is there and records, an old step of it is what it was when it ran.
  void anOldStepOfALiveRunComesFromTheProject() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY(w.settled());
    std::map<std::int64_t, StepPtr> ran;
    QObject::connect(&w->session(), &ModelSession::stepRecorded, &w->session(), [&ran](const StepPtr& step) {
      if (step->step() == 7 || step->step() == 1'500) ran[step->step()] = step;
    });
    w.loop().act([&] { w->session().train(3'000); });
    QVERIFY(w.loop().wait([&] { return w->store().position().step() == 3'000 && !w->session().running(); }, kMs));
    QVERIFY(w.recorded());
    QCOMPARE(ran.size(), std::size_t{2});
    ChosenStep& chosen = ChosenStep::of(w->store());
    for (const auto& [number, step] : ran) {
      w.loop().act([&] { emit w->wishes().showStep(number); });
      QVERIFY(w.loop().wait([&] { return chosen.state() == ChosenStep::State::kShown; }));
      const snapshot::StepRecord& read = *chosen.record();
      QCOMPARE(read.step(), number);
      QCOMPARE(read.loss(), step->loss());
      QCOMPARE(read.spans_size(), step->spans_size());
      QVERIFY(read.spans_size() > 0);
      std::map<int, std::int64_t> begins;
      for (const auto& span : step->spans()) begins[span.instruction()] = span.begin_ns();
      for (const auto& span : read.spans()) QCOMPARE(span.begin_ns(), begins[span.instruction()]);
      QCOMPARE(read.statistics_size(), step->statistics_size());
    }
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(WatchedApplication, LongTest)  // names the event that held the loop
#include "tst_long.moc"
