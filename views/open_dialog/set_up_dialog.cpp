// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/open_dialog/set_up_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QPainter>
#include <QRegularExpression>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "views/common/file_name.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/open_dialog/form_parts.h"
#include "views/open_dialog/model_tables.h"
#include "views/open_dialog/more_settings.h"
#include "views/open_dialog/set_up_settings.h"

namespace stepscope {

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
    if (!hasField(setting.first)) kept_.push_back(std::move(setting));
  setWindowTitle(QStringLiteral("Set up %1").arg(format::fileName(QString::fromStdString(model_->path()))));
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
    layout->addWidget(quiet(QStringLiteral("%1 · %2 · %3 · %4 nodes · %5 parameters in %6 tensors")
                                .arg(format::bytes(model_->file_bytes()),
                                     format::visible(model_->producer()).isEmpty() ? QStringLiteral("unknown producer")
                                                                                   : format::visible(model_->producer()),
                                     opsets.join(QStringLiteral(", ")), format::count(model_->node_count()),
                                     format::countShort(static_cast<double>(model_->parameter_count())),
                                     format::count(model_->parameters_size()))));
  auto* tabs = tabs_ = new QTabWidget;
  auto* training = trainingPage(before);
  const bool read = model_->problems_size() == 0 || model_->node_count() > 0;
  if (read)
    tabs->addTab(training, QStringLiteral("Training"));
  else
    training->setParent(this), training->hide();  // its fields are asked all the same

  int missing = 0, without = 0;
  for (const auto& p : model_->parameters()) missing += p.missing();
  for (const auto& o : model_->ops())
    without += !o.has_kernel();  // one without a gradient may well be off the way to the loss; its note says why it has none
  if (read) {
    addPage(tabs, QStringLiteral("Inputs %1").arg(model_->inputs_size()), &inputsTable);
    addPage(tabs, QStringLiteral("Parameters %1").arg(format::count(model_->parameters_size())), &parametersTable);
    addPage(tabs,
            without > 0 ? QStringLiteral("Operators, %1 lacking").arg(without)
                        : QStringLiteral("Operators %1").arg(model_->ops_size()),
            &operatorsTable);
  }
  if (model_->problems_size() > 0) {
    const int problems = addPage(tabs, QStringLiteral("Problems %1").arg(model_->problems_size()), &problemsTable);
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
  begins_ = quiet({});
  begins_->setObjectName(QStringLiteral("set_up_begins"));
  layout->addWidget(begins_);
  buttons_ = new QDialogButtonBox;
  auto* buttons = buttons_;
  build_ = buttons->addButton(QStringLiteral("Build"), QDialogButtonBox::AcceptRole);
  build_->setDefault(true);
  build_->setAutoDefault(true);
  build_->setProperty("primary", true);  // wherever the keyboard is
  build_->setObjectName(QStringLiteral("set_up_build"));
  auto* cancel = buttons->addButton(QDialogButtonBox::Cancel);
  cancel->setObjectName(QStringLiteral("set_up_cancel"));
  cancel->setAutoDefault(false);
  if (missing > 0 && model_->problems_size() > 0) {
    auto* random = buttons->addButton(QStringLiteral("Fill missing weights from the seed"), QDialogButtonBox::ActionRole);
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

int SetUpDialog::addPage(QTabWidget* tabs, const QString& title, QWidget* (*make)(const snapshot::ModelInfo& model)) {
  auto* page = new QWidget;
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  const int index = tabs->addTab(page, title);
  // Made when it is first looked at: a model has thousands of parameters.
  connect(tabs, &QTabWidget::currentChanged, page, [this, layout, index, make](int now) {
    if (now == index && layout->isEmpty()) layout->addWidget(make(*model_));
  });
  return index;
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
  proposeLabels();
  const bool attach = loss_->currentData().toString().startsWith(u"at:");
  lossFunction_->setVisible(attach);
  labelsLine_->setVisible(attach);
  const QString labels = labels_->currentText().trimmed();
  const bool own = std::any_of(model_->inputs().begin(), model_->inputs().end(),
                               [&](const auto& input) { return QString::fromStdString(input.name()) == labels; });
  lossReason_->setText(
      loss_->count() == 0 ? QStringLiteral("No float output that a loss could be made from")
      : attach && own     ? QStringLiteral("A loss is attached to this output, which is compared with the input %1")
                            .arg(format::visible(labels))
      : attach ? QStringLiteral("A loss is attached to this output; %1 becomes a new input, which the data has to have")
                     .arg(labels.isEmpty() ? QStringLiteral("labels") : format::visible(labels))
               : sentence(format::visible(model_->loss_reason())));
  const QString data = data_->text().trimmed(), proposed = QString::fromStdString(model_->proposed_data());
  const QString beside = sentence(format::visible(model_->data_reason()));
  proposed_->setVisible(!proposed.isEmpty() && data != proposed);
  if (!proposed.isEmpty() && data == proposed)
    dataReason_->setText(QStringLiteral("%1. Clear it for synthetic data").arg(beside));
  else if (!data.isEmpty())
    dataReason_->setText(QStringLiteral("Arrays are named after the inputs; a leading extra axis means one entry per step"));
  else
    dataReason_->setText(
        QStringLiteral("Token ids, labels and masks are drawn within the ranges found in the graph; see Inputs") +
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
  if (!only.isValid()) wrong = QStringLiteral("train '%1': %2").arg(train_->text(), only.errorString());
  if (!not_.isValid()) wrong = QStringLiteral("freeze '%1': %2").arg(freeze_->text(), not_.errorString());
  for (const auto& p : model_->parameters()) {
    const QString name = QString::fromStdString(p.name());
    bool on = p.trained();
    if (!train_->text().isEmpty()) on = only.isValid() && only.match(name).hasMatch();
    if (!freeze_->text().isEmpty() && not_.isValid() && not_.match(name).hasMatch()) on = false;
    trained += on;
    if (on) bytes += p.bytes();
  }
  trained_->setText(wrong.isEmpty()
                        ? QStringLiteral("%1 of %2 tensors, %3; the list of parameters gives each reason")
                              .arg(format::count(trained), format::count(model_->parameters_size()), format::bytes(bytes))
                        : wrong);
  trained_->setProperty("role", wrong.isEmpty() ? "muted" : "error");
  if (!build_) return;
  QString file;
  if (more_) {
    for (const auto& [name, text] : more_->settings())
      if (name == "start-state") file = QString::fromStdString(text);
  }
  begins_->setText(QStringLiteral("Begins with the state in %1").arg(format::visible(file)));
  const bool another = !file.isEmpty() && (!begin_ || file != startState_);
  begins_->setVisible(another);
  if (begin_) begin_->parentWidget()->setVisible(!another);
  const bool possible = loss_->count() > 0 && model_->problems_size() == 0 && wrong.isEmpty();
  build_->setEnabled(possible);
  const auto weights =
      std::count_if(model_->parameters().begin(), model_->parameters().end(), [](const auto& p) { return p.missing(); });
  problem_->setText(
      model_->problems_size() > 0 && (weights == model_->problems_size() || (weights > 0 && model_->node_count() > 0))
          ? QStringLiteral("Its weights are not where the file says. Put them there, or fill them from the seed: times "
                           "and memory are then as they would be, losses and gradients mean nothing")
      : model_->problems_size() > 0 ? QStringLiteral("The file has problems; they are listed with their places")
      : loss_->count() == 0
          ? QStringLiteral("There is nothing to minimise: no scalar float output, and no output a loss can be attached to")
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
    set("labels", labels_->currentText());
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
  if (more_)
    for (const auto& [name, text] : more_->settings()) set(name.c_str(), QString::fromStdString(text));
  for (const auto& [name, text] : kept_) set(name.c_str(), QString::fromStdString(text));
  return out;
}

}  // namespace stepscope
