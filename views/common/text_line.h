// SPDX-License-Identifier: GPL-3.0-or-later
// Lines of text above and below the content of a view: plain text that wraps, can be selected and is hidden while it is
// empty.
#pragma once

#include <QLabel>

namespace stepscope {

// Hidden; its colour is that of property "role" ("", "muted", "warn", "error": tokens.h). `id`: its object name.
QLabel* textLine(const char* role, const char* id = "");
// Shows the text in the colour of the role, or hides the line when there is none.
void say(QLabel* line, const QString& text, const QString& role);

}  // namespace stepscope
