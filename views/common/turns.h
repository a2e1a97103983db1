// SPDX-License-Identifier: GPL-3.0-or-later
// Work of the window that can wait for a moment, one piece per turn of the event loop: several panels that fill after one
// click never hold the loop for the sum of their times, and keys and paint events come in between. GUI thread.
#pragma once

#include <QObject>
#include <functional>

namespace stepscope::turns {

// Runs `work` in a later turn, after what was asked for before; not at all when `owner` is gone by then.
void later(QObject* owner, std::function<void()> work);
// Pieces that wait.
int waiting();

}  // namespace stepscope::turns
