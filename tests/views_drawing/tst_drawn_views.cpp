// SPDX-License-Identifier: GPL-3.0-or-later
#include <QPainter>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>
#include <numeric>
#include <random>

#include "tests/views_drawing/generated_graph.h"
#include "views/common/tokens.h"
#include "views/drawing/axis_ticks.h"
#include "views/drawing/text_cache.h"
#include "views/flame/flame_view.h"
#include "views/graph/graph_painter.h"
#include "views/graph/graph_view.h"
#include "views/graph/label_places.h"
#include "views/graph/plan_marks.h"
#include "views/memory/box_raster.h"
#include "views/memory/memory_painter.h"
#include "views/memory/memory_view.h"
#include "views/startup_chart/startup_chart_view.h"
#include "views/timeline/timeline_view.h"

using namespace stepscope;

namespace {

struct Window {
  SnapshotStore store;
  SelectionModel selection;
  Wishes wishes;
  ViewContext context() { return {store, selection, wishes}; }

  void fill(int blocks = 4, int steps = 3) {
    const snapshot::Graph graph = generated::step({.blocks = blocks});
    const auto plan = PlanSnapshot::make(generated::plan(graph));
    store.setStages({"infer", "pre-grad", "optimizer"});
    store.addStage("pre-grad",
                   GraphSnapshot::make(generated::step({.blocks = blocks, .gradient = false, .optimizer = false})));
    store.setGraph(GraphSnapshot::make(graph));
    store.setPlan(plan);
    store.setPhases(generated::phases());
    for (int s = 0; s < steps; ++s)
      store.addStep(std::make_shared<snapshot::StepRecord>(generated::record(plan->plan(), s, 1'000'000'000LL * (s + 1))));
  }
};

bool settle(GraphView& view) {
  if (!view.busy()) return true;
  QSignalSpy spy(&view, &GraphView::laidOut);
  return spy.wait(60'000);
}

// A made-up step of so many blocks, and its graph in a view of that size.
class ShownGraph : public Window {
 public:
  ShownGraph(int blocks, QSize size) {
    fill(blocks);
    view_ = std::make_unique<GraphView>(context());
    view_->resize(size);
    view_->show();
  }
  GraphView& view() { return *view_; }

 private:
  std::unique_ptr<GraphView> view_;
};

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

  void graphShowsItselfAndSaysWhatIsMissing() {
    Window w;
    GraphView view(w.context());
    QVERIFY(!view.emptyText().isEmpty());
    w.fill();
    QVERIFY(settle(view));
    QVERIFY(view.emptyText().isEmpty());
    QVERIFY(view.headerText().contains("nodes"));
  }

  void selectingElsewhereOpensTheGroupAndTheNextSelectionClosesIt() {
    ShownGraph w(12, {900, 600});
    GraphView& view = w.view();
    QVERIFY(settle(view));
    const auto nodeIn = [&](const std::string& path) {
      for (const auto& n : w.store.graph()->graph().nodes()) {
        if (n.provenance().module_path() == path) return n.id();
      }
      return -1;
    };
    const auto openGroups = [&] { return view.canvas().scene()->openGroups.size(); };
    w.selection.select(Selection::ofNode(nodeIn("transformer.h.3.mlp.act")));
    QVERIFY(settle(view));
    const auto opened = openGroups();
    QVERIFY(opened > 0);
    const int box = view.canvas().scene()->boxOfNode[static_cast<std::size_t>(view.canvas().selected())];
    QCOMPARE(view.canvas().scene()->boxes[static_cast<std::size_t>(box)].node, view.canvas().selected());
    w.selection.select(Selection::ofNode(nodeIn("transformer.h.7.mlp.act")));
    QVERIFY(settle(view));
    QCOMPARE(openGroups(), opened);
  }

  void doubleClickOpensAndItsTitleCloses() {
    ShownGraph w(6, {900, 700});
    GraphView& view = w.view();
    QVERIFY(settle(view));
    GraphCanvas& canvas = view.canvas();
    const auto centreOf = [&](BoxKind kind, double dy) {
      for (const SceneBox& b : canvas.scene()->boxes) {
        if (b.kind == kind && !b.gradient) return canvas.viewport().toPixel(QPointF(b.at.centerX(), b.at.y + dy)).toPoint();
      }
      return QPoint(-1, -1);
    };
    QTest::mouseDClick(&canvas, Qt::LeftButton, {}, centreOf(BoxKind::kClosedGroup, 12));
    QVERIFY(settle(view));
    QVERIFY(!canvas.scene()->openGroups.empty());
    view.fitAll();
    QTest::mouseDClick(&canvas, Qt::LeftButton, {}, centreOf(BoxKind::kOpenGroup, 12));
    QVERIFY(settle(view));
    QVERIFY(canvas.scene()->openGroups.empty());
  }

  void clickSelectsAndKeysWalk() {
    ShownGraph w(2, {900, 700});
    GraphView& view = w.view();
    QVERIFY(settle(view));
    GraphCanvas& canvas = view.canvas();
    int target = -1;
    for (std::size_t i = 0; i < canvas.scene()->boxes.size(); ++i) {
      if (canvas.scene()->boxes[i].kind == BoxKind::kNode) target = static_cast<int>(i);
    }
    const BoxF at = canvas.scene()->boxes[static_cast<std::size_t>(target)].at;
    canvas.showBox(target);
    QTest::mouseClick(&canvas, Qt::LeftButton, {}, canvas.viewport().toPixel(QPointF(at.centerX(), at.centerY())).toPoint());
    const int first = w.selection.selection().node;
    QCOMPARE(first, canvas.scene()->model->node(canvas.scene()->boxes[static_cast<std::size_t>(target)].node)->id());
    QTest::keyClick(&canvas, Qt::Key_Up);
    QTest::keyClick(&canvas, Qt::Key_Left);
    QVERIFY(w.selection.selection().node >= 0);
  }

  void aGradientIsShownBesideItsForwardNode() {
    ShownGraph w(4, {700, 480});
    GraphView& view = w.view();
    QVERIFY(settle(view));
    GraphCanvas& canvas = view.canvas();
    const auto inSight = [&](int model) {
      const BoxF& b = canvas.scene()->boxes[static_cast<std::size_t>(canvas.scene()->boxOfNode[static_cast<std::size_t>(model)])].at;
      return QRectF(canvas.rect()).contains(canvas.viewport().toPixel(QRectF(b.x, b.y, b.w, b.h)));
    };
    int tried = 0;
    for (const auto& node : w.store.graph()->graph().nodes()) {
      const int forward = w.store.graph()->forwardOf(node.id());
      if (node.phase() != snapshot::BACKWARD || forward < 0 || ++tried % 5 != 0) continue;
      w.selection.select(Selection::ofNode(node.id()));
      QVERIFY(settle(view));
      const auto& model = *canvas.scene()->model;
      QVERIFY2(inSight(model.ofNodeId(node.id())) && inSight(model.ofNodeId(forward)), node.name().c_str());
      QVERIFY(canvas.zoomPercent() >= 41.9);  // names can be read
    }
    QVERIFY(tried > 20);
    // A panel that gets lower keeps what is selected in sight.
    const int chosen = canvas.selected();
    view.resize(700, 300);
    QVERIFY(settle(view));
    QVERIFY(inSight(chosen));
    // A zoom that the user chose is kept.
    canvas.zoomBy(2);
    const double zoom = canvas.zoomPercent();
    w.selection.select(Selection::ofNode(w.store.graph()->graph().nodes(0).id()));
    QVERIFY(settle(view));
    QCOMPARE(canvas.zoomPercent(), zoom);
    QVERIFY(inSight(canvas.selected()));
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

  void textsAreShortenedButNeverToCrumbs() {
    TextCache cache(smallFont());
    const QString name = QStringLiteral("SoftmaxCrossEntropyLossGrad");
    QCOMPARE(cache.legible(name, cache.width(name) + 1), name);
    QVERIFY(cache.legible(name, cache.width(name) * 0.7).size() >= 7);
    QCOMPARE(cache.legible(name, cache.width(QStringLiteral("S…d")) + 1), QString());
    QCOMPARE(cache.legible(QStringLiteral("fc"), 100), QStringLiteral("fc"));
    QCOMPARE(cache.legible(QStringLiteral("Product"), 12), QString());
  }

  void phasesAskForWhatIsNotThereAndShowTheDifference() {
    Window w;
    w.fill(2);
    GraphView view(w.context());
    QVERIFY(settle(view));
    QSignalSpy asked(&w.wishes, &Wishes::stageGraph);
    view.showStage("infer", "");
    QCOMPARE(asked.count(), 1);
    view.showStage("optimizer", "pre-grad");
    QVERIFY(settle(view));
    int added = 0;
    for (const NodeMarks& m : view.canvas().marks().nodes) added += m.difference == Difference::kAdded;
    QVERIFY(added > 10);
  }

  void exportsWritePicturesAndRefuseWhatTheyCannot() {
    Window w;
    w.fill(2);
    GraphView view(w.context());
    QVERIFY(settle(view));
    QTemporaryDir folder;
    for (const char* name : {"graph.svg", "graph.png", "graph.pdf"}) {
      const QString path = folder.filePath(QLatin1String(name));
      QCOMPARE(view.exportTo(path), QString());
      QVERIFY(QFileInfo(path).size() > 2000);
    }
    QVERIFY(view.exportTo(folder.filePath("graph.bmp")).contains("expected svg, png or pdf"));
    QVERIFY(!view.exportTo("/nowhere/at/all.svg").isEmpty());
  }

  void everyZoomPaintsInBothThemes() {
    Window w;
    w.fill(8);
    for (const Theme theme : {Theme::kLight, Theme::kDark}) {
      applyTheme(*qApp, theme);
      GraphView view(w.context());
      view.resize(800, 500);
      view.show();
      QVERIFY(settle(view));
      for (int i = 0; i < 20; ++i) {
        view.canvas().zoomBy(0.7);
        QVERIFY(!view.canvas().grab().isNull());
      }
      for (int i = 0; i < 30; ++i) {
        view.canvas().zoomBy(1.4);
        QVERIFY(!view.canvas().grab().isNull());
      }
    }
    applyTheme(*qApp, Theme::kLight);
  }

  // Half grown they cannot be read.
  void secondLinesAreThereOrNotWhereNobodyZoomed() {
    ShownGraph w(4, {700, 480});
    GraphView& view = w.view();
    QVERIFY(settle(view));
    const auto half = [&view] {
      const double zoom = view.canvas().zoomPercent() * GraphCamera::base() / 100;
      return zoom > shown_from::kDetails + 1e-9 && zoom < shown_from::kDetails + shown_from::kGrowth - 1e-9;
    };
    for (int width = 300; width < 1800; width += 60) {
      view.resize(width, width * 3 / 4);
      QVERIFY(settle(view));
      view.fitAll();
      QVERIFY2(!half(), qPrintable(QString::number(width)));
      for (const int node : {3, 20, 60}) {
        w.selection.select(Selection::ofNode(w.store.graph()->graph().nodes(node).id()));
        QVERIFY(settle(view));
        QVERIFY2(!half(), qPrintable(QStringLiteral("%1, node %2").arg(width).arg(node)));
      }
    }
  }

  void nothingSpringsUpWhileZooming() {
    ShownGraph w(4, {700, 480});
    GraphView& view = w.view();
    QVERIFY(settle(view));
    w.selection.select(Selection::ofNode(w.store.graph()->graph().nodes(12).id()));  // opens the groups around it
    QVERIFY(settle(view));
    const auto scene = view.canvas().scene();
    const BoxF& box = scene->boxes[static_cast<std::size_t>(scene->boxOfNode[static_cast<std::size_t>(scene->model->ofNodeId(w.store.graph()->graph().nodes(12).id()))])].at;
    GraphLabels labels(scene->model);
    const GraphMarks marks = GraphMarks::make(PlanMarks::make(scene->model, w.store.plan()), w.store, HeatKind::kNone);
    const auto picture = [&](double zoom) {
      QImage image(700, 480, QImage::Format_RGB32);
      Viewport part;
      part.size = image.size();
      part.scaleX = part.scaleY = zoom;
      part.origin = {box.x - 300 / zoom, box.y - 200 / zoom};
      QPainter painter(&image);
      GraphPainter(*scene, labels, marks, Tokens::current()).paint(painter, part, {});
      return image;
    };
    // The mean change of a pixel, of 255.
    const auto change = [](const QImage& a, const QImage& b) {
      double sum = 0;
      for (int y = 0; y < a.height(); ++y) {
        const auto *p = reinterpret_cast<const QRgb*>(a.constScanLine(y)), *q = reinterpret_cast<const QRgb*>(b.constScanLine(y));
        for (int x = 0; x < a.width(); ++x) sum += std::abs(qGreen(p[x]) - qGreen(q[x]));
      }
      return sum / a.width() / a.height();
    };
    for (const double at : {shown_from::kLines, shown_from::kBoxes, shown_from::kCurves, shown_from::kGroupWords, shown_from::kFrames, shown_from::kTitles, shown_from::kArrows,
                            shown_from::kDetails}) {
      const double sprung = change(picture(at - 1e-6), picture(at + 1e-6));
      // Flat boxes have sharp edges and corners, framed ones smooth and round ones.
      QVERIFY2(sprung < (at == shown_from::kFrames ? 0.9 : 0.35), qPrintable(QStringLiteral("at %1: %2").arg(at).arg(sprung)));
    }
    // And yet there is more to see afterwards: the second lines.
    const auto ink = [&](double zoom) {
      const QImage image = picture(zoom);
      QImage none(image.size(), image.format());
      none.fill(Tokens::current().panel);
      return change(image, none);
    };
    QVERIFY(ink(shown_from::kDetails + shown_from::kGrowth) > ink(shown_from::kDetails) + 0.35);
  }

  void aStubsNameCoversNoShapeAndNoBox() {
    Window w;
    w.fill(4);
    GraphView view(w.context());
    view.resize(700, 480);
    view.show();
    QVERIFY(settle(view));
    const auto meets = [](const BoxF& a, const BoxF& b) { return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom(); };
    int names = 0;
    for (int node = 0; node < w.store.graph()->graph().nodes_size(); node += 7) {
      w.selection.select(Selection::ofNode(w.store.graph()->graph().nodes(node).id()));  // opens the groups around it
      QVERIFY(settle(view));
      const auto scene = view.canvas().scene();
      GraphLabels labels(scene->model);
      const GraphMarks marks = GraphMarks::make(PlanMarks::make(scene->model, w.store.plan()), w.store, HeatKind::kNone);
      QImage image(700, 480, QImage::Format_RGB32);
      QPainter painter(&image);
      Viewport part;
      part.size = image.size();
      part.scaleX = part.scaleY = 0.7;
      GraphPaintContext g(*scene, labels, marks, Tokens::current());
      const GraphPaintState nothing;
      g.begin(painter, part, nothing);
      std::vector<BoxF> shapes;
      for (const SceneEdge& edge : scene->edges)
        if (const auto place = shapePlace(g, edge)) shapes.push_back(*place);
      QVERIFY(!shapes.empty());
      for (int box = 0; box < static_cast<int>(scene->boxes.size()); ++box) {
        if (scene->boxes[static_cast<std::size_t>(box)].kind == BoxKind::kOpenGroup) continue;
        const StubPlaces places = stubPlaces(g, box);
        for (const bool right : {true, false}) {
          const StubPlace& stub = right ? places.out : places.in;
          if (stub.label.isEmpty()) continue;
          ++names;
          const BoxF words = stubTextPlace(g, box, stub, right);
          for (const BoxF& shape : shapes) QVERIFY2(words.w == 0 || !meets(words, shape), qPrintable(stub.label));
          for (const SceneBox& other : scene->boxes)
            if (other.kind != BoxKind::kOpenGroup) QVERIFY2(words.w == 0 || !meets(words, other.at), qPrintable(stub.label));
        }
      }
      painter.end();
    }
    QVERIFY(names > 1000);
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
      const QString name = MemoryPainter::boxName(*model, buffer, text, room);
      QVERIFY(name.isEmpty() || text.width(name) <= room);
      QVERIFY2(whole.endsWith(name) || name == u"Gelu", qPrintable(name));
      if (!seen.contains(name)) seen << name;
    }
    QCOMPARE(seen, (QStringList{whole, "h.0.attn/c_proj/MatMul_output", "attn/c_proj/MatMul_output", "c_proj/MatMul_output", "MatMul_output", "Gelu", ""}));
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

  void ticksAreRoundAndFew() {
    for (const double t : decimalTicks(0, 97, 5)) QVERIFY(std::abs(t / 20 - std::round(t / 20)) < 1e-9);
    QVERIFY(decimalTicks(0, 97, 5).size() <= 6);
    QVERIFY(decimalTicks(1, 1, 5).empty());
    QVERIFY(binaryTicks(0, 100e6, 4).size() <= 5);
  }
};

QTEST_MAIN(DrawnViewsTest)
#include "tst_drawn_views.moc"
