// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/open_dialog/more_settings.h"

#include <QAction>
#include <QComboBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QLineEdit>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/tokens.h"
#include "views/open_dialog/form_parts.h"
#include "views/open_dialog/set_up_settings.h"

namespace stepscope {
namespace {

constexpr const char* kStartState = "start-state";  // a file

// Groups of options that say how the model is trained; the others say how the step is run and stand in Options.
constexpr const char* kGroups[] = {"Run", "Optimizer", "Precision", "Data", "Loss", "Parameters", "Memory"};

// Of memory the limit alone: the first build is refused by it. Of a run where it begins.
bool isTraining(const snapshot::Option& option) {
  if (option.group() == "Run") return option.name() == kStartState || option.name() == "start-step";
  return option.group() != "Memory" || option.name() == "memory.limit";
}

bool addsUp(const std::string& name) { return name == "group" || name == "pad"; }

}  // namespace

MoreSettings::MoreSettings(const std::vector<snapshot::Option>& options, const Settings& before, const QString& folder,
                           QWidget* parent)
    : QWidget(parent), folder_(folder) {
  const Metrics m = Metrics::current();
  auto* page = new QWidget;
  auto* form = new QFormLayout(page);
  form->setContentsMargins(m.padding, m.padding, m.padding, m.padding);
  form->setHorizontalSpacing(qRound(1.2 * m.unit));
  form->setVerticalSpacing(qRound(0.5 * m.unit));
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  for (const char* group : kGroups) {
    bool headed = false;
    for (const snapshot::Option& option : options) {
      // Weights that are missing are asked for where the file is read.
      if (option.group() != group || !isTraining(option) || hasField(option.name()) || option.name() == "missing-weights")
        continue;
      if (!headed) {
        auto* heading = new QLabel(QString::fromUtf8(group));
        heading->setProperty("role", "muted");
        form->addRow(heading);
        headed = true;
      }
      QStringList values;
      for (const auto& [name, value] : before)
        if (name == option.name()) values << QString::fromStdString(value);
      if (!addsUp(option.name()) && values.size() > 1) values = {values.last()};
      QWidget* editor = makeEditor(option, values.join(QStringLiteral("; ")));
      fields_.push_back({option.name(), option.default_value(), editor, !values.isEmpty()});
      form->addRow(format::visible(option.name()), editor);
    }
  }
  leaveWheelToPage(*page);
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setWidget(page);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);
}

QWidget* MoreSettings::makeEditor(const snapshot::Option& option, const QString& value) {
  const QString defaultValue = QString::fromStdString(option.default_value());
  QWidget* editor = nullptr;
  if (option.choices_size() > 0) {
    auto* box = new QComboBox;
    for (const auto& choice : option.choices()) box->addItem(QString::fromStdString(choice));
    box->setCurrentText(value.isEmpty() ? defaultValue : value);
    editor = box;
  } else {
    auto* text = new QLineEdit(value);
    text->setPlaceholderText(defaultValue.isEmpty() ? QStringLiteral("not set") : defaultValue);
    if (option.name() == kStartState) addChooser(text);
    editor = text;
  }
  editor->setObjectName(QStringLiteral("set_up_more_") + QString::fromStdString(option.name()));
  editor->setAccessibleName(format::visible(option.name()));
  QString tip = sentence(format::visible(option.doc()));
  if (addsUp(option.name())) tip += QStringLiteral("; several are separated by a semicolon");
  editor->setToolTip(QStringLiteral("<p style='white-space:pre-wrap'>%1</p>").arg(tip.toHtmlEscaped()));
  return editor;
}

void MoreSettings::addChooser(QLineEdit* text) {
  chooser_ = text->addAction(icon(QStringLiteral("open")), QLineEdit::TrailingPosition);
  chooser_->setObjectName(QStringLiteral("set_up_choose_state"));
  chooser_->setText(QStringLiteral("Choose a file…"));
  chooser_->setToolTip(chooser_->text());
  connect(chooser_, &QAction::triggered, this, [this, text] {
    auto* dialog = new QFileDialog(this, QStringLiteral("State to begin with"), folder_,
                                   QStringLiteral("States (*.safetensors);;All files (*)"));
    dialog->setObjectName(QStringLiteral("set_up_choose_state_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, text, &QLineEdit::setText);
    dialog->open();
  });
}

void MoreSettings::setRemote() {
  if (chooser_) chooser_->setVisible(false);
}

QString MoreSettings::textOf(const QWidget* editor) {
  if (const auto* box = qobject_cast<const QComboBox*>(editor)) return box->currentText();
  return static_cast<const QLineEdit*>(editor)->text().trimmed();
}

bool MoreSettings::has(const std::string& setting) const { return fieldOf(setting) != nullptr; }

QWidget* MoreSettings::fieldOf(const std::string& setting) const {
  const auto it = std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.name == setting; });
  return it == fields_.end() ? nullptr : it->editor;
}

MoreSettings::Settings MoreSettings::settings() const {
  Settings all;
  for (const Field& field : fields_) {
    const QString text = textOf(field.editor);
    if (text.isEmpty() || (!field.wasSet && text.toStdString() == field.defaultValue)) continue;
    if (!addsUp(field.name)) {
      all.emplace_back(field.name, text.toStdString());
      continue;
    }
    for (const QString& part : text.split(';', Qt::SkipEmptyParts))
      if (!part.trimmed().isEmpty()) all.emplace_back(field.name, part.trimmed().toStdString());
  }
  return all;
}

}  // namespace stepscope
