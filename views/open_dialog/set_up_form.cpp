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
  data_ = edit("data", QStringLiteral("synthetic, from the seed"));
  data_->setClearButtonEnabled(true);
  const QString proposed = QString::fromStdString(model_->proposed_data());
  if (before.settings_size() == 0) data_->setText(proposed);  // afterwards the user's choice counts, none among them
  proposed_ = new QPushButton(QStringLiteral("Use %1").arg(format::visible(proposed.section('/', -1))));
  proposed_->setObjectName(QStringLiteral("set_up_proposed_data"));
  proposed_->setAutoDefault(false);
  connect(proposed_, &QPushButton::clicked, data_, [this, proposed] { data_->setText(proposed); });
  auto* browse = browse_ = new QPushButton(QStringLiteral("Choose…"));
  browse->setObjectName(QStringLiteral("set_up_choose"));
  browse->setAutoDefault(false);
  connect(browse, &QPushButton::clicked, this, &SetUpDialog::chooseData);
  dataReason_ = quiet({});
  dataReason_->setObjectName(QStringLiteral("set_up_data_reason"));
  dimsReason_ = quiet({});
  dimsReason_->setObjectName(QStringLiteral("set_up_dim_reason"));
  loss_ = new QComboBox;
  loss_->setAccessibleName(QStringLiteral("Loss"));
  if (!model_->proposed_loss().empty())
    loss_->addItem(QStringLiteral("%1  (output of the model)").arg(format::visible(model_->proposed_loss())),
                   QStringLiteral("out:") + QString::fromStdString(model_->proposed_loss()));
  for (const auto& c : model_->loss_candidates())
    loss_->addItem(QStringLiteral("attach to %1").arg(format::visible(c)),
                   QStringLiteral("at:") + QString::fromStdString(c));
  lossFunction_ = new QComboBox;
  lossFunction_->setAccessibleName(QStringLiteral("Loss function"));
  lossFunction_->addItem(QStringLiteral("cross entropy"), QStringLiteral("cross_entropy"));
  lossFunction_->addItem(QStringLiteral("mean squared error"), QStringLiteral("mse"));
  lossFunction_->addItem(QStringLiteral("mean absolute error"), QStringLiteral("l1"));
  lossFunction_->addItem(QStringLiteral("binary cross entropy with logits"), QStringLiteral("bce_with_logits"));
  if (const QString logits = value(before, "logits"); !logits.isEmpty())
    loss_->setCurrentIndex(std::max(0, loss_->findData(QStringLiteral("at:") + logits)));
  lossFunction_->setObjectName(QStringLiteral("set_up_loss_function"));
  if (const QString function = value(before, "loss-fn"); !function.isEmpty()) {
    lossFunction_->setCurrentIndex(std::max(0, lossFunction_->findData(function)));
    chosenFunction_ = true;
  }
  connect(lossFunction_, &QComboBox::activated, this, [this] { chosenFunction_ = true; });
  labels_ = new QComboBox;
  labels_->setEditable(true);
  labels_->setInsertPolicy(QComboBox::NoInsert);
  for (const auto& input : model_->inputs()) labels_->addItem(format::visible(input.name()));
  labels_->lineEdit()->setPlaceholderText(QStringLiteral("a new input, labels"));
  labels_->setObjectName(QStringLiteral("set_up_labels"));
  labels_->setAccessibleName(QStringLiteral("labels"));
  labels_->setCurrentText(value(before, "labels"));
  chosenLabels_ = !value(before, "labels").isEmpty();
  connect(labels_->lineEdit(), &QLineEdit::textEdited, this, [this] { chosenLabels_ = true; });
  connect(labels_, &QComboBox::activated, this, [this] { chosenLabels_ = true; });
  lossReason_ = quiet({});
  optimizer_ = new QComboBox;
  optimizer_->setAccessibleName(QStringLiteral("Optimizer"));
  for (const char* name : {"sgd", "adamw", "adam", "lamb"})
    optimizer_->addItem(QString::fromLatin1(name)
                            .toUpper()
                            .replace(QStringLiteral("ADAMW"), QStringLiteral("AdamW"))
                            .replace(QStringLiteral("ADAM"), QStringLiteral("Adam")),
                        QString::fromLatin1(name));
  optimizer_->setCurrentIndex(std::max(0, optimizer_->findData(value(before, "optimizer"))));
  rate_ = edit("lr", QStringLiteral("0.001"));
  decay_ = edit("weight-decay", QStringLiteral("default"));
  momentum_ = edit("momentum", QStringLiteral("0"));
  clip_ = edit("clip-grad-norm", QStringLiteral("off"));
  accumulate_ = edit("accumulate", QStringLiteral("1"));
  train_ = edit("train", QStringLiteral("regular expression"));
  freeze_ = edit("freeze", QStringLiteral("regular expression"));
  seed_ = edit("seed", QStringLiteral("0"));
  threads_ = edit("threads", QStringLiteral("all cores"));
  QStringList dims;
  for (const auto& d : model_->dimensions()) dims << QStringLiteral("%1=%2").arg(format::visible(d.name())).arg(d.extent());
  dims_ = edit("dim", dims.join(' '));
  dims.clear();
  for (const auto& [name, text] : settingsOf(before))
    if (name == "dim") dims << QString::fromStdString(text);
  dims_->setText(dims.join(' '));
  device_ = new QComboBox;
  device_->setAccessibleName(QStringLiteral("Device"));
  device_->setObjectName(QStringLiteral("set_up_device"));
  addDevice(QStringLiteral("cpu"));
  const QString device = value(before, "device");
  if (!device.isEmpty()) addDevice(device);
  device_->setCurrentIndex(std::max(0, device_->findData(device)));
  trained_ = quiet({});

  const std::pair<QWidget*, QString> tips[] = {
      {data_, QStringLiteral("Batches: .npz, .safetensors or a folder of input_*.pb")},
      {browse, QStringLiteral("Choose a file of batches")},
      {proposed_, QStringLiteral("Train on the file that lies beside the model")},
      {dims_, QStringLiteral("NAME=N for each symbolic dimension of synthetic data")},
      {loss_, QStringLiteral("The scalar to minimise, or the output to attach a loss to")},
      {lossFunction_, QStringLiteral("What is attached to the output")},
      {labels_, QStringLiteral("The input that the output is compared with: one of the model, or a name that becomes a new "
                               "one. The data needs an array of that name")},
      {optimizer_, QStringLiteral("PyTorch's formulas and defaults")},
      {rate_, QStringLiteral("Learning rate")},
      {decay_, QStringLiteral("Weight decay")},
      {momentum_, QStringLiteral("Momentum, of SGD alone")},
      {clip_, QStringLiteral("Largest norm of all gradients together")},
      {accumulate_, QStringLiteral("Micro steps whose gradients are summed for one update")},
      {train_, QStringLiteral("Train only parameters whose name matches")},
      {freeze_, QStringLiteral("Do not train parameters whose name matches")},
      {device_, QStringLiteral("Where the step runs; its precision stands on the page More")},
      {threads_, QStringLiteral("Threads of the kernels; stored with the run")},
      {seed_, QStringLiteral("Of random numbers, synthetic data and missing weights")}};
  for (const auto& [field, tip] : tips) field->setToolTip(tip);
  int names = 0;
  for (const QString& name : {QStringLiteral("rate"), QStringLiteral("decay"), QStringLiteral("momentum"),
                              QStringLiteral("clip norm"), QStringLiteral("accumulate"), QStringLiteral("only"),
                              QStringLiteral("except"), QStringLiteral("threads"), QStringLiteral("seed")})
    names = std::max(names, fontMetrics().horizontalAdvance(name) + qRound(0.4 * m.unit));
  auto* form = new QFormLayout;
  form->setContentsMargins(m.padding, m.padding, m.padding, m.padding);
  form->setHorizontalSpacing(qRound(1.2 * m.unit));
  form->setVerticalSpacing(qRound(0.9 * m.unit));
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->addRow(QStringLiteral("Data"), column({line({data_, proposed_, browse}), dataReason_}));
  form->addRow(QStringLiteral("Dimensions"), column({dims_, dimsReason_}));
  labelsLine_ = grid(names, {{{QStringLiteral("labels"), labels_}}});
  form->addRow(QStringLiteral("Loss"), column({line({loss_, lossFunction_}), labelsLine_, lossReason_}));
  form->addRow(QStringLiteral("Optimizer"),
               grid(names, {{{{}, optimizer_}, {QStringLiteral("rate"), rate_}, {QStringLiteral("decay"), decay_}},
                            {{QStringLiteral("momentum"), momentum_},
                             {QStringLiteral("clip norm"), clip_},
                             {QStringLiteral("accumulate"), accumulate_}}}));
  form->addRow(QStringLiteral("Trained"),
               column({grid(names, {{{QStringLiteral("only"), train_}, {QStringLiteral("except"), freeze_}}}), trained_}));
  form->addRow(QStringLiteral("Run"),
               grid(names, {{{{}, device_}, {QStringLiteral("threads"), threads_}, {QStringLiteral("seed"), seed_}}}));
  auto* page = new QWidget;
  page->setLayout(form);
  leaveWheelToPage(*page);
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setWidget(page);
  for (QLineEdit* e : {data_, train_, freeze_}) connect(e, &QLineEdit::textChanged, this, &SetUpDialog::update);
  connect(loss_, &QComboBox::currentIndexChanged, this, &SetUpDialog::update);
  connect(lossFunction_, &QComboBox::currentIndexChanged, this, &SetUpDialog::update);
  connect(labels_, &QComboBox::currentTextChanged, this, &SetUpDialog::update);
  connect(optimizer_, &QComboBox::currentIndexChanged, this, &SetUpDialog::update);
  return scroll;
}

void SetUpDialog::addDevice(const QString& device) {
  if (device_->findData(device) >= 0) return;
  const QString shown = format::visible(device);
  device_->addItem(device == u"cpu"        ? QStringLiteral("CPU")
                   : device == u"cuda"     ? QStringLiteral("GPU (CUDA)")
                   : device == u"auto"     ? QStringLiteral("GPU if there is one")
                   : device == u"emulated" ? QStringLiteral("Emulated GPU")
                                           : shown,
                   device);
}

void SetUpDialog::chooseData() {
  const QString here = host_.isEmpty() ? QString::fromStdString(model_->path()).section('/', 0, -2) : QDir::homePath();
  auto* dialog =
      new QFileDialog(this, host_.isEmpty() ? QStringLiteral("Batches") : QStringLiteral("Send batches to %1").arg(host_),
                      here, QStringLiteral("Batches (*.npz *.safetensors);;All files (*)"));
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
  if (more_) more_->setRemote();
  browse_->setText(QStringLiteral("Send…"));
  browse_->setToolTip(
      QStringLiteral("Copies a file of this machine to %1. A file that lies there is named by its path").arg(host_));
  data_->setPlaceholderText(QStringLiteral("synthetic, from the seed; or a path on %1").arg(host_));
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

// The model's own targets: the input that is read as class labels, or one that is called so, of the type that the loss
// compares with.
void SetUpDialog::proposeLabels() {
  if (chosenLabels_) return;
  const bool classes = lossFunction_->currentData() == QStringLiteral("cross_entropy");
  QString found;
  for (const auto& input : model_->inputs()) {
    const QString name = QString::fromStdString(input.name()), dtype = QString::fromStdString(input.dtype());
    if (!dtype.startsWith(classes ? u"int" : u"float")) continue;
    static const QStringList kNames{"label", "labels", "target", "targets"};
    const bool role = input.kind() == snapshot::InputInfo::LABELS;
    if (role || kNames.contains(name, Qt::CaseInsensitive)) found = name;
    if (role) break;
  }
  labels_->setCurrentText(found);
}

QWidget* SetUpDialog::fieldOf(const QString& setting) const {
  const std::pair<const char*, QWidget*> fields[] = {{"data", data_},
                                                     {"dim", dims_},
                                                     {"loss", loss_},
                                                     {"logits", loss_},
                                                     {"labels", labels_},
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
                                                     {"device", device_}};
  for (const auto& [name, field] : fields)
    if (setting == QLatin1String(name)) return field;
  return more_ ? more_->fieldOf(setting.toStdString()) : nullptr;
}

}  // namespace stepscope
