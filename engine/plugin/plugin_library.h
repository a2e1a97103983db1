// One shared library that keeps the contract of plugins/abi/stepscope_plugin.h: loaded, checked, initialised; unloaded with
// the last owner. Whoever holds something that points into it (a registry with its ops, say) holds the library too.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/status.h"
#include "plugins/abi/stepscope_plugin.h"

namespace stepscope {

class PluginLibrary {
 public:
  // The library that this process has loaded from that file already, or a newly loaded one; where the file has other
  // contents than it had then, a new one beside those that are in use. From any thread. Errors: kNotFound for a file that is
  // not there or that has no `stepscope_plugin_entry`; kIo where the system cannot load it, with what it says; kUnsupported
  // for another version of the ABI; kCorrupt for what is against the contract, naming the entry and the field.
  static Result<std::shared_ptr<const PluginLibrary>> load(const std::filesystem::path& file);
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  const ssp_plugin& entry() const { return *entry_; }
  std::string name() const { return entry_->name; }
  std::string version() const { return entry_->version; }
  const std::filesystem::path& path() const { return path_; }  // absolute
  const std::string& hash() const { return hash_; }            // SHA-256 of the file as it was loaded, in hexadecimals
  // "plugin 'acme': <function>": the names of calls into it begin so.
  std::string label(const std::string& function) const { return "plugin '" + name() + "': " + function; }
  // The op of that name, or nullptr.
  const ssp_op* findOp(const std::string& domain, const std::string& name) const;

 private:
  PluginLibrary() = default;
  Status open(const std::filesystem::path& file, const std::string& bytes, std::string hash);

  std::filesystem::path path_;
  std::string hash_;
  void* handle_ = nullptr;
  const ssp_plugin* entry_ = nullptr;
  bool initialised_ = false;
};

// Whether the entry and all that it lists keep the contract, as far as can be told without a call. `file` names the plugin
// while its own name is not known. Errors: those of load().
Status checkEntry(const ssp_plugin& entry, const std::string& file);

}  // namespace stepscope
