// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/open_dialog/set_up_dialog.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPainter>
#include <QRegularExpression>
#include <QScrollArea>
#include <QSortFilterProxyModel>
#include <QVBoxLayout>
#include <algorithm>
#include <iterator>
#include <utility>

#include "views/common/file_name.h"
#include "views/common/format.h"
#include "views/common/tokens.h"

namespace stepscope {
namespace {

QLabel* quiet(const QString& text) {
  auto* label = new QLabel(text);
  label->setTextFormat(Qt::PlainText);
  label->setProperty("role", "muted");
  label->setFont(smallFont());
  label->setWordWrap(true);
  return label;
}

QWidget* column(std::initializer_list<QWidget*> widgets) {
  auto* box = new QWidget;
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(3);
  for (QWidget* w : widgets) layout->addWidget(w);
  return box;
}

// Fields side by side, as wide as each other; buttons as wide as their text.
QWidget* line(std::initializer_list<QWidget*> widgets) {
  auto* box = new QWidget;
  auto* layout = new QHBoxLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  for (QWidget* w : widgets) layout->addWidget(w, qobject_cast<QAbstractButton*>(w) ? 0 : 1);
  return box;
}

// Named fields in columns that stand below each other, in every grid of the page with names of at most this width; a field
// without a name takes its place too.
QWidget* grid(int nameWidth, std::initializer_list<std::vector<std::pair<QString, QWidget*>>> rows) {
  auto* box = new QWidget;
  auto* layout = new QGridLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  // A layout leaves the spacing out where a column has no widget of its own; a column between two fields is always as wide.
  const int gap = layout->horizontalSpacing() >= 0 ? layout->horizontalSpacing() : 6;
  layout->setHorizontalSpacing(0);
  int row = 0;
  for (const auto& fields : rows) {
    int column = 0;
    for (const auto& [text, w] : fields) {
      if (text.isEmpty()) {
        w->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // its longest text moves no column
        layout->addWidget(w, row, column, 1, 2);
      } else {
        auto* label = quiet(text);
        label->setWordWrap(false);
        layout->addWidget(label, row, column);
        layout->addWidget(w, row, column + 1);
      }
      layout->setColumnMinimumWidth(column, nameWidth);
      layout->setColumnMinimumWidth(column + 1, 7 * Metrics::current().unit);
      layout->setColumnStretch(column + 1, 1);
      if (&fields.back().second != &w) layout->setColumnMinimumWidth(column + 2, gap);
      column += 3;
    }
    ++row;
  }
  return box;
}

// Reasons from the engine are parts of sentences; here each stands alone.
QString sentence(QString text) {
  if (!text.isEmpty()) text[0] = text[0].toUpper();
  return text;
}

template <typename Repeated>
QString dimsText(const Repeated& dims) {
  return format::shapeOf(dims);
}

// Of an extent or an output: its beginning and its end.
QString shortName(const std::string& name) {
  constexpr int kMost = 40;
  const QString text = format::visible(name);
  return text.size() <= kMost ? text : text.left(kMost / 2) + QStringLiteral("…") + text.right(kMost / 2 - 1);
}

QString dimensionsText(const snapshot::ModelInfo& model, bool fromData) {
  if (model.dimensions_size() == 0)
    return SetUpDialog::tr("The inputs have no symbolic dimensions: every extent is in the file");
  if (fromData) return SetUpDialog::tr("The data says how long each is");
  QStringList why;
  for (const auto& d : model.dimensions()) {
    const QString name = shortName(d.name());
    why << (d.fixed() ? SetUpDialog::tr("%1 is %2 because %3").arg(name).arg(d.extent()).arg(format::visible(d.reason()))
                      : SetUpDialog::tr("%1 is %2 unless set").arg(name).arg(d.extent()));
  }
  return why.join(QStringLiteral("\n"));
}

// Settings that the form has fields for.
constexpr const char* kFields[] = {"data",   "dim",          "loss",     "logits",         "loss-fn",    "optimizer",
                                   "lr",     "weight-decay", "momentum", "clip-grad-norm", "accumulate", "train",
                                   "freeze", "seed",         "threads",  "device"};

// An option that was changed while the model was built stands as set NAME=VALUE; the last one of a name counts, but those
// that add up.
std::vector<std::pair<std::string, std::string>> settingsOf(const snapshot::Configure& configuration) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& s : configuration.settings()) {
    std::string name = s.name(), value = s.value();
    if (const auto equals = value.find('='); name == "set" && equals != std::string::npos) {
      name = value.substr(0, equals);
      value = value.substr(equals + 1);
    }
    if (name != "dim" && name != "group" && name != "pad")
      std::erase_if(all, [&name](const auto& other) { return other.first == name; });
    all.emplace_back(std::move(name), std::move(value));
  }
  return all;
}

}  // namespace

QString SetUpDialog::value(const snapshot::Configure& configuration, const char* name) {
  QString found;
  for (const auto& [setting, text] : settingsOf(configuration)) {
    if (setting == name) found = QString::fromStdString(text);
  }
  return found;
}

SetUpDialog::SetUpDialog(ModelPtr model, const snapshot::Configure& before, QWidget* parent)
    : QDialog(parent), model_(std::move(model)) {
  const Metrics m = Metrics::current();
  setObjectName(QStringLiteral("set_up"));
  setAutoFillBackground(true);
  for (auto& setting : settingsOf(before))
    if (std::find(std::begin(kFields), std::end(kFields), setting.first) == std::end(kFields))
      kept_.push_back(std::move(setting));
  setWindowTitle(tr("Set up %1").arg(format::fileName(QString::fromStdString(model_->path()))));
  resize(62 * m.unit, 44 * m.unit);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(qRound(1.4 * m.unit), qRound(1.2 * m.unit), qRound(1.4 * m.unit), qRound(1.2 * m.unit));
  layout->setSpacing(m.unit);
  auto* title = new QLabel(format::fileName(QString::fromStdString(model_->path())));
  title->setTextFormat(Qt::PlainText);
  QFont large = title->font();
  large.setPointSizeF(large.pointSizeF() * 1.35);
  large.setWeight(QFont::DemiBold);
  title->setFont(large);
  QStringList opsets;
  for (const auto& [domain, version] : model_->opsets())
    opsets << (domain.empty() ? QStringLiteral("opset %1").arg(version)
                              : QStringLiteral("%1 %2").arg(format::visible(domain)).arg(version));
  layout->addWidget(title);
  if (model_->file_bytes() > 0)
    layout->addWidget(quiet(tr("%1 · %2 · %3 · %4 nodes · %5 parameters in %6 tensors")
                                .arg(format::bytes(model_->file_bytes()),
                                     format::visible(model_->producer()).isEmpty() ? tr("unknown producer")
                                                                                   : format::visible(model_->producer()),
                                     opsets.join(QStringLiteral(", ")), format::count(model_->node_count()),
                                     format::countShort(static_cast<double>(model_->parameter_count())),
                                     format::count(model_->parameters_size()))));
  auto* tabs = new QTabWidget;
  auto* training = trainingPage(before);
  const bool read = model_->problems_size() == 0 || model_->node_count() > 0;
  if (read)
    tabs->addTab(training, tr("Training"));
  else
    training->setParent(this), training->hide();  // its fields are asked all the same

  int missing = 0, without = 0;
  for (const auto& p : model_->parameters()) missing += p.missing();
  for (const auto& o : model_->ops())
    without += !o.has_kernel();  // one without a gradient may well be off the way to the loss; its note says why it has none
  if (read) {
    addPage(tabs, tr("Inputs %1").arg(model_->inputs_size()), &SetUpDialog::inputsPage);
    addPage(tabs, tr("Parameters %1").arg(format::count(model_->parameters_size())), &SetUpDialog::parametersPage);
    addPage(tabs, without > 0 ? tr("Operators, %1 lacking").arg(without) : tr("Operators %1").arg(model_->ops_size()),
            &SetUpDialog::operatorsPage);
  }
  if (model_->problems_size() > 0) {
    const int problems = addPage(tabs, tr("Problems %1").arg(model_->problems_size()), &SetUpDialog::problemsPage);
    tabs->setCurrentIndex(problems);
    emit tabs->currentChanged(problems);  // the only page was current before it listened
  }
  layout->addWidget(tabs, 1);
  problem_ = new QLabel;
  problem_->setTextFormat(Qt::PlainText);
  problem_->setWordWrap(true);
  problem_->setProperty("role", "error");
  problem_->hide();
  layout->addWidget(problem_);
  buttons_ = new QDialogButtonBox;
  auto* buttons = buttons_;
  build_ = buttons->addButton(tr("Build"), QDialogButtonBox::AcceptRole);
  build_->setDefault(true);
  build_->setAutoDefault(true);
  build_->setObjectName(QStringLiteral("set_up_build"));
  buttons->addButton(QDialogButtonBox::Cancel)->setObjectName(QStringLiteral("set_up_cancel"));
  if (missing > 0 && !read) {
    auto* random = buttons->addButton(tr("Fill missing weights from the seed"), QDialogButtonBox::ActionRole);
    random->setObjectName(QStringLiteral("set_up_fill_weights"));
    connect(random, &QPushButton::clicked, this, [this] {
      emit openWithRandomWeights();
      reject();
    });
  }
  layout->addWidget(buttons);
  build_->setVisible(read);
  connect(buttons, &QDialogButtonBox::accepted, this, [this] {
    emit buildWanted(configuration());
    accept();
  });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  update();
}

int SetUpDialog::addPage(QTabWidget* tabs, const QString& title, QWidget* (SetUpDialog::*make)()) {
  auto* page = new QWidget;
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  const int index = tabs->addTab(page, title);
  // Made when it is first looked at: a model has thousands of parameters.
  connect(tabs, &QTabWidget::currentChanged, page, [this, layout, index, make](int now) {
    if (now == index && layout->isEmpty()) layout->addWidget((this->*make)());
  });
  return index;
}

QWidget* SetUpDialog::inputsPage() {
  std::vector<TableRow> rows;
  for (const auto& i : model_->inputs()) {
    TableRow row;
    row.cells = {format::visible(i.name()), dimsText(i.dims()) + QStringLiteral(" · ") + format::visible(i.dtype()),
                 format::visible(i.role()), format::visible(i.reason())};
    row.cells[3].role = QStringLiteral("muted");
    rows.push_back(row);
  }
  return tablePage({{tr("Input"), tr("Name in the file; arrays of the data are named after it"), false, 14},
                    {tr("Shape, type"), tr("Extents, symbolic ones by name, and type of the elements"), false, 16},
                    {tr("Meaning"), tr("What synthetic data will hold"), false, 14},
                    {tr("Reason"), tr("How the meaning was found"), false, 14}},
                   std::move(rows));
}

QWidget* SetUpDialog::parametersPage() {
  std::vector<TableRow> rows;
  for (const auto& p : model_->parameters()) {
    TableRow row;
    TableCell trained(p.trained() ? tr("✓ trained") : tr("– frozen"));
    trained.role = p.trained() ? QStringLiteral("ok") : QStringLiteral("muted");
    TableCell reason(p.missing() ? tr("filled from the seed: its data is not there") : format::visible(p.reason()));
    reason.role = p.missing() ? QStringLiteral("error") : QStringLiteral("muted");
    row.cells = {format::visible(p.name()),
                 dimsText(p.dims()) + QStringLiteral(" · ") + format::visible(p.dtype()),
                 {format::bytes(p.bytes()), QVariant::fromValue<qint64>(p.bytes()), format::bytesExact(p.bytes())},
                 trained,
                 reason};
    rows.push_back(row);
  }
  return tablePage({{tr("Parameter"), tr("Name of the initializer"), false, 20},
                    {tr("Shape, type"), tr("Extents and type of the elements"), false, 14},
                    {tr("Bytes"), tr("Size in memory"), true, 6},
                    {tr("Trained"), tr("Whether the optimizer changes it"), false, 7},
                    {tr("Reason"), tr("Why it is trained or frozen"), false, 14}},
                   std::move(rows));
}

QWidget* SetUpDialog::operatorsPage() {
  std::vector<TableRow> rows;
  for (const auto& o : model_->ops()) {
    const auto mark = [](bool yes) {
      TableCell cell(yes ? QStringLiteral("✓") : QStringLiteral("–"));
      cell.role = yes ? QStringLiteral("ok") : QStringLiteral("error");
      return cell;
    };
    TableRow row;
    TableCell fast = mark(o.has_fast_kernel());
    if (!o.has_fast_kernel()) fast.role = QStringLiteral("faint");
    row.cells = {
        (o.domain().empty() ? QString() : format::visible(o.domain()) + QStringLiteral("::")) + format::visible(o.op()),
        {format::count(o.count()), o.count()},
        mark(o.has_gradient()),
        mark(o.has_kernel()),
        fast,
        format::visible(o.note())};
    rows.push_back(row);
  }
  return tablePage({{tr("Operator"), tr("Domain and operator"), false, 16},
                    {tr("Count"), tr("Nodes of the model with this operator"), true, 5},
                    {tr("Gradient"), tr("There is a gradient rule"), false, 6},
                    {tr("Kernel"), tr("It can run"), false, 5},
                    {tr("Fast"), tr("There is a fast kernel beside the reference"), false, 5},
                    {tr("Note"), tr("What is special about it here"), false, 20}},
                   std::move(rows));
}

QWidget* SetUpDialog::problemsPage() {
  std::vector<TableRow> rows;
  for (const auto& p : model_->problems()) {
    TableRow row;
    TableCell message(format::visible(p.message()), {}, format::visible(p.message()));
    message.role = QStringLiteral("error");
    QString where = format::visible(p.where());
    if (!p.source().empty()) where += QStringLiteral("  ") + format::visible(p.source());
    row.cells = {where, message, format::visible(p.hint())};
    rows.push_back(row);
  }
  return tablePage({{tr("Where"), tr("The place in the file, and the source line where it is recorded"), false, 26},
                    {tr("Problem"), tr("What was found, and what is expected"), false, 40},
                    {tr("Hint"), tr("What helps"), false, 14}},
                   std::move(rows));
}

QWidget* SetUpDialog::trainingPage(const snapshot::Configure& before) {
  const Metrics m = Metrics::current();
  const auto edit = [&before](const char* name, const QString& placeholder) {
    auto* e = new QLineEdit(value(before, name));
    e->setPlaceholderText(placeholder);
    e->setObjectName(QStringLiteral("set_up_") + QLatin1String(name));
    e->setAccessibleName(QLatin1String(name));
    return e;
  };
  data_ = edit("data", tr("synthetic, from the seed"));
  data_->setClearButtonEnabled(true);
  const QString proposed = QString::fromStdString(model_->proposed_data());
  if (before.settings_size() == 0) data_->setText(proposed);  // afterwards the user's choice counts, none among them
  proposed_ = new QPushButton(tr("Use %1").arg(format::visible(proposed.section('/', -1))));
  proposed_->setObjectName(QStringLiteral("set_up_proposed_data"));
  proposed_->setAutoDefault(false);
  connect(proposed_, &QPushButton::clicked, data_, [this, proposed] { data_->setText(proposed); });
  auto* browse = new QPushButton(tr("Choose…"));
  browse->setAutoDefault(false);
  connect(browse, &QPushButton::clicked, this, &SetUpDialog::chooseData);
  dataReason_ = quiet({});
  dataReason_->setObjectName(QStringLiteral("set_up_data_reason"));
  dimsReason_ = quiet({});
  dimsReason_->setObjectName(QStringLiteral("set_up_dim_reason"));
  loss_ = new QComboBox;
  loss_->setAccessibleName(tr("Loss"));
  if (!model_->proposed_loss().empty())
    loss_->addItem(tr("%1  (output of the model)").arg(format::visible(model_->proposed_loss())),
                   QStringLiteral("out:") + QString::fromStdString(model_->proposed_loss()));
  for (const auto& c : model_->loss_candidates())
    loss_->addItem(tr("attach to %1").arg(format::visible(c)), QStringLiteral("at:") + QString::fromStdString(c));
  lossFunction_ = new QComboBox;
  lossFunction_->setAccessibleName(tr("Loss function"));
  lossFunction_->addItem(tr("cross entropy"), QStringLiteral("cross_entropy"));
  lossFunction_->addItem(tr("mean squared error"), QStringLiteral("mse"));
  lossFunction_->addItem(tr("mean absolute error"), QStringLiteral("l1"));
  lossFunction_->addItem(tr("binary cross entropy with logits"), QStringLiteral("bce_with_logits"));
  if (const QString logits = value(before, "logits"); !logits.isEmpty())
    loss_->setCurrentIndex(std::max(0, loss_->findData(QStringLiteral("at:") + logits)));
  lossFunction_->setObjectName(QStringLiteral("set_up_loss_function"));
  if (const QString function = value(before, "loss-fn"); !function.isEmpty()) {
    lossFunction_->setCurrentIndex(std::max(0, lossFunction_->findData(function)));
    chosenFunction_ = true;
  }
  connect(lossFunction_, &QComboBox::activated, this, [this] { chosenFunction_ = true; });
  lossReason_ = quiet({});
  optimizer_ = new QComboBox;
  optimizer_->setAccessibleName(tr("Optimizer"));
  for (const char* name : {"sgd", "adamw", "adam", "lamb"})
    optimizer_->addItem(QString::fromLatin1(name)
                            .toUpper()
                            .replace(QStringLiteral("ADAMW"), QStringLiteral("AdamW"))
                            .replace(QStringLiteral("ADAM"), QStringLiteral("Adam")),
                        QString::fromLatin1(name));
  optimizer_->setCurrentIndex(std::max(0, optimizer_->findData(value(before, "optimizer"))));
  rate_ = edit("lr", QStringLiteral("0.001"));
  decay_ = edit("weight-decay", tr("default"));
  momentum_ = edit("momentum", QStringLiteral("0"));
  clip_ = edit("clip-grad-norm", tr("off"));
  accumulate_ = edit("accumulate", QStringLiteral("1"));
  train_ = edit("train", tr("regular expression"));
  freeze_ = edit("freeze", tr("regular expression"));
  seed_ = edit("seed", QStringLiteral("0"));
  threads_ = edit("threads", tr("all cores"));
  QStringList dims;
  for (const auto& d : model_->dimensions()) dims << QStringLiteral("%1=%2").arg(format::visible(d.name())).arg(d.extent());
  dims_ = edit("dim", dims.join(' '));
  dims.clear();
  for (const auto& [name, text] : settingsOf(before))
    if (name == "dim") dims << QString::fromStdString(text);
  dims_->setText(dims.join(' '));
  device_ = new QComboBox;
  device_->setAccessibleName(tr("Device"));
  device_->addItem(tr("CPU · fp32"), QStringLiteral("cpu"));
  trained_ = quiet({});

  const std::pair<QWidget*, QString> tips[] = {{data_, tr("Batches: .npz, .safetensors or a folder of input_*.pb")},
                                               {browse, tr("Choose a file of batches")},
                                               {proposed_, tr("Train on the file that lies beside the model")},
                                               {dims_, tr("NAME=N for each symbolic dimension of synthetic data")},
                                               {loss_, tr("The scalar to minimise, or the output to attach a loss to")},
                                               {lossFunction_, tr("What is attached to the output")},
                                               {optimizer_, tr("PyTorch's formulas and defaults")},
                                               {rate_, tr("Learning rate")},
                                               {decay_, tr("Weight decay")},
                                               {momentum_, tr("Momentum, of SGD alone")},
                                               {clip_, tr("Largest norm of all gradients together")},
                                               {accumulate_, tr("Micro steps whose gradients are summed for one update")},
                                               {train_, tr("Train only parameters whose name matches")},
                                               {freeze_, tr("Do not train parameters whose name matches")},
                                               {device_, tr("Where the step runs, and in which precision")},
                                               {threads_, tr("Threads of the kernels; stored with the run")},
                                               {seed_, tr("Of random numbers, synthetic data and missing weights")}};
  for (const auto& [field, tip] : tips) field->setToolTip(tip);
  int names = 0;
  for (const QString& name : {tr("rate"), tr("decay"), tr("momentum"), tr("clip norm"), tr("accumulate"), tr("only"),
                              tr("except"), tr("threads"), tr("seed")})
    names = std::max(names, fontMetrics().horizontalAdvance(name) + qRound(0.4 * m.unit));
  auto* form = new QFormLayout;
  form->setContentsMargins(m.padding, m.padding, m.padding, m.padding);
  form->setHorizontalSpacing(qRound(1.2 * m.unit));
  form->setVerticalSpacing(qRound(0.9 * m.unit));
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->addRow(tr("Data"), column({line({data_, proposed_, browse}), dataReason_}));
  form->addRow(tr("Dimensions"), column({dims_, dimsReason_}));
  form->addRow(tr("Loss"), column({line({loss_, lossFunction_}), lossReason_}));
  form->addRow(tr("Optimizer"),
               grid(names, {{{{}, optimizer_}, {tr("rate"), rate_}, {tr("decay"), decay_}},
                            {{tr("momentum"), momentum_}, {tr("clip norm"), clip_}, {tr("accumulate"), accumulate_}}}));
  form->addRow(tr("Trained"), column({grid(names, {{{tr("only"), train_}, {tr("except"), freeze_}}}), trained_}));
  form->addRow(tr("Run"), grid(names, {{{{}, device_}, {tr("threads"), threads_}, {tr("seed"), seed_}}}));
  auto* page = new QWidget;
  page->setLayout(form);
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setWidget(page);
  for (QLineEdit* e : {data_, train_, freeze_}) connect(e, &QLineEdit::textChanged, this, &SetUpDialog::update);
  connect(loss_, &QComboBox::currentIndexChanged, this, &SetUpDialog::update);
  connect(optimizer_, &QComboBox::currentIndexChanged, this, &SetUpDialog::update);
  return scroll;
}

QWidget* SetUpDialog::tablePage(std::vector<TableColumn> columns, std::vector<TableRow> rows) {
  auto* view = new RowTableView;
  auto* table = new RowTableModel(columns, view);
  auto* proxy = new QSortFilterProxyModel(view);
  proxy->setSourceModel(table);
  proxy->setSortRole(RowTableModel::kSortRole);
  table->setRows(std::move(rows));
  view->setModel(proxy);
  view->setSortingEnabled(true);
  view->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  proxy->sort(-1);
  view->sizeColumns(columns);
  return view;
}

void SetUpDialog::chooseData() {
  auto* dialog = new QFileDialog(this, tr("Batches"), QString::fromStdString(model_->path()).section('/', 0, -2),
                                 tr("Batches (*.npz *.safetensors);;All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, data_, &QLineEdit::setText);
  dialog->open();
}

// Cross entropy needs to know how many classes there are; any output has squared errors.
void SetUpDialog::proposeFunction() {
  const QString loss = loss_->currentData().toString();
  if (chosenFunction_ || !loss.startsWith(u"at:")) return;
  const auto& outputs = model_->outputs();
  const auto output = std::find_if(outputs.begin(), outputs.end(),
                                   [&](const auto& o) { return QString::fromStdString(o.name()) == loss.mid(3); });
  bool classes = false;
  if (output != outputs.end() && output->dims_size() >= 2) {
    const int axis = output->dims_size() <= 3 ? output->dims_size() - 1 : 1;
    classes = QString::fromStdString(output->dims(axis)).toLongLong(&classes) > 1 && classes;
  }
  lossFunction_->setCurrentIndex(lossFunction_->findData(classes ? QStringLiteral("cross_entropy") : QStringLiteral("mse")));
}

QWidget* SetUpDialog::fieldOf(const QString& setting) const {
  const std::pair<const char*, QWidget*> fields[] = {{"data", data_},
                                                     {"dim", dims_},
                                                     {"loss", loss_},
                                                     {"logits", loss_},
                                                     {"labels", loss_},
                                                     {"loss-fn", lossFunction_},
                                                     {"optimizer", optimizer_},
                                                     {"lr", rate_},
                                                     {"weight-decay", decay_},
                                                     {"momentum", momentum_},
                                                     {"nesterov", momentum_},
                                                     {"clip-grad-norm", clip_},
                                                     {"accumulate", accumulate_},
                                                     {"train", train_},
                                                     {"freeze", freeze_},
                                                     {"seed", seed_},
                                                     {"threads", threads_},
                                                     {"device", device_},
                                                     {"precision", device_}};
  for (const auto& [name, field] : fields)
    if (setting == QLatin1String(name)) return field;
  return nullptr;
}

void SetUpDialog::showProblem(const QString& text, const QString& setting) {
  delete std::exchange(refusal_, nullptr);
  refused_ = format::visible(text);
  if (QWidget* field = fieldOf(setting)) {
    refusal_ = new QLabel(refused_);
    refusal_->setObjectName(QStringLiteral("set_up_refusal"));
    refusal_->setTextFormat(Qt::PlainText);
    refusal_->setWordWrap(true);
    refusal_->setProperty("role", "error");
    refused_.clear();
    // Below the line of the form that the field stands in.
    for (QWidget* box = field->parentWidget(); box; box = box->parentWidget()) {
      auto* layout = qobject_cast<QFormLayout*>(box->layout());
      if (!layout) continue;
      for (int row = 0; row < layout->rowCount(); ++row) {
        QLayoutItem* item = layout->itemAt(row, QFormLayout::FieldRole);
        if (!item || !item->widget() || !(item->widget() == field || item->widget()->isAncestorOf(field))) continue;
        layout->insertRow(row + 1, QString(), refusal_);
        break;
      }
      break;
    }
    field->setProperty("role", "error");
    field->setFocus();
  }
  update();
}

void SetUpDialog::offerLook() {
  auto* look = buttons_->addButton(tr("Only look at it"), QDialogButtonBox::ActionRole);
  look->setObjectName(QStringLiteral("set_up_look"));
  look->setAutoDefault(false);
  look->setToolTip(tr("Shows its graph in place of the model that is open; nothing is built"));
  connect(look, &QPushButton::clicked, this, [this] {
    emit lookWanted();
    reject();
  });
}

// The box shows what it is given, and again when it gets another parent.
void SetUpDialog::showEvent(QShowEvent* event) {
  QDialog::showEvent(event);
  build_->setVisible(model_->problems_size() == 0 || model_->node_count() > 0);
}

void SetUpDialog::paintEvent(QPaintEvent* event) {
  QDialog::paintEvent(event);
  if (!isWindow()) QPainter(this).fillRect(0, 0, 1, height(), Tokens::current().border);
}

void SetUpDialog::update() {
  proposeFunction();
  const bool attach = loss_->currentData().toString().startsWith(u"at:");
  lossFunction_->setVisible(attach);
  lossReason_->setText(loss_->count() == 0 ? tr("No float output that a loss could be made from")
                       : attach
                           ? tr("A loss is attached to this output; its labels become an input where the model has none")
                           : sentence(format::visible(model_->loss_reason())));
  const QString data = data_->text().trimmed(), proposed = QString::fromStdString(model_->proposed_data());
  const QString beside = sentence(format::visible(model_->data_reason()));
  proposed_->setVisible(!proposed.isEmpty() && data != proposed);
  if (!proposed.isEmpty() && data == proposed)
    dataReason_->setText(tr("%1. Clear it for synthetic data").arg(beside));
  else if (!data.isEmpty())
    dataReason_->setText(tr("Arrays are named after the inputs; a leading extra axis means one entry per step"));
  else
    dataReason_->setText(tr("Token ids, labels and masks are drawn within the ranges found in the graph; see Inputs") +
                         (proposed.isEmpty() && !beside.isEmpty() ? QStringLiteral(". ") + beside : QString()));
  dims_->setEnabled(data.isEmpty() && model_->dimensions_size() > 0);
  dimsReason_->setText(dimensionsText(*model_, !data.isEmpty()));
  QStringList whole;
  for (const auto& d : model_->dimensions()) whole << format::visible(d.name());
  dimsReason_->setToolTip(whole.join('\n').toHtmlEscaped());
  momentum_->setEnabled(optimizer_->currentData() == QStringLiteral("sgd"));
  QString wrong;
  int trained = 0;
  std::int64_t bytes = 0;
  const QRegularExpression only(train_->text()), not_(freeze_->text());
  if (!only.isValid()) wrong = tr("train '%1': %2").arg(train_->text(), only.errorString());
  if (!not_.isValid()) wrong = tr("freeze '%1': %2").arg(freeze_->text(), not_.errorString());
  for (const auto& p : model_->parameters()) {
    const QString name = QString::fromStdString(p.name());
    bool on = p.trained();
    if (!train_->text().isEmpty()) on = only.isValid() && only.match(name).hasMatch();
    if (!freeze_->text().isEmpty() && not_.isValid() && not_.match(name).hasMatch()) on = false;
    trained += on;
    if (on) bytes += p.bytes();
  }
  trained_->setText(wrong.isEmpty()
                        ? tr("%1 of %2 tensors, %3; the list of parameters gives each reason")
                              .arg(format::count(trained), format::count(model_->parameters_size()), format::bytes(bytes))
                        : wrong);
  trained_->setProperty("role", wrong.isEmpty() ? "muted" : "error");
  if (!build_) return;
  const bool possible = loss_->count() > 0 && model_->problems_size() == 0 && wrong.isEmpty();
  build_->setEnabled(possible);
  const auto weights =
      std::count_if(model_->parameters().begin(), model_->parameters().end(), [](const auto& p) { return p.missing(); });
  problem_->setText(model_->problems_size() > 0 && weights == model_->problems_size()
                        ? tr("Its weights are not where the file says. Put them there, or fill them from the seed: times "
                             "and memory are then as they would be, losses and gradients mean nothing")
                    : model_->problems_size() > 0 ? tr("The file has problems; they are listed with their places")
                    : loss_->count() == 0
                        ? tr("There is nothing to minimise: no scalar float output, and no output a loss can be attached to")
                        : refused_);
  problem_->setVisible(!problem_->text().isEmpty());
}

snapshot::Configure SetUpDialog::configuration() const {
  snapshot::Configure out;
  const auto set = [&out](const char* name, const QString& text) {
    if (text.trimmed().isEmpty()) return;
    auto* s = out.add_settings();
    s->set_name(name);
    s->set_value(text.trimmed().toStdString());
  };
  set("data", data_->text());
  for (const QString& dim : dims_->text().split(QRegularExpression(QStringLiteral("[\\s,]+")), Qt::SkipEmptyParts))
    set("dim", dim);
  const QString loss = loss_->currentData().toString();
  if (loss.startsWith(u"out:")) set("loss", loss.mid(4));
  if (loss.startsWith(u"at:")) {
    set("logits", loss.mid(3));
    set("loss-fn", lossFunction_->currentData().toString());
  }
  set("optimizer", optimizer_->currentData().toString());
  set("lr", rate_->text());
  set("weight-decay", decay_->text());
  if (momentum_->isEnabled()) set("momentum", momentum_->text());
  set("clip-grad-norm", clip_->text());
  set("accumulate", accumulate_->text());
  set("train", train_->text());
  set("freeze", freeze_->text());
  set("seed", seed_->text());
  set("threads", threads_->text());
  set("device", device_->currentData().toString());
  for (const auto& [name, text] : kept_) set(name.c_str(), QString::fromStdString(text));
  return out;
}

}  // namespace stepscope
