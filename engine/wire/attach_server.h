// Lets one window after the other in to the loop of this program. A thread waits for windows, another serves the one that is
// there; a second window is told so. The destructor ends both and opens all gates.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "engine/snapshot/run.pb.h"
#include "engine/wire/attached_loop.h"

namespace stepscope {

class AttachServer {
 public:
  // Errors: those of listenForWindows(). `script`: what the program calls itself, for people.
  static Result<std::unique_ptr<AttachServer>> start(std::filesystem::path path, std::string script,
                                                     snapshot::MachineInfo machine);
  ~AttachServer();
  AttachServer(const AttachServer&) = delete;
  AttachServer& operator=(const AttachServer&) = delete;

  const std::shared_ptr<AttachedLoop>& loop() { return loop_; }  // without a window once the server is gone
  const std::filesystem::path& path() const { return path_; }
  // In a child process after a fork: the parent's ends of the connections are closed here, and nothing else is touched.
  void leaveToParent();

 private:
  AttachServer(int listening, std::filesystem::path path, std::string script, snapshot::MachineInfo machine);
  void waitForWindows();
  void serve(int connection);

  const std::filesystem::path path_;
  const std::string script_;
  const snapshot::MachineInfo machine_;
  const std::shared_ptr<AttachedLoop> loop_ = std::make_shared<AttachedLoop>();
  const int listening_;
  int wake_[2] = {-1, -1};            // a pipe that ends the waiting
  std::atomic<int> connection_ = -1;  // of the window that is there
  std::thread waiting_, serving_;
};

}  // namespace stepscope
