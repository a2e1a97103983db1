// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/end_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <QSocketNotifier>
#include <atomic>
#include <cerrno>
#include <csignal>

namespace stepscope {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};
std::atomic<int> written{-1};
std::atomic<void (*)()> onSignal{nullptr};
static_assert(std::atomic<int>::is_always_lock_free);

// Nothing but a write is safe in a handler; the loop hears of it at the other end of the pipe.
void handle(int) {
  const int before = errno;
  if (const auto first = onSignal.load()) first();
  const char byte = 0;
  [[maybe_unused]] const auto count = ::write(written.load(), &byte, 1);
  errno = before;
}

void setHandler(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

}  // namespace

EndSignals::EndSignals(void (*atOnce)(), QObject* parent) : QObject(parent) {
  onSignal = atOnce;
  if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) return;
  auto* notifier = new QSocketNotifier(pipe_[0], QSocketNotifier::Read, this);
  connect(notifier, &QSocketNotifier::activated, this, [this] {
    char bytes[16];
    if (read(pipe_[0], bytes, sizeof bytes) > 0) emit asked();
  });
  written = pipe_[1];
  setHandler(handle, static_cast<int>(SA_RESETHAND) | SA_RESTART);
}

EndSignals::~EndSignals() {
  if (pipe_[0] < 0) return;
  setHandler(SIG_DFL, 0);
  written = -1;
  onSignal = nullptr;
  for (const int end : pipe_) ::close(end);
}

}  // namespace stepscope
