// SPDX-License-Identifier: GPL-3.0-or-later
// The timeline of made-up steps: rows, ticks, stops, ranges.
#include <QSignalSpy>
#include <QtTest>
#include <numeric>

#include "tests/support/qt_classes.h"
#include "tests/views_drawing/shown_views.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/flame/flame_view.h"
#include "views/timeline/timeline_view.h"

using namespace stepscope;

namespace {

constexpr std::int64_t kMinute = 60'000'000'000;

// The step begun `later`, with a wait before one of its spans; -1: without one.
StepPtr waitingIn(const snapshot::StepRecord& step, int span, std::int64_t wait, std::int64_t later) {
  auto moved = std::make_shared<snapshot::StepRecord>(step);
  moved->set_begin_ns(step.begin_ns() + later);
  for (int i = 0; i < step.spans_size(); ++i) {
    const std::int64_t by = later + (span >= 0 && i >= span ? wait : 0);
    moved->mutable_spans(i)->set_begin_ns(step.spans(i).begin_ns() + by);
    moved->mutable_spans(i)->set_end_ns(step.spans(i).end_ns() + by);
  }
  if (span >= 0) moved->set_ns(step.ns() + wait);
  return moved;
}

}  // namespace

class TimelineTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void timelineMipmapKeepsEveryNanosecond() {
    Window w;
    w.fill(8);
    const auto model = TimelineModel::make(w.store.steps(), w.store.plan(), w.store.graph());
    QVERIFY(model->rows().size() >= 3);
    for (const TimelineRow& row : model->rows()) {
      const auto busy = std::accumulate(row.slices.begin(), row.slices.end(), std::int64_t{0},
                                        [](auto sum, const TimelineSlice& s) { return sum + s.end - s.begin; });
      for (const auto& level : row.levels) {
        QCOMPARE(std::accumulate(level.begin(), level.end(), std::int64_t{0},
                                 [](auto sum, const SliceGroup& s) { return sum + s.busy; }),
                 busy);
        QCOMPARE(level.back().last, static_cast<int>(row.slices.size()));
      }
      const TimelineSlice& s = row.slices[row.slices.size() / 2];
      QCOMPARE(row.slices[static_cast<std::size_t>(model->at(row, s.begin))].begin, s.begin);
      QCOMPARE(model->at(row, row.slices.front().begin - 1), -1);
    }
  }

  void timelineHasRowsOfWhatADeviceRecorded() {
    Window w;
    w.fill(2);
    auto record = std::make_shared<snapshot::StepRecord>(*w.store.steps().back());
    const snapshot::InstructionSpan& span = record->spans(0);
    const std::int64_t tenth = (span.end_ns() - span.begin_ns()) / 10;
    snapshot::DeviceWork& device = *record->mutable_device();
    device.add_kernels()->set_name("softmax");
    for (int stream = 0; stream < 2; ++stream) {
      snapshot::DeviceRecord& made = *device.add_records();
      made.set_kind(stream == 0 ? snapshot::DeviceRecord::KERNEL : snapshot::DeviceRecord::COPY_IN);
      made.set_kernel(stream == 0 ? 0 : -1);
      made.set_instruction(span.instruction());
      made.set_stream(stream);
      made.set_called_ns(span.begin_ns() + tenth * stream);
      made.set_returned_ns(made.called_ns() + tenth / 2);
      made.set_begin_ns(span.begin_ns() + 6 * tenth);
      made.set_end_ns(span.begin_ns() + 8 * tenth);
    }
    const auto plain = TimelineModel::make({w.store.steps().back()}, w.store.plan(), w.store.graph());
    QVERIFY(plain->work().empty());
    const auto model = TimelineModel::make({record}, w.store.plan(), w.store.graph());
    QCOMPARE(model->rows().size(), plain->rows().size() + 3);  // the calls, and two streams
    const std::vector<int> work = model->workOf(span.instruction());
    QCOMPARE(work, (std::vector<int>{0, 1}));
    for (const int i : work) {
      const TimelineWork& of = model->work()[static_cast<std::size_t>(i)];
      const TimelineRow &calls = model->rows()[static_cast<std::size_t>(of.callRow)],
                        &stream = model->rows()[static_cast<std::size_t>(of.row)];
      QVERIFY(calls.kind == TimelineRow::Kind::kCalls && stream.kind == TimelineRow::Kind::kStream);
      QCOMPARE(stream.thread, i);
      QCOMPARE(calls.slices[static_cast<std::size_t>(of.callSlice)].end, of.record.returned_ns());
      QCOMPARE(stream.slices[static_cast<std::size_t>(of.slice)].begin, of.record.begin_ns());
    }
    QCOMPARE(QString::fromStdString(model->work()[0].kernel.name()), QStringLiteral("softmax"));
    // The instruction is found where the plan ran it.
    int row = -1, slice = -1;
    QVERIFY(model->find(span.instruction(), &row, &slice));
    QVERIFY(model->rows()[static_cast<std::size_t>(row)].kind == TimelineRow::Kind::kInstructions);
    // An arrow leads from the call to the kernel: to that of the second stream through the row of the first.
    TimelineCanvas canvas;
    canvas.resize(900, 400);
    canvas.setModel(model);
    canvas.showInstruction(span.instruction());
    const QImage before = canvas.grab().toImage();
    canvas.setSelected(span.instruction(), {});
    const QImage after = canvas.grab().toImage();
    const auto boxOf = [&](int row, int slice) {
      QRect box;
      for (int y = 0; y < canvas.height(); ++y)
        for (int x = 0; x < canvas.width(); ++x)
          if (int r = -1, s = -1; canvas.sliceAt(QPointF(x, y), &r, &s) && r == row && s == slice) box |= QRect(x, y, 1, 1);
      return box;
    };
    const TimelineWork &first = model->work()[0], &second = model->work()[1];
    const QRect between = boxOf(first.row, first.slice), call = boxOf(second.callRow, second.callSlice);
    QVERIFY(!between.isEmpty() && !call.isEmpty() && call.right() + 8 < between.left());
    int changed = 0;
    for (int y = between.top(); y <= between.bottom(); ++y)
      for (int x = call.right() + 4; x < between.left() - 4; ++x) changed += before.pixel(x, y) != after.pixel(x, y);
    QVERIFY2(changed > between.height() / 2, qPrintable(QString::number(changed)));
  }

  // A row each; a wait stands there once, not in the row of calls too, and says who waited.
  void timelineHasRowsOfWaitsAndOverhead() {
    using snapshot::DeviceRecord;
    Window w;
    w.fill(2);
    auto record = std::make_shared<snapshot::StepRecord>(*w.store.steps().back());
    const snapshot::InstructionSpan& span = record->spans(0);
    const std::int64_t length = record->ns() / 4;
    const auto add = [&](DeviceRecord::Kind kind, int instruction, int stream, const char* what) {
      DeviceRecord& made = *record->mutable_device()->add_records();
      made.set_kind(kind);
      made.set_kernel(-1);
      made.set_instruction(instruction);
      made.set_stream(stream);
      made.set_what(what);
      if (instruction >= 0) made.set_called_ns(span.begin_ns());
      if (instruction >= 0) made.set_returned_ns(span.begin_ns() + length);
      made.set_begin_ns(span.begin_ns() + 2 * length * (record->device().records_size() - 1) / 2);
      made.set_end_ns(made.begin_ns() + length);
    };
    add(DeviceRecord::STREAM_WAIT, span.instruction(), 1, "an event");
    add(DeviceRecord::HOST_WAIT, -1, -1, "all streams");
    add(DeviceRecord::OVERHEAD, -1, -1, "loading a kernel");
    record->mutable_device()->set_rung("events");
    record->mutable_device()->set_rung_reason("there is no CUPTI");
    record->mutable_device()->set_lost(3);
    const auto plain = TimelineModel::make({w.store.steps().back()}, w.store.plan(), w.store.graph());
    const auto model = TimelineModel::make({record}, w.store.plan(), w.store.graph());
    QCOMPARE(model->rows().size(), plain->rows().size() + 2);
    QCOMPARE(model->axis().cutOut(), plain->axis().cutOut());
    const auto rowOf = [&](TimelineRow::Kind kind) {
      const auto found = std::ranges::find(model->rows(), kind, &TimelineRow::kind);
      return found == model->rows().end() ? -1 : static_cast<int>(found - model->rows().begin());
    };
    const int waits = rowOf(TimelineRow::Kind::kWaits), overhead = rowOf(TimelineRow::Kind::kOverhead);
    QVERIFY(waits >= 0 && overhead > waits);
    QCOMPARE(model->rows()[static_cast<std::size_t>(waits)].slices.size(), std::size_t{2});
    QCOMPARE(model->rows()[static_cast<std::size_t>(waits)].slices[1].instruction, -1);
    QCOMPARE(model->workOf(span.instruction()), std::vector<int>{0});
    struct Canvas : TimelineCanvas {
      using TimelineCanvas::tipAt;
    } canvas;
    canvas.resize(1200, 700);
    canvas.setModel(model);
    canvas.fit();
    canvas.setSelected(span.instruction(), {});
    canvas.grab();
    QStringList tips;
    for (int y = 0; y < canvas.height(); y += 4)
      for (int x = 0; x < canvas.width(); x += 4) {
        int row = -1, slice = -1;
        const bool work = canvas.sliceAt(QPointF(x, y), &row, &slice) && (row == waits || row == overhead);
        if (work || canvas.stepAt(QPointF(x, y)) >= 0) tips << canvas.tipAt(QPointF(x, y));
      }
    const QString all = tips.join('\n');
    QVERIFY2(all.contains("a stream will wait for an event\nof instruction"), qPrintable(all));
    QVERIFY2(all.contains("host waits for all streams\nof no instruction"), qPrintable(all));
    QVERIFY2(all.contains("loading a kernel\noverhead of"), qPrintable(all));
    QVERIFY2(all.contains("work of the device (rung events): by events around it\nno higher rung: there is no CUPTI\n"
                          "records that are missing: 3"),
             qPrintable(all));
  }

  // Ticks that stand beside each other differ, and count in one unit.
  void ticksOfTheTimelineDiffer() {
    QCOMPARE(tickText(0, 1e6, 5e6), QStringLiteral("0"));
    QCOMPARE(tickText(59.97e9, 0.001e9, 59.974e9), QStringLiteral("59.970 s"));
    QCOMPARE(tickText(59.971e9, 0.001e9, 59.974e9), QStringLiteral("59.971 s"));
    QCOMPARE(tickText(50e9, 50e9, 100e9), QStringLiteral("50 s"));
    QCOMPARE(tickText(100e9, 50e9, 100e9), QStringLiteral("100 s"));
    QCOMPARE(tickText(-200, 100, 500), QStringLiteral("−200 ns"));
  }

  // Two places are as far apart as what ran between them; a cut has one place, where its begin and its end stand.
  void theAxisLeavesOutItsCuts() {
    const TimelineAxis axis({{100, 600, 0, true}, {600, 1000, -1, false}, {1300, 1400, 1, true}});
    QCOMPARE(axis.cutOut(), 1000);
    for (const auto& [clock, place] : {std::pair(0.0, 0.0),
                                       {99.5, 99.5},
                                       {100.0, 100.0},
                                       {350.0, 100.0},
                                       {600.0, 100.0},
                                       {1000.0, 100.0},
                                       {1250.0, 350.0},
                                       {1350.0, 400.0},
                                       {1400.0, 400.0},
                                       {1500.0, 500.0}})
      QCOMPARE(axis.toPlace(clock), place);
    QCOMPARE(axis.toClock(50, true), 50.0);
    QCOMPARE(axis.toClock(100, false), 100.0);
    QCOMPARE(axis.toClock(100, true), 1000.0);
    QCOMPARE(axis.toClock(100.5, false), 1000.5);
    QCOMPARE(axis.toClock(400, false), 1300.0);
    QCOMPARE(axis.toClock(500, false), 1500.0);
    QCOMPARE(axis.cutWithin(0, 2000), 1000);
    QCOMPARE(axis.cutWithin(350, 1000), 650);
    QCOMPARE(axis.cutWithin(1000, 1300), 0);
    QCOMPARE(TimelineAxis().toClock(TimelineAxis().toPlace(7), true), 7.0);
  }

  // Steps that somebody made one by one, and stopped in the newest: all of them are in sight, without the stops.
  void timelineOpensOnAllStepsWithoutTheStops() {
    Window w;
    w.fill(1, 3);
    StepPtrs steps;
    for (const StepPtr& step : w.store.steps())
      steps.push_back(waitingIn(*step, steps.size() == 2 ? step->spans_size() / 4 : -1, kMinute,
                                kMinute * static_cast<std::int64_t>(steps.size())));
    const auto model = TimelineModel::make(steps, w.store.plan(), w.store.graph());
    const TimelineStep& newest = model->steps().back();
    QCOMPARE(newest.waiting / kMinute, 1);  // with what lies between two instructions anyway
    QVERIFY(newest.waiting < kMinute + 1'000'000);
    QCOMPARE(newest.end - newest.begin - newest.waiting, w.store.steps().back()->ns() - (newest.waiting - kMinute));
    QCOMPARE(model->steps().front().waiting, 0);
    QCOMPARE(model->axis().cuts().size(), std::size_t{3});
    QCOMPARE(model->axis().cuts().front().step, -1);
    QCOMPARE(model->axis().cuts().back().step, 2);
    TimelineCanvas canvas;
    canvas.resize(900, 300);
    canvas.setModel(model);
    QVERIFY(canvas.showsAll());
    QVERIFY(canvas.viewEnd() - canvas.viewBegin() < kMinute / 10);
  }

  // Where it is known that somebody stopped, a stop is cut out although more ran than it took; without that it is a gap like
  // any other, and is drawn.
  void aShortStopIsCutWhereSomebodyStopped() {
    constexpr std::int64_t kStop = 40'000'000;
    Window w;
    w.fill(1, 1);
    auto slow = std::make_shared<snapshot::StepRecord>(*w.store.steps().back());
    const std::int64_t begin = slow->begin_ns();
    for (auto& span : *slow->mutable_spans()) {  // longer than the stop
      span.set_begin_ns(begin + (span.begin_ns() - begin) * 1000);
      span.set_end_ns(begin + (span.end_ns() - begin) * 1000);
    }
    slow->set_ns(slow->ns() * 1000);
    const int at = slow->spans_size() / 2;
    const StepPtr record = waitingIn(*slow, at, kStop, 0);
    std::int64_t busy = 0;
    for (const auto& span : record->spans()) busy += span.end_ns() - span.begin_ns();
    QVERIFY(busy > 2 * kStop);
    const auto made = [&](bool stopped) {
      return TimelineModel::make({{record, w.store.plan(), w.store.graph(), nullptr, stopped}}, w.store.plan());
    };
    QCOMPARE(made(false)->axis().cutOut(), 0);
    const auto model = made(true);
    const auto& cuts = model->axis().cuts();
    const auto cut = std::ranges::find(cuts, record->spans(at).begin_ns(), &TimelineCut::end);
    QVERIFY(cut != cuts.end());
    QCOMPARE(cut->begin, record->spans(at - 1).end_ns());
    QVERIFY(cut->stopped && cut->step == 0);
  }

  // What a stop is drawn as says how long it was; a range across it has the times of the clock, and says what ran in it.
  void aCutSaysWhatItLeavesOut() {
    Window w;
    w.fill(1, 1);
    const StepPtr whole = w.store.steps().back();
    const int at = whole->spans_size() / 2;
    const StepPtr record = waitingIn(*whole, at, 79'003'000'000, 0);
    struct Canvas : TimelineCanvas {
      using TimelineCanvas::tipAt;
      using TimelineCanvas::toX;
    } canvas;
    canvas.resize(900, 300);
    canvas.setModel(TimelineModel::make({{record, w.store.plan(), w.store.graph(), nullptr, true}}, w.store.plan()));
    const TimelineAxis& axis = canvas.model()->axis();
    QCOMPARE(axis.cuts().size(), std::size_t{1});
    const TimelineCut& cut = axis.cuts().front();
    const double x = canvas.toX(axis.toPlace(static_cast<double>(cut.begin)));
    QVERIFY(x > 100 && x < 800);
    const QString tip = canvas.tipAt(QPointF(x, 200));
    QVERIFY2(tip.contains(QStringLiteral("paused %1 in step %2 (%3)\nCut out of the axis")
                              .arg(format::time(cut.end - cut.begin))
                              .arg(record->step())
                              .arg(format::timeExact(cut.end - cut.begin))),
             qPrintable(tip));
    QVERIFY(canvas.cutsAt(QPointF(x + 12, 200)).empty());
    bool inRuler = false;
    for (int y = 0; y < 50; ++y) inRuler = inRuler || !canvas.cutsAt(QPointF(x + 12, y)).empty();
    QVERIFY(inRuler);  // its words
    // The slices beside it touch the mark, and are found where they are drawn.
    for (const auto& [span, pixel] : {std::pair(at - 1, x - 5), {at, x + 5}}) {
      const double middle =
          canvas.toX(axis.toPlace(static_cast<double>(record->spans(span).begin_ns() + record->spans(span).end_ns()) / 2));
      int row = -1, slice = -1;
      bool found = false;
      for (int y = 50; y < 300 && !found; y += 4)
        found = canvas.sliceAt(QPointF(middle, y), &row, &slice) &&
                canvas.model()->rows()[static_cast<std::size_t>(row)].slices[static_cast<std::size_t>(slice)].own ==
                    record->spans(span).instruction();
      QVERIFY2(found, qPrintable(QString::number(pixel)));
    }
    QSignalSpy picked(&canvas, &TimelineCanvas::timePicked);
    emit canvas.rangePicked(axis.toPlace(static_cast<double>(cut.begin)) - 1000,
                            axis.toPlace(static_cast<double>(cut.begin)) + 1000);
    QCOMPARE(picked.front()[0].toLongLong(), cut.begin - 1000);
    QCOMPARE(picked.front()[1].toLongLong(), cut.end + 1000);
    // The break is seen: its line goes through the rows.
    const QImage image = canvas.grab().toImage();
    const double ratio = image.devicePixelRatio();
    int dashes = 0;
    for (int y = 60; y < 290; ++y)
      dashes += image.pixelColor(static_cast<int>((std::round(x) + 0.5) * ratio), static_cast<int>(y * ratio)) ==
                Tokens::current().muted;
    QVERIFY2(dashes > 20, qPrintable(QString::number(dashes)));
  }

  // Where no stop was long enough to be cut out the line above says so.
  void stopsTooShortToCutAreSaid() {
    Window w;
    w.fill(1, 1);
    TimelineView view(w.context());
    view.resize(900, 300);
    view.show();
    QTRY_VERIFY_WITH_TIMEOUT(view.canvas().model() && view.canvas().model()->sliceCount() > 0, 60'000);
    QVERIFY2(!view.headerText().contains(QStringLiteral("stopped")), qPrintable(view.headerText()));
    snapshot::Alert alert;
    alert.set_code("stopped");
    alert.set_step(w.store.steps().back()->step());
    w.store.addAlert(alert);
    QTRY_VERIFY_WITH_TIMEOUT(view.headerText().contains(QStringLiteral("1 step was stopped for less than 20 ms at a time")),
                             60'000);
  }

  // Somebody who stops in a step and reads for a minute finds what ran, not the minute.
  void timelineShowsTheWorkBesideTheWaiting() {
    Window w;
    w.fill(1, 1);
    const auto plain = TimelineModel::make(w.store.steps(), w.store.plan(), w.store.graph());
    QCOMPARE(plain->axis().cutOut(), 0);
    QCOMPARE(plain->presentBegin(), plain->begin());
    const StepPtr whole = w.store.steps().back();
    auto record = std::make_shared<snapshot::StepRecord>(*waitingIn(*whole, whole->spans_size() / 4, kMinute, 0));
    record->set_ns(record->ns() + kMinute);  // and another before it was finished
    w.store.takeBackFrom(0);
    TimelineView view(w.context());
    view.resize(900, 300);
    view.show();
    QSignalSpy ready(&view, &TimelineView::modelReady);
    QVERIFY(ready.wait(60'000) || ready.count() > 0);  // of nothing, as before the first step
    w.store.addStep(record);
    QTRY_VERIFY_WITH_TIMEOUT(view.canvas().model()->sliceCount() > 0, 60'000);
    const auto& model = *view.canvas().model();
    QVERIFY(model.axis().cutOut() > 2 * kMinute && model.axis().cutOut() < 3 * kMinute);
    QVERIFY(view.canvas().showsAll() && view.canvas().viewEnd() - view.canvas().viewBegin() < kMinute / 10);
    QVERIFY2(view.headerText().contains(QStringLiteral("2 stops of 2:00.0 cut out")), qPrintable(view.headerText()));
    QVERIFY(!model.axis().cuts().front().stopped);
    // That somebody stopped is told after the step has ended.
    snapshot::Alert alert;
    alert.set_code("stopped");
    alert.set_step(record->step());
    w.store.addAlert(alert);
    QTRY_VERIFY_WITH_TIMEOUT(view.canvas().model()->axis().cuts().front().stopped, 60'000);
  }

  void draggingPicksARangeThatTheFlameGraphFollows() {
    Window w;
    w.fill();
    TimelineView timeline(w.context());
    FlameView flame(w.context());
    timeline.resize(900, 300);
    timeline.show();
    QSignalSpy ready(&timeline, &TimelineView::modelReady), flameReady(&flame, &FlameView::modelReady);
    QVERIFY(ready.wait(60'000) || ready.count() > 0);
    QTRY_VERIFY_WITH_TIMEOUT(flameReady.count() > 0, 60'000);
    QVERIFY(timeline.emptyText().isEmpty());
    const QString all = flame.headerText();
    QTest::mousePress(&timeline.canvas(), Qt::LeftButton, {}, QPoint(300, 120));
    QTest::mouseMove(&timeline.canvas(), QPoint(400, 120));
    QMouseEvent move(QEvent::MouseMove, QPointF(420, 120), timeline.canvas().mapToGlobal(QPointF(420, 120)), Qt::LeftButton,
                     Qt::LeftButton, {});
    QApplication::sendEvent(&timeline.canvas(), &move);
    QTest::mouseRelease(&timeline.canvas(), Qt::LeftButton, {}, QPoint(420, 120));
    QVERIFY(w.selection.rangeEnd() > w.selection.rangeBegin());
    const auto count = flameReady.count();
    QTRY_VERIFY_WITH_TIMEOUT(flameReady.count() > count, 60'000);
    QVERIFY(flame.headerText() != all);
  }
};

SS_QT_CLASS(QApplication, TimelineTest)
#include "tst_timeline.moc"
