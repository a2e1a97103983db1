#include "engine/wire/connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <chrono>

#include "engine/snapshot/alert.h"
#include "engine/snapshot/utf8.h"
#include "engine/wire/border.h"
#include "engine/wire/framing.h"

namespace stepscope {

void Connection::readLoop() {
  const Status read = caught("stream", [this] { return readRequests(); });
  std::unique_lock lock(mutex_);
  if (!read && read.error().code != ErrorCode::kNotFound) broken_ = read;
  ended_ = true;
  wake_.notify_all();
  // The answers may still be read: what runs ends early only when they are not.
  constexpr auto kLook = std::chrono::milliseconds(20);
  while (!left_ && broken_ && heard()) wake_.wait_for(lock, kLook);
  if (!left_ && work_.cancel) work_.cancel();
}

void Connection::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  wake_.notify_all();
}

// Returns when the stream ends (kNotFound) or breaks.
Status Connection::readRequests() {
  while (true) {
    SS_ASSIGN(const std::string frame, readFrame(in_));
    snapshot::Request request;
    if (!request.ParseFromString(frame) || request.request_case() == snapshot::Request::REQUEST_NOT_SET) {
      sendError(request.id(),
                {ErrorCode::kCorrupt,
                 fmt::format("message: {} bytes are not a request; expected worker.proto's Request", frame.size())});
    } else if (request.request_case() == snapshot::Request::kHello) {
      if (const Status greeted = hello(request); !greeted) sendError(request.id(), greeted.error());
    } else if (request.request_case() == snapshot::Request::kCancel) {
      cancel(request.cancel().id());
      acknowledge(request.id());
    } else {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(request));
      wake_.notify_one();
    }
  }
}

Status Connection::hello(const snapshot::Request& request) {
  if (request.hello().protocol() != 1)
    return unsupported(fmt::format("protocol {}: expected 1", request.hello().protocol()));
  snapshot::Response response;
  response.mutable_hello()->set_protocol(1);
  response.mutable_hello()->set_version(machine_.version());
  *response.mutable_hello()->mutable_machine() = machine_;
  if (attached_) *response.mutable_hello()->mutable_attached() = *attached_;
  return trySend(request.id(), std::move(response), true);
}

// 0: whatever is served.
void Connection::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (serving_ != id && id != 0) {
    cancelled_.insert(id);
    return;
  }
  cancelling_ = true;
  if (work_.cancel) work_.cancel();
}

std::optional<snapshot::Request> Connection::next(const Cancellable& work) {
  while (true) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return !queue_.empty() || ended_; });
    if (queue_.empty() || (ended_ && !heard())) return std::nullopt;
    snapshot::Request request = std::move(queue_.front());
    queue_.pop_front();
    if (cancelled_.erase(request.id()) == 0) {
      serving_ = request.id();
      cancelling_ = false;
      work_ = work;
      if (work_.clear) work_.clear();
      return request;
    }
    lock.unlock();
    sendError(request.id(), {ErrorCode::kCancelled, "request: cancelled before it began"});
  }
}

void Connection::served() {
  const std::lock_guard lock(mutex_);
  serving_ = 0;
  work_ = {};
}

bool Connection::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

Status Connection::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

// Whether somebody may still read the answers. Requests may all be written, and the stream closed, before the first of them
// is answered, so the end of the input alone does not say that.
bool Connection::heard() {
  pollfd out{out_, 0, 0};
  if (poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) gone_ = true;
  return !gone_;
}

namespace {

std::string replyName(const snapshot::Response& response) {
  const auto* field = snapshot::Response::descriptor()->FindFieldByNumber(static_cast<int>(response.response_case()));
  return field ? field->name() : "empty";
}

}  // namespace

// The size is looked at first: protobuf serialises nothing of 2 GiB or more.
Status Connection::trySend(std::uint64_t id, snapshot::Response response, bool done) {
  response.set_id(id);
  response.set_done(done);
  if (const std::size_t size = response.ByteSizeLong(); size > largestReply_)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("reply '{}': {} bytes; expected at most {}{}", replyName(response), size, largestReply_,
                            response.has_tensor() ? "; hint: fetch a part of the value" : ""));
  const std::string bytes = response.SerializeAsString();
  const std::lock_guard lock(writing_);
  if (!writeFrame(out_, bytes)) gone_ = true;
  return {};
}

void Connection::send(std::uint64_t id, snapshot::Response response, bool done) {
  const Status sent = trySend(id, std::move(response), done);
  if (sent) return;
  snapshot::Response lost;
  if (id != 0) {
    lost.mutable_error()->set_code(std::string(errorCodeName(sent.error().code)));
    lost.mutable_error()->set_message(sent.error().message);
    (void)trySend(id, std::move(lost), true);
    return;
  }
  *lost.mutable_alert() = makeAlert(snapshot::Alert::ERROR, "event_lost", sent.error().message);
  (void)trySend(id, std::move(lost), done);
}

void Connection::sendError(std::uint64_t id, const Error& error) {
  snapshot::Response response;
  response.mutable_error()->set_code(std::string(errorCodeName(error.code)));
  response.mutable_error()->set_message(toUtf8(error.message));
  response.mutable_error()->set_setting(toUtf8(error.option));
  send(id, std::move(response), true);
}

void Connection::acknowledge(std::uint64_t id) {
  snapshot::Response response;
  response.mutable_state();
  send(id, std::move(response), true);
}

}  // namespace stepscope
