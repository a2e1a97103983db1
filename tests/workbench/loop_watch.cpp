// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/workbench/loop_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <QElapsedTimer>
#include <QEvent>
#include <QImage>
#include <QMetaEnum>
#include <QPainter>
#include <QThread>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <random>
#include <unordered_map>
#include <vector>

namespace stepscope {
namespace {

constexpr qint64 kBoundMs = 50;
// Above the bound is told; a failure is three times that: a virtual machine takes a core away for tens of milliseconds and
// says so nowhere.
constexpr qint64 kFailure = 3;
constexpr double kYardstickMs = 14.0;  // release build, 2-core 2.x GHz virtual machine
constexpr qint64 kTickNs = 2'000'000;

qint64 now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

qint64 threadCpuNs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

double yardstickMs() {
  const qint64 begin = threadCpuNs();
  std::mt19937 random(7);
  std::vector<double> numbers(60'000);
  std::unordered_map<unsigned, double> table;
  for (double& x : numbers) {
    x = static_cast<double>(random());
    table[static_cast<unsigned>(x) % 20'000] += x;
  }
  std::sort(numbers.begin(), numbers.end());
  QImage image(1000, 500, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::white);
  QPainter p(&image);
  for (int i = 0; i < 300; ++i)
    p.drawText(QPoint(i % 10 * 100, i / 10 * 16),
               QString::number(numbers[static_cast<std::size_t>(i)] + table[static_cast<unsigned>(i)]));
  p.end();
  return static_cast<double>(threadCpuNs() - begin) / 1e6;
}

}  // namespace

bool WatchedApplication::notify(QObject* receiver, QEvent* event) {
  if (depth_ > 0 || thread() != QThread::currentThread()) return QApplication::notify(receiver, event);
  // The receiver may be gone afterwards.
  const char* className = receiver ? receiver->metaObject()->className() : "";
  const QString name = receiver ? receiver->objectName() : QString();
  const int type = event->type();
  ++depth_;
  const qint64 begin = now();
  const bool result = QApplication::notify(receiver, event);
  const qint64 ns = now() - begin;
  --depth_;
  if (ns > longestNs) {
    longestNs = ns;
    longest = QStringLiteral("%1 '%2' %3, %4 ms")
                  .arg(QLatin1String(className), name, QLatin1String(QMetaEnum::fromType<QEvent::Type>().valueToKey(type)))
                  .arg(ns / 1'000'000);
  }
  return result;
}

LoopWatch::LoopWatch() : schedstat_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {
  yardstickMs();  // fonts are loaded
  slowness_ = std::max(1.0, std::min({yardstickMs(), yardstickMs(), yardstickMs()}) / kYardstickMs);
  ticker_ = std::thread([this] {
    qint64 last = now();
    while (!end_) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(kTickNs));
      const qint64 at = now();
      liveNs_ += std::min(at - last, 4 * kTickNs);  // a program that is stopped does not tick
      last = at;
    }
  });
}

LoopWatch::~LoopWatch() {
  end_ = true;
  ticker_.join();
  if (schedstat_ >= 0) close(schedstat_);
}

qint64 LoopWatch::ownNs() const {
  char text[96] = {};
  if (schedstat_ < 0 || pread(schedstat_, text, sizeof text - 1, 0) <= 0) return threadCpuNs();
  char* rest = nullptr;
  std::strtoull(text, &rest, 10);
  return now() - std::strtoll(rest, nullptr, 10);  // the second number: waited for a core
}

void LoopWatch::turn(const std::function<void()>& f) {
  auto* app = dynamic_cast<WatchedApplication*>(qApp);
  if (app) {
    app->longestNs = 0;
    app->longest.clear();
  }
  const qint64 live = liveNs_, begin = ownNs();
  f();
  const qint64 ns = std::min(ownNs() - begin, liveNs_ - live + 2 * kTickNs);
  if (ns / 1'000'000 > boundMs() && app)
    qInfo("held for %lld ms: %s", static_cast<long long>(ns / 1'000'000), qPrintable(app->longest));
  if (ns <= worstNs_) return;
  worstNs_ = ns;
  worst_ = app ? app->longest : QString();
}

bool LoopWatch::wait(const std::function<bool()>& done, int ms) {
  QElapsedTimer timer;
  timer.start();
  while (!done()) {
    if (timer.elapsed() > ms) return false;
    turn([] { QCoreApplication::processEvents(QEventLoop::AllEvents); });
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void LoopWatch::act(const std::function<void()>& f) { turn(f); }

bool LoopWatch::free() {
  // A machine that became slower since the start is measured again before it is blamed.
  if (worstMs() > boundMs()) slowness_ = std::max(slowness_, yardstickMs() / kYardstickMs);
  if (worstMs() > boundMs()) qWarning("%s", qPrintable(text()));
#ifdef SS_SANITIZED
  return true;  // how much a sanitizer adds to Qt's calls into us, no yardstick says
#else
  return worstMs() <= kFailure * boundMs();
#endif
}

qint64 LoopWatch::boundMs() const { return static_cast<qint64>(kBoundMs * slowness_); }

QString LoopWatch::text() const {
  return QStringLiteral("the loop was held for %1 ms; expected at most %2 (yardstick × %3); longest event: %4")
      .arg(worstMs())
      .arg(boundMs())
      .arg(slowness_, 0, 'f', 2)
      .arg(worst_);
}

}  // namespace stepscope
