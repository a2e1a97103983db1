// SPDX-License-Identifier: GPL-3.0-or-later
// Where the words of the graph stand: names of stubs, shapes beside lines, titles of groups.
#include <QPainter>
#include <QtTest>
#include <cmath>

#include "tests/support/qt_classes.h"
#include "tests/views_drawing/generated_graph.h"
#include "tests/views_drawing/shown_views.h"
#include "views/common/tokens.h"
#include "views/graph/edge_router.h"
#include "views/graph/graph_painter.h"
#include "views/graph/label_places.h"
#include "views/graph/layout_metrics.h"
#include "views/graph/plan_marks.h"

using namespace stepscope;

namespace {

bool meets(const BoxF& a, const BoxF& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

// Whether a line of the scene runs through the area: its curves followed in small steps.
bool crossed(const GraphScene& scene, const SceneEdge& edge, const BoxF& area) {
  for (int i = 0; i + 3 < edge.points; i += 3) {
    const PointF2* q = scene.points.data() + edge.firstPoint + i;
    for (int k = 0; k <= 200; ++k) {
      const float t = static_cast<float>(k) / 200, u = 1 - t;
      const auto at = [&](float a, float b, float c, float d) {
        return u * u * u * a + 3 * u * u * t * b + 3 * u * t * t * c + t * t * t * d;
      };
      if (area.contains(at(q[0].x, q[1].x, q[2].x, q[3].x), at(q[0].y, q[1].y, q[2].y, q[3].y))) return true;
    }
  }
  return false;
}

// A scene put together by hand, of nodes of a made-up step, as a painter sees it.
class HandScene {
 public:
  HandScene() {
    const auto graph = GraphSnapshot::make(generated::step({.blocks = 1}));
    scene_.model = GraphModel::make(graph, std::atomic<bool>(false));
    labels_ = std::make_unique<GraphLabels>(scene_.model);
  }

  int box(float x, float y) {
    SceneBox box;
    box.at = {x, y, kNodeWidth, kNodeHeight};
    box.node = nextNode();
    scene_.boxes.push_back(box);
    return static_cast<int>(scene_.boxes.size()) - 1;
  }
  void stub(int from, int to) { edge(from, to, EdgeKind::kLong, {}); }
  // Straight from a point to another.
  void line(int from, int to, PointF2 a, PointF2 b) {
    edge(from, to, EdgeKind::kFlow,
         {a, {a.x + (b.x - a.x) / 3, a.y + (b.y - a.y) / 3}, {a.x + (b.x - a.x) * 2 / 3, a.y + (b.y - a.y) * 2 / 3}, b});
    scene_.edges.back().straight = std::abs(a.x - b.x) < 1;
  }

  const GraphScene& scene() {
    std::vector<BoxF> boxes, lines;
    for (const SceneBox& b : scene_.boxes) boxes.push_back(b.at);
    scene_.leaves.build(boxes, 400, 240);
    std::vector<std::vector<int>> at(scene_.boxes.size());
    for (std::size_t e = 0; e < scene_.edges.size(); ++e) {
      const SceneEdge& edge = scene_.edges[e];
      for (const int b : {edge.from, edge.to}) at[static_cast<std::size_t>(b)].push_back(static_cast<int>(e));
      BoxF around{0, 0, -1, -1};
      if (edge.points > 0) {
        const PointF2 a = scene_.points[static_cast<std::size_t>(edge.firstPoint)],
                      b = scene_.points[static_cast<std::size_t>(edge.firstPoint + edge.points - 1)];
        around = {std::min(a.x, b.x), std::min(a.y, b.y), std::abs(a.x - b.x), std::abs(a.y - b.y)};
      }
      lines.push_back(around);
    }
    scene_.lines.build(lines, 600, 400);
    scene_.edgeStart = {0};
    scene_.edgesOfBox.clear();
    for (const auto& edges : at) {
      scene_.edgesOfBox.insert(scene_.edgesOfBox.end(), edges.begin(), edges.end());
      scene_.edgeStart.push_back(static_cast<int>(scene_.edgesOfBox.size()));
    }
    return scene_;
  }

  GraphPaintContext& context() {
    context_ = std::make_unique<GraphPaintContext>(scene(), *labels_, marks_, Tokens::current());
    context_->state = &state_;
    return *context_;
  }

 private:
  // Of an operator with a long name: whole it has no room anywhere here.
  int nextNode() {
    for (++node_; node_ < scene_.model->size(); ++node_)
      if (scene_.model->node(node_) != nullptr && scene_.model->node(node_)->op() == "LayerNormalization") return node_;
    node_ = 0;
    return nextNode();
  }
  void edge(int from, int to, EdgeKind kind, const std::vector<PointF2>& points) {
    SceneEdge edge;
    edge.from = from;
    edge.to = to;
    edge.kind = kind;
    // Its name is longer than any room here.
    const auto& values = scene_.model->snapshot().graph().values();
    for (int v = 0; v < values.size(); ++v)
      if (edge.value < 0 || values[v].name().size() > values[edge.value].name().size()) edge.value = v;
    edge.firstPoint = static_cast<int>(scene_.points.size());
    edge.points = static_cast<int>(points.size());
    scene_.points.insert(scene_.points.end(), points.begin(), points.end());
    scene_.edges.push_back(edge);
  }

  GraphScene scene_;
  std::unique_ptr<GraphLabels> labels_;
  GraphMarks marks_;
  GraphPaintState state_;
  std::unique_ptr<GraphPaintContext> context_;
  int node_ = -1;
};

}  // namespace

class GraphLabelsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void aStubsNameEndsBeforeTheNextBox() {
    for (const float gap : {60.0F, 90.0F, 120.0F}) {
      HandScene hand;
      const int box = hand.box(0, 0), next = hand.box(kNodeWidth + gap, 4), far = hand.box(0, 900);
      hand.stub(box, far);
      GraphPaintContext& g = hand.context();
      const StubPlace out = stubPlaces(g, box).out;
      QVERIFY2(20 + g.sub.width(out.label) > gap, qPrintable(out.label));  // whole it would reach into the box
      const BoxF words = stubTextPlace(g, box, out, true);
      QVERIFY(words.w == 0 || !meets(words, g.scene.boxes[static_cast<std::size_t>(next)].at));
      QVERIFY(gap < 80 || words.w > 40);
    }
  }

  // The name of a stub that is drawn full stands beside its curve where it covers no box and no other name; where there is
  // no such place it is left out.
  void theNameOfAFullEdgeCoversNoBox() {
    HandScene hand;
    // The curve runs along the left side, 64 from it at its middle.
    const int from = hand.box(0, 0), to = hand.box(0, 500), middle = hand.box(-64 - kNodeWidth / 2, 235);
    hand.stub(from, to);
    GraphPaintContext& g = hand.context();
    const auto boxAt = [&g](int box) { return g.scene.boxes[static_cast<std::size_t>(box)].at; };
    const auto curve = fullCurve(g.scene.boxes[static_cast<std::size_t>(from)], g.scene.boxes[static_cast<std::size_t>(to)]);
    const auto first = fullLabelPlace(g, curve, 60, {});
    QVERIFY(first.has_value());
    for (const int box : {from, to, middle}) QVERIFY(!meets(*first, boxAt(box)));
    const auto second = fullLabelPlace(g, curve, 60, {*first});
    QVERIFY(second && !meets(*second, *first));
    for (const int box : {from, to, middle}) QVERIFY(!meets(*second, boxAt(box)));
    QVERIFY(!fullLabelPlace(g, curve, 60, {{-1000, -1000, 3000, 3000}}));
  }

  void namesThatFaceEachOtherShareTheRoom() {
    HandScene hand;
    const int left = hand.box(0, 0), right = hand.box(kNodeWidth + 190, 0), far = hand.box(0, 900);
    hand.stub(left, far);
    hand.stub(far, right);
    GraphPaintContext& g = hand.context();
    const StubPlace out = stubPlaces(g, left).out, in = stubPlaces(g, right).in;
    const BoxF one = stubTextPlace(g, left, out, true), other = stubTextPlace(g, right, in, false);
    QVERIFY2(one.w > 30 && other.w > 30, qPrintable(out.label + ' ' + in.label));
    QVERIFY(40 + g.sub.width(out.label) + g.sub.width(in.label) > 190);  // both whole do not fit
    QVERIFY(!meets(one, other));
  }

  void aNameKeepsClearOfTheShapeBesideALine() {
    HandScene hand;
    const int box = hand.box(0, 0), above = hand.box(180, -120), below = hand.box(180, 120), far = hand.box(0, 900);
    hand.stub(box, far);
    // Its shape stands where the name would end, its line behind that.
    hand.line(above, below, {243, -120 + kNodeHeight}, {243, 120});
    GraphPaintContext& g = hand.context();
    const auto shape = shapePlace(g, g.scene.edges.back());
    QVERIFY(shape.has_value());
    const StubPlace out = stubPlaces(g, box).out;
    const BoxF words = stubTextPlace(g, box, out, true);
    QVERIFY(meets({words.x, words.y, static_cast<float>(g.sub.width(out.label)), words.h}, *shape));
    QVERIFY(words.w > 30 && !meets(words, *shape));
    QVERIFY(!crossed(g.scene, g.scene.edges.back(), words));
  }

  void aStubStandsAboveTheLineThatLeavesThere() {
    HandScene hand;
    const int box = hand.box(0, 0), next = hand.box(600, 0), far = hand.box(0, 900);
    hand.stub(box, far);
    hand.line(box, next, {kNodeWidth, kNodeHeight / 2}, {600, kNodeHeight / 2});
    GraphPaintContext& g = hand.context();
    const StubPlace out = stubPlaces(g, box).out;
    const BoxF words = stubTextPlace(g, box, out, true);
    QVERIFY(words.w > 60);
    QVERIFY(!crossed(g.scene, g.scene.edges.back(), words));
    QVERIFY(out.y < kNodeHeight / 2 - 4 && out.y > 4);
  }

  void noNameCoversAnythingInAWholeStep() {
    Window w;
    w.fill(4);
    GraphView view(w.context());
    view.resize(700, 480);
    view.show();
    QVERIFY(settle(view));
    int names = 0, shown = 0;
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
      std::vector<BoxF> shapes, stubs;
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
          if (words.w == 0) continue;
          ++shown;
          for (const BoxF& shape : shapes) QVERIFY2(!meets(words, shape), qPrintable(stub.label));
          for (const BoxF& other : stubs) QVERIFY2(!meets(words, other), qPrintable(stub.label));
          for (const SceneBox& other : scene->boxes)
            if (other.kind != BoxKind::kOpenGroup) QVERIFY2(!meets(words, other.at), qPrintable(stub.label));
          bool struck = false;
          scene->lines.query(words, [&](int line) {
            struck = struck || crossed(*scene, scene->edges[static_cast<std::size_t>(line)], words);
            return !struck;
          });
          QVERIFY2(!struck, qPrintable(stub.label));
          stubs.push_back(words);
        }
      }
      painter.end();
    }
    QVERIFY(names > 1000);
    QVERIFY2(shown * 4 > names, qPrintable(QStringLiteral("%1 of %2").arg(shown).arg(names)));  // most stubs have room
  }

  void theTitleOfAnOpenGroupStaysInSight() {
    Window w;
    w.fill(4);
    GraphView view(w.context());
    view.resize(700, 480);
    view.show();
    QVERIFY(settle(view));
    w.selection.select(Selection::ofNode(w.store.graph()->graph().nodes(8).id()));  // opens the groups around it
    QVERIFY(settle(view));
    const auto scene = view.canvas().scene();
    GraphLabels labels(scene->model);
    const GraphMarks marks = GraphMarks::make(PlanMarks::make(scene->model, w.store.plan()), w.store, HeatKind::kNone);
    int tried = 0;
    for (const int index : scene->openGroups) {
      const BoxF at = scene->boxes[static_cast<std::size_t>(index)].at;
      if (at.w < 200) continue;
      ++tried;
      // Its left border lies outside: ink of letters is where the title stands, and was not there before the border went
      // out.
      const auto inked = [&](double left) {
        QImage image(700, 480, QImage::Format_RGB32);
        QPainter painter(&image);
        GraphPainter graph(*scene, labels, marks, Tokens::current());
        graph.paint(painter, Viewport{image.size(), {left, at.y - 20.0}, 1, 1}, {});
        painter.end();
        int dark = 0;
        for (int y = 26; y < 40; ++y)
          for (int x = 6; x < 40; ++x) dark += image.pixelColor(x, y).lightness() < 160;
        return dark;
      };
      QCOMPARE(inked(at.x - 60), 0);
      QVERIFY2(inked(at.x + 60) > 8, qPrintable(QString::number(index)));
    }
    QVERIFY(tried > 0);
  }

  void wordsThatStandAloneAreLarger() {
    Window w;
    w.fill(1);
    GraphView view(w.context());
    view.resize(700, 480);
    view.show();
    QVERIFY(settle(view));
    const auto scene = view.canvas().scene();
    GraphLabels labels(scene->model);
    const GraphMarks marks = GraphMarks::make(PlanMarks::make(scene->model, w.store.plan()), w.store, HeatKind::kNone);
    // How far the letters of a title reach in its box, in units: with many pixels for each.
    const auto reach = [&](const SceneBox& box, double zoom) {
      constexpr double kFine = 8;
      const double unit = zoom * kFine;
      QImage image(qRound(box.at.w * unit), qRound(box.at.h * unit), QImage::Format_RGB32);
      QPainter painter(&image);
      painter.scale(kFine, kFine);
      GraphPainter graph(*scene, labels, marks, Tokens::current());
      graph.paint(painter, Viewport{QSizeF(image.size()) / kFine, {box.at.x, box.at.y}, zoom, zoom}, {});
      painter.end();
      const int from = qRound(13 * unit), right = image.width() - qRound(4 * unit);
      for (int x = right; x > from; --x)
        for (int y = image.height() / 4; y < image.height() * 3 / 4; ++y)
          if (qAbs(qGray(image.pixel(x, y)) - qGray(image.pixel(from - 1, image.height() / 2))) > 40) return x / unit;
      return 0.0;
    };
    TextCache title(sceneFont(12, QFont::Medium));
    int tried = 0;
    for (const SceneBox& box : scene->boxes) {
      if (box.kind != BoxKind::kNode || box.node < 0 || scene->model->node(box.node) == nullptr) continue;
      const double whole = title.width(labels.title(box.node));
      if (whole < 40 || whole > 70) continue;
      ++tried;
      QVERIFY2(reach(box, 0.45) > 14 + 1.07 * whole, qPrintable(labels.title(box.node)));
    }
    QVERIFY(tried > 3);
  }

  // From the features that come in to those that go out, however the weight is stored.
  void aProductSaysWhatItMakesOfWhat() {
    snapshot::Graph graph;
    auto* weight = graph.add_values();
    weight->set_id(0);
    weight->set_role(snapshot::INITIALIZER);
    weight->add_dims("10");
    weight->add_dims("128");
    auto* node = graph.add_nodes();
    node->set_op("Gemm");
    node->set_name("head/Gemm");
    node->add_inputs(-1);
    node->add_inputs(0);
    node->set_phase(snapshot::FORWARD);
    const auto sub = [&graph] {
      const auto model = GraphModel::make(GraphSnapshot::make(graph), std::atomic<bool>(false));
      GraphLabels labels(model);
      for (int i = 0; i < model->size(); ++i)
        if (model->node(i)) return labels.sub(i);
      return QString();
    };
    QVERIFY2(sub().contains(QStringLiteral("10 → 128")), qPrintable(sub()));
    auto* transposed = node->add_attributes();
    transposed->set_name("transB");
    transposed->set_text("1");
    QVERIFY2(sub().contains(QStringLiteral("128 → 10")), qPrintable(sub()));
    transposed->set_text("0");
    QVERIFY2(sub().contains(QStringLiteral("10 → 128")), qPrintable(sub()));
  }

  void titlesOfOperatorsFitTheirBoxes() {
    TextCache title(sceneFont(12, QFont::Medium));
    // What stands in the lanes of weight gradients and optimizers, with the stripe before it.
    for (const char* op : {"AdamUpdate", "BatchedMatMul", "ConvWeightGrad", "GatherGrad", "ReduceToShape", "SgdUpdate"})
      QVERIFY2(title.width(QLatin1String(op)) <= kSmallWidth - 20, op);
    for (const char* op : {"LayerNormalization", "MaskedSoftmax", "ConvInputGrad"})
      QVERIFY2(title.width(QLatin1String(op)) <= kNodeWidth - 20, op);
  }
};

SS_QT_CLASS(QApplication, GraphLabelsTest)
#include "tst_graph_labels.moc"
