// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/view_list.h"

#include "views/alerts/alerts_view.h"
#include "views/batch/batch_view.h"
#include "views/breakpoints/breakpoints_view.h"
#include "views/buffer/buffer_view.h"
#include "views/buffers/buffers_view.h"
#include "views/compare/compare_view.h"
#include "views/compare_options/compare_options_view.h"
#include "views/compare_times/compare_times_view.h"
#include "views/determinism/determinism_view.h"
#include "views/divergence/divergence_view.h"
#include "views/flame/flame_view.h"
#include "views/graph/graph_view.h"
#include "views/hot_ops/hot_ops_view.h"
#include "views/instructions/instructions_view.h"
#include "views/log/log_view.h"
#include "views/memory/memory_view.h"
#include "views/model_tree/model_tree_view.h"
#include "views/node/node_view.h"
#include "views/options/options_view.h"
#include "views/runs/runs_view.h"
#include "views/source/source_view.h"
#include "views/sql/sql_view.h"
#include "views/start/start_view.h"
#include "views/startup_chart/startup_chart_view.h"
#include "views/startup_table/startup_table_view.h"
#include "views/tensors/tensors_view.h"
#include "views/timeline/timeline_view.h"
#include "views/training/training_view.h"
#include "views/watch/watch_view.h"

namespace stepscope {
namespace {

template <typename T>
View* make(const ViewContext& context) {
  return new T(context);
}

}  // namespace

const std::vector<ViewEntry>& viewList() {
  static const std::vector<ViewEntry> kViews = {
      {"alerts", "Alerts", make<AlertsView>},
      {"batch", "Batch", make<BatchView>},
      {"breakpoints", "Breakpoints", make<BreakpointsView>},
      {"buffer", "Buffer", make<BufferView>},
      {"buffers", "Buffers", make<BuffersView>},
      {"compare", "Compare", make<CompareView>},
      {"compare_options", "Differences of two runs", make<CompareOptionsView>},
      {"compare_times", "Times and memory of two runs", make<CompareTimesView>},
      {"determinism", "Determinism", make<DeterminismView>},
      {"divergence", "First divergence of two runs", make<DivergenceView>},
      {"flame", "Flame graph", make<FlameView>},
      {"graph", "Graph", make<GraphView>},
      {"hot_ops", "Time per op", make<HotOpsView>},
      {"instructions", "Instructions", make<InstructionsView>},
      {"log", "Log", make<LogView>},
      {"memory", "Memory", make<MemoryView>},
      {"model", "Model", make<ModelTreeView>},
      {"node", "Node", make<NodeView>},
      {"options", "Optimisations", make<OptionsView>},
      {"runs", "Runs", make<RunsView>},
      {"source", "Source", make<SourceView>},
      {"sql", "SQL", make<SqlView>},
      {"start", "Start", make<StartView>},
      {"startup_chart", "Start-up chart", make<StartupChartView>},
      {"startup_table", "Start-up", make<StartupTableView>},
      {"tensors", "Tensor", make<TensorsView>},
      {"timeline", "Timeline", make<TimelineView>},
      {"training", "Training", make<TrainingView>},
      {"watch", "Watch", make<WatchView>},
  };
  return kViews;
}

}  // namespace stepscope
