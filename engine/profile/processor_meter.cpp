#include "engine/profile/processor_meter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

#include "engine/exec/executor.h"

namespace stepscope {
namespace {

constexpr std::int64_t kLeastNs = 20'000'000;  // between two readings
constexpr std::int64_t kShare = 200;           // of the time, that reading may take
constexpr double kOneThread = 1.25;            // times the wall time: more processor time than that is of several threads

std::int64_t processorTime() {
  timespec t{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return 0;
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

int threadId() { return static_cast<int>(syscall(SYS_gettid)); }

// The second of the three numbers of the file: nanoseconds in the run queue.
std::int64_t queued(int thread) {
  const int file = open(fmt::format("/proc/self/task/{}/schedstat", thread).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[96];
  const ssize_t size = read(file, text, sizeof text);
  close(file);
  const char* const end = text + std::max<ssize_t>(0, size);
  const char* const gap = std::find(static_cast<const char*>(text), end, ' ');
  std::int64_t ns = 0;
  if (gap != end) std::from_chars(gap + 1, end, ns);
  return ns;
}

std::vector<int> teamIds(int threads) {
  std::vector<int> ids(static_cast<std::size_t>(std::max(1, threads)));
#pragma omp parallel num_threads(static_cast<int>(ids.size()))
  ids[static_cast<std::size_t>(omp_get_thread_num())] = threadId();
  std::erase(ids, 0);
  return ids;
}

}  // namespace

std::map<int, std::int64_t> queuedByThread() {
  std::map<int, std::int64_t> queues;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/task", error), end; !error && it != end; it.increment(error))
    if (const int thread = std::atoi(it->path().filename().c_str()); thread > 0) queues.emplace(thread, queued(thread));
  return queues;
}

TeamQueue::TeamQueue(int threads) {
  for (const int thread : threads > 1 ? teamIds(threads) : std::vector{threadId()}) queued_.emplace(thread, queued(thread));
}

std::int64_t TeamQueue::sinceLast() {
  std::int64_t sum = 0;
  for (auto& [thread, last] : queued_) {
    const std::int64_t now = queued(thread);
    sum += std::max<std::int64_t>(0, now - last);
    last = now;
  }
  return sum;
}

std::int64_t ProcessorMeter::waited() {
  const std::int64_t before = monotonicNs();
  std::int64_t sum = 0;
  for (auto& [thread, last] : waited_) {
    const std::int64_t now = queued(thread);
    if (last >= 0 && now > last) sum += now - last;
    last = now;
  }
  read_ = monotonicNs();
  cost_ = read_ - before;
  return sum;
}

void ProcessorMeter::begin() {
  const std::int64_t now = monotonicNs();
  // What waited between two steps belongs to none of them.
  if (read_ == 0 || now - ended_ > kLeastNs) {
    const bool other = caller_ != threadId();
    if (other) team_ = false;
    if (other || (team_ && waited_.size() < static_cast<std::size_t>(omp_get_max_threads()))) {
      caller_ = threadId();
      waited_.clear();
      for (const int thread : team_ ? teamIds(omp_get_max_threads()) : std::vector{caller_}) waited_.emplace(thread, -1);
    }
    (void)waited();
  }
  cpu_ = processorTime();
  began_ = monotonicNs();
}

ProcessorUse ProcessorMeter::end() {
  ProcessorUse use;
  use.cpu = processorTime() - cpu_;
  ended_ = monotonicNs();
  team_ |= static_cast<double>(use.cpu) > kOneThread * static_cast<double>(ended_ - began_);
  if (ended_ - read_ >= std::max(kLeastNs, kShare * cost_)) use.wait = waited();
  return use;
}

}  // namespace stepscope
