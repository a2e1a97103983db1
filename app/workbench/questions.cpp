// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/questions.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <limits>
#include <utility>

#include "views/common/format.h"

namespace stepscope {

namespace {

// Stays open with a number beyond the largest one. A box that knew it would leave out the digit that goes beyond, and
// another number would be meant.
class NumberDialog : public QInputDialog {
 public:
  NumberDialog(const QString& label, int least, int most, QWidget* parent)
      : QInputDialog(parent),
        text_(QStringLiteral("%1\n%2 to %3").arg(label, format::count(least), format::count(most))),
        least_(least),
        most_(most) {
    setInputMode(QInputDialog::IntInput);
    setLabelText(text_);
    setIntRange(0, std::numeric_limits<int>::max());
  }

  void done(int result) override {
    if (result == QDialog::Accepted && (intValue() < least_ || intValue() > most_))
      setLabelText(QStringLiteral("%1: not %2").arg(text_, format::count(intValue())));
    else
      QInputDialog::done(result);
  }

 private:
  const QString text_;
  const int least_, most_;
};

}  // namespace

void askNumber(QWidget* parent, const QString& title, const QString& label, int value, int least, int most,
               const std::function<void(int)>& then) {
  auto* dialog = new NumberDialog(label, least, most, parent);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  dialog->setIntValue(value);
  QObject::connect(dialog, &QInputDialog::intValueSelected, parent, then);
  dialog->open();
}

void askText(QWidget* parent, const QString& title, const QString& label, const QString& text, const QString& objectName,
             const std::function<void(const QString&)>& then) {
  auto* dialog = new QInputDialog(parent);
  dialog->setObjectName(objectName);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  dialog->setLabelText(label);
  dialog->setTextValue(text);
  QObject::connect(dialog, &QInputDialog::textValueSelected, parent, [then](const QString& answer) {
    if (!answer.trimmed().isEmpty()) then(answer.trimmed());
  });
  dialog->open();
}

void FileQuestions::askToSave(const QString& title, const QString& name, const QString& filter, const Then& then) {
  if (!saveDialog_) {
    saveDialog_ = new QFileDialog(&window_);
    saveDialog_->setObjectName(QStringLiteral("save_dialog"));
    saveDialog_->setFileMode(QFileDialog::AnyFile);
    saveDialog_->setAcceptMode(QFileDialog::AcceptSave);
    QObject::connect(saveDialog_, &QFileDialog::fileSelected, saveDialog_, [this](const QString& path) {
      if (const auto saved = std::exchange(save_, {})) saved(path);
    });
  }
  save_ = then;
  saveDialog_->setWindowTitle(title);
  saveDialog_->setNameFilter(filter);
  saveDialog_->setDefaultSuffix(QFileInfo(name).completeSuffix());  // also of report.trace.json: .json is another report
  saveDialog_->selectFile(name);
  saveDialog_->open();
}

void FileQuestions::askExisting(const QString& title, const QString& filter, const Then& then) {
  if (!existingDialog_) {
    existingDialog_ = new QFileDialog(&window_);
    existingDialog_->setObjectName(QStringLiteral("existing_dialog"));
    existingDialog_->setFileMode(QFileDialog::ExistingFile);
    existingDialog_->setAcceptMode(QFileDialog::AcceptOpen);
    QObject::connect(existingDialog_, &QFileDialog::fileSelected, existingDialog_, [this](const QString& path) {
      if (const auto chosen = std::exchange(existing_, {})) chosen(path);
    });
  }
  existing_ = then;
  existingDialog_->setWindowTitle(title);
  existingDialog_->setNameFilter(filter);
  existingDialog_->open();
}

void FileQuestions::askToOpen(const QString& title, const QString& folder, const QString& filter, const Then& then) {
  auto* dialog = new QFileDialog(&window_, title, folder, filter);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  QObject::connect(dialog, &QFileDialog::fileSelected, dialog, then);
  dialog->open();
}

}  // namespace stepscope
