// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/worker_client.h"

#include <QCoreApplication>
#include <QDir>
#include <QMetaObject>

namespace stepscope {
namespace {
constexpr int kCancelPatienceMs = 3000;
constexpr int kTickMs = 250;
constexpr int kGreetEveryMs = 1000;
constexpr int kLongMs = 1000;
constexpr int kSilenceMs = 4000;
}  // namespace

WorkerClient::WorkerClient(QObject* parent) : QObject(parent), pipe_(new WorkerPipe) {
  qRegisterMetaType<Delivery>();
  setHost({});
  pipe_->moveToThread(&thread_);
  connect(&thread_, &QThread::finished, pipe_, &QObject::deleteLater);
  connect(pipe_, &WorkerPipe::arrived, this, &WorkerClient::takeIn);
  connect(pipe_, &WorkerPipe::text, this, [this](const QString& line) {
    said_ = line;
    emit text(line);
  });
  connect(pipe_, &WorkerPipe::ended, this, &WorkerClient::end);
  thread_.setObjectName(QStringLiteral("worker pipe"));
  thread_.start();
  connect(&watch_, &QTimer::timeout, this, [this] {
    greet();
    check();
  });
  watch_.start(kTickMs);
}

WorkerClient::~WorkerClient() {
  pipe_->disconnect(this);
  QMetaObject::invokeMethod(pipe_, &WorkerPipe::close, Qt::BlockingQueuedConnection);
  thread_.quit();
  thread_.wait();
}

void WorkerClient::setCommand(const QString& program, const QStringList& arguments) {
  program_ = program;
  arguments_ = arguments;
}

void WorkerClient::setHost(const RemoteHost& host) {
  host_ = host;
  attached_.reset();
  if (!host.local()) {
    const HostCommand command = workerCommand(host);
    return setCommand(command.program, command.arguments);
  }
  const QString named = qEnvironmentVariable("STEPSCOPE_WORKER");
  const QString program =
      named.isEmpty() ? QDir(QCoreApplication::applicationDirPath()).filePath(QStringLiteral("stepscope")) : named;
  setCommand(program, workerArguments(host));
}

void WorkerClient::start() {
  // Asked of nobody since the last one died: the new one does not know of it.
  if (!alive_ && !pending_.empty()) end(QStringLiteral("the worker is not running"), false);
  alive_ = true;
  setState(WorkerState::kStarting);
  heard_.start();
  greeting_ = 0;
  came_ = false;
  said_.clear();
  refusal_.clear();
  greeted_.invalidate();  // the first greeting is the request below
  QMetaObject::invokeMethod(pipe_, [this, program = program_, arguments = arguments_] { pipe_->start(program, arguments); });
  snapshot::Request hello;
  hello.mutable_hello()->set_protocol(1);
  request(std::move(hello), QStringLiteral("starting the worker"), [this](const Delivery& d) {
    if (d.response->has_hello()) greetedBy(d);
  });
}

void WorkerClient::greetedBy(const Delivery& d) {
  came_ = true;
  if (d.response->hello().has_attached()) attached_ = d.response->hello().attached();
  refusal_ = problemOfVersion(host_, QString::fromStdString(d.response->hello().version()));
  if (!refusal_.isEmpty()) return kill();
  emit event(d);
  emit started();
  greeted_.start();
}

void WorkerClient::kill() { QMetaObject::invokeMethod(pipe_, &WorkerPipe::kill); }

quint64 WorkerClient::request(snapshot::Request request, const QString& what, Callback callback, bool quiet) {
  const quint64 id = ++lastId_;
  request.set_id(id);
  Pending pending{what, std::move(callback), quiet, {}, {}};
  pending.since.start();
  pending_.emplace(id, std::move(pending));
  if (!alive_) {
    // Answered from the event loop, as a worker would: callers need not care about the order.
    QMetaObject::invokeMethod(
        this,
        [this] {
          if (!alive_) end(QStringLiteral("the worker is not running"), false);
        },
        Qt::QueuedConnection);
    return id;
  }
  QByteArray frame = FrameReader::frame(request.SerializeAsString());
  QMetaObject::invokeMethod(pipe_, [this, frame] { pipe_->send(frame); });
  if (!quiet) check();
  return id;
}

void WorkerClient::greet() {
  if (!alive_ || greeting_ != 0 || !greeted_.isValid() || greeted_.elapsed() < kGreetEveryMs) return;
  greeting_ = ++lastId_;
  greeted_.start();
  snapshot::Request request;
  request.set_id(greeting_);
  request.mutable_hello()->set_protocol(1);
  QByteArray frame = FrameReader::frame(request.SerializeAsString());
  QMetaObject::invokeMethod(pipe_, [this, frame] { pipe_->send(frame); });
}

bool WorkerClient::silent() {
  const qint64 bytes = pipe_->bytesRead();
  // A window that was held up itself, or asleep with its machine, has not listened.
  const bool listened = looked_.isValid() && looked_.elapsed() < kSilenceMs / 2;
  looked_.start();
  if (bytes != bytes_ || !listened) heard_.start();
  bytes_ = bytes;
  return (greeting_ != 0 || !greeted_.isValid()) && heard_.elapsed() > kSilenceMs;
}

void WorkerClient::cancel(quint64 id) {
  const auto it = pending_.find(id);
  if (it == pending_.end() || it->second.cancelled.isValid()) return;
  it->second.cancelled.start();
  snapshot::Request request;
  request.set_id(++lastId_);
  request.mutable_cancel()->set_id(id);
  QByteArray frame = FrameReader::frame(request.SerializeAsString());
  QMetaObject::invokeMethod(pipe_, [this, frame] { pipe_->send(frame); });
}

void WorkerClient::cancelAll() {
  std::vector<quint64> ids;
  for (const auto& [id, pending] : pending_) ids.push_back(id);
  for (const quint64 id : ids) cancel(id);
}

bool WorkerClient::busy() const { return shown() != nullptr; }

const WorkerClient::Pending* WorkerClient::shown() const {
  for (const auto& [id, pending] : pending_)
    if (!pending.quiet) return &pending;
  return nullptr;
}

bool WorkerClient::busyForLong() const { return shown() && shown()->since.elapsed() >= kLongMs; }

QString WorkerClient::activity(const QString& at) const {
  const Pending* pending = shown();
  if (!pending) return {};
  const QString what = at.isEmpty() ? pending->what : QStringLiteral("%1, %2").arg(pending->what, at);
  const qint64 ms = pending->since.elapsed();
  return ms < kLongMs ? what : QStringLiteral("%1, %2 s").arg(what).arg(ms / 1000);
}

void WorkerClient::takeIn() {
  for (const Delivery& delivery : pipe_->take()) deliver(delivery);
}

void WorkerClient::deliver(const Delivery& delivery) {
  const quint64 id = delivery.response->id();
  if (id == greeting_) greeting_ = 0;
  if (id == 0) {
    emit event(delivery);
    return;
  }
  const auto it = pending_.find(id);
  if (it == pending_.end()) return;  // the answer to a cancel, or to a request that ended already
  Callback callback = it->second.callback;
  if (delivery.response->done()) pending_.erase(it);
  if (callback) callback(delivery);
  check();
}

void WorkerClient::end(const QString& told, bool expected, int exitCode) {
  takeIn();  // said before it ended
  const bool never = (!host_.local() || host_.attached()) && !came_ && alive_ && !expected && exitCode > 0;
  const QString reason = !refusal_.isEmpty()          ? refusal_
                         : never                      ? whyNoWorker(host_, exitCode, said_)
                         : attached_ && exitCode == 1 ? QStringLiteral("The script has ended")
                                                      : told;
  const bool wasAlive = alive_;
  alive_ = false;
  // Callbacks may send new requests; those are not of the worker that died.
  std::map<quint64, Pending> open;
  open.swap(pending_);
  if (wasAlive) setState(expected ? WorkerState::kNone : WorkerState::kDead);
  if (wasAlive && !expected) emit died(reason);
  for (auto& [id, pending] : open) {
    auto response = std::make_shared<snapshot::Response>();
    response->set_id(id);
    response->set_done(true);
    response->mutable_error()->set_code("worker_died");
    response->mutable_error()->set_message(reason.toStdString());
    if (pending.callback) pending.callback({response, nullptr, nullptr});
  }
}

void WorkerClient::check() {
  if (!alive_) return;
  bool stuck = silent();
  for (const auto& [id, pending] : pending_) {
    stuck = stuck || (pending.cancelled.isValid() && pending.cancelled.elapsed() > kCancelPatienceMs);
  }
  setState(stuck ? WorkerState::kUnresponsive : busy() ? WorkerState::kBusy : WorkerState::kIdle);
}

void WorkerClient::setState(WorkerState state) {
  // Busy is told again on every tick, because its text counts seconds.
  if (state == state_ && state != WorkerState::kBusy) return;
  state_ = state;
  emit stateChanged();
}

}  // namespace stepscope
