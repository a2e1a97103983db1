// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/connect_dialog.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "views/common/tokens.h"

namespace stepscope {

ConnectDialog::ConnectDialog(const QList<RemoteHost>& known, const RemoteHost& now, QWidget* parent)
    : QDialog(parent), host_(new QComboBox), program_(new QLineEdit), problem_(new QLabel) {
  const Metrics m = Metrics::current();
  setObjectName(QStringLiteral("connect_dialog"));
  setWindowTitle(QStringLiteral("Connect to another machine"));
  setAttribute(Qt::WA_DeleteOnClose);
  setMinimumWidth(34 * m.unit);
  auto* layout = new QVBoxLayout(this);
  layout->setSpacing(m.unit);
  auto* text =
      new QLabel(QStringLiteral("The worker runs there, behind ssh: models, data and states are files of that machine. "
                                "Recordings stay here. ssh has to log in without a question."));
  text->setWordWrap(true);
  layout->addWidget(text);
  auto* form = new QFormLayout;
  host_->setEditable(true);
  host_->setObjectName(QStringLiteral("connect_host"));
  host_->setAccessibleName(QStringLiteral("Host"));
  host_->lineEdit()->setPlaceholderText(QStringLiteral("name, or user@name"));
  for (const RemoteHost& host : known) host_->addItem(host.host, host.program);
  program_->setObjectName(QStringLiteral("connect_program"));
  program_->setAccessibleName(QStringLiteral("Program on that machine"));
  program_->setPlaceholderText(QStringLiteral("stepscope, as its shell finds it"));
  connect(host_, &QComboBox::activated, this, [this](int index) { program_->setText(host_->itemData(index).toString()); });
  host_->setEditText(now.local() && !known.isEmpty() ? known.first().host : now.host);
  program_->setText(now.local() && !known.isEmpty() ? known.first().program : now.program);
  form->addRow(QStringLiteral("Host"), host_);
  form->addRow(QStringLiteral("Program"), program_);
  layout->addLayout(form);
  problem_->setObjectName(QStringLiteral("connect_problem"));
  problem_->setTextFormat(Qt::PlainText);
  problem_->setWordWrap(true);
  problem_->hide();
  layout->addWidget(problem_);
  auto* buttons = new QDialogButtonBox;
  auto* go = buttons->addButton(QStringLiteral("Connect"), QDialogButtonBox::AcceptRole);
  go->setObjectName(QStringLiteral("connect_go"));
  auto* here = buttons->addButton(QStringLiteral("This machine"), QDialogButtonBox::ResetRole);
  here->setObjectName(QStringLiteral("connect_here"));
  here->setEnabled(!now.local());
  buttons->addButton(QDialogButtonBox::Cancel);
  connect(go, &QPushButton::clicked, this, &ConnectDialog::ask);
  connect(here, &QPushButton::clicked, this, [this] {
    emit wanted({});
    accept();
  });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  layout->addWidget(buttons);
}

void ConnectDialog::ask() {
  const RemoteHost host{host_->currentText().trimmed(), program_->text().trimmed()};
  const QString problem = problemOf(host);
  problem_->setText(problem);
  problem_->setVisible(!problem.isEmpty());
  if (!problem.isEmpty()) return;
  emit wanted(host);
  accept();
}

}  // namespace stepscope
