// SPDX-License-Identifier: GPL-3.0-or-later
// Quitting takes two seconds at most, whatever the window, its project or its worker is doing; longer only while the state
// of a training is kept.
#pragma once

namespace stepscope {

// Ends the process when it is still there two seconds from now (twenty under a sanitizer), with a line on standard error and
// exit code 1. What the recorder was given stays in the project: it commits from a thread of its own, every quarter of a
// second. Async-signal-safe; the first call counts.
void endSoon();

// The window answers, and has something to keep first: it is ended when it is still there `seconds` from now. endSoon()
// makes it two seconds again.
void endWithin(unsigned seconds);

}  // namespace stepscope
