#include "engine/plugin/plugin_registry.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <tuple>

#include "engine/build/environment.h"
#include "engine/build/plugin_options.h"
#include "engine/plugin/kernel_bridge.h"
#include "engine/plugin/op_bridge.h"
#include "engine/plugin/pass_bridge.h"

namespace stepscope {
namespace {

// What a registry with plugins stands on; the registry goes first.
struct Loaded {
  PluginWish wish;
  std::vector<std::shared_ptr<const PluginLibrary>> libraries;
  std::deque<OpBridge> ops;
  std::deque<KernelBridge> kernels;
  std::deque<PassBridge> passes;
  std::deque<std::string> texts;  // what views in the options point at
  std::shared_ptr<const Registry> registry;
};

using Key = std::tuple<std::vector<std::filesystem::path>, bool, std::map<std::string, std::string>>;

struct Made {
  std::mutex mutex;
  std::multimap<Key, std::weak_ptr<Loaded>> registries;
};
Made& made() {
  static Made table;
  return table;
}

std::vector<std::string> partsOf(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ":") + part;
  return text;
}

Result<std::filesystem::path> findPlugin(const std::string& file, const std::vector<std::string>& folders) {
  std::error_code error;
  if (file.find('/') != std::string::npos || std::filesystem::is_regular_file(file, error)) {
    std::filesystem::path path = std::filesystem::canonical(file, error);
    if (error)
      return fail(ErrorCode::kNotFound, fmt::format("plugin '{}': {}; expected a shared library", file, error.message()));
    return path;
  }
  for (const std::string& folder : folders)
    for (const std::string& name : {file, file + ".so"})
      if (const std::filesystem::path path = std::filesystem::path(folder) / name;
          std::filesystem::is_regular_file(path, error))
        return std::filesystem::canonical(path, error);
  // Those that come with the program lie beside it in a build, and in ../lib/stepscope/plugins where it is installed.
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const std::filesystem::path& folder : {here, here.parent_path() / "lib" / "stepscope" / "plugins"})
    if (const auto path = folder / (file + ".so"); std::filesystem::is_regular_file(path, error)) return path;
  return fail(
      ErrorCode::kNotFound,
      fmt::format("plugin '{}': no such file, nor in plugin.path '{}'; expected a shared library", file, joined(folders)));
}

// Adds the plugins to a registry, and remembers who has which name.
class Adder {
 public:
  explicit Adder(Loaded& loaded) : loaded_(loaded) {}

  Status add() {
    SS_TRY(optionsOfTheHost(loaded_.wish));
    for (const auto& library : loaded_.libraries) SS_TRY(addLibrary(*library, loaded_.wish.check));
    loaded_.registry = std::move(builder_).build();
    return {};
  }

 private:
  Status addLibrary(const PluginLibrary& library, bool check) {
    library_ = &library;
    const ssp_plugin& entry = library.entry();
    SS_TRY(take("plugin", library.name(), Status()));
    for (std::uint32_t i = 0; i < entry.op_count; ++i) {
      const OpDef* op = &loaded_.ops.emplace_back(library, *entry.ops[i]).definition;
      SS_TRY(take("op", fmt::format("{}.{} since version {}", op->domain, op->name, op->sinceVersion),
                  builder_.addOps({&op, 1})));
    }
    for (std::uint32_t i = 0; i < entry.kernel_count; ++i) {
      const ssp_kernel& kernel = *entry.kernels[i];
      const KernelEntry& bridge = loaded_.kernels.emplace_back(library, kernel, check).entry;
      Status added = builder_.addKernels(kernel.device, {&bridge, 1});
      // Another device, and kernels=reference, fall back to it.
      const bool onHost = std::string_view(kernel.device) == "cpu";
      if (added && onHost) added = builder_.addKernels(kReferenceDevice, {&bridge, 1});
      if (!added) return blame(added.error());
    }
    for (std::uint32_t i = 0; i < entry.pass_count; ++i) {
      const Pass& pass = loaded_.passes.emplace_back(library, *entry.passes[i]).definition;
      SS_TRY(take("pass", std::string(pass.name), unknownPass(pass.name)));
      if (const Status added = builder_.addPass(entry.passes[i]->phase, pass); !added) return blame(added.error());
    }
    for (std::uint32_t i = 0; i < entry.option_count; ++i) {
      const ssp_option& option = *entry.options[i];
      OptionInfo info{option.name, option.default_value, option.doc, {option.choices, option.choices + option.choice_count}};
      info.kind = info.choices.empty() ? "text" : "choice";
      info.group = "Plugins";
      SS_TRY(take("option", option.name, builder_.addOption(info)));
    }
    for (std::uint32_t i = 0; i < entry.reader_count; ++i) SS_TRY(take("reader of", entry.readers[i]->suffix, Status()));
    return addOption(fmt::format("plugin.loaded.{}", library.name()),
                     fmt::format("{} sha256:{} {}", library.version(), library.hash(), library.path().string()),
                     entry.doc == nullptr ? "" : entry.doc);
  }

  // `added`: what the registry said to the name.
  Status take(const std::string& what, const std::string& name, const Status& added) {
    const auto [it, fresh] = owners_.try_emplace(what + " '" + name + "'", library_);
    if (!fresh && it->second == library_ && what != "plugin")
      return fail(ErrorCode::kCorrupt,
                  fmt::format("plugin '{}': found twice {}; expected each once", library_->name(), it->first));
    if (!fresh && it->second->path() == library_->path())
      return invalid(fmt::format("plugin '{}': found twice in option 'plugin'; expected it once", library_->name()));
    if (!fresh)
      return invalid(fmt::format("{}: found in plugin '{}' ({}) and in plugin '{}' ({}); expected it in one", it->first,
                                 it->second->name(), it->second->path().string(), library_->name(),
                                 library_->path().string()));
    return added ? Status() : blame(added.error());
  }
  Status blame(const Error& error) const {
    return fail(ErrorCode::kCorrupt, fmt::format("plugin '{}': {}", library_->name(), error.message));
  }
  static Status unknownPass(std::string_view name) {
    for (const PassList& list : pipeline())
      for (const Pass& pass : list.passes)
        if (pass.name == name) return invalid(fmt::format("pass '{}': found a built-in one; expected another name", name));
    return {};
  }

  Status addOption(std::string name, std::string value, std::string doc) {
    OptionInfo info;
    info.name = loaded_.texts.emplace_back(std::move(name));
    info.defaultValue = loaded_.texts.emplace_back(std::move(value));
    info.doc = loaded_.texts.emplace_back(std::move(doc));
    info.group = "Plugins";
    info.kind = "text";
    return builder_.addOption(info);
  }
  Status optionsOfTheHost(const PluginWish& wish) {
    const auto values = settingsOf(wish);
    for (OptionInfo info : pluginOptions()) {
      info.defaultValue = loaded_.texts.emplace_back(values.at(std::string(info.name)));
      SS_TRY(builder_.addOption(info));
    }
    return {};
  }

  Loaded& loaded_;
  RegistryBuilder builder_;
  const PluginLibrary* library_ = nullptr;
  std::map<std::string, const PluginLibrary*> owners_;  // "op 'acme.Gate since version 1'" …
};

}  // namespace

Result<PluginWish> pluginWish(const std::map<std::string, std::string>& settings, const std::string& setBy) {
  PluginWish wish;
  const auto value = [&](const char* name) -> std::string {
    const auto it = settings.find(name);
    const char* variable = it == settings.end() ? std::getenv(environmentName(name).c_str()) : nullptr;
    if (it == settings.end() && variable == nullptr) return "";
    wish.setBy[name] = it == settings.end() ? "environment" : setBy;
    return it == settings.end() ? variable : it->second;
  };
  wish.files = partsOf(value("plugin"));
  wish.folders = partsOf(value("plugin.path"));
  const std::string check = value("plugin.check");
  if (!check.empty() && check != "on" && check != "off")
    return invalidOption("plugin.check", fmt::format("found '{}'; expected on or off", check));
  wish.check = check == "on";
  return wish;
}

Status applyEnvironment(TrainOptions& options, const PluginWish& wish, const std::vector<OptionInfo>& table) {
  const std::map<std::string, std::string> settings = settingsOf(wish);
  std::vector<const char*> others;
  for (const char* const* variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (std::none_of(settings.begin(), settings.end(),
                     [&](const auto& own) { return text.starts_with(environmentName(own.first) + "="); }))
      others.push_back(*variable);
  }
  others.push_back(nullptr);
  SS_TRY(applyEnvironment(options, others.data(), table));
  for (const auto& [name, setBy] : wish.setBy) SS_TRY(applySetting(options, name, settings.at(name), setBy, table));
  return {};
}

std::map<std::string, std::string> settingsOf(const PluginWish& wish) {
  return {
      {"plugin", joined(wish.files)}, {"plugin.path", joined(wish.folders)}, {"plugin.check", wish.check ? "on" : "off"}};
}

Result<std::shared_ptr<const Registry>> registryWith(const PluginWish& wish) {
  const std::map<std::string, std::string> settings = settingsOf(wish);
  if (settings == settingsOf({})) return Registry::builtIn();
  std::vector<std::filesystem::path> files;
  for (const std::string& file : wish.files) {
    SS_ASSIGN(files.emplace_back(), findPlugin(file, wish.folders));
  }
  std::vector<std::shared_ptr<const PluginLibrary>> libraries;
  for (const std::filesystem::path& file : files) {
    SS_ASSIGN(libraries.emplace_back(), PluginLibrary::load(file));
  }
  const std::lock_guard lock(made().mutex);
  std::erase_if(made().registries, [](const auto& known) { return known.second.expired(); });
  const Key key{files, wish.check, settings};
  for (auto [it, end] = made().registries.equal_range(key); it != end; ++it)
    if (const auto loaded = it->second.lock(); loaded && loaded->libraries == libraries)
      return std::shared_ptr<const Registry>(loaded, loaded->registry.get());
  auto loaded = std::make_shared<Loaded>();
  loaded->wish = wish;
  loaded->libraries = std::move(libraries);
  SS_TRY(Adder(*loaded).add());
  made().registries.emplace(key, loaded);
  return std::shared_ptr<const Registry>(loaded, loaded->registry.get());
}

Result<std::shared_ptr<const Registry>> registryAgain(const std::shared_ptr<const Registry>& registry) {
  std::optional<PluginWish> wish;
  {
    const std::lock_guard lock(made().mutex);
    for (const auto& [key, known] : made().registries)
      if (const auto loaded = known.lock(); loaded && loaded->registry.get() == registry.get()) {
        wish = loaded->wish;
        std::error_code error;
        for (const auto& library : loaded->libraries)
          if (!std::filesystem::exists(library->path(), error)) return registry;
      }
  }
  if (!wish) return registry;
  return registryWith(*wish);
}

Result<std::shared_ptr<const Registry>> registryOf(const TrainOptions& options) {
  std::map<std::string, std::string> settings = settingsOf({});
  for (auto& [name, value] : settings)
    if (const auto it = options.added.find(name); it != options.added.end()) value = it->second;
  SS_ASSIGN(const PluginWish wish, pluginWish(settings, "options"));
  return registryWith(wish);
}

std::vector<std::shared_ptr<const PluginLibrary>> pluginsOf(const std::shared_ptr<const Registry>& registry) {
  const std::lock_guard lock(made().mutex);
  for (const auto& [key, known] : made().registries)
    if (const auto loaded = known.lock(); loaded && loaded->registry.get() == registry.get()) return loaded->libraries;
  return {};
}

}  // namespace stepscope
