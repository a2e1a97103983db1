// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>
#include <algorithm>
#include <random>
#include <set>

#include "tests/support/qt_classes.h"
#include "tests/support/yardstick.h"
#include "tests/views_drawing/generated_graph.h"
#include "views/graph/edge_router.h"
#include "views/graph/graph_search.h"
#include "views/graph/layout.h"
#include "views/graph/phase_diff.h"
#include "views/graph/row_placement.h"
#include "views/graph/without_casts.h"

using namespace stepscope;

namespace {

std::shared_ptr<const GraphModel> modelOf(snapshot::Graph graph) {
  const std::atomic<bool> cancel{false};
  return GraphModel::make(GraphSnapshot::make(std::move(graph)), cancel);
}

std::shared_ptr<const GraphScene> layoutOf(const std::shared_ptr<const GraphModel>& model, const OpenGroups& open) {
  const std::atomic<bool> cancel{false};
  return layoutGraph(model, open, {}, cancel);
}

int overlaps(const GraphScene& scene) {
  int count = 0;
  for (std::size_t i = 0; i < scene.boxes.size(); ++i) {
    if (scene.boxes[i].kind == BoxKind::kOpenGroup) continue;
    BoxF inner = scene.boxes[i].at;
    inner = {inner.x + 0.5F, inner.y + 0.5F, inner.w - 1, inner.h - 1};
    scene.leaves.query(inner, [&](int other) {
      count += static_cast<std::size_t>(other) != i;
      return true;
    });
  }
  return count;
}

// Anything a broken or hostile file could hold: cycles, self edges, missing values, doubled ids, endless paths.
snapshot::Graph wildGraph(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  snapshot::Graph graph;
  for (int i = 0; i < 60; ++i) {
    snapshot::Value* v = graph.add_values();
    v->set_id(pick(10) == 0 ? pick(1 << 30) : i);
    v->set_role(static_cast<snapshot::ValueRole>(pick(5)));
    v->set_bytes(pick(4) == 0 ? -5 : pick(1 << 20));
    v->set_name(std::string(static_cast<std::size_t>(pick(40)), static_cast<char>(pick(250) + 1)));
  }
  for (int i = 0; i < 80; ++i) {
    snapshot::Node* n = graph.add_nodes();
    n->set_id(pick(8) == 0 ? -pick(100) : pick(12) == 0 ? pick(20) : i);
    n->set_op(pick(2) == 0 ? "Constant" : "Op" + std::to_string(pick(5)));
    n->set_phase(static_cast<snapshot::Phase>(pick(4)));
    for (int k = pick(4); k > 0; --k) n->add_inputs(pick(70) - 5);
    for (int k = pick(3); k > 0; --k) n->add_outputs(pick(70) - 5);
    n->mutable_provenance()->set_forward(pick(100) - 10);
    std::string path;
    for (int k = pick(5); k > 0; --k) path += std::string(k == 1 ? "" : ".") + std::to_string(pick(4));
    if (pick(20) == 0) path = std::string(3000, '.');
    if (pick(20) == 0) path = std::string(3000, 'x');
    n->mutable_provenance()->set_module_path(path);
  }
  graph.set_loss(pick(60));
  return graph;
}

snapshot::Graph withLearningRate(snapshot::Graph graph) {
  int id = 0;
  for (const auto& value : graph.values()) id = std::max(id, value.id() + 1);
  snapshot::Value* rate = graph.add_values();
  rate->set_id(id);
  rate->set_name("lr");
  rate->set_role(snapshot::INPUT);
  for (snapshot::Node& node : *graph.mutable_nodes())
    if (node.phase() == snapshot::OPTIMIZER) node.add_inputs(id);
  return graph;
}

}  // namespace

class LayoutTest : public QObject {
  Q_OBJECT

 private slots:
  void rowKeepsOrderAndGaps() {
    std::vector<RowEntry> row;
    for (int i = 0; i < 5; ++i) row.push_back({.item = i, .wish = 0, .left = 10, .right = 10});
    placeRow(row, 4);
    for (std::size_t i = 1; i < row.size(); ++i) QVERIFY(row[i].x - row[i - 1].x >= 23.99F);
    QVERIFY(std::abs(row[2].x) < 0.01F);  // the middle one gets what all want
  }

  void rowGivesEveryoneItsWishWhereThereIsRoom() {
    std::vector<RowEntry> row{{.item = 0, .wish = 300, .left = 10, .right = 10},
                              {.item = 1, .wish = -300, .left = 10, .right = 10}};
    placeRow(row, 4);
    QCOMPARE(row[0].item, 1);
    QCOMPARE(row[0].x, -300.0F);
    QCOMPARE(row[1].x, 300.0F);
  }

  void gridFindsWhatBruteForceFinds() {
    std::mt19937 random(3);
    const auto real = [&](float most) { return static_cast<float>(random() % 10000) / 10000 * most; };
    std::vector<BoxF> boxes;
    for (int i = 0; i < 500; ++i) boxes.push_back({real(4000), real(9000), real(300), real(200)});
    GridIndex grid;
    grid.build(boxes, 100, 80);
    for (int round = 0; round < 200; ++round) {
      const BoxF area{real(5000) - 500, real(10000) - 500, real(900), real(900)};
      std::multiset<int> found, expected;
      grid.query(area, [&](int i) {
        found.insert(i);
        return true;
      });
      for (std::size_t i = 0; i < boxes.size(); ++i) {
        if (boxes[i].meets(area)) expected.insert(static_cast<int>(i));
      }
      QCOMPARE(found, expected);
    }
  }

  void everyNodeHasOneBoxAndNoTwoOverlap_data() {
    QTest::addColumn<int>("blocks");
    QTest::addColumn<bool>("recompute");
    QTest::addColumn<bool>("paths");
    QTest::newRow("one block") << 1 << false << true;
    QTest::newRow("twelve blocks, recompute") << 12 << true << true;
    QTest::newRow("no module paths") << 4 << false << false;
  }
  void everyNodeHasOneBoxAndNoTwoOverlap() {
    QFETCH(int, blocks);
    QFETCH(bool, recompute);
    QFETCH(bool, paths);
    const auto model = modelOf(generated::step({.blocks = blocks, .recompute = recompute, .modulePaths = paths}));
    const auto scene = layoutOf(model, allGroups(*model));
    std::set<int> nodes;
    for (const SceneBox& box : scene->boxes) {
      if (box.node >= 0) QVERIFY(nodes.insert(box.node).second);
    }
    QCOMPARE(static_cast<int>(nodes.size()), model->size());
    QCOMPARE(overlaps(*scene), 0);
  }

  void gradientStandsInTheRowOfItsForwardNode() {
    const auto model = modelOf(generated::step({.blocks = 3}));
    const auto scene = layoutOf(model, allGroups(*model));
    const GraphSnapshot& graph = model->snapshot();
    int checked = 0;
    for (const SceneBox& box : scene->boxes) {
      if (box.node < 0 || !box.gradient || box.lane != Lane::kGradient) continue;
      const int forward = model->ofNodeId(graph.forwardOf(model->node(box.node)->id()));
      if (forward < 0 || graph.graph().nodes(model->nodes()[static_cast<std::size_t>(forward)].graphNode).op() == "Gather")
        continue;
      const SceneBox& mirror = scene->boxes[static_cast<std::size_t>(scene->boxOfNode[static_cast<std::size_t>(forward)])];
      QVERIFY(box.at.x > scene->columnGap && mirror.at.right() < scene->columnGap);
      QVERIFY2(std::abs(box.at.centerY() - mirror.at.centerY()) < 120, "rows differ");
      ++checked;
    }
    QVERIFY(checked > 20);
  }

  void gradientRunsUpward() {
    const auto model = modelOf(generated::step({.blocks = 2}));
    const auto scene = layoutOf(model, allGroups(*model));
    int up = 0, down = 0;
    for (const ModelEdge& e : model->edges()) {
      if (model->nodes()[static_cast<std::size_t>(e.from)].lane != Lane::kGradient ||
          model->nodes()[static_cast<std::size_t>(e.to)].lane != Lane::kGradient)
        continue;
      const auto y = [&](int n) {
        return scene->boxes[static_cast<std::size_t>(scene->boxOfNode[static_cast<std::size_t>(n)])].at.centerY();
      };
      up += y(e.to) < y(e.from) - 1;
      down += y(e.to) > y(e.from) + 1;  // branches of one row may join sideways
    }
    QVERIFY(up > 20);
    QCOMPARE(down, 0);
  }

  void sameInputGivesTheSamePicture() {
    const auto model = modelOf(generated::step({.blocks = 5}));
    const auto a = layoutOf(model, allGroups(*model)),
               b = layoutOf(modelOf(generated::step({.blocks = 5})), allGroups(*model));
    QCOMPARE(a->boxes.size(), b->boxes.size());
    for (std::size_t i = 0; i < a->boxes.size(); ++i) QVERIFY(a->boxes[i].at == b->boxes[i].at);
  }

  // A rebuild begins with the places of the scene before it: the picture does not creep.
  void theSamePlacesGiveTheSamePicture() {
    const std::atomic<bool> cancel{false};
    const auto model = modelOf(withLearningRate(generated::step({.blocks = 5})));
    auto scene = layoutOf(model, allGroups(*model));
    const BoxF bounds = scene->bounds;
    for (int i = 0; i < 5; ++i) {
      scene = layoutGraph(model, allGroups(*model), seedsOf(*scene), cancel);
      QVERIFY2(std::abs(scene->bounds.w - bounds.w) < 1 && std::abs(scene->bounds.h - bounds.h) < 1,
               qPrintable(QStringLiteral("%1: %2 × %3").arg(i).arg(scene->bounds.w).arg(scene->bounds.h)));
    }
  }

  // An input that only the optimizer reads stands above the first that does, and widens nothing.
  void aLearningRateStandsBesideTheOptimizer() {
    const auto plain = modelOf(generated::step({.blocks = 5})),
               model = modelOf(withLearningRate(generated::step({.blocks = 5})));
    const auto before = layoutOf(plain, allGroups(*plain)), scene = layoutOf(model, allGroups(*model));
    QVERIFY2(scene->bounds.w <= before->bounds.w, qPrintable(QString::number(scene->bounds.w)));
    QCOMPARE(overlaps(*scene), 0);
    int seen = 0;
    for (const SceneBox& box : scene->boxes) {
      if (box.kind != BoxKind::kInput ||
          model->value(model->nodes()[static_cast<std::size_t>(box.node)].inputValue)->name() != "lr")
        continue;
      ++seen;
      int first = model->size();
      for (const int* e = model->outBegin(box.node); e != model->outEnd(box.node); ++e)
        first = std::min(first, model->edges()[static_cast<std::size_t>(*e)].to);
      const BoxF& reader = scene->boxes[static_cast<std::size_t>(scene->boxOfNode[static_cast<std::size_t>(first)])].at;
      QVERIFY(box.gradient && box.at.bottom() <= reader.y && reader.y - box.at.bottom() < 40);
      QCOMPARE(box.at.centerX(), reader.centerX());
    }
    QCOMPARE(seen, 1);
  }

  void equalBlocksAreFoldedAndOpenOneByOne() {
    const auto model = modelOf(generated::step({.blocks = 12}));
    const auto closed = layoutOf(model, {});
    int folded = 0;
    for (const SceneBox& box : closed->boxes) folded = std::max(folded, box.folded);
    QCOMPARE(folded, 12);
    const auto one = layoutOf(model, {"transformer.h.5"});
    std::multiset<int> runs;
    for (const SceneBox& box : one->boxes) {
      if (box.kind == BoxKind::kClosedGroup && box.folded > 1 && !box.gradient) runs.insert(box.folded);
    }
    QCOMPARE(runs, (std::multiset<int>{5, 6}));
  }

  void stashesAreStubsAndFlowHasAPath() {
    const auto model = modelOf(generated::step({.blocks = 2}));
    const auto scene = layoutOf(model, allGroups(*model));
    int stashes = 0;
    for (const SceneEdge& edge : scene->edges) {
      const bool crosses = scene->boxes[static_cast<std::size_t>(edge.from)].gradient !=
                           scene->boxes[static_cast<std::size_t>(edge.to)].gradient;
      QCOMPARE(edge.kind == EdgeKind::kStash, crosses);
      QCOMPARE(edge.points >= 4, edge.kind == EdgeKind::kFlow);
      stashes += crosses;
    }
    QVERIFY(stashes > 10);
  }

  void drawnEdgesAvoidBoxes() {
    const auto model = modelOf(generated::step({.blocks = 4}));
    const auto scene = layoutOf(model, allGroups(*model));
    int hits = 0, edges = 0;
    for (const SceneEdge& edge : scene->edges) {
      if (edge.points != 4) continue;
      ++edges;
      const PointF2* q = scene->points.data() + edge.firstPoint;
      for (int i = 1; i < 20; ++i) {
        const float t = static_cast<float>(i) / 20, s = 1 - t;
        const float x = s * s * s * q[0].x + 3 * s * s * t * q[1].x + 3 * s * t * t * q[2].x + t * t * t * q[3].x;
        const float y = s * s * s * q[0].y + 3 * s * s * t * q[1].y + 3 * s * t * t * q[2].y + t * t * t * q[3].y;
        scene->leaves.query({x, y, 0, 0}, [&](int box) {
          if (box == edge.from || box == edge.to) return true;
          ++hits;
          return false;
        });
      }
    }
    QVERIFY(edges > 100);
    QCOMPARE(hits, 0);
  }

  void cancelEndsEarly() {
    std::atomic<bool> cancel{true};
    const auto model = modelOf(generated::step({.blocks = 2}));
    QVERIFY(layoutGraph(model, {}, {}, cancel) == nullptr);
    QVERIFY(GraphModel::make(GraphSnapshot::make(generated::step({.blocks = 1})), cancel) == nullptr);
  }

  void tenThousandNodesAreFast() {
    const auto model = modelOf(generated::step({.blocks = generated::blocksFor(10'000)}));
    const double start = testing::cpuSeconds();
    const auto scene = layoutOf(model, allGroups(*model));
    const double seconds = testing::cpuSeconds() - start;
    QVERIFY(scene != nullptr);
    // The goal is 0.3 s on a quiet core (bench views_bench); ten times that, and more on a slow or instrumented machine.
    QVERIFY2(seconds < 3 * testing::slowness(), qPrintable(QString::number(seconds)));
  }

  void anythingGoesWithoutACrash() {
    for (unsigned seed = 0; seed < 300; ++seed) {
      const auto model = modelOf(wildGraph(seed));
      const auto scene = layoutOf(model, allGroups(*model));
      QVERIFY(scene != nullptr);
      layoutOf(model, {});
      QCOMPARE(overlaps(*scene), 0);
      for (int i = 0; i < model->size(); i += 7) {
        neighboursOf(*model, i);
        pathToLoss(*model, i);
      }
    }
  }

  void emptyGraphHasNoBoxes() {
    const auto scene = layoutOf(modelOf({}), {});
    QVERIFY(scene->boxes.empty());
    QVERIFY(scene->bounds.w > 0);
  }

  void searchUnderstandsFieldsAndExclusion() {
    const auto model = modelOf(generated::step({.blocks = 2}));
    const auto all = searchGraph(*model, "op:matmul");
    const auto forward = searchGraph(*model, "op:MATMUL -phase:backward");
    QVERIFY(!forward.empty() && forward.size() < all.size());
    for (const int i : forward) QCOMPARE(model->phase(i), snapshot::FORWARD);
    QVERIFY(searchGraph(*model, "   ").empty());
    QVERIFY(searchGraph(*model, "nothing-is-called-this").empty());
  }

  void wayToTheLossHoldsTheLoss() {
    const auto model = modelOf(generated::step({.blocks = 2}));
    const auto norm = searchGraph(*model, "op:LayerNormalization phase:forward").front();
    const auto way = pathToLoss(*model, norm);
    QVERIFY(way.contains(searchGraph(*model, "op:SoftmaxCrossEntropyLoss phase:forward").front()));
    QVERIFY(way.contains(norm));
  }

  void differenceNamesAddedRemovedChanged() {
    snapshot::Graph before = generated::step({.blocks = 1, .gradient = false}), after = before;
    after.mutable_nodes(3)->set_op("Changed");
    const int gone = after.nodes(5).id();
    after.mutable_nodes()->DeleteSubrange(5, 1);
    snapshot::Node* fresh = after.add_nodes();
    fresh->set_id(777777);
    fresh->set_op("New");
    const PhaseDiff diff = PhaseDiff::make(*GraphSnapshot::make(before), *GraphSnapshot::make(after));
    QCOMPARE(diff.added, 1);
    QCOMPARE(diff.removed, 1);
    QCOMPARE(diff.changed, 1);
    QCOMPARE(diff.byNode.at(gone), Difference::kRemoved);
    QCOMPARE(diff.byNode.at(777777), Difference::kAdded);
    QCOMPARE(diff.united->nodeCount(), before.nodes_size() + 1);
  }

  void withoutCastsReadersReadTheSource() {
    snapshot::Graph graph;
    const auto value = [&](int id, const char* dtype) {
      snapshot::Value* v = graph.add_values();
      v->set_id(id);
      v->set_dtype(dtype);
    };
    const auto node = [&](int id, const char* op, int input, int output) {
      snapshot::Node* n = graph.add_nodes();
      n->set_id(id);
      n->set_op(op);
      n->add_inputs(input);
      n->add_outputs(output);
    };
    for (const int id : {0, 1, 3}) value(id, "float32");
    for (const int id : {2, 4}) value(id, "bfloat16");
    value(5, "int64");
    node(10, "Relu", 0, 1);
    node(11, "Cast", 1, 2);  // hidden
    node(12, "Cast", 2, 3);  // a cast of a cast, hidden too
    node(13, "Relu", 3, 6);
    node(14, "Cast", 1, 4);  // nobody reads it: an output
    node(15, "Cast", 1, 5);  // to whole numbers: the model's own
    node(16, "Relu", 5, 7);
    const auto from = GraphSnapshot::make(graph);
    const WithoutCasts without = WithoutCasts::make(from);
    QCOMPARE(without.standIn.size(), std::size_t{2});
    QCOMPARE(without.standIn.at(11), 10);
    QCOMPARE(without.standIn.at(12), 10);
    QCOMPARE(without.graph->nodeCount(), 5);
    QCOMPARE(without.graph->node(13)->inputs(0), 1);
    QVERIFY(without.graph->node(14) && without.graph->node(15));

    const auto none = GraphSnapshot::make(generated::step({.blocks = 1}));
    QCOMPARE(WithoutCasts::make(none).graph, none);
  }
};

SS_QT_CLASS(QCoreApplication, LayoutTest)
#include "tst_layout.moc"
