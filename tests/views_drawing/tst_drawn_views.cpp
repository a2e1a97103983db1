// SPDX-License-Identifier: GPL-3.0-or-later
// Memory map, timeline, flame graph and start-up chart on made-up steps, and what they draw with.
#include <qcustomplot.h>

#include <QPainter>
#include <QSignalSpy>
#include <QtTest>
#include <numeric>
#include <random>
#include <set>

#include "tests/views_drawing/generated_graph.h"
#include "tests/views_drawing/shown_views.h"
#include "views/common/tokens.h"
#include "views/drawing/axis_ticks.h"
#include "views/drawing/plot_style.h"
#include "views/drawing/text_cache.h"
#include "views/flame/flame_view.h"
#include "views/memory/box_raster.h"
#include "views/memory/box_words.h"
#include "views/memory/memory_painter.h"
#include "views/memory/memory_view.h"
#include "views/startup_chart/startup_chart_view.h"
#include "views/timeline/timeline_view.h"

using namespace stepscope;

namespace {

snapshot::Plan wildPlan(unsigned seed) {
  std::mt19937_64 random(seed);
  const auto any = [&] { return static_cast<std::int64_t>(random()) >> (random() % 60); };
  snapshot::Plan plan;
  for (int i = 0; i < 30; ++i) {
    auto* b = plan.add_buffers();
    b->set_index(static_cast<int>(any()));
    b->set_value(static_cast<int>(any()));
    b->set_buffer_class(static_cast<snapshot::BufferClass>(random() % 14));
    b->set_in_arena(random() % 3 != 0);
    b->set_offset(any());
    b->set_bytes(any());
    b->set_first(static_cast<int>(any()));
    b->set_last(static_cast<int>(any()));
    b->set_shares(static_cast<int>(random() % 40) - 5);
    b->set_decision(random() % 2 == 0 ? "view of input 0" : "in place of 'x'");
  }
  for (int i = 0; i < 25; ++i) {
    auto* in = plan.add_instructions();
    in->set_index(static_cast<int>(any()));
    in->set_node(static_cast<int>(any()));
    in->add_outputs()->set_buffer(static_cast<int>(random() % 40) - 5);
    in->add_inputs()->set_buffer(static_cast<int>(any()));
  }
  plan.set_arena_bytes(any());
  plan.set_lower_bound_bytes(any());
  plan.set_persistent_bytes(any());
  plan.set_peak_instruction(static_cast<int>(any()));
  plan.set_first_backward(static_cast<int>(any()));
  plan.add_peak_owners()->set_bytes(any());
  return plan;
}

}  // namespace

class DrawnViewsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void textsAreShortenedButNeverToCrumbs() {
    TextCache cache(smallFont());
    const QString name = QStringLiteral("SoftmaxCrossEntropyLossGrad");
    QCOMPARE(cache.legible(name, cache.width(name) + 1), name);
    QVERIFY(cache.legible(name, cache.width(name) * 0.7).size() >= 7);
    QCOMPARE(cache.legible(name, cache.width(QStringLiteral("S…d")) + 1), QString());
    QCOMPARE(cache.legible(QStringLiteral("fc"), 100), QStringLiteral("fc"));
    QCOMPARE(cache.legible(QStringLiteral("Product"), 12), QString());
  }

  void aLegendStandsWhereItCoversTheLeast() {
    QCustomPlot plot;
    plot.resize(360, 240);
    plot.show();
    auto* curve = plot.addGraph();
    curve->setName(QStringLiteral("measured"));
    curve->setLineStyle(QCPGraph::lsNone);
    plot.legend->setVisible(true);
    dressAxes(plot);
    dressLegend(*plot.legend);
    keepLegendClear(*plot.axisRect(), *plot.legend);
    plot.xAxis->setRange(0, 1);
    plot.yAxis->setRange(0, 1);
    const QVector<QPointF> corners{{0.92, 0.88}, {0.08, 0.88}, {0.08, 0.12}, {0.92, 0.12}};
    for (int free = 0; free < 4; ++free) {
      QVector<double> x, y;
      for (int i = 0; i < 4; ++i) {
        if (i == free) continue;
        x << corners[i].x();
        y << corners[i].y();
      }
      curve->setData(x, y);
      plot.replot();
      const QRect legend = plot.legend->outerRect();
      QVERIFY(legend.width() > 40);
      for (int i = 0; i < 4; ++i)
        QCOMPARE(legend.contains(curve->coordsToPixels(corners[i].x(), corners[i].y()).toPoint()), i == free);
    }
  }

  // Steps are whole and from 0, and their numbers stand apart on a narrow plot.
  void stepsAreNotNegativeAndTheirNumbersStandApart() {
    QCustomPlot plot;
    dressAxes(plot);
    countWhole(*plot.xAxis);
    fitTicks(plot);
    const auto labels = [&](double from, double to) {
      plot.xAxis->setRange(from, to);
      for (int i = 0; i < 3; ++i) plot.replot();
      return plot.xAxis->tickVectorLabels().toList();
    };
    plot.resize(400, 200);
    QCOMPARE(labels(-1, 1), QStringList({QStringLiteral("0"), QStringLiteral("1")}));
    QCOMPARE(labels(6.5, 7.5), QStringList({QStringLiteral("7")}));
    for (const int width : {150, 200, 260, 400}) {
      plot.resize(width, 200);
      for (const double most : {39.0, 1'109.0, 1'250'000.0}) {
        const QStringList shown = labels(0, most);
        const auto ticks = plot.xAxis->tickVector();
        QVERIFY(!shown.isEmpty());
        const QFontMetricsF metrics(plot.xAxis->tickLabelFont());
        for (qsizetype i = 0; i + 1 < shown.size(); ++i) {
          const double a = plot.xAxis->coordToPixel(ticks[i]) + metrics.horizontalAdvance(shown[i]) / 2,
                       b = plot.xAxis->coordToPixel(ticks[i + 1]) - metrics.horizontalAdvance(shown[i + 1]) / 2;
          QVERIFY2(b - a >= 4, qPrintable(QStringLiteral("%1 px: %2").arg(width).arg(shown.join(' '))));
        }
      }
    }
  }

  void ticksAreRoundAndFew() {
    for (const double t : decimalTicks(0, 97, 5)) QVERIFY(std::abs(t / 20 - std::round(t / 20)) < 1e-9);
    QVERIFY(decimalTicks(0, 97, 5).size() <= 6);
    QVERIFY(decimalTicks(1, 1, 5).empty());
    QVERIFY(binaryTicks(0, 100e6, 4).size() <= 5);
  }

  void manyBoxesArePaintedAsTheirPixels() {
    const QRectF area(10, 20, 100, 50);
    for (const double ratio : {1.0, 2.0}) {
      BoxRaster raster(area, ratio);
      raster.add(QRectF(10, 20, 30, 10), 0);
      raster.add(QRectF(20, 20, 40, 10), 1);      // over the first
      raster.add(QRectF(80, 40, 0.01, 0.01), 2);  // never invisible
      raster.add(QRectF(105, 68, 1e9, 1e9), 1);
      QImage image(QSize(120, 80) * ratio, QImage::Format_RGB32);
      image.setDevicePixelRatio(ratio);
      image.fill(Qt::white);
      QPainter p(&image);
      raster.paint(p, {Qt::red, Qt::green, Qt::blue});
      p.end();
      const auto at = [&](double x, double y) { return image.pixelColor(qRound(x * ratio), qRound(y * ratio)); };
      QCOMPARE(at(15, 25), QColor(Qt::red));
      QCOMPARE(at(25, 25), QColor(Qt::green));
      QCOMPARE(at(70, 25), QColor(Qt::white));
      QCOMPARE(at(80, 40), QColor(Qt::blue));
      QCOMPARE(at(82, 42), QColor(Qt::white));
      QCOMPARE(at(107, 69), QColor(Qt::green));
      QCOMPARE(at(5, 25), QColor(Qt::white));
    }
  }

  void boxesOfTheMemoryMapBearWholeNames() {
    snapshot::Plan plan;
    auto* b = plan.add_buffers();
    b->set_name("transformer.h.0.attn/c_proj/MatMul_output");
    b->set_value(4);
    b->set_bytes(100);
    b->set_in_arena(true);
    plan.add_instructions()->set_op("Gelu");
    plan.set_arena_bytes(100);
    const auto model = MemoryModel::make(PlanSnapshot::make(plan));
    TextCache text(sceneFont(12));
    const snapshot::Buffer& buffer = *model->plan().buffer(0);
    const QString whole = QString::fromStdString(buffer.name());
    QStringList seen;
    for (double room = text.width(whole) + 1; room > 4; room -= 1) {
      const QString name = boxName(*model, buffer, text, room);
      QVERIFY(name.isEmpty() || text.width(name) <= room);
      QVERIFY2(whole.endsWith(name) || name == u"Gelu", qPrintable(name));
      if (!seen.contains(name)) seen << name;
    }
    QCOMPARE(seen, (QStringList{whole, "h.0.attn/c_proj/MatMul_output", "attn/c_proj/MatMul_output", "c_proj/MatMul_output",
                                "MatMul_output", "Gelu", ""}));
  }

  void wordsOnABoxKeepClearOfTheUprightLines() {
    snapshot::Plan plan;
    auto* b = plan.add_buffers();
    b->set_name("/h.0/attn/Softmax_output_0");
    b->set_value(4);
    b->set_bytes(512 * 1024);
    b->set_in_arena(true);
    plan.add_instructions()->set_op("MaskedSoftmax");
    plan.set_arena_bytes(512 * 1024);
    const auto model = MemoryModel::make(PlanSnapshot::make(plan));
    TextCache text(sceneFont(12));
    const snapshot::Buffer& buffer = *model->plan().buffer(0);
    const QRectF box(100, 0, 600, 20);
    const BoxWords plain = boxWords(*model, buffer, text, box, {});
    QCOMPARE(plain.name, QStringLiteral("/h.0/attn/Softmax_output_0"));
    for (double line = 90; line < 710; line += 3) {
      for (double other = line; other < 710; other += 67) {
        const BoxWords words = boxWords(*model, buffer, text, box, {other, line});
        QVERIFY(words.x > box.left() && words.x + words.width < box.right());
        QVERIFY(words.bytesX + text.width(words.bytes) <= words.x + words.width + 0.01);
        for (const double at : {line, other})
          QVERIFY2(at < words.x || at > words.x + words.width, qPrintable(QStringLiteral("%1 %2").arg(line).arg(other)));
      }
    }
    // Too narrow beside the line: through the words rather than without them.
    QCOMPARE(boxWords(*model, buffer, text, QRectF(100, 0, 80, 20), {140}).bytes, QStringLiteral("512 KiB"));
  }

  void wordsOfALevelKeepClearOfTheMarkOfThePeak() {
    const QRectF area(50, 0, 600, 300), words(440, 20, 200, 14);
    for (double x = 40; x < 660; x += 1) {
      const QRectF moved = besideMark(words, x, 12, area);
      QCOMPARE(moved.size(), words.size());
      QCOMPARE(moved.top(), words.top());
      QVERIFY2(moved.right() <= x - 12 || moved.left() >= x + 12, qPrintable(QString::number(x)));
      QVERIFY2(moved.left() >= area.left() && moved.right() <= area.right(), qPrintable(QString::number(x)));
    }
    const QRectF wide(50, 20, 590, 14);  // no place clear of it
    QCOMPARE(besideMark(wide, 300, 12, area), wide);
  }

  void memoryMapPlacesEveryBufferWithoutOverlap() {
    const auto plan = PlanSnapshot::make(generated::plan(generated::step({.blocks = 3})));
    const auto model = MemoryModel::make(plan);
    for (const MemoryBox& b : model->boxes()) {
      QVERIFY(b.high > b.low && b.end > b.first);
      QVERIFY(b.high <= model->top());
    }
    for (std::size_t i = 0; i < model->boxes().size(); ++i) {
      for (std::size_t k = i + 1; k < model->boxes().size(); ++k) {
        const MemoryBox &a = model->boxes()[i], &b = model->boxes()[k];
        const bool apart = a.end <= b.first || b.end <= a.first || a.high <= b.low || b.high <= a.low;
        QVERIFY2(apart || a.inPlace || b.inPlace, "two boxes share memory at one time");
      }
    }
    QVERIFY(*std::max_element(model->live().begin(), model->live().end()) <= model->top());
  }

  // Below the arena the scale is another one where state would take most of the height: two strokes on the axis say so, and
  // the border has its number. Where the scale is one, there is no such sign.
  void theMemoryAxisMarksItsBreak() {
    for (const bool squeezed : {true, false}) {
      snapshot::Plan plan = generated::plan(generated::step({.blocks = 3}));
      for (auto& b : *plan.mutable_buffers())
        if (!b.in_arena()) b.set_bytes(squeezed ? b.bytes() * 64 : 16);
      const auto model = MemoryModel::make(PlanSnapshot::make(std::move(plan)));
      MemoryScale scale;
      scale.area = {80, 10, 500, 300};
      scale.viewEnd = model->instructions();
      scale.persistent = static_cast<double>(model->persistent());
      scale.squeeze = MemoryScale::squeezeFor(*model);
      scale.high = scale.unitsTop(*model);
      QCOMPARE(scale.squeeze != 1, squeezed);
      TextCache text(QApplication::font());
      const MemoryPaintState state;
      QImage image(600, 340, QImage::Format_RGB32);
      image.fill(Qt::white);
      QPainter painter(&image);
      MemoryPainter(*model, scale, state, text, image.size()).paint(painter);
      painter.end();
      // Left of the plot, between the numbers and the lines of the grid.
      const int y = static_cast<int>(scale.toY(scale.persistent)), left = static_cast<int>(scale.area.left());
      const QRgb ground = image.pixel(left - 3, y - 12);
      int strokes = 0, number = 0;
      for (int row = y - 4; row <= y + 4; ++row) {
        for (int x = left - 4; x < left - 1; ++x) strokes += image.pixel(x, row) != ground ? 1 : 0;
        for (int x = 0; x < left - 6; ++x) number += image.pixel(x, row) != ground ? 1 : 0;
      }
      if (squeezed) QVERIFY2(strokes >= 4 && number > 10, qPrintable(QStringLiteral("%1, %2").arg(strokes).arg(number)));
      if (!squeezed) QCOMPARE(strokes, 0);
    }
  }

  // Where a panel is narrower than the words about what is selected, they are shortened and not cut.
  void wordsOverANarrowMapEndWithinIt() {
    const auto plan = PlanSnapshot::make(generated::plan(generated::step({.blocks = 3})));
    const auto model = MemoryModel::make(plan);
    MemoryScale scale;
    scale.area = {60, 40, 180, 200};
    scale.viewEnd = model->instructions();
    scale.persistent = static_cast<double>(model->persistent());
    scale.squeeze = MemoryScale::squeezeFor(*model);
    scale.high = scale.unitsTop(*model);
    MemoryPaintState state;
    state.selected = plan->bufferOfValue(plan->plan().instructions(20).outputs(0).value());
    TextCache text(QApplication::font());
    QImage image(250, 300, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    MemoryPainter(*model, scale, state, text, image.size()).paint(painter);
    painter.end();
    const int lines = 2 * QFontMetrics(text.font()).height();
    std::set<QRgb> colours, over;
    for (int y = 0; y < lines; ++y) {
      for (int x = 0; x < 240; ++x) over.insert(image.pixel(x, y));
      for (int x = 249; x < 250; ++x) colours.insert(image.pixel(x, y));
    }
    QVERIFY2(over.size() > 2, "the words are there");
    QCOMPARE(colours.size(), std::size_t{1});
  }

  void memoryMapAnswersWhyAndFollowsTheSelection() {
    Window w;
    w.fill();
    MemoryView view(w.context());
    view.resize(900, 400);
    view.show();
    QVERIFY(view.headerText().contains("fragmentation"));
    const QPixmap before = view.canvas().grab();
    w.selection.select(
        Selection::ofBuffer(w.store.plan()->bufferOfValue(w.store.plan()->plan().instructions(20).outputs(0).value())));
    QVERIFY(view.canvas().grab().toImage() != before.toImage());
    const QPoint middle(view.width() / 2, view.height() / 2);
    QTest::mouseClick(&view.canvas(), Qt::LeftButton, {}, middle);
    QVERIFY(w.selection.selection().buffer >= 0 || w.selection.selection().instruction >= 0);
  }

  void hostilePlansAreOnlyOddPictures() {
    for (unsigned seed = 0; seed < 60; ++seed) {
      Window w;
      w.store.setPlan(PlanSnapshot::make(wildPlan(seed)));
      MemoryView view(w.context());
      view.resize(500, 300);
      view.canvas().setSelected(static_cast<int>(seed) % 35, 3);
      QVERIFY(!view.canvas().grab().isNull());
    }
  }

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

  // Somebody who stops in a step and reads for a minute finds what ran, not the minute.
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

  void flameGraphAddsUp() {
    Window w;
    w.fill();
    const FlameTree tree = FlameTree::make(w.store.steps(), w.store.plan().get(), w.store.graph().get(), 0, 0);
    std::int64_t spans = 0;
    for (const auto& step : w.store.steps()) {
      for (const auto& span : step->spans()) spans += span.end_ns() - span.begin_ns();
    }
    QCOMPARE(tree.ns, spans);
    for (std::size_t i = 1; i < tree.nodes.size(); ++i) {
      const FlameNode &n = tree.nodes[i], &p = tree.nodes[static_cast<std::size_t>(n.parent)];
      QVERIFY(n.begin >= p.begin && n.begin + n.ns <= p.begin + p.ns);
    }
  }

  void startupChartShowsPhases() {
    Window w;
    StartupChartView view(w.context());
    QVERIFY(!view.emptyText().isEmpty());
    w.store.setPhases(generated::phases());
    QVERIFY(view.emptyText().isEmpty());
    QVERIFY(view.headerText().contains("ms"));
    view.resize(700, 200);
    QVERIFY(!view.grab().isNull());
  }
};

QTEST_MAIN(DrawnViewsTest)
#include "tst_drawn_views.moc"
