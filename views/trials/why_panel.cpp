// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/trials/why_panel.h"

#include <QVBoxLayout>
#include <cmath>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

constexpr int kMostPlaces = 500;
const QString kPass = QStringLiteral("pass.");

QString expected(const snapshot::Trial& t) {
  if (!(t.expected_ns_before() > 0) || !(t.expected_ns_after() > 0)) return {};
  const auto whole = [](double ns) { return static_cast<std::int64_t>(std::min(ns, 9e18)); };
  return QStringLiteral(
             "By the roofline of this machine a step needs at least %1 as it is and %2 with the change (%3); it takes "
             "%4.")
      .arg(format::time(whole(t.expected_ns_before())), format::time(whole(t.expected_ns_after())),
           format::change(t.expected_ns_before(), t.expected_ns_after()),
           t.rounds() > 0 ? format::time(whole(t.median_ns_before())) : QStringLiteral("a time that was not measured"));
}

}  // namespace

WhyPanel::WhyPanel(const ViewContext& context, QWidget* parent)
    : QWidget(parent), context_(context), words_(new QLabel), table_(new RowTableView) {
  const Metrics m = Metrics::current();
  words_->setTextFormat(Qt::PlainText);
  words_->setWordWrap(true);
  words_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  words_->setProperty("role", "muted");
  words_->setContentsMargins(m.padding, qRound(0.4 * m.unit), m.padding, qRound(0.4 * m.unit));
  words_->setObjectName(QStringLiteral("trials_why_words"));
  words_->setAccessibleName(QStringLiteral("What the option does"));
  const std::vector<TableColumn> columns{
      {QStringLiteral("Place"), QStringLiteral("Whether the pass applied there, or almost did"), false, 7},
      {QStringLiteral("Node"),
       QStringLiteral("A node that it made, or that it left alone; a click selects it, a double click shows the graph"),
       false, 16},
      {QStringLiteral("Why"), QStringLiteral("Of a near miss: the first condition that failed"), false, 24}};
  model_ = new RowTableModel(columns, this);
  table_->setModel(model_);
  table_->sizeColumns(columns);
  table_->setObjectName(QStringLiteral("trials_why"));
  table_->setAccessibleName(QStringLiteral("Matches and near misses of the pass"));
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  all->addWidget(words_);
  all->addWidget(table_, 1);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, [this] {
    const QModelIndexList rows = table_->selectionModel()->selectedRows();
    if (!rows.isEmpty()) go(rows.front().row());
  });
  connect(table_, &QTableView::activated, this, [this](const QModelIndex& index) {
    if (go(index.row())) emit context_.wishes.command(QStringLiteral("view_graph"));
  });
}

bool WhyPanel::go(int row) {
  const Selection& target = model_->row(row).target;
  if (!target.empty()) context_.selection.select(target);
  return !target.empty();
}

const snapshot::PassReport* WhyPanel::passOf(const QString& option) const {
  if (!option.startsWith(kPass)) return nullptr;
  const std::string name = option.mid(kPass.size()).toStdString();
  for (const auto& phase : context_.store.phases())
    if (phase.has_pass() && phase.pass().name() == name) return &phase.pass();
  return nullptr;
}

void WhyPanel::show(const snapshot::Trial* trial) {
  std::vector<TableRow> rows;
  QStringList words;
  QString nothing;
  if (trial) {
    const QString option = QString::fromStdString(trial->option());
    for (const auto& o : context_.store.options())
      if (o.name() == trial->option()) words << format::visible(o.doc()) + '.';
    if (!trial->note().empty()) words << format::visible(trial->note()) + '.';
    if (const QString roof = expected(*trial); !roof.isEmpty()) words << roof;
    const GraphPtr& graph = context_.store.graph();
    const auto add = [&](const QString& kind, const char* role, int node, const QString& why) {
      TableRow row;
      const bool there = graph && graph->node(node);
      if (there) row.target = Selection::ofNode(node);
      TableCell what(kind);
      what.role = QString::fromLatin1(role);
      TableCell name(there ? names::node(*graph, node) : QStringLiteral("node %1").arg(node), {},
                     there ? QString() : QStringLiteral("A later pass took it away"));
      if (!there) name.role = QStringLiteral("faint");
      row.cells = {what, name, {why, {}, why}};
      rows.push_back(std::move(row));
    };
    if (const snapshot::PassReport* pass = passOf(option)) {
      words << QStringLiteral("In this build it applied in %1 places and almost in %2.")
                   .arg(format::count(pass->matches()), format::count(pass->near_misses_size()));
      if (graph)
        for (const auto& node : graph->graph().nodes())
          if (node.provenance().pass() == pass->name() && rows.size() < kMostPlaces)
            add(QStringLiteral("made by it"), "ok", node.id(), {});
      for (const auto& miss : pass->near_misses())
        if (rows.size() < kMostPlaces)
          add(QStringLiteral("near miss"), "warn", miss.node(), format::visible(miss.condition()));
      nothing = pass->matches() == 0 ? QStringLiteral("It found no place in this model, and none where it almost applied.")
                                     : QStringLiteral("It removed nodes there, or later passes changed what it made.");
    } else if (option.startsWith(kPass)) {
      nothing = QStringLiteral("The pass is off in this build: apply the change to see where it finds a match.");
    } else {
      nothing = QStringLiteral("Places are known of passes only.");
    }
  } else {
    words << QStringLiteral("Choose a change above.");
  }
  words_->setText(words.join(' '));
  table_->setEmptyText(nothing);
  table_->setAccessibleDescription(nothing);
  model_->setRows(std::move(rows));
}

}  // namespace stepscope
