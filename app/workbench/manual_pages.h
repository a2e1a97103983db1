// SPDX-License-Identifier: GPL-3.0-or-later
// The options of stepscope-workbench as data, and what the package says of them: manual page and completion, made of the
// same table as --help.
#pragma once

#include <QCommandLineOption>
#include <QList>
#include <QString>

namespace stepscope {

// In the order of the help.
QList<QCommandLineOption> windowOptions();

// "man": stepscope-workbench(1) in the language of man; "bash", "zsh": completion for that shell. Empty for other words.
QString manualPage(const QString& what);

}  // namespace stepscope
