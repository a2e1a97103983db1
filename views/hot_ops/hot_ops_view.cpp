// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/hot_ops/hot_ops_view.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "views/common/chosen_step.h"
#include "views/common/empty_text.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/pytorch_times.h"

namespace stepscope {
namespace {
constexpr std::size_t kSteps = 20;     // the newest steps; older ones are in the project
constexpr std::ptrdiff_t kBeside = 4;  // the column before which those of PyTorch stand

// `pytorch`: with what PyTorch took for the same.
std::vector<TableColumn> columns(bool pytorch) {
  std::vector<TableColumn> out = {
      {QStringLiteral("Operator"), QStringLiteral("Operator and phase; click selects all its nodes"), false, 17},
      {QStringLiteral("n"),
       QStringLiteral(
           "Executions counted: of the newest 20 recorded steps of this plan, or within the selected range of the timeline; "
           "without warm-up, the first step of a plan, while other steps are there"),
       true, 5},
      {QStringLiteral("Sum"), QStringLiteral("Sum of the wall-clock times of all executions"), true, 7},
      {QStringLiteral("Share"), QStringLiteral("Percent of the sum over all operators of this table"), true, 6},
      {QStringLiteral("Median"), QStringLiteral("Half of the executions were faster"), true, 7},
      {QStringLiteral("p95"), QStringLiteral("95 of 100 executions were faster"), true, 7},
      {QStringLiteral("Min"), QStringLiteral("Fastest execution"), true, 7},
      {QStringLiteral("Max"), QStringLiteral("Slowest execution"), true, 7},
      {QStringLiteral("Mean"), QStringLiteral("Sum divided by n; read it beside median and p95"), true, 7},
      {QStringLiteral("Rate"), QStringLiteral("Floating-point operations per second, a multiply-add counts as two"), true,
       9}};
  if (!pytorch) return out;
  const std::vector<TableColumn> theirs = {
      {QStringLiteral("Theirs"),
       QStringLiteral(
           "Time of PyTorch's operators for the same nodes, in one step of the imported trace; empty: none could be "
           "joined"),
       true, 7},
      {QStringLiteral("Ours"),
       QStringLiteral("Sum of the medians of the instructions that were joined, over the steps of this table"), true, 7},
      {QStringLiteral("Ratio"),
       QStringLiteral("Ours divided by theirs: below 1 this run took less. Theirs was taken under PyTorch's profiler, which "
                      "has a cost of its own"),
       true, 6}};
  out.insert(out.begin() + kBeside, theirs.begin(), theirs.end());
  return out;
}

using Times = std::map<int, std::vector<std::int64_t>>;  // nanoseconds, by instruction

std::int64_t quantileOf(const std::vector<std::int64_t>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

// What the instructions took in a step; none where one of them is of another plan or did not run in the steps.
std::optional<std::int64_t> oursOf(const PyTorchTime& joined, const std::pair<QString, QString>& key, const PlanPtr& plan,
                                   Times& times) {
  std::int64_t sum = 0;
  for (const int at : joined.instructions) {
    const auto* in = plan ? plan->instruction(at) : nullptr;
    const auto found = times.find(at);
    if (!in || found == times.end() || names::op(*in) != key.second || names::phase(in->phase()).toLower() != key.first)
      return {};
    std::sort(found->second.begin(), found->second.end());
    sum += quantileOf(found->second, 0.5);
  }
  return sum;
}

// Theirs, ours, ratio; empty where nothing was joined. Two programs and two ways to measure: the ratio is no verdict, so it
// has no colour.
void addPyTorch(TableRow& row, const PyTorchTimes::Rows& rows, const std::pair<QString, QString>& key, const PlanPtr& plan,
                Times& times) {
  std::vector<TableCell> cells(3, TableCell(QString(), -1.0));
  const auto found = rows.find(key);
  if (found != rows.end()) {
    const double theirNs = found->second.theirNs;
    cells[0] = {format::time(static_cast<std::int64_t>(theirNs)), theirNs, found->second.theirs};
    if (const auto ours = oursOf(found->second, key, plan, times)) {
      cells[1] = {format::time(*ours), QVariant::fromValue<qint64>(*ours), format::timeExact(*ours)};
      const double ratio = theirNs > 0 ? static_cast<double>(*ours) / theirNs : -1;
      if (ratio >= 0) cells[2] = {QString::number(ratio, 'f', 2), ratio};
    }
  }
  row.cells.insert(row.cells.begin() + kBeside, cells.begin(), cells.end());
}

}  // namespace

HotOpsView::HotOpsView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("hot_ops"), QStringLiteral("Time per op"), columns(false), parent),
      chooser_(new StepChooser(context, this)) {
  connect(&ChosenStep::of(store()), &ChosenStep::changed, this, &HotOpsView::refillLater);
  connect(&store(), &SnapshotStore::stepsChanged, this, &HotOpsView::refillLater);
  connect(&store(), &SnapshotStore::planChanged, this, &HotOpsView::refillLater);
  connect(&selection(), &SelectionModel::rangeChanged, this, &HotOpsView::refillLater);
  connect(&PyTorchTimes::of(store().project()), &PyTorchTimes::changed, this, &HotOpsView::refillLater);
}

QString HotOpsView::emptyText() const {
  if (!store().plan()) return QStringLiteral("No model is open.\nOpen one (Ctrl+O) and run a training step.");
  const ChosenStep& chosen = ChosenStep::of(store());
  if (chosen.state() != ChosenStep::State::kNewest) return chosen.textOfPlan();
  const auto& steps = store().steps();  // the newest ones have spans, if any
  if (std::any_of(steps.rbegin(), steps.rend(), [](const StepPtr& step) { return step->spans_size() > 0; }))
    return countedSteps(steps, kSteps, 0, 0, &StepPlans::of(store())).steps.empty()
               ? QStringLiteral("The recorded steps ran under another plan.\nRun a training step (F8) of this one.")
               : QString();
  return noTimesText(store(), QStringLiteral("the time of its operators appears here"));
}

QString HotOpsView::headerText() const {
  if (counted_.steps.empty() || !emptyText().isEmpty()) return TablePanel::headerText();
  const QString chosen = ChosenStep::of(store()).title();
  if (!chosen.isEmpty()) return QStringLiteral("%1 · %2").arg(TablePanel::headerText(), chosen);
  return (counted_.steps.size() == 1 ? QStringLiteral("%1 · %2 step%3") : QStringLiteral("%1 · %2 steps%3"))
      .arg(TablePanel::headerText())
      .arg(counted_.steps.size())
      .arg(counted_.leftOut());
}

void HotOpsView::refill() {
  struct Group {
    std::vector<std::int64_t> ns;
    double flops = 0;
    std::int64_t sum = 0;
    QString category;
    int first = -1;
    std::set<int> nodes;
  };
  std::map<std::pair<int, QString>, Group> groups;
  const PlanPtr& plan = store().plan();
  const GraphPtr& graph = store().graph();
  const std::int64_t from = selection().rangeBegin(), to = selection().rangeEnd();
  counted_ = countedSteps(ChosenStep::of(store()).steps(), kSteps, from, to, &StepPlans::of(store()));
  std::int64_t all = 0;
  const PyTorchTimes::Rows& pytorch = PyTorchTimes::of(store().project()).rows();
  Times byInstruction;
  if (plan) {
    for (const StepPtr& step : counted_.steps) {
      for (const auto& span : step->spans()) {
        const auto* in = plan->instruction(span.instruction());
        if (!in || in->view() || (from < to && (span.end_ns() <= from || span.begin_ns() >= to))) continue;
        Group& g = groups[{in->phase(), names::op(*in)}];
        const std::int64_t ns = std::max<std::int64_t>(0, span.end_ns() - span.begin_ns());
        g.ns.push_back(ns);
        if (!pytorch.empty()) byInstruction[in->index()].push_back(ns);
        g.sum += ns;
        g.flops += in->flops();
        all += ns;
        g.nodes.insert(in->node());
        if (g.first < 0) {
          g.first = in->index();
          if (const auto* node = graph ? graph->node(in->node()) : nullptr)
            g.category = QString::fromStdString(node->category());
        }
      }
    }
  }
  std::vector<TableRow> rows;
  for (auto& [key, g] : groups) {
    std::sort(g.ns.begin(), g.ns.end());
    const auto time = [](std::int64_t ns) {
      return TableCell(format::time(ns), QVariant::fromValue<qint64>(ns), format::timeExact(ns));
    };
    TableRow row;
    row.target = Selection::ofInstruction(g.first);
    row.target.group = NodeGroup::make(key.second + ' ' + names::phase(static_cast<snapshot::Phase>(key.first)).toLower(),
                                       {g.nodes.begin(), g.nodes.end()});
    TableCell name(key.second + QStringLiteral("  ") + names::phase(static_cast<snapshot::Phase>(key.first)).toLower());
    name.swatch = g.category.isEmpty() ? QStringLiteral("other") : g.category;
    TableCell share(format::percent(static_cast<double>(g.sum), static_cast<double>(all)), static_cast<double>(g.sum),
                    QStringLiteral("of %1 in this table").arg(format::time(all)));
    share.share = all > 0 ? static_cast<double>(g.sum) / static_cast<double>(all) : 0;
    const auto n = static_cast<std::int64_t>(g.ns.size());
    row.cells = {name,
                 {format::count(n), QVariant::fromValue<qint64>(n)},
                 time(g.sum),
                 share,
                 time(quantileOf(g.ns, 0.5)),
                 time(quantileOf(g.ns, 0.95)),
                 time(g.ns.front()),
                 time(g.ns.back()),
                 time(g.sum / n),
                 {format::flopRate(g.flops, g.sum), g.sum > 0 ? g.flops / static_cast<double>(g.sum) : 0.0}};
    if (!pytorch.empty())
      addPyTorch(row, pytorch, {names::phase(static_cast<snapshot::Phase>(key.first)).toLower(), key.second}, plan,
                 byInstruction);
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const TableRow& a, const TableRow& b) {
    return a.cells[2].sort.toLongLong() > b.cells[2].sort.toLongLong();
  });
  if (pytorch.empty() == beside_) {
    beside_ = !pytorch.empty();
    setColumns(columns(beside_), std::move(rows));
  } else {
    setRows(std::move(rows));
  }
  emit headerChanged();
}

}  // namespace stepscope
