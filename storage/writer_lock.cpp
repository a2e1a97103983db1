#include "storage/writer_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

namespace stepscope::storage {
namespace {

constexpr int kPatience = 3;  // attempts at a lock that is held

std::string holder(int descriptor) {
  char text[96] = {};
  const ssize_t size = pread(descriptor, text, sizeof text - 1, 0);
  long pid = 0;
  char since[64] = {};
  if (size <= 0 || std::sscanf(text, "%ld %63[0-9:T-]", &pid, since) != 2) return "another process";
  return fmt::format("process {} since {}", pid, since);
}

// The file may have been removed by its last holder between our open and our lock.
bool stillThere(int descriptor, const std::string& path) {
  struct stat ours = {};
  struct stat named = {};
  return fstat(descriptor, &ours) == 0 && stat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

}  // namespace

bool WriterLock::isHeld(const std::string& projectPath) {
  const int descriptor = open((projectPath + ".lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  const bool held = flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(descriptor);
  return held;
}

Result<WriterLock> WriterLock::acquire(const std::string& projectPath) {
  WriterLock lock;
  lock.path_ = projectPath + ".lock";
  for (int attempt = 0; attempt < 8; ++attempt) {
    const int descriptor = open(lock.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor < 0)
      return fail(ErrorCode::kIo,
                  fmt::format("lock '{}': {}; the folder must be writable", lock.path_, std::strerror(errno)));
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      const std::string who = holder(descriptor);
      close(descriptor);
      if (attempt < kPatience) {  // perhaps only somebody who looks whether it is held
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      return fail(
          ErrorCode::kLocked,
          fmt::format("project '{}': being written by {}; one writer per file; hint: open it read-only", projectPath, who));
    }
    if (!stillThere(descriptor, lock.path_)) {
      close(descriptor);
      continue;
    }
    lock.descriptor_ = descriptor;
    const std::string text = fmt::format("{} {:%Y-%m-%dT%H:%M:%S}\n", getpid(), fmt::localtime(std::time(nullptr)));
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, text.data(), text.size(), 0) < 0)
      return fail(ErrorCode::kIo,
                  fmt::format("lock '{}': {}; the folder must be writable", lock.path_, std::strerror(errno)));
    return lock;
  }
  return fail(ErrorCode::kLocked,
              fmt::format("project '{}': the lock changes hands all the time; one writer per file", projectPath));
}

WriterLock::WriterLock(WriterLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

WriterLock& WriterLock::operator=(WriterLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

WriterLock::~WriterLock() {
  if (descriptor_ < 0) return;
  unlink(path_.c_str());
  close(descriptor_);
}

}  // namespace stepscope::storage
