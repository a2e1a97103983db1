// SPDX-License-Identifier: GPL-3.0-or-later
// The memory map of made-up and of hostile plans.
#include <QPainter>
#include <QtTest>
#include <random>
#include <set>

#include "tests/support/qt_classes.h"
#include "tests/views_drawing/generated_graph.h"
#include "tests/views_drawing/shown_views.h"
#include "views/common/sharing.h"
#include "views/common/tokens.h"
#include "views/drawing/text_cache.h"
#include "views/memory/box_raster.h"
#include "views/memory/box_words.h"
#include "views/memory/memory_painter.h"
#include "views/memory/memory_view.h"

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

class MemoryMapTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

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

  // 0 -> view 1 -> in place 2 -> view 3 -> in place 4, as a residual connection does it: one piece of memory, once.
  void memoryThatAViewHandsOnIsCountedOnce() {
    constexpr int kInstructions = 12;
    snapshot::Plan plan;
    for (int i = 0; i < kInstructions; ++i) plan.add_instructions()->set_view(i == 1 || i == 3);
    for (int i = 0; i < 5; ++i) {
      auto* b = plan.add_buffers();
      b->set_index(i);
      b->set_value(i);
      b->set_buffer_class(snapshot::CLASS_ACTIVATION);
      b->set_in_arena(true);
      b->set_bytes(100);
      b->set_first(i);
      b->set_last(10);  // as the planner gives it: as long as anything uses this memory
      b->set_shares(i - 1);
      auto* out = plan.mutable_instructions(i)->add_outputs();
      out->set_value(i);
      out->set_buffer(i);
    }
    plan.set_arena_bytes(100);
    const auto model = MemoryModel::make(PlanSnapshot::make(plan));
    QVERIFY(isView(model->plan(), plan.buffers(1)) && !isView(model->plan(), plan.buffers(2)));
    std::vector<std::int64_t> alive(kInstructions, 100);
    alive.back() = 0;
    QCOMPARE(model->live(), alive);
    QCOMPARE(model->boxes().size(), std::size_t{3});
    for (int i = 0; i < kInstructions - 1; ++i) {
      const auto owners = model->ownersAt(i);
      QVERIFY2(owners.size() == 1 && owners[0].second == 100, qPrintable(QString::number(i)));
    }
  }

  // The axis of a plan of four instructions ends with it, and counts whole ones.
  void theAxisEndsWithASmallPlan() {
    snapshot::Plan plan;
    for (int i = 0; i < 4; ++i) plan.add_instructions()->set_index(i);
    auto* b = plan.add_buffers();
    b->set_value(4);
    b->set_bytes(100);
    b->set_in_arena(true);
    b->set_last(3);
    plan.set_arena_bytes(100);
    MemoryCanvas canvas;
    canvas.resize(700, 300);
    canvas.setModel(MemoryModel::make(PlanSnapshot::make(plan)));
    QCOMPARE(canvas.viewBegin(), 0.0);
    QCOMPARE(canvas.viewEnd(), 4.0);
    canvas.showBuffer(0);
    QCOMPARE(canvas.viewEnd(), 4.0);
    QTest::keyClick(&canvas, Qt::Key_W);
    QCOMPARE(canvas.viewEnd() - canvas.viewBegin(), 4.0);
    canvas.setModel(MemoryModel::make(PlanSnapshot::make(generated::plan(generated::step({.blocks = 3})))));
    canvas.showRange(3, 4);
    QCOMPARE(canvas.viewEnd() - canvas.viewBegin(), 8.0);
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
};

SS_QT_CLASS(QApplication, MemoryMapTest)
#include "tst_memory_map.moc"
