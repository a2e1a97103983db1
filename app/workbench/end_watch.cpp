// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/end_watch.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

namespace stepscope {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kSeconds = 20;
#else
constexpr unsigned kSeconds = 2;
#endif
std::atomic<bool> watching = false;

void endNow(int) {
  constexpr std::string_view kText = "error: the window did not end in time and was ended; what was recorded stays\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
  _exit(1);
}

void watchFor(unsigned seconds) {
  struct sigaction action = {};
  action.sa_handler = endNow;
  sigaction(SIGALRM, &action, nullptr);
  alarm(seconds);
}

}  // namespace

void endSoon() {
  if (!watching.exchange(true)) watchFor(kSeconds);
}

void endWithin(unsigned seconds) {
  watching = false;
  watchFor(seconds);
}

}  // namespace stepscope
