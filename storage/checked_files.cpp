#include "storage/checked_files.h"

#include <sys/stat.h>

#include <atomic>
#include <compare>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>

namespace stepscope::storage {
namespace {

constexpr std::int64_t kMoment = 100'000'000;  // ns: no clock of a file system is coarser
constexpr std::size_t kMost = 1000;

struct Place {
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const Place&) const = default;
};
struct State {
  std::int64_t size = 0, changed = 0, walSize = 0, walChanged = 0;
  bool operator==(const State&) const = default;
};

struct Known {
  std::mutex mutex;
  std::map<Place, State> files;
  std::map<Place, int> written;
};
Known& known() {
  static Known all;
  return all;
}
std::atomic<int> checks = 0;

std::int64_t nanoseconds(const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

std::optional<std::pair<Place, State>> look(const std::string& path) {
  struct stat file = {}, wal = {};
  if (stat(path.c_str(), &file) != 0) return std::nullopt;
  State state{file.st_size, nanoseconds(file.st_mtim), 0, 0};
  if (stat((path + "-wal").c_str(), &wal) == 0) state.walSize = wal.st_size, state.walChanged = nanoseconds(wal.st_mtim);
  return std::pair(Place{file.st_dev, file.st_ino}, state);
}

bool settled(const State& state) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now) - std::max(state.changed, state.walChanged) > kMoment;
}

}  // namespace

bool CheckedFiles::contains(const std::string& path) {
  const auto now = look(path);
  if (!now) return false;
  const std::lock_guard lock(known().mutex);
  if (known().written.contains(now->first)) return true;
  const auto found = known().files.find(now->first);
  return found != known().files.end() && found->second == now->second;
}

void CheckedFiles::add(const std::string& path) {
  const auto now = look(path);
  if (!now || !settled(now->second)) return;
  const std::lock_guard lock(known().mutex);
  if (known().files.size() >= kMost) known().files.clear();
  known().files[now->first] = now->second;
}

void CheckedFiles::beginWriting(dev_t device, ino_t inode) {
  const std::lock_guard lock(known().mutex);
  ++known().written[{device, inode}];
}

void CheckedFiles::endWriting(dev_t device, ino_t inode) {
  const std::lock_guard lock(known().mutex);
  const auto found = known().written.find({device, inode});
  if (found != known().written.end() && --found->second <= 0) known().written.erase(found);
}

int wholeChecks() { return checks; }
void countWholeCheck() { ++checks; }

}  // namespace stepscope::storage
