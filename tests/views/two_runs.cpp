// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/views/two_runs.h"

#include <QTableView>
#include <QTest>
#include <limits>

namespace stepscope {

RunEntry entry(std::int64_t id, std::int64_t steps) {
  RunEntry e;
  e.id = id;
  e.name = QStringLiteral("digits");
  e.status = QStringLiteral("finished");
  e.steps = steps;
  return e;
}

RunComparison madeComparison() {
  RunComparison c;
  c.request = {1, 2, 1e-5, 1e-8, {}};
  c.a.run = entry(1, 3);
  c.b.run = entry(2, 3);
  c.a.step = {2, 1'000'000, 1'100'000, 900'000, 1'100'000};
  c.b.step = {2, 500'000, 600'000, 500'000, 600'000};
  c.options = {{QStringLiteral("lr"), QStringLiteral("0.1"), QStringLiteral("0.2")},
               {QStringLiteral("a\u202Eb"), {}, QStringLiteral("on")}};
  c.both = 3;
  c.divergences = {{1, QStringLiteral("loss"), 2.5, 2.25, QStringLiteral("forward"), {}},
                   {1, QStringLiteral("norm"), 1.0, std::numeric_limits<double>::quiet_NaN(), QStringLiteral("backward"),
                    QStringLiteral("h/weight_grad")},
                   {2, QStringLiteral("loss"), 2.0, {}, QStringLiteral("forward"), {}}};
  c.outside = 3;
  c.first = c.unequal = c.divergences.front();
  c.steps = {{0, 3.0, 3.0, 1.0, 1.0}, {1, 2.5, 2.25, {}, {}}, {2, 2.0, {}, {}, {}}};
  c.ops = {{QStringLiteral("MatMul"),
            QStringLiteral("forward"),
            4'000.0,
            2'000.0,
            {10, 100, 120, 90, 130},
            {10, 50, 60, 40, 70},
            5,
            5},
           {QStringLiteral("Add"), QStringLiteral("backward"), 100.0, {}, {3, 30, 40, 30, 40}, {}, 1, 0}};
  c.stepPhases = {{QStringLiteral("forward"),
                   {},
                   4'000.0,
                   2'000.0,
                   {3, 4'000, 4'100, 3'900, 4'100},
                   {3, 2'000, 2'100, 1'900, 2'100},
                   3,
                   3}};
  c.memory = {{QStringLiteral("planned"), 2048, 1024}, {QStringLiteral("arena"), {}, 512}};
  return c;
}

GraphPtr comparedGraph() {
  snapshot::Graph g;
  for (int i = 0; i < 2; ++i) {
    auto* v = g.add_values();
    v->set_id(10 + i);
    v->set_name(i == 0 ? "loss_value" : "h/weight_grad");
    auto* n = g.add_nodes();
    n->set_id(i);
    n->set_op(i == 0 ? "MatMul" : "Add");
    n->set_phase(i == 0 ? snapshot::FORWARD : snapshot::BACKWARD);
    n->add_outputs(10 + i);
  }
  g.set_loss(10);
  return GraphSnapshot::make(std::move(g));
}

PlanPtr comparedPlan() {
  snapshot::Plan p;
  for (int i = 0; i < 2; ++i) {
    auto* in = p.add_instructions();
    in->set_index(i);
    in->set_node(i);
    in->set_op(i == 0 ? "MatMul" : "Add");
    in->set_phase(i == 0 ? snapshot::FORWARD : snapshot::BACKWARD);
  }
  return PlanSnapshot::make(std::move(p));
}

std::vector<snapshot::PhaseSpan> phases(std::int64_t ns) {
  std::vector<snapshot::PhaseSpan> out(4);
  const char* names[] = {"load", "pre-grad passes", "fold", "fold"};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].set_name(names[i]);
    out[i].set_depth(i < 2 ? 0 : 1);
    out[i].set_parent(i < 2 ? -1 : 1);
    out[i].set_ns(ns * static_cast<std::int64_t>(i + 1));
  }
  return out;
}

const QAbstractItemModel* tableOf(View& view) {
  view.resize(900, 400);
  view.show();
  QTest::qWait(1);  // rows are made in a later turn
  return view.findChild<QTableView*>()->model();
}

QString cell(const QAbstractItemModel* model, int row, int column) { return model->index(row, column).data().toString(); }

}  // namespace stepscope
