// The loop of this program, offered to a window.
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "app/api/handles.h"
#include "app/version.h"
#include "engine/wire/attach_server.h"
#include "engine/wire/attach_socket.h"
#include "engine/wire/machine_facts.h"

using namespace stepscope;
using namespace stepscope::api;

namespace {

// One for the process. It is closed when the program ends, and not by the end of the library, which has no order.
struct Offered {
  std::mutex mutex;
  std::unique_ptr<AttachServer> server;
  std::string path;
};

Offered& offered() {
  static auto* const one = new Offered;
  return *one;
}

void inTheChild() {
  if (AttachServer* server = offered().server.release()) server->leaveToParent();
}

void whenTheProgramEnds() { offered().server.reset(); }

// Windows learn from it that the program has ended before its memory is gone.
void closeLater() {
  static const bool once = [] {
    pthread_atfork(nullptr, nullptr, inTheChild);
    return std::atexit(whenTheProgramEnds) == 0;
  }();
  (void)once;
}

}  // namespace

extern "C" {

ss_error* ss_attach_open(const char* path, const char* script) {
  return guarded("ss_attach_open", [&]() -> Status {
    std::filesystem::path place = attachSocketOf(getpid());
    if (path) {
      SS_ASSIGN(place, nameOf("ss_attach_open: path", path));
    }
    std::string name;
    if (script) {
      SS_ASSIGN(name, nameOf("ss_attach_open: script", script));
    }
    Offered& one = offered();
    const std::lock_guard lock(one.mutex);
    if (one.server && one.server->path() == place) return {};
    if (one.server)
      return invalid(fmt::format("ss_attach_open: '{}' is open; expected one place for a process, or ss_attach_close before",
                                 one.server->path().string()));
    SS_ASSIGN(one.server, AttachServer::start(place, name, machineFacts(SS_VERSION)));
    one.path = place.string();
    closeLater();
    return {};
  });
}

ss_error* ss_attach(ss_session* session) {
  return guarded("ss_attach", session, [&](Session& s) -> Status {
    Offered& one = offered();
    const std::lock_guard lock(one.mutex);
    if (!one.server) return fail(ErrorCode::kNotFound, "ss_attach: no place is open; expected ss_attach_open before");
    session->attached = std::make_shared<AttachedSession>(one.server->loop(), s);
    if (session->function) session->function->setWatcher(session->attached.get());
    return {};
  });
}

ss_error* ss_attach_path(const char** path) {
  return guarded("ss_attach_path", [&]() -> Status {
    if (!path) return invalid("ss_attach_path: the place for the path is NULL; expected one");
    Offered& one = offered();
    const std::lock_guard lock(one.mutex);
    *path = one.server ? one.path.c_str() : nullptr;
    return {};
  });
}

ss_error* ss_attach_place(const char* what) {
  return guarded("ss_attach_place", [&]() -> Status {
    SS_ASSIGN(std::string words, nameOf("ss_attach_place: what", what));
    std::shared_ptr<AttachedLoop> loop;
    {
      Offered& one = offered();
      const std::lock_guard lock(one.mutex);
      if (one.server) loop = one.server->loop();
    }
    if (loop) loop->place(std::move(words));
    return {};
  });
}

ss_error* ss_attach_steps(int32_t* steps) {
  return guarded("ss_attach_steps", [&]() -> Status {
    if (!steps) return invalid("ss_attach_steps: the place for the answer is NULL; expected one");
    Offered& one = offered();
    const std::lock_guard lock(one.mutex);
    *steps = one.server && one.server->loop()->stepsPlaces() ? 1 : 0;
    return {};
  });
}

void ss_attach_close(void) {
  Offered& one = offered();
  const std::lock_guard lock(one.mutex);
  one.server.reset();
}
}
