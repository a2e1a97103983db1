// SPDX-License-Identifier: GPL-3.0-or-later
// Places to go to: the stops of a build on the slider over its phases and passes, and the states that are kept of a run.
#include <signal.h>

#include <QMenu>
#include <QPointer>
#include <QPushButton>
#include <QTableView>
#include <QTest>
#include <algorithm>
#include <map>
#include <set>

#include "app/workbench/state_ring.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/pass_stages.h"
#include "views/common/tokens.h"
#include "views/graph/graph_view.h"

using namespace stepscope;

namespace {

// y of every node of the left column that has a box of its own, by the node's id.
std::map<int, float> nodePlaces(GraphView& graph) {
  std::map<int, float> places;
  const auto& scene = graph.canvas().scene();
  if (!scene) return places;
  for (const SceneBox& box : scene->boxes)
    if (const auto* node = box.kind == BoxKind::kNode && !box.gradient ? scene->model->node(box.node) : nullptr)
      places[node->id()] = box.at.y;
  return places;
}

// Of the pairs that stood right above each other, the share that stands the other way round.
double swapped(const std::map<int, float>& before, const std::map<int, float>& after) {
  std::vector<std::pair<float, float>> both;
  for (const auto& [id, y] : before)
    if (const auto it = after.find(id); it != after.end()) both.emplace_back(y, it->second);
  std::sort(both.begin(), both.end());
  int pairs = 0, turned = 0;
  for (std::size_t i = 1; i < both.size(); ++i) {
    if (both[i].first == both[i - 1].first) continue;
    ++pairs;
    turned += both[i].second < both[i - 1].second;
  }
  return pairs == 0 ? 0 : static_cast<double>(turned) / pairs;
}

}  // namespace

class PlacesTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // The slider has a stop for every pass that changed something; two stops are one picture with what was added, removed and
  // changed, and what both have stays where it was.
  void theSliderComparesPassesAndARowOfAPassLeadsThere() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    auto* graph = static_cast<GraphView*>(w.view(QStringLiteral("graph")));
    auto* strip = graph->findChild<PhaseStrip*>();
    const QStringList stops = PassStages::of(w->store()).stops();
    QCOMPARE(strip->stops(), stops);
    QVERIFY2(stops.size() >= w->store().stages().size() + 3, qPrintable(stops.join(QStringLiteral(", "))));
    QStringList phases = stops;
    phases.removeIf(&PassStages::isPass);
    QCOMPARE(phases, w->store().stages());

    int passes = 0;
    bool removed = false, changed = false;
    for (qsizetype i = 1; i < stops.size(); ++i) {
      if (!PassStages::isPass(stops[i])) continue;
      ++passes;
      const auto before = nodePlaces(*graph);
      w.loop().act([&] { emit strip->chosen(stops[i], stops[i - 1]); });
      QVERIFY(w.loop().wait([&] { return w->store().graphOf(stops[i]) && w->store().graphOf(stops[i - 1]); }));
      QVERIFY(w.loop().wait([&] { return !graph->busy(); }) && w.settled());
      QVERIFY(graph->headerText().contains(QStringLiteral("changes from %1 to %2").arg(stops[i - 1], stops[i])));
      // Counted beside the view, by ids.
      std::set<int> old, now;
      for (const auto& node : w->store().graphOf(stops[i - 1])->graph().nodes()) old.insert(node.id());
      for (const auto& node : w->store().graphOf(stops[i])->graph().nodes()) now.insert(node.id());
      int added = 0, gone = 0;
      for (const int id : now) added += !old.contains(id);
      for (const int id : old) gone += !now.contains(id);
      std::map<Difference, int> marked;
      for (const NodeMarks& marks : graph->canvas().marks().nodes) ++marked[marks.difference];
      QCOMPARE(marked[Difference::kAdded], added);
      QCOMPARE(marked[Difference::kRemoved], gone);
      QVERIFY2(added + gone + marked[Difference::kChanged] > 0, qPrintable(stops[i]));
      removed = removed || gone > 0;
      changed = changed || marked[Difference::kChanged] > 0;
      const double turned = swapped(before, nodePlaces(*graph));
      QVERIFY2(turned < 0.05,
               qPrintable(QStringLiteral("%1: %2 of what both have changes its order").arg(stops[i]).arg(turned)));
      if (passes == 1) w.picture(QStringLiteral("slider-pass"));
    }
    QVERIFY(passes >= 3 && removed && changed);

    // From the row of a pass into the graph.
    View* view = w.view(QStringLiteral("startup_table"));
    auto* table = view->findChild<QTableView*>();
    const auto menuAt = [&](const QModelIndex& at) -> QMenu* {
      w.loop().act([&] { table->scrollTo(at); });
      w.loop().act([&] { emit table->customContextMenuRequested(table->visualRect(at).center()); });
      const auto menus = view->findChildren<QMenu*>(QString(), Qt::FindDirectChildrenOnly);
      return menus.isEmpty() ? nullptr : menus.back();
    };
    QString chosen;
    int misses = 0;
    for (int row = 0; row < table->model()->rowCount() && (chosen.isEmpty() || misses == 0); ++row) {
      const QModelIndex at = table->model()->index(row, 0);
      QPointer<QMenu> menu = menuAt(at);  // it goes when another view takes its place
      QVERIFY(menu);
      if (auto* way = menu->findChild<QAction*>(QStringLiteral("pass_changes")); way && chosen.isEmpty()) {
        w.loop().act([way] { way->trigger(); });
        QVERIFY(w.loop().wait([&] { return !graph->busy(); }) && w.settled());
        chosen = strip->stops()[strip->shown()];
        QVERIFY(PassStages::isPass(chosen) && strip->base() >= 0);
        QVERIFY(chosen.contains(at.data().toString().trimmed()));
        if (menu) w.loop().act([&menu] { menu->close(); });
        menu = menuAt(at);
        QVERIFY(menu);
      }
      if (auto* near = menu->findChild<QMenu*>(QStringLiteral("pass_near_misses")))
        for (QAction* miss : near->actions()) {
          if (!miss->data().isValid()) continue;
          const int wanted = miss->data().toInt();
          ++misses;
          QVERIFY2(miss->isEnabled(), qPrintable(miss->text()));
          w.loop().act([miss] { miss->trigger(); });
          QVERIFY(w.loop().wait([&] { return !graph->busy(); }) && w.settled());
          QCOMPARE(w->selection().selection().node, wanted);
          const int selected = graph->canvas().selected();
          QVERIFY(selected >= 0);
          QCOMPARE(graph->canvas().scene()->model->node(selected)->id(), wanted);
          break;
        }
      if (menu) w.loop().act([&menu] { menu->close(); });
    }
    QVERIFY(!chosen.isEmpty());
    QVERIFY(misses > 0);
    QVERIFY_LOOP(w);
  }

  // A worker that would have to repeat for more than a minute stands at the newest state that is kept, and asks.
  void aLongRepeatIsAskedForFirst() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(1'000'000); });
    QVERIFY(w.loop().wait([&] { return w->store().steps().size() > 300; }, 30'000));
    const auto pids = childProcesses();
    QCOMPARE(pids.size(), std::size_t{1});
    kill(pids[0], SIGKILL);
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }, 20'000));
    // They took half a minute each.
    std::int64_t last = w->store().steps().back()->step();
    for (int i = 0; i < 64; ++i) {
      auto slow = std::make_shared<snapshot::StepRecord>();
      slow->set_step(++last);
      slow->set_ns(30'000'000'000);
      w->store().addStep(slow);
    }
    w.loop().act([&] { w->session().restart(); });
    QVERIFY(w.loop().wait([&] { return w->notice().text().contains(QStringLiteral("last state that is kept")); }, 20'000));
    QVERIFY(w.settled());
    const std::int64_t at = w->store().position().step();
    QVERIFY2(at <= last && !w->session().running(), "nothing runs before it is asked for");
    QVERIFY2(w->notice().text().contains(QStringLiteral("steps on, about")), qPrintable(w->notice().text()));
    w.picture(QStringLiteral("long-repeat"));
    auto* again = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QVERIFY(again && again->isVisible());
    w.loop().act([again] { again->click(); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), last + 1);
  }

  // What is kept of steps takes a share of the free disk; the newest stay.
  void statesTakeAShareOfTheFreeDisk() {
    qint64 free = 40'000;
    KeptStates ring([&free](const QString&) { return free; });
    QVERIFY(ring.fits(5'000) && !ring.fits(5'001));
    for (int step = 0; step < 8; ++step) {
      const QString path = ring.freshPath();
      QFile file(path);
      QVERIFY(file.open(QIODevice::WriteOnly) && file.write(QByteArray(3'000, 'x')) == 3'000);
      file.close();
      free -= 3'000;
      const qint64 before = free;
      ring.add(step, path, 0);
      free = before + (ring.exactly(step - 3) || step < 3 ? 0 : 3'000);
    }
    QVERIFY(ring.exactly(7) && ring.exactly(6) && ring.exactly(5));
    QVERIFY(!ring.exactly(4) && !ring.newest(4));
    free = 0;  // somebody else filled the disk
    QVERIFY(!ring.fits(3'000));
    QVERIFY2(KeptStates::freeBytes(QDir::tempPath()) > 0, "the real disk");
  }
};

SS_QT_CLASS(QApplication, PlacesTest)
#include "tst_places.moc"
