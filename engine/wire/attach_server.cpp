#include "engine/wire/attach_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "engine/wire/attach_service.h"
#include "engine/wire/attach_socket.h"
#include "engine/wire/border.h"
#include "engine/wire/framing.h"

namespace stepscope {
namespace {

bool ofThisUser(int connection) {
  ucred who{};
  socklen_t size = sizeof who;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && (who.uid == getuid() || who.uid == 0);
}

// Its window is gone; the thread that serves it is about to notice.
bool hungUp(int connection) {
  pollfd there{connection, 0, 0};
  return poll(&there, 1, 0) > 0 && (there.revents & (POLLHUP | POLLERR)) != 0;
}

void tell(int connection, const std::string& text) { (void)::send(connection, text.data(), text.size(), MSG_NOSIGNAL); }

// Signals are the program's: its own threads take them.
std::thread quietThread(std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Result<std::unique_ptr<AttachServer>> AttachServer::start(std::filesystem::path path, std::string script,
                                                          snapshot::MachineInfo machine) {
  SS_ASSIGN(const int listening, listenForWindows(path));
  std::unique_ptr<AttachServer> server(new AttachServer(listening, std::move(path), std::move(script), std::move(machine)));
  if (pipe2(server->wake_, O_CLOEXEC) != 0) return fail(ErrorCode::kIo, fmt::format("pipe: {}", std::strerror(errno)));
  SS_TRY(caught("attach", [&]() -> Status {
    server->waiting_ = quietThread([raw = server.get()] { raw->waitForWindows(); });
    return {};
  }));
  return server;
}

AttachServer::AttachServer(int listening, std::filesystem::path path, std::string script, snapshot::MachineInfo machine)
    : path_(std::move(path)), script_(std::move(script)), machine_(std::move(machine)), listening_(listening) {}

AttachServer::~AttachServer() {
  close(wake_[1]);
  if (waiting_.joinable()) waiting_.join();
  if (const int connection = connection_; connection >= 0) shutdown(connection, SHUT_RDWR);
  if (serving_.joinable()) serving_.join();
  close(listening_);
  close(wake_[0]);
  unlink(path_.c_str());
}

void AttachServer::leaveToParent() {
  close(listening_);
  if (const int connection = connection_; connection >= 0) close(connection);
}

void AttachServer::waitForWindows() {
  while (true) {
    pollfd events[] = {{listening_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    if (poll(events, 2, -1) < 0 && errno != EINTR) return;
    if (events[1].revents != 0) return;
    if (events[0].revents == 0) continue;
    const int connection = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    if (const int before = connection_; before >= 0 && hungUp(before)) serving_.join();
    if (!ofThisUser(connection)) {
      tell(connection, "it belongs to another user; expected one of yours");
      close(connection);
    } else if (connection_ >= 0) {
      tell(connection, "another window is attached to it; expected none; hint: close that window");
      close(connection);
    } else {
      if (serving_.joinable()) serving_.join();
      connection_ = connection;
      const Status started = caught("attach", [&]() -> Status {
        serving_ = quietThread([this, connection] { serve(connection); });
        return {};
      });
      if (started) continue;
      tell(connection, started.error().message);
      connection_ = -1;
      close(connection);
    }
  }
}

void AttachServer::serve(int fd) {
  tell(fd, std::string(1, kLetIn));
  snapshot::AttachedScript attached;
  attached.set_pid(getpid());
  attached.set_script(script_);
  for (const std::string& name : AttachService::served()) attached.add_serves(name);
  {
    Connection connection(fd, fd, machine_, kLargestMessage, std::move(attached));
    AttachService service(connection, *loop_, script_);
    std::thread reader = quietThread([&connection] { connection.readLoop(); });
    while (const auto request = connection.next(service.cancellable())) {
      const bool last = request->request_case() == snapshot::Request::kShutdown;
      if (last) connection.acknowledge(request->id());
      const bool told = last || service.serve(*request).has_value();
      connection.served();
      if (last || !told) break;
    }
    connection.leave();
    shutdown(fd, SHUT_RDWR);  // ends the reader
    reader.join();
  }
  connection_ = -1;
  close(fd);
}

}  // namespace stepscope
