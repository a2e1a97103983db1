// An NCCL that moves what lies on the fake GPUs of several processes through a file that they all map, in the order of their
// streams. As with a real one, what was put on a stream runs without anybody waiting for it, waits for the other ranks
// without an end, and gives up when it is told to. Calls that do not belong together are an error of the communicator. What
// is ordered in STEPSCOPE_FAKE_NCCL, items with commas between:
//
//   rank=R          the other orders are for this rank alone
//   fail-init       it does not join
//   fail-call=N     the N-th call that would put something on a stream fails
//   hang=N          the N-th collective of it waits for ever
//   async-error=N   the same, and the communicator then tells of an error
//   log=FILE        names of what ran go there, one on a line
//   old             it is NCCL 2.8.3
#include "kernels/cuda_device/nccl.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "kernels/half.h"
#include "tests/kernels/fake_gpu/observer.h"

using namespace stepscope::cuda;
namespace fake = stepscope::fake;

namespace {

constexpr int kMost = 8;  // ranks
constexpr std::size_t kRoom = 8 << 20;
enum Kind : int { kAllReduce = 1, kAllGather, kReduceScatter, kReduce, kBroadcast, kSend, kReceive };
constexpr const char* kNames[] = {"", "AllReduce", "AllGather", "ReduceScatter", "Reduce", "Broadcast", "Send", "Recv"};

struct Orders {
  bool failInit = false, old = false;
  std::int64_t failCall = 0, hang = 0, asyncError = 0;
  std::string log;
};

Orders ordersFor(int rank) {
  Orders orders;
  const char* const text = std::getenv("STEPSCOPE_FAKE_NCCL");
  std::istringstream items(text ? text : "");
  for (std::string item; std::getline(items, item, ',');) {
    const std::string name = item.substr(0, item.find('=')), value = item.substr(std::min(item.size(), name.size() + 1));
    if (name == "rank" && rank >= 0 && std::atoi(value.c_str()) != rank) return {};
    if (name == "fail-init") orders.failInit = true;
    if (name == "old") orders.old = true;
    if (name == "fail-call") orders.failCall = std::atoll(value.c_str());
    if (name == "hang") orders.hang = std::atoll(value.c_str());
    if (name == "async-error") orders.asyncError = std::atoll(value.c_str());
    if (name == "log") orders.log = value;
  }
  return orders;
}

// What one rank has to give to another one, or to all.
struct Box {
  std::atomic<std::uint64_t> posted, taken[kMost];
  int kind, type, op, root;
  std::size_t count;
  std::byte data[kRoom];
};
struct Shared {
  std::atomic<int> joined;
  Box boxes[kMost][kMost + 1];  // by who gives, and to whom; the last one: to all
};

struct Comm;
struct Op {
  Kind kind;
  const void* in;
  void* out;
  std::size_t count;
  int type, op, root;  // root: of messages, the other one
};
struct Group {
  Comm* comm;
  std::vector<Op> ops;
};

// It stays for good, as work that was given up may still look at it.
struct Comm {
  int rank = 0, size = 0;
  Shared* shared = nullptr;
  Orders orders;
  std::atomic<bool> aborted = false;
  std::atomic<int> error = kNcclSuccess;
  std::int64_t calls = 0, ran = 0;
  std::deque<Group> groups;
  // Streams of the fake GPU run where somebody waits for them; so one does.
  std::thread pump;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<CuStream> toRun;
  bool ends = false;
};

std::size_t sizeOf(int type) {
  constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kSizes[type];
}

template <typename T>
void addAll(const std::vector<const std::byte*>& parts, std::size_t first, std::size_t count, bool average, void* out) {
  for (std::size_t i = 0; i < count; ++i) {
    T sum{};
    for (const std::byte* part : parts) {
      T one;
      std::memcpy(&one, part + (first + i) * sizeof(T), sizeof(T));
      sum = static_cast<T>(sum + one);
    }
    if (average) sum = static_cast<T>(sum / static_cast<T>(parts.size()));
    std::memcpy(static_cast<std::byte*>(out) + i * sizeof(T), &sum, sizeof(T));
  }
}
template <typename T>
void addLow(const std::vector<const std::byte*>& parts, std::size_t first, std::size_t count, bool average, void* out) {
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (const std::byte* part : parts) sum += static_cast<float>(reinterpret_cast<const T*>(part)[first + i]);
    static_cast<T*>(out)[i] = T(average ? sum / static_cast<float>(parts.size()) : sum);
  }
}
void add(int type, const std::vector<const std::byte*>& parts, std::size_t first, std::size_t count, bool average,
         void* out) {
  switch (type) {
    case kNcclI8: return addAll<std::int8_t>(parts, first, count, average, out);
    case kNcclU8: return addAll<std::uint8_t>(parts, first, count, average, out);
    case kNcclI32: return addAll<std::int32_t>(parts, first, count, average, out);
    case kNcclU32: return addAll<std::uint32_t>(parts, first, count, average, out);
    case kNcclI64: return addAll<std::int64_t>(parts, first, count, average, out);
    case kNcclU64: return addAll<std::uint64_t>(parts, first, count, average, out);
    case kNcclF16: return addLow<stepscope::Float16>(parts, first, count, average, out);
    case kNcclBF16: return addLow<stepscope::BFloat16>(parts, first, count, average, out);
    case kNcclF32: return addAll<float>(parts, first, count, average, out);
    default: return addAll<double>(parts, first, count, average, out);
  }
}

template <typename Condition>
bool waitFor(Comm& comm, Condition condition) {
  while (!condition()) {
    if (comm.aborted) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

Box& boxOf(Comm& comm, int from, int to) { return comm.shared->boxes[from][to]; }

bool post(Comm& comm, Box& box, std::initializer_list<int> readers, const Op& op, const void* data, std::size_t bytes) {
  for (const int reader : readers)
    if (!waitFor(comm, [&] { return box.taken[reader] >= box.posted; })) return false;
  box.kind = op.kind, box.type = op.type, box.op = op.op, box.root = op.root, box.count = op.count;
  if (bytes > 0) std::memcpy(box.data, data, bytes);
  ++box.posted;
  return true;
}

bool collective(Comm& comm, const Op& op) {
  Box& mine = boxOf(comm, comm.rank, kMost);
  const bool gives = op.kind != kBroadcast || op.root == comm.rank;
  const std::size_t whole = op.kind == kReduceScatter ? op.count * static_cast<std::size_t>(comm.size) : op.count;
  for (int r = 0; r < comm.size; ++r)
    if (r != comm.rank && !waitFor(comm, [&] { return mine.taken[r] >= mine.posted; })) return false;
  if (!post(comm, mine, {}, op, op.in, gives ? whole * sizeOf(op.type) : 0)) return false;
  const std::uint64_t number = mine.posted;
  std::vector<const std::byte*> parts;
  for (int r = 0; r < comm.size; ++r) {
    Box& theirs = boxOf(comm, r, kMost);
    if (!waitFor(comm, [&] { return theirs.posted >= number; })) return false;
    if (theirs.kind != op.kind || theirs.type != op.type || theirs.op != op.op || theirs.root != op.root ||
        theirs.count != op.count)
      comm.error = kNcclInvalidUsage;
    parts.push_back(theirs.data);
  }
  if (comm.error == kNcclSuccess) {
    const std::size_t bytes = op.count * sizeOf(op.type);
    const bool average = op.op == kNcclAverage;
    if (op.kind == kAllReduce || (op.kind == kReduce && op.root == comm.rank))
      add(op.type, parts, 0, op.count, average, op.out);
    if (op.kind == kReduceScatter)
      add(op.type, parts, op.count * static_cast<std::size_t>(comm.rank), op.count, average, op.out);
    if (op.kind == kBroadcast) std::memmove(op.out, parts[static_cast<std::size_t>(op.root)], bytes);
    for (int r = 0; op.kind == kAllGather && r < comm.size; ++r)
      std::memmove(static_cast<std::byte*>(op.out) + static_cast<std::size_t>(r) * bytes, parts[static_cast<std::size_t>(r)],
                   bytes);
  }
  for (int r = 0; r < comm.size; ++r)
    if (r != comm.rank) boxOf(comm, r, kMost).taken[comm.rank] = number;
  return true;
}

bool receive(Comm& comm, const Op& op) {
  Box& box = boxOf(comm, op.root, comm.rank);
  const std::uint64_t number = box.taken[comm.rank] + 1;
  if (!waitFor(comm, [&] { return box.posted >= number; })) return false;
  if (box.count != op.count || box.type != op.type)
    comm.error = kNcclInvalidUsage;
  else
    std::memcpy(op.out, box.data, op.count * sizeOf(op.type));
  box.taken[comm.rank] = number;
  return true;
}

// On the stream, when it is the group's turn.
void run(void* data) {
  const Group& group = *static_cast<const Group*>(data);
  Comm& comm = *group.comm;
  const std::int64_t number = ++comm.ran;
  if (number == comm.orders.hang || number == comm.orders.asyncError) {
    if (number == comm.orders.asyncError) comm.error = kNcclRemoteError;
    waitFor(comm, [] { return false; });
  }
  if (comm.aborted) return;
  if (!comm.orders.log.empty()) {
    std::ofstream log(comm.orders.log, std::ios::app);
    for (const Op& op : group.ops) log << kNames[op.kind] << '\n';
  }
  for (const Op& op : group.ops)
    if (op.kind == kSend && !post(comm, boxOf(comm, comm.rank, op.root), {op.root}, op, op.in, op.count * sizeOf(op.type)))
      return;
  for (const Op& op : group.ops)
    if (op.kind != kSend && !(op.kind == kReceive ? receive(comm, op) : collective(comm, op))) return;
}

void* driverFunction(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver ? dlsym(driver, name) : nullptr;
}

void pumpStreams(Comm& comm) {
  const auto retain = reinterpret_cast<CuResult (*)(CuContext*, CuDevice)>(driverFunction("cuDevicePrimaryCtxRetain"));
  const auto set = reinterpret_cast<CuResult (*)(CuContext)>(driverFunction("cuCtxSetCurrent"));
  const auto runStream = reinterpret_cast<fake::Run>(driverFunction("fakeGpuRun"));
  CuContext context = nullptr;
  retain(&context, 0);
  set(context);
  std::unique_lock lock(comm.mutex);
  while (true) {
    comm.changed.wait(lock, [&] { return comm.ends || !comm.toRun.empty(); });
    if (comm.ends) return;
    CuStream const stream = comm.toRun.front();
    comm.toRun.pop_front();
    lock.unlock();
    const int ran = runStream(stream);
    if (ran == kCuNotReady) std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
    if (ran == kCuNotReady) comm.toRun.push_back(stream);  // it waits for another stream, or is being captured
  }
}

thread_local int depth = 0;
thread_local std::vector<Op> grouped;
thread_local Comm* groupComm = nullptr;
thread_local CuStream groupStream = nullptr;

NcclResult putGroup() {
  if (grouped.empty()) return kNcclSuccess;
  Comm& comm = *groupComm;
  comm.groups.push_back({&comm, std::exchange(grouped, {})});
  const auto put = reinterpret_cast<fake::Put>(driverFunction("fakeGpuPut"));
  if (!put || put(groupStream, run, &comm.groups.back(), "nccl") != kCuSuccess) return 1;
  const std::lock_guard lock(comm.mutex);
  comm.toRun.push_back(groupStream);
  comm.changed.notify_all();
  return kNcclSuccess;
}

NcclResult call(NcclComm which, CuStream stream, const Op& op) {
  Comm& comm = *static_cast<Comm*>(which);
  const std::size_t most =
      op.count * sizeOf(op.type) * (op.kind == kReduceScatter ? static_cast<std::size_t>(comm.size) : 1);
  if (++comm.calls == comm.orders.failCall) return kNcclSystemError;
  if (op.count == 0 || most > kRoom || op.root >= comm.size || (!op.in && op.kind != kReceive)) return kNcclInvalidArgument;
  groupComm = &comm;
  groupStream = stream;
  grouped.push_back(op);
  return depth > 0 ? NcclResult{kNcclSuccess} : putGroup();
}

void stop(Comm& comm) {
  {
    const std::lock_guard lock(comm.mutex);
    comm.ends = true;
  }
  comm.changed.notify_all();
  if (comm.pump.joinable()) comm.pump.join();
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

NcclResult ncclGetVersion(int* version) {
  *version = ordersFor(-1).old ? 2803 : 22105;
  return kNcclSuccess;
}
const char* ncclGetErrorString(NcclResult error) {
  return error == kNcclRemoteError    ? "remote process exited or there was a network error"
         : error == kNcclInvalidUsage ? "invalid usage"
                                      : "unhandled system error";
}
const char* ncclGetLastError(NcclComm) { return "of the fake NCCL"; }

NcclResult ncclGetUniqueId(NcclId* id) {
  static int made = 0;
  std::snprintf(id->internal, sizeof(id->internal), "/tmp/stepscope_fake_nccl_%d_%d", getpid(), ++made);
  const int file = open(id->internal, O_CREAT | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return kNcclSystemError;
  close(file);
  static std::string left;  // where the others never joined
  left = id->internal;
  if (made == 1) std::atexit([] { unlink(left.c_str()); });
  return kNcclSuccess;
}

NcclResult ncclCommInitRank(NcclComm* made, int size, NcclId id, int rank) {
  const Orders orders = ordersFor(rank);
  if (orders.failInit) {
    unlink(id.internal);
    return kNcclSystemError;
  }
  if (size > kMost || rank < 0 || rank >= size) return kNcclInvalidArgument;
  const int file = open(id.internal, O_RDWR | O_CLOEXEC);
  if (file < 0) return kNcclSystemError;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return kNcclSystemError;
  auto* const comm = new Comm();
  comm->rank = rank;
  comm->size = size;
  comm->shared = static_cast<Shared*>(memory);
  comm->orders = orders;
  ++comm->shared->joined;
  waitFor(*comm, [&] { return comm->shared->joined >= size; });
  if (rank == 0) unlink(id.internal);
  comm->pump = std::thread([comm] { pumpStreams(*comm); });
  *made = comm;
  return kNcclSuccess;
}
NcclResult ncclCommDestroy(NcclComm comm) {
  stop(*static_cast<Comm*>(comm));
  return kNcclSuccess;
}
NcclResult ncclCommAbort(NcclComm comm) {
  static_cast<Comm*>(comm)->aborted = true;
  stop(*static_cast<Comm*>(comm));
  return kNcclSuccess;
}
NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult* error) {
  *error = static_cast<Comm*>(comm)->error;
  return kNcclSuccess;
}
NcclResult ncclGroupStart() {
  ++depth;
  return kNcclSuccess;
}
NcclResult ncclGroupEnd() { return --depth > 0 ? NcclResult{kNcclSuccess} : putGroup(); }

NcclResult ncclAllReduce(const void* in, void* out, std::size_t count, int type, int op, NcclComm comm, CuStream stream) {
  return call(comm, stream, {kAllReduce, in, out, count, type, op, 0});
}
NcclResult ncclAllGather(const void* in, void* out, std::size_t count, int type, NcclComm comm, CuStream stream) {
  return call(comm, stream, {kAllGather, in, out, count, type, 0, 0});
}
NcclResult ncclReduceScatter(const void* in, void* out, std::size_t count, int type, int op, NcclComm comm,
                             CuStream stream) {
  return call(comm, stream, {kReduceScatter, in, out, count, type, op, 0});
}
NcclResult ncclReduce(const void* in, void* out, std::size_t count, int type, int op, int root, NcclComm comm,
                      CuStream stream) {
  return call(comm, stream, {kReduce, in, out, count, type, op, root});
}
NcclResult ncclBroadcast(const void* in, void* out, std::size_t count, int type, int root, NcclComm comm, CuStream stream) {
  return call(comm, stream, {kBroadcast, in, out, count, type, 0, root});
}
NcclResult ncclSend(const void* in, std::size_t count, int type, int peer, NcclComm comm, CuStream stream) {
  return call(comm, stream, {kSend, in, nullptr, count, type, 0, peer});
}
NcclResult ncclRecv(void* out, std::size_t count, int type, int peer, NcclComm comm, CuStream stream) {
  return call(comm, stream, {kReceive, nullptr, out, count, type, 0, peer});
}

}  // extern "C"
#pragma GCC visibility pop
