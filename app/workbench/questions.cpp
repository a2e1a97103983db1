// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/questions.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <utility>

namespace stepscope {

void askNumber(QWidget* parent, const QString& title, const QString& label, int value, int most,
               const std::function<void(int)>& then) {
  auto* dialog = new QInputDialog(parent);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setInputMode(QInputDialog::IntInput);
  dialog->setWindowTitle(title);
  dialog->setLabelText(label);
  dialog->setIntRange(0, most);
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
