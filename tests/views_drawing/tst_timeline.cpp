// SPDX-License-Identifier: GPL-3.0-or-later
// The timeline of made-up steps: rows, ticks, stops, ranges.
#include <QSignalSpy>
#include <QtTest>
#include <numeric>

#include "tests/views_drawing/shown_views.h"
#include "views/common/tokens.h"
#include "views/flame/flame_view.h"
#include "views/timeline/timeline_view.h"

using namespace stepscope;

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
    QCOMPARE(model->waiting(), plain->waiting());
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

  // Steps that somebody made one by one: the newest is shown first, and its label leaves out the stops.
  void timelineOpensAtTheNewestStep() {
    constexpr std::int64_t kMinute = 60'000'000'000;
    Window w;
    w.fill(1, 3);
    StepPtrs steps;
    for (const StepPtr& step : w.store.steps()) {
      auto moved = std::make_shared<snapshot::StepRecord>(*step);
      const std::int64_t by = kMinute * static_cast<std::int64_t>(steps.size());
      moved->set_begin_ns(moved->begin_ns() + by);
      for (auto& span : *moved->mutable_spans()) {
        span.set_begin_ns(span.begin_ns() + by);
        span.set_end_ns(span.end_ns() + by);
      }
      if (steps.size() == 2) {  // and in the newest somebody stopped
        const int half = moved->spans_size() / 4;
        for (int i = half; i < moved->spans_size(); ++i) {
          moved->mutable_spans(i)->set_begin_ns(moved->spans(i).begin_ns() + kMinute);
          moved->mutable_spans(i)->set_end_ns(moved->spans(i).end_ns() + kMinute);
        }
        moved->set_ns(moved->ns() + kMinute);
      }
      steps.push_back(std::move(moved));
    }
    const auto model = TimelineModel::make(steps, w.store.plan(), w.store.graph());
    const TimelineStep& newest = model->steps().back();
    QVERIFY(model->workBegin() >= newest.begin);
    QVERIFY(newest.waiting > kMinute / 2 && newest.end - newest.begin - newest.waiting < kMinute);
    QCOMPARE(model->steps().front().waiting, 0);
  }

  // Somebody who stops in a step and reads for a minute finds what ran, not the minute.
  void timelineShowsTheWorkBesideTheWaiting() {
    constexpr std::int64_t kMinute = 60'000'000'000;
    Window w;
    w.fill(1, 1);
    const auto plain = TimelineModel::make(w.store.steps(), w.store.plan(), w.store.graph());
    QCOMPARE(plain->waiting(), 0);
    QCOMPARE(plain->workBegin(), plain->begin());
    QCOMPARE(plain->workEnd(), plain->end());
    auto record = std::make_shared<snapshot::StepRecord>(*w.store.steps().back());
    const int stopped = record->spans_size() / 4;
    for (int i = stopped; i < record->spans_size(); ++i) {
      record->mutable_spans(i)->set_begin_ns(record->spans(i).begin_ns() + kMinute);
      record->mutable_spans(i)->set_end_ns(record->spans(i).end_ns() + kMinute);
    }
    record->set_ns(record->ns() + 2 * kMinute);  // and another before it was finished
    w.store.takeBackFrom(0);
    TimelineView view(w.context());
    view.resize(900, 300);
    view.show();
    QSignalSpy ready(&view, &TimelineView::modelReady);
    QVERIFY(ready.wait(60'000) || ready.count() > 0);  // of nothing, as before the first step
    w.store.addStep(record);
    QTRY_VERIFY_WITH_TIMEOUT(view.canvas().model()->sliceCount() > 0, 60'000);
    const auto& model = *view.canvas().model();
    QCOMPARE(model.workBegin(), record->spans(stopped).begin_ns());
    QVERIFY(model.workEnd() - model.workBegin() < kMinute &&
            model.workEnd() >= record->spans(record->spans_size() - 1).end_ns());
    QVERIFY(model.waiting() > kMinute && model.waiting() < 3 * kMinute);
    QCOMPARE(view.canvas().viewBegin(), static_cast<double>(model.workBegin()));
    QCOMPARE(view.canvas().viewEnd(), static_cast<double>(model.workEnd()));
    QVERIFY(view.headerText().contains(QStringLiteral("waiting")));
    view.fitAll();
    QVERIFY(view.canvas().showsAll() && view.canvas().viewEnd() - view.canvas().viewBegin() > 1.9 * kMinute);
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

QTEST_MAIN(TimelineTest)
#include "tst_timeline.moc"
