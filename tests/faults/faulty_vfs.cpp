#include "tests/faults/faulty_vfs.h"

#include <sqlite3.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>

namespace stepscope::testing {
namespace {

sqlite3_vfs* real = nullptr;
sqlite3_vfs vfs = {};
std::filesystem::path root;

std::mutex mutex;  // what follows
Fault fault = Fault::kNone;
int failingCall = 0, made = 0;
bool reached = false, dark = false;
std::map<std::string, std::optional<std::string>> durable;  // what a power cut leaves; empty: no file

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool ours(const char* path) { return path && std::string_view(path).starts_with(root.native()); }

// kNone: do it. Otherwise what happens instead.
Fault next() {
  if (dark) return Fault::kPowerCut;
  if (++made != failingCall || fault == Fault::kNone) return Fault::kNone;
  reached = true;
  dark = fault == Fault::kPowerCut;
  return fault;
}

int codeOf(Fault what) { return what == Fault::kDiskFull ? SQLITE_FULL : SQLITE_IOERR; }

// The object that SQLite sees; the real file follows it in the same memory.
struct File {
  sqlite3_file base;
  const std::string* path;  // empty: of no interest
  sqlite3_file* inner() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File* of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
const sqlite3_io_methods* methods(sqlite3_file* file) { return of(file)->inner()->pMethods; }

int close(sqlite3_file* file) {
  const int code = methods(file) ? methods(file)->xClose(of(file)->inner()) : SQLITE_OK;
  delete of(file)->path;
  return code;
}
int read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 at) {
  {
    const std::lock_guard lock(mutex);
    if (dark) return SQLITE_IOERR_READ;
  }
  return methods(file)->xRead(of(file)->inner(), to, bytes, at);
}
int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 at) {
  const std::lock_guard lock(mutex);
  const Fault what = next();
  if (what == Fault::kNone) return methods(file)->xWrite(of(file)->inner(), from, bytes, at);
  // A write that is under way when the power goes may have come to any place; the middle is one.
  if (what == Fault::kShortWrite || (what == Fault::kPowerCut && reached && bytes > 1))
    (void)methods(file)->xWrite(of(file)->inner(), from, bytes / 2, at);
  return codeOf(what);
}
int truncate(sqlite3_file* file, sqlite3_int64 size) {
  const std::lock_guard lock(mutex);
  const Fault what = next();
  return what == Fault::kNone ? methods(file)->xTruncate(of(file)->inner(), size) : codeOf(what);
}
int sync(sqlite3_file* file, int) {
  const std::lock_guard lock(mutex);
  const Fault what = next();
  if (what != Fault::kNone) return codeOf(what);
  if (!of(file)->path->empty()) durable[*of(file)->path] = slurp(*of(file)->path);
  return SQLITE_OK;
}
int fileSize(sqlite3_file* file, sqlite3_int64* size) { return methods(file)->xFileSize(of(file)->inner(), size); }
int lock(sqlite3_file* file, int level) { return methods(file)->xLock(of(file)->inner(), level); }
int unlock(sqlite3_file* file, int level) { return methods(file)->xUnlock(of(file)->inner(), level); }
int reserved(sqlite3_file* file, int* held) { return methods(file)->xCheckReservedLock(of(file)->inner(), held); }
int control(sqlite3_file* file, int what, void* argument) {
  if (what == SQLITE_FCNTL_VFSNAME) return SQLITE_NOTFOUND;
  return methods(file)->xFileControl(of(file)->inner(), what, argument);
}
int sectorSize(sqlite3_file* file) { return methods(file)->xSectorSize(of(file)->inner()); }
int characteristics(sqlite3_file* file) { return methods(file)->xDeviceCharacteristics(of(file)->inner()); }
int shmMap(sqlite3_file* file, int region, int bytes, int extend, void volatile** memory) {
  return methods(file)->xShmMap(of(file)->inner(), region, bytes, extend, memory);
}
int shmLock(sqlite3_file* file, int offset, int count, int flags) {
  return methods(file)->xShmLock(of(file)->inner(), offset, count, flags);
}
void shmBarrier(sqlite3_file* file) { methods(file)->xShmBarrier(of(file)->inner()); }
int shmUnmap(sqlite3_file* file, int remove) { return methods(file)->xShmUnmap(of(file)->inner(), remove); }

constexpr sqlite3_io_methods kMethods = {
    2,          close,           read,   write,   truncate,   sync,     fileSize, lock,   unlock, reserved, control,
    sectorSize, characteristics, shmMap, shmLock, shmBarrier, shmUnmap, nullptr,  nullptr};

int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* outFlags) {
  of(file)->base.pMethods = nullptr;
  of(file)->inner()->pMethods = nullptr;
  const bool mine = ours(name);
  if (mine) {
    const std::lock_guard lock(mutex);
    const bool there = std::filesystem::exists(name);
    if (!there && (flags & SQLITE_OPEN_CREATE)) {
      if (const Fault what = next(); what != Fault::kNone) return SQLITE_CANTOPEN;
      durable.try_emplace(name, std::nullopt);  // its name is not synced
    } else if (dark) {
      return SQLITE_CANTOPEN;
    } else if (there) {
      durable.try_emplace(name, slurp(name));  // as it was before this harness
    }
  }
  const int code = real->xOpen(real, name, of(file)->inner(), flags, outFlags);
  if (of(file)->inner()->pMethods) {
    of(file)->path = new std::string(mine ? name : "");
    of(file)->base.pMethods = &kMethods;
  }
  return code;
}
int remove(sqlite3_vfs*, const char* name, int syncFolder) {
  const std::lock_guard lock(mutex);
  if (ours(name)) {
    if (const Fault what = next(); what != Fault::kNone) return SQLITE_IOERR_DELETE;
    durable[name] = std::nullopt;
  }
  return real->xDelete(real, name, syncFolder);
}
int access(sqlite3_vfs*, const char* name, int flags, int* result) { return real->xAccess(real, name, flags, result); }
int fullName(sqlite3_vfs*, const char* name, int bytes, char* out) { return real->xFullPathname(real, name, bytes, out); }
int randomness(sqlite3_vfs*, int bytes, char* out) { return real->xRandomness(real, bytes, out); }
int sleep(sqlite3_vfs*, int) { return 0; }  // nobody else holds a lock
int currentTime(sqlite3_vfs*, double* out) { return real->xCurrentTime(real, out); }
int lastError(sqlite3_vfs*, int bytes, char* out) { return real->xGetLastError(real, bytes, out); }

}  // namespace

FaultyVfs::FaultyVfs(std::filesystem::path folder) {
  real = sqlite3_vfs_find(nullptr);
  root = std::filesystem::canonical(folder);
  vfs = *real;
  vfs.zName = "stepscope-faulty";
  vfs.szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
  vfs.pNext = nullptr;
  vfs.xOpen = open;
  vfs.xDelete = remove;
  vfs.xAccess = access;
  vfs.xFullPathname = fullName;
  vfs.xRandomness = randomness;
  vfs.xSleep = sleep;
  vfs.xCurrentTime = currentTime;
  vfs.xGetLastError = lastError;
  sqlite3_vfs_register(&vfs, 1);
  const std::lock_guard lock(mutex);
  fault = Fault::kNone;
  made = failingCall = 0;
  reached = dark = false;
  durable.clear();
}

FaultyVfs::~FaultyVfs() {
  sqlite3_vfs_register(real, 1);
  sqlite3_vfs_unregister(&vfs);
}

void FaultyVfs::failAt(Fault what, int call) {
  const std::lock_guard lock(mutex);
  fault = what;
  failingCall = call;
  made = 0;
  reached = false;
}

int FaultyVfs::calls() const {
  const std::lock_guard lock(mutex);
  return made;
}

bool FaultyVfs::happened() const {
  const std::lock_guard lock(mutex);
  return reached;
}

void FaultyVfs::restart() {
  const std::lock_guard lock(mutex);
  if (dark) {
    for (const auto& [path, contents] : durable) {
      std::error_code error;
      std::filesystem::remove(path, error);
      std::filesystem::remove(path + "-shm", error);
      if (contents)
        std::ofstream(path, std::ios::binary).write(contents->data(), static_cast<std::streamsize>(contents->size()));
    }
  }
  fault = Fault::kNone;
  made = failingCall = 0;
  dark = false;
}

}  // namespace stepscope::testing
