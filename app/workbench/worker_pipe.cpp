// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/worker_pipe.h"

#include <csignal>
#include <limits>
#include <utility>

namespace stepscope {
namespace {

constexpr int kPatienceMs = 500;

QString signalName(int number) {
  switch (number) {
    case SIGSEGV: return QStringLiteral("segmentation fault");
    case SIGABRT: return QStringLiteral("abort");
    case SIGKILL: return QStringLiteral("killed");
    case SIGTERM: return QStringLiteral("terminated");
    case SIGFPE: return QStringLiteral("arithmetic fault");
    case SIGBUS: return QStringLiteral("bus error");
    case SIGILL: return QStringLiteral("illegal instruction");
    default: return QStringLiteral("signal %1").arg(number);
  }
}

}  // namespace

void WorkerPipe::start(const QString& program, const QStringList& arguments) {
  if (process_) {
    process_->disconnect(this);
    process_->kill();
    process_->waitForFinished(1000);
    process_->deleteLater();
  }
  reader_.clear();
  errors_.clear();
  reason_.clear();
  closing_ = false;
  process_ = new QProcess(this);
  connect(process_, &QProcess::started, this, &WorkerPipe::started);
  connect(process_, &QProcess::readyReadStandardOutput, this, &WorkerPipe::readOutput);
  connect(process_, &QProcess::readyReadStandardError, this, &WorkerPipe::readErrors);
  connect(process_, &QProcess::errorOccurred, this, [this, program](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) {
      emit ended(QStringLiteral("worker '%1': %2; expected the stepscope program beside this one")
                     .arg(program, process_->errorString()),
                 false, 0);
    }
  });
  connect(process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
    readOutput();
    readErrors();
    QString reason = reason_;
    if (reason.isEmpty()) {
      reason = status == QProcess::CrashExit ? QStringLiteral("The worker ended: %1").arg(signalName(code))
                                             : QStringLiteral("The worker ended with exit code %1").arg(code);
    }
    emit ended(reason, closing_ && reason_.isEmpty(), status == QProcess::NormalExit && reason_.isEmpty() ? code : 0);
  });
  process_->start(program, arguments);
}

void WorkerPipe::send(const QByteArray& frame) {
  if (process_ && process_->state() != QProcess::NotRunning) process_->write(frame);
}

void WorkerPipe::kill() {
  if (process_ && process_->state() != QProcess::NotRunning) process_->kill();
}

void WorkerPipe::close() {
  if (!process_ || process_->state() == QProcess::NotRunning) return;
  closing_ = true;
  snapshot::Request all;  // whatever it serves; it would finish that for whoever may still read the answer
  all.set_id(std::numeric_limits<std::int64_t>::max());
  all.mutable_cancel();
  process_->write(FrameReader::frame(all.SerializeAsString()));
  process_->closeWriteChannel();
  // It keeps nothing that is worth more: who closes the window waits for this.
  if (!process_->waitForFinished(kPatienceMs)) {
    process_->kill();
    process_->waitForFinished(kPatienceMs);
  }
}

void WorkerPipe::breakOff(const QString& reason) {
  if (!reason_.isEmpty()) return;
  reason_ = reason;
  process_->kill();
}

void WorkerPipe::readOutput() {
  if (!reason_.isEmpty()) {
    process_->readAllStandardOutput();
    return;
  }
  const QByteArray bytes = process_->readAllStandardOutput();
  bytesRead_ += bytes.size();
  reader_.append(bytes);
  while (auto message = reader_.next()) {
    auto response = std::make_shared<snapshot::Response>();
    if (!response->ParseFromArray(message->constData(), static_cast<int>(message->size()))) {
      breakOff(QStringLiteral("worker protocol: a message of %1 bytes does not parse; expected snapshot.Response")
                   .arg(message->size()));
      return;
    }
    Delivery delivery;
    if (response->has_graph()) delivery.graph = GraphSnapshot::make(std::move(*response->mutable_graph()));
    if (response->has_plan()) delivery.plan = PlanSnapshot::make(std::move(*response->mutable_plan()));
    delivery.response = std::move(response);
    put(std::move(delivery));
  }
  if (reader_.bad()) {
    breakOff(QStringLiteral("worker protocol: message length %1; expected at most %2")
                 .arg(reader_.badLength())
                 .arg(kMaxFrameBytes));
  }
}

void WorkerPipe::put(Delivery delivery) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(delivery));
    if (waiting_.size() > 1) return;
  }
  emit arrived();
}

std::vector<Delivery> WorkerPipe::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

void WorkerPipe::readErrors() {
  errors_.append(process_->readAllStandardError());
  qsizetype end;
  while ((end = errors_.indexOf('\n')) >= 0 || errors_.size() > 64 * 1024) {
    const qsizetype length = end >= 0 ? end : errors_.size();
    emit text(QString::fromUtf8(errors_.left(length)));
    errors_.remove(0, end >= 0 ? end + 1 : length);
  }
}

}  // namespace stepscope
