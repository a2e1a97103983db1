// SPDX-License-Identifier: GPL-3.0-or-later
// A signal that is told at once while it is rare, and at most 30 times a second while it is not; the last one always is.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <algorithm>
#include <functional>

namespace stepscope {

class SignalRate {
 public:
  static constexpr int kPerSecond = 30;

  explicit SignalRate(std::function<void()> tell) : tell_(std::move(tell)) {
    since_.start();
    later_.setSingleShot(true);
    QObject::connect(&later_, &QTimer::timeout, &later_, [this] { now(); });
  }

  void request() {
    if (later_.isActive()) return;
    gain();
    if (credit_ >= 1)
      now();
    else
      later_.start(1000 / kPerSecond);
  }
  // At once, with what waits.
  void now() {
    later_.stop();
    gain();  // what was waited for is spent, and not counted again
    credit_ = std::max(0.0, credit_ - 1);
    tell_();
  }

 private:
  void gain() {
    credit_ = std::min<double>(kPerSecond, credit_ + static_cast<double>(since_.restart()) * kPerSecond / 1000);
  }

  std::function<void()> tell_;
  QTimer later_;
  QElapsedTimer since_;
  double credit_ = kPerSecond;
};

}  // namespace stepscope
