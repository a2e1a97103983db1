// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/views_drawing/shown_views.h"

#include <QSignalSpy>

#include "tests/views_drawing/generated_graph.h"

namespace stepscope {

void Window::fill(int blocks, int steps) {
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

bool settle(GraphView& view) {
  if (!view.busy()) return true;
  QSignalSpy spy(&view, &GraphView::laidOut);
  return spy.wait(60'000);
}

ShownGraph::ShownGraph(int blocks, QSize size) {
  fill(blocks);
  view_ = std::make_unique<GraphView>(context());
  view_->resize(size);
  view_->show();
}

}  // namespace stepscope
