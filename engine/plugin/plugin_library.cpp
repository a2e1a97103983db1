#include "engine/plugin/plugin_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "engine/build/sha256.h"
#include "engine/plugin/guard.h"

namespace stepscope {
namespace {

constexpr const char* kEntry = "stepscope_plugin_entry";

// The newest of each path.
struct Loaded {
  std::mutex mutex;
  std::map<std::filesystem::path, std::weak_ptr<const PluginLibrary>> libraries;
};
Loaded& loaded() {
  static Loaded table;
  return table;
}

// By its name the system would give the library that was loaded from there before, so new contents come under another name.
void* loadedAgain(const std::filesystem::path& file, const std::string& bytes) {
  if (void* before = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
    dlclose(before);
    std::error_code error;
    std::string copy = (std::filesystem::temp_directory_path(error) / "stepscope_plugin_XXXXXX.so").string();
    const int opened = mkstemps(copy.data(), 3);
    if (opened < 0) return nullptr;
    const bool whole = ::write(opened, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    void* const handle = whole ? dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    ::close(opened);
    ::unlink(copy.c_str());
    return handle;
  }
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

Result<std::shared_ptr<const PluginLibrary>> PluginLibrary::load(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(file, error);
  if (error)
    return fail(ErrorCode::kNotFound,
                fmt::format("plugin '{}': {}; expected a shared library", file.string(), error.message()));
  if (!std::filesystem::is_regular_file(path, error))
    return fail(ErrorCode::kIo, fmt::format("plugin '{}': is no file; expected a shared library", path.string()));
  const std::lock_guard lock(loaded().mutex);
  std::weak_ptr<const PluginLibrary>& known = loaded().libraries[path];
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (bytes.empty())
    return fail(ErrorCode::kIo, fmt::format("plugin '{}': cannot be read; expected a shared library", path.string()));
  std::string hash = sha256(bytes);
  if (auto library = known.lock(); library && library->hash() == hash) return library;
  std::shared_ptr<PluginLibrary> library(new PluginLibrary());
  SS_TRY(library->open(path, bytes, std::move(hash)));
  known = library;
  return library;
}

Status PluginLibrary::open(const std::filesystem::path& file, const std::string& bytes, std::string hash) {
  path_ = file;
  hash_ = std::move(hash);
  const std::string loading = fmt::format("plugin '{}': loading", file.string());
  SS_TRY(guarded(loading, [&]() -> Status {
    handle_ = loadedAgain(file, bytes);
    return {};
  }));
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    return fail(ErrorCode::kIo, fmt::format("plugin '{}': not loaded: {}; expected a shared library for this machine",
                                            file.string(), reason == nullptr ? "no reason given" : reason));
  }
  const auto* entry = static_cast<const ssp_plugin*>(dlsym(handle_, kEntry));
  if (entry == nullptr)
    return fail(ErrorCode::kNotFound,
                fmt::format("plugin '{}': no symbol '{}'; expected the entry of plugins/abi/stepscope_plugin.h",
                            file.string(), kEntry));
  SS_TRY(checkEntry(*entry, file.string()));
  entry_ = entry;
  if (entry_->init == nullptr) return {};
  static const ssp_host host{sizeof(ssp_host), SSP_ABI_MAJOR, SSP_ABI_MINOR, "Stepscope"};
  const std::string initialising = label("init");
  ssp_status status = SSP_ERROR;
  SS_TRY(guarded(initialising, [&]() -> Status {
    status = entry_->init(&host);
    return {};
  }));
  if (status != SSP_OK) return againstContract(initialising, fmt::format("answers {}", status), "expected SSP_OK");
  initialised_ = true;
  return {};
}

PluginLibrary::~PluginLibrary() {
  if (initialised_ && entry_->deinit != nullptr) {
    const std::string ending = label("deinit");
    (void)guarded(ending, [&]() -> Status {
      entry_->deinit();
      return {};
    });
  }
  if (handle_ != nullptr) dlclose(handle_);
}

const ssp_op* PluginLibrary::findOp(const std::string& domain, const std::string& name) const {
  for (std::uint32_t i = 0; i < entry_->op_count; ++i)
    if (entry_->ops[i]->domain == domain && entry_->ops[i]->name == name) return entry_->ops[i];
  return nullptr;
}

}  // namespace stepscope
