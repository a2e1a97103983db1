#include "storage/project.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <cstdlib>

#include "storage/checked_files.h"
#include "storage/harden.h"
#include "storage/judged_steps.h"
#include "storage/migration.h"
#include "storage/retention.h"
#include "storage/salvage.h"
#include "storage/schema.h"
#include "storage/sqlite.h"
#include "storage/writer_lock.h"

namespace stepscope::storage {

struct Project::State {
  std::string path;
  bool writable = false;
  int schemaVersion = kSchemaVersion;
  std::vector<std::string> warnings;
  bool damaged = false;
  ino_t inode = 0;
  dev_t device = 0;
  const std::atomic<bool>* stop = nullptr;
  WriterLock lock;  // released after the connection is closed
  Connection connection;
};

namespace {

namespace fs = std::filesystem;

Result<std::string> resolve(const fs::path& path) {
  std::error_code error;
  fs::path resolved = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error || path.empty())
    return fail(ErrorCode::kIo,
                fmt::format("project '{}': {}; expected a path", path.string(), error ? error.message() : "empty path"));
  return resolved.string();
}

bool hasContents(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) && fs::file_size(path, error) > 0;
}

// WAL needs shared memory, which network file systems do not have.
bool isNetworkFolder(const std::string& path) {
  struct statfs info = {};
  if (statfs(fs::path(path).parent_path().c_str(), &info) != 0) return false;
  constexpr std::array<unsigned long, 6> kNetwork = {0x6969, 0x517B, 0xFF534D42, 0xFE534D42, 0x01021997, 0x73757245};
  for (unsigned long type : kNetwork)
    if (static_cast<unsigned long>(info.f_type) == type) return true;
  return false;
}

// How many names a file has that this process holds open; 0 when it was deleted.
std::uint64_t namesOfOpenFile(dev_t device, ino_t inode) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", error)) {
    struct stat info = {};
    const int descriptor = std::atoi(entry.path().filename().c_str());
    if (fstat(descriptor, &info) == 0 && info.st_ino == inode && info.st_dev == device) return info.st_nlink;
  }
  return 0;
}

// A writer that died before its first commit leaves a database with nothing in it.
bool isBlank(const Connection& connection) {
  const auto id = connection.integer("PRAGMA application_id");
  const auto objects = connection.integer("SELECT count(*) FROM sqlite_schema");
  return id && objects && *id == 0 && *objects == 0;
}

Status configureWriter(const Connection& connection, bool network) {
  return connection.execute(network ? "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;"
                                    : "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;");
}

// The file is damaged: what can be read of it is copied into a database that only this connection has.
Result<Salvage> readWhatIsLeft(const std::string& path, Connection& connection) {
  SS_STORE_ASSIGN(const Connection from, Connection::openDamaged(path));
  SS_STORE_TRY(harden(from, true, false));
  SS_STORE_TRY(checkIdentity(from, path));
  SS_STORE_ASSIGN(Connection copy, Connection::openTemporary());
  SS_STORE_TRY(harden(copy, false));
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path, error));
  const auto patience = std::chrono::milliseconds(5000 + bytes / 100'000);
  SS_STORE_ASSIGN(Salvage result, salvage(from, copy, bytes, std::chrono::steady_clock::now() + patience));
  SS_STORE_TRY(copy.execute("PRAGMA query_only = ON"));
  connection = std::move(copy);
  return result;
}

// A regular file, or nothing yet.
Status mayBeProject(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return fail(ErrorCode::kIo, fmt::format("project '{}': is a folder; expected a .stepscope file", path));
  if (fs::exists(path, error) && !fs::is_regular_file(path, error))
    return fail(ErrorCode::kIo,
                fmt::format("project '{}': is a pipe, a socket or a device; expected a .stepscope file", path));
  return {};
}

}  // namespace

Project::Project(std::unique_ptr<State> state) : state_(std::move(state)) {}
Project::Project(Project&& other) noexcept = default;

Project& Project::operator=(Project&& other) noexcept {
  if (state_) (void)close();
  state_ = std::move(other.state_);
  return *this;
}

Project::~Project() {
  if (state_) (void)close();
}

const std::string& Project::path() const { return state_->path; }
Status Project::checkPlace() const {
  struct stat now = {};
  const bool there = stat(state_->path.c_str(), &now) == 0;
  if (there && now.st_ino == state_->inode && now.st_dev == state_->device) return {};
  const bool deleted = namesOfOpenFile(state_->device, state_->inode) == 0;
  return fail(deleted ? ErrorCode::kNotFound : ErrorCode::kIo,
              fmt::format("project '{}': was {} while it was written; expected it at its place", state_->path,
                          deleted ? "deleted"
                          : there ? "replaced by another file"
                                  : "moved"));
}

bool Project::writable() const { return state_->writable; }
int Project::schemaVersion() const { return state_->schemaVersion; }
const std::vector<std::string>& Project::warnings() const { return state_->warnings; }
bool Project::damaged() const { return state_->damaged; }
Connection& Project::connection() const { return state_->connection; }

Result<Project> Project::create(const fs::path& path) {
  SS_STORE_ASSIGN(const std::string resolved, resolve(path));
  if (hasContents(resolved))
    return fail(ErrorCode::kExists,
                fmt::format("project '{}': exists; expected a new file; hint: open it instead", resolved));
  return openForWriting(path);
}

// What cannot be created is not left behind half made.
Result<Project> Project::openForWriting(const fs::path& path) {
  SS_STORE_ASSIGN(const std::string resolved, resolve(path));
  std::error_code ignored;
  const bool there = fs::exists(fs::symlink_status(resolved, ignored));
  auto project = [&]() -> Result<Project> {
    auto state = std::make_unique<State>();
    state->path = resolved;
    SS_STORE_TRY(mayBeProject(resolved));
    SS_STORE_ASSIGN(state->lock, WriterLock::acquire(state->path));
    state->writable = true;
    bool isNew = !hasContents(state->path);
    SS_STORE_ASSIGN(state->connection,
                    Connection::open(state->path, isNew ? Connection::Mode::kCreate : Connection::Mode::kWrite));
    const Connection& connection = state->connection;
    SS_STORE_TRY(harden(connection, false));
    isNew = isNew || isBlank(connection);
    if (!isNew) {
      SS_STORE_ASSIGN(state->schemaVersion, checkIdentity(connection, state->path));
      if (state->schemaVersion > kSchemaVersion)
        return fail(ErrorCode::kNewer,
                    fmt::format("project '{}': schema version {}; this program writes {}; hint: open it read-only",
                                state->path, state->schemaVersion, kSchemaVersion));
      SS_STORE_ASSIGN(const bool whole, quickCheck(connection, state->path));
      if (!whole) state->warnings.push_back("the file is large and was not checked to its end");
    }
    const bool network = isNetworkFolder(state->path);
    if (network) state->warnings.push_back("network folder: slower journal in use; recording to a local disk is faster");
    SS_STORE_TRY(configureWriter(connection, network));
    if (isNew) {
      SS_STORE_TRY(createTables(connection));
    } else {
      const bool old = state->schemaVersion < kSchemaVersion;
      SS_STORE_TRY(migrate(connection, state->path, migrations(), kSchemaVersion));
      SS_STORE_TRY(checkSchema(connection, state->path, false));
      if (old) SS_STORE_TRY(writeDocs(connection));
      removeOldBackups(state->path);
      SS_STORE_TRY(connection.execute("UPDATE runs SET status = 'interrupted' WHERE status = 'running'"));
      state->schemaVersion = kSchemaVersion;
    }
    SS_STORE_TRY(makeJudgedSteps(connection, kSchemaVersion, false));
    struct stat written = {};
    if (stat(state->path.c_str(), &written) == 0) state->inode = written.st_ino, state->device = written.st_dev;
    CheckedFiles::beginWriting(state->device, state->inode);
    return Project(std::move(state));
  }();
  if (!project && !there && project.error().code != ErrorCode::kLocked)
    for (const char* rest : {"", "-wal", "-shm", "-journal"}) fs::remove(resolved + rest, ignored);
  return project;
}

Result<Project> Project::openReadOnly(const fs::path& path, const std::atomic<bool>* stop) {
  auto state = std::make_unique<State>();
  state->stop = stop;
  SS_STORE_ASSIGN(state->path, resolve(path));
  SS_STORE_TRY(mayBeProject(state->path));
  std::error_code error;
  if (!fs::is_regular_file(state->path, error))
    return fail(ErrorCode::kNotFound, fmt::format("project '{}': no such file; expected a .stepscope file", state->path));
  SS_STORE_ASSIGN(state->connection, Connection::open(state->path, Connection::Mode::kRead));
  SS_STORE_TRY(harden(state->connection, true));
  auto version = checkIdentity(state->connection, state->path);
  if (!version && isBlank(state->connection))
    return fail(version.error().code,
                fmt::format("project '{}': nothing was recorded in it; expected a run; hint: what created it ended before "
                            "it wrote; record into it again, or delete it",
                            state->path));
  const bool known = version && CheckedFiles::contains(state->path);
  auto checked = known     ? Result<bool>(true)
                 : version ? quickCheck(state->connection, state->path, stop)
                           : tl::make_unexpected(version.error());
  if (checked && *checked) CheckedFiles::add(state->path);
  if (stop && stop->load())
    return fail(ErrorCode::kCancelled, fmt::format("project '{}': reading was cancelled", state->path));
  if (!checked) {
    if (checked.error().code != ErrorCode::kCorrupt) return tl::make_unexpected(checked.error());
    const auto left = readWhatIsLeft(state->path, state->connection);
    if (!left) return tl::make_unexpected(checked.error());
    version = checkIdentity(state->connection, state->path);
    if (!version) return tl::make_unexpected(version.error());
    state->damaged = true;
    state->warnings.push_back(checked.error().message);
    for (const std::string& missing : left->missing()) state->warnings.push_back(missing);
  } else if (!*checked) {
    state->warnings.push_back("the file is large and was not checked to its end");
  }
  state->schemaVersion = *version;
  const bool newer = state->schemaVersion > kSchemaVersion;
  if (newer) state->warnings.push_back("made by a newer version of Stepscope; shown as far as this one understands it");
  if (state->schemaVersion >= kSchemaVersion) SS_STORE_TRY(checkSchema(state->connection, state->path, newer));
  SS_STORE_TRY(makeJudgedSteps(state->connection, state->schemaVersion, true));
  if (stop) stopWhen(state->connection, *stop);
  return Project(std::move(state));
}

bool Project::stopped() const { return state_->stop && state_->stop->load(); }

Status Project::close() {
  if (!state_) return {};
  const std::unique_ptr<State> state = std::move(state_);
  if (!state->writable) return {};
  CheckedFiles::endWriting(state->device, state->inode);
  SS_STORE_TRY(state->connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  // Fails while a reader has the file open; it stays a WAL database then, which is sound.
  (void)state->connection.execute("PRAGMA journal_mode = DELETE");
  return {};
}

}  // namespace stepscope::storage
