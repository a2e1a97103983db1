// SPDX-License-Identifier: GPL-3.0-or-later
// The graph view on made-up steps: selection, groups, zoom, phases, pictures.
#include <QPainter>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/qt_classes.h"
#include "tests/views_drawing/shown_views.h"
#include "views/common/tokens.h"
#include "views/graph/graph_painter.h"
#include "views/graph/phase_strip.h"

using namespace stepscope;

class GraphViewTest : public QObject {
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
      const BoxF& b =
          canvas.scene()->boxes[static_cast<std::size_t>(canvas.scene()->boxOfNode[static_cast<std::size_t>(model)])].at;
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

  // Going to a node frames the pair, from either side; and there is no empty place beside the picture while more of it is
  // out of sight on the other side.
  void aForwardNodeIsShownBesideItsGradient() {
    ShownGraph w(4, {640, 430});
    GraphView& view = w.view();
    QVERIFY(settle(view));
    GraphCanvas& canvas = view.canvas();
    const auto onScreen = [&](const BoxF& b) { return canvas.viewport().toPixel(QRectF(b.x, b.y, b.w, b.h)); };
    const auto inSight = [&](int id) {
      const GraphScene& scene = *canvas.scene();
      const int box = scene.boxOfNode[static_cast<std::size_t>(scene.model->ofNodeId(id))];
      return QRectF(canvas.rect()).contains(onScreen(scene.boxes[static_cast<std::size_t>(box)].at));
    };
    const auto& graph = *w.store.graph();
    int tried = 0;
    for (const auto& node : graph.graph().nodes()) {
      if (node.phase() != snapshot::FORWARD) continue;
      std::vector<int> gradients;
      for (const auto& other : graph.graph().nodes())
        if (other.phase() == snapshot::BACKWARD && graph.forwardOf(other.id()) == node.id()) gradients.push_back(other.id());
      if (gradients.empty() || ++tried % 3 != 0) continue;
      w.selection.select(Selection::ofNode(node.id()));
      QVERIFY(settle(view));
      QVERIFY2(inSight(node.id()), node.name().c_str());
      QVERIFY2(std::ranges::any_of(gradients, inSight), node.name().c_str());
      const QRectF all = onScreen(canvas.scene()->bounds);
      QVERIFY2(all.left() <= 60 || all.right() <= canvas.width(), "empty at the left");
      QVERIFY2(all.right() >= canvas.width() - 60 || all.left() >= 0, "empty at the right");
      QVERIFY2(all.top() <= 60 || all.bottom() <= canvas.height(), "empty above");
    }
    QVERIFY(tried > 10);
  }

  // Where the next instruction and a breakpoint are in one closed group, both marks are whole.
  void theArrowAtAGroupCoversNoBreakpoint() {
    for (const Theme theme : {Theme::kLight, Theme::kDark}) {
      applyTheme(*qApp, theme);
      ShownGraph w(4, {900, 700});
      GraphView& view = w.view();
      QVERIFY(settle(view));
      const GraphScene& scene = *view.canvas().scene();
      int inside = -1;
      for (int i = 0; i < w.store.plan()->size() && inside < 0; ++i) {
        const int node = scene.model->ofNodeId(w.store.plan()->instruction(i)->node());
        const SceneBox& box = scene.boxes[static_cast<std::size_t>(scene.boxOfNode[static_cast<std::size_t>(node)])];
        const QRectF at = view.canvas().viewport().toPixel(QRectF(box.at.x, box.at.y, box.at.w, box.at.h));
        if (box.kind == BoxKind::kClosedGroup && QRectF(view.canvas().rect()).contains(at.adjusted(-30, 0, 0, 0)))
          inside = i;
      }
      QVERIFY(inside >= 0);
      const auto count = [&](const QColor& colour) {
        const QImage image = view.canvas().grab().toImage();
        int pixels = 0;
        for (int y = 0; y < image.height(); ++y)
          for (int x = 0; x < image.width(); ++x) pixels += image.pixelColor(x, y).rgb() == colour.rgb();
        return pixels;
      };
      const int plain = count(Tokens::current().error), arrows = count(Tokens::current().warn);
      snapshot::Breakpoint on;
      on.set_id(3);
      on.set_enabled(true);
      on.set_instruction(inside);
      w.store.setBreakpoints({on});
      QTRY_VERIFY(count(Tokens::current().error) > plain + 4);
      const int dot = count(Tokens::current().error);
      snapshot::Position there;
      there.set_in_step(true);
      there.set_step(3);
      there.set_instruction(inside);
      w.store.setPosition(there);
      QTRY_VERIFY(count(Tokens::current().warn) > arrows);
      QVERIFY2(count(Tokens::current().error) == dot,
               qPrintable(QStringLiteral("%1 of %2 pixels are left").arg(count(Tokens::current().error)).arg(dot)));
    }
    applyTheme(*qApp, Theme::kLight);
  }

  // At any zoom both columns have their title, each on its side of the line between them.
  void bothColumnsHaveTheirTitleAtAnyZoom() {
    ShownGraph w(4, {900, 520});
    QVERIFY(settle(w.view()));
    const GraphScene& scene = *w.view().canvas().scene();
    QVERIFY(scene.columnGap > 0);
    const QFontMetricsF metrics(w.view().font());
    for (const double zoom : {0.02, 0.05, 0.1, 0.17, 0.18, 0.3, 0.5}) {
      Viewport at;
      at.size = {900, 520};
      at.scaleX = at.scaleY = zoom;
      at.origin = {scene.columnGap - 450 / zoom, 0};  // the line in the middle
      const auto titles = columnTitles(scene, at, metrics);
      QCOMPARE(titles.size(), std::size_t{2});
      QVERIFY(titles[0].x >= 0 && titles[0].x + metrics.horizontalAdvance(titles[0].words) < 450);
      QVERIFY(titles[1].x > 450 && titles[1].x + metrics.horizontalAdvance(titles[1].words) <= 900);
    }
  }

  void castsCanBeHiddenAndTheirSelectionShowsWhereTheValueComesFrom() {
    Window w;
    w.fill(1);
    snapshot::Graph graph = w.store.graph()->graph();
    // A conversion behind the first node, in the way of the second.
    const int source = graph.nodes(0).outputs(0);
    int highest = 0;
    for (const auto& v : graph.values()) highest = std::max(highest, v.id());
    snapshot::Value* low = graph.add_values();
    *low = *w.store.graph()->value(source);
    low->set_id(highest + 1);
    low->set_dtype("bfloat16");
    snapshot::Node* cast = graph.add_nodes();
    *cast = graph.nodes(0);
    cast->set_id(888888);
    cast->set_op("Cast");
    cast->clear_inputs();
    cast->add_inputs(source);
    cast->clear_outputs();
    cast->add_outputs(highest + 1);
    for (int i = graph.nodes_size() - 1; i > 1; --i) graph.mutable_nodes()->SwapElements(i, i - 1);
    for (auto& node : *graph.mutable_nodes()) {
      if (node.op() == "Cast") continue;
      for (int& value : *node.mutable_inputs())
        if (value == source) value = highest + 1;
    }
    const int all = graph.nodes_size();
    w.store.setGraph(GraphSnapshot::make(std::move(graph)));
    GraphView view(w.context());
    view.resize(900, 700);
    view.show();
    QVERIFY(settle(view));
    QCOMPARE(view.canvas().scene()->model->snapshot().nodeCount(), all);
    auto* casts = view.headerWidget()->findChild<QToolButton*>(QStringLiteral("graph_hide_casts"));
    casts->setChecked(true);
    QVERIFY(settle(view));
    const GraphModel& model = *view.canvas().scene()->model;
    QCOMPARE(model.snapshot().nodeCount(), all - 1);
    w.selection.select(Selection::ofNode(888888));
    QVERIFY(settle(view));
    QCOMPARE(view.canvas().selected(), view.canvas().scene()->model->ofNodeId(w.store.graph()->graph().nodes(0).id()));
    const QString state = view.saveState();
    casts->setChecked(false);
    QVERIFY(settle(view));
    QCOMPARE(view.canvas().scene()->model->snapshot().nodeCount(), all);
    view.restoreState(state);
    QVERIFY(casts->isChecked());
  }

  // At 100 % both columns of a group do not fit into a narrow panel: who steps into it sees both all the same.
  void steppingIntoAGroupShowsBothItsColumns() {
    ShownGraph w(4, {700, 480});
    GraphView& view = w.view();
    QVERIFY(settle(view));
    GraphCanvas& canvas = view.canvas();
    canvas.zoomBy(100 / canvas.zoomPercent());
    int closed = -1;
    for (std::size_t i = 0; i < canvas.scene()->boxes.size() && closed < 0; ++i) {
      const SceneBox& box = canvas.scene()->boxes[i];
      if (box.kind != BoxKind::kClosedGroup || box.gradient) continue;
      for (const SceneBox& other : canvas.scene()->boxes)
        if (other.kind == BoxKind::kClosedGroup && other.gradient && other.group == box.group) closed = static_cast<int>(i);
    }
    QVERIFY(closed >= 0);
    std::set<int> before;
    for (const int open : canvas.scene()->openGroups)
      before.insert(canvas.scene()->boxes[static_cast<std::size_t>(open)].group);
    canvas.showBox(closed);
    const BoxF at = canvas.scene()->boxes[static_cast<std::size_t>(closed)].at;
    QTest::mouseDClick(&canvas, Qt::LeftButton, {}, canvas.viewport().toPixel(QPointF(at.centerX(), at.y + 12)).toPoint());
    QVERIFY(settle(view));
    int columns = 0;
    for (const int open : canvas.scene()->openGroups) {
      const SceneBox& box = canvas.scene()->boxes[static_cast<std::size_t>(open)];
      if (before.contains(box.group)) continue;
      ++columns;
      const QRectF on = canvas.viewport().toPixel(QRectF(box.at.x, box.at.y, box.at.w, box.at.h));
      QVERIFY2(on.left() >= 0 && on.right() <= canvas.width(),
               qPrintable(QStringLiteral("%1 to %2").arg(on.left()).arg(on.right())));
    }
    QCOMPARE(columns, 2);
    QVERIFY(canvas.zoomPercent() >= 41.9);  // names can be read
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
    QCOMPARE(differenceWords(28, 0, 1024), (QStringList{QStringLiteral("+28"), QStringLiteral("±1,024")}));
    QCOMPARE(differenceWords(0, 3, 0), QStringList{QStringLiteral("−3")});
    QCOMPARE(differenceWords(0, 0, 0), QStringList{QStringLiteral("±0")});
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
    const BoxF& box =
        scene
            ->boxes[static_cast<std::size_t>(
                scene->boxOfNode[static_cast<std::size_t>(scene->model->ofNodeId(w.store.graph()->graph().nodes(12).id()))])]
            .at;
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
        const auto *p = reinterpret_cast<const QRgb*>(a.constScanLine(y)),
                   *q = reinterpret_cast<const QRgb*>(b.constScanLine(y));
        for (int x = 0; x < a.width(); ++x) sum += std::abs(qGreen(p[x]) - qGreen(q[x]));
      }
      return sum / a.width() / a.height();
    };
    for (const double at : {shown_from::kLines, shown_from::kBoxes, shown_from::kCurves, shown_from::kGroupWords,
                            shown_from::kFrames, shown_from::kTitles, shown_from::kArrows, shown_from::kDetails}) {
      const double sprung = change(picture(at - 1e-6), picture(at + 1e-6));
      // Flat boxes have sharp edges and corners, framed ones smooth and round ones.
      QVERIFY2(sprung < (at == shown_from::kFrames ? 0.9 : 0.35),
               qPrintable(QStringLiteral("at %1: %2").arg(at).arg(sprung)));
    }
    // And yet there is more to see afterwards: the second lines, below where the titles stood alone.
    const double before = shown_from::kDetails, after = shown_from::kDetails + shown_from::kGrowth;
    const QImage small = picture(before), large = picture(after);
    const auto ink = [&](const QImage& image, const BoxF& at, double zoom) {
      const double x = 300 + (at.x - box.x) * zoom, y = 200 + (at.y - box.y) * zoom;
      const QImage line = image.copy(qRound(x + 14 * zoom), qRound(y + 26 * zoom), qRound(40 * zoom), qRound(3 * zoom));
      QImage empty(line.size(), line.format());
      empty.fill(image.pixel(qRound(x + 14 * zoom), qRound(y + 5 * zoom)));
      return change(line, empty);
    };
    int lines = 0;
    for (const SceneBox& other : scene->boxes) {
      const QRectF place(300 + (other.at.x - box.x) * after, 200 + (other.at.y - box.y) * after, other.at.w * after,
                         other.at.h * after);
      if (other.kind != BoxKind::kNode || labels.sub(other.node).size() < 4 || !QRectF(0, 0, 700, 480).contains(place))
        continue;
      ++lines;
      QVERIFY2(ink(small, other.at, before) < 1, qPrintable(labels.sub(other.node)));
      QVERIFY2(ink(large, other.at, after) > 3, qPrintable(labels.sub(other.node)));
    }
    QVERIFY(lines > 2);
  }
};

SS_QT_CLASS(QApplication, GraphViewTest)
#include "tst_graph_view.moc"
