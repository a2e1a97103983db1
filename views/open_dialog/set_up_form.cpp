// SPDX-License-Identifier: GPL-3.0-or-later
// The first page of the set-up: its fields, what they begin with, which setting belongs to which.
#include <QDir>
#include <QFileDialog>
#include <QFormLayout>
#include <QScrollArea>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/open_dialog/form_parts.h"
#include "views/open_dialog/more_settings.h"
#include "views/open_dialog/set_up_dialog.h"
#include "views/open_dialog/set_up_settings.h"

namespace stepscope {

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
  auto* browse = browse_ = new QPushButton(tr("Choose…"));
  browse->setObjectName(QStringLiteral("set_up_choose"));
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

void SetUpDialog::chooseData() {
  const QString here = host_.isEmpty() ? QString::fromStdString(model_->path()).section('/', 0, -2) : QDir::homePath();
  auto* dialog = new QFileDialog(this, host_.isEmpty() ? tr("Batches") : tr("Send batches to %1").arg(host_), here,
                                 tr("Batches (*.npz *.safetensors);;All files (*)"));
  dialog->setObjectName(QStringLiteral("set_up_choose_dialog"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  if (host_.isEmpty())
    connect(dialog, &QFileDialog::fileSelected, data_, &QLineEdit::setText);
  else
    connect(dialog, &QFileDialog::fileSelected, this, &SetUpDialog::sendWanted);
  dialog->open();
}

void SetUpDialog::setHost(const QString& host) {
  host_ = format::visible(host);
  browse_->setText(tr("Send…"));
  browse_->setToolTip(tr("Copies a file of this machine to %1. A file that lies there is named by its path").arg(host_));
  data_->setPlaceholderText(tr("synthetic, from the seed; or a path on %1").arg(host_));
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
  return more_ ? more_->fieldOf(setting.toStdString()) : nullptr;
}

}  // namespace stepscope
