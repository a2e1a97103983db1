#include "storage/project.h"

#include <fmt/format.h>
#include <sys/vfs.h>

#include <array>

#include "storage/harden.h"
#include "storage/judged_steps.h"
#include "storage/migration.h"
#include "storage/schema.h"
#include "storage/sqlite.h"
#include "storage/writer_lock.h"

namespace stepscope::storage {

struct Project::State {
  std::string path;
  bool writable = false;
  int schemaVersion = kSchemaVersion;
  std::vector<std::string> warnings;
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
bool Project::writable() const { return state_->writable; }
int Project::schemaVersion() const { return state_->schemaVersion; }
const std::vector<std::string>& Project::warnings() const { return state_->warnings; }
Connection& Project::connection() const { return state_->connection; }

Result<Project> Project::create(const fs::path& path) {
  SS_STORE_ASSIGN(const std::string resolved, resolve(path));
  if (hasContents(resolved))
    return fail(ErrorCode::kExists,
                fmt::format("project '{}': exists; expected a new file; hint: open it instead", resolved));
  return openForWriting(path);
}

Result<Project> Project::openForWriting(const fs::path& path) {
  auto state = std::make_unique<State>();
  SS_STORE_ASSIGN(state->path, resolve(path));
  std::error_code error;
  if (fs::is_directory(state->path, error))
    return fail(ErrorCode::kIo, fmt::format("project '{}': is a folder; expected a .stepscope file", state->path));
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
    SS_STORE_TRY(connection.execute("UPDATE runs SET status = 'interrupted' WHERE status = 'running'"));
    state->schemaVersion = kSchemaVersion;
  }
  SS_STORE_TRY(makeJudgedSteps(connection, kSchemaVersion, false));
  return Project(std::move(state));
}

Result<Project> Project::openReadOnly(const fs::path& path) {
  auto state = std::make_unique<State>();
  SS_STORE_ASSIGN(state->path, resolve(path));
  std::error_code error;
  if (!fs::is_regular_file(state->path, error))
    return fail(ErrorCode::kNotFound, fmt::format("project '{}': no such file; expected a .stepscope file", state->path));
  SS_STORE_ASSIGN(state->connection, Connection::open(state->path, Connection::Mode::kRead));
  SS_STORE_TRY(harden(state->connection, true));
  SS_STORE_ASSIGN(state->schemaVersion, checkIdentity(state->connection, state->path));
  const bool newer = state->schemaVersion > kSchemaVersion;
  if (newer) state->warnings.push_back("made by a newer version of Stepscope; shown as far as this one understands it");
  SS_STORE_ASSIGN(const bool whole, quickCheck(state->connection, state->path));
  if (!whole) state->warnings.push_back("the file is large and was not checked to its end");
  if (state->schemaVersion >= kSchemaVersion) SS_STORE_TRY(checkSchema(state->connection, state->path, newer));
  SS_STORE_TRY(makeJudgedSteps(state->connection, state->schemaVersion, true));
  return Project(std::move(state));
}

Status Project::close() {
  if (!state_) return {};
  const std::unique_ptr<State> state = std::move(state_);
  if (!state->writable) return {};
  SS_STORE_TRY(state->connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  // Fails while a reader has the file open; it stays a WAL database then, which is sound.
  (void)state->connection.execute("PRAGMA journal_mode = DELETE");
  return {};
}

}  // namespace stepscope::storage
