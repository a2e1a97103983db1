// A Registry with what plugins add: built-in lists first, then the plugins in the order in which they are named. The
// libraries stay loaded while the registry, or a model, plan or session that holds it, lives.
//
// Three options say which, and hold for a session from its beginning to its end: `plugin` FILE[:FILE…], `plugin.path`
// FOLDER[:FOLDER…] where files without a slash are looked for (then beside the program), `plugin.check` on|off
// (kernel_bridge.h). Each plugin that is loaded has an option plugin.loaded.NAME whose one value tells version, hash and
// path, so that it is stored with the run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/registry.h"
#include "engine/plugin/plugin_library.h"

namespace stepscope {

struct PluginWish {
  std::vector<std::string> files;  // a path, or a name that is looked for in `folders`: "acme" finds acme.so
  std::vector<std::string> folders;
  bool check = false;
  std::map<std::string, std::string> setBy;  // who set which of the three options
};

// Of those three options, by name, set by `setBy`; absent ones are those of the environment (STEPSCOPE_SET_PLUGIN …).
// Errors: a value of plugin.check that is neither on nor off.
Result<PluginWish> pluginWish(const std::map<std::string, std::string>& settings, const std::string& setBy);
// The values of the three options that say the same.
std::map<std::string, std::string> settingsOf(const PluginWish& wish);

// Sets what the environment has, and the three options as the wish says. `table`: of registryWith(wish). Errors: those of
// applyEnvironment.
Status applyEnvironment(TrainOptions& options, const PluginWish& wish, const std::vector<OptionInfo>& table);

// The built-in registry for an empty wish. While one for an equal wish lives, that one, unless a file has other contents by
// now. Errors: those of PluginLibrary::load; kInvalidArgument for a name that two plugins share, naming both; kCorrupt for
// one that a plugin has twice, or that is built in.
Result<std::shared_ptr<const Registry>> registryWith(const PluginWish& wish);

// What registryWith() says now to the wish of a registry that it made; others, and one whose file is gone, are as they are.
Result<std::shared_ptr<const Registry>> registryAgain(const std::shared_ptr<const Registry>& registry);

// The same for options that were set with the table of such a registry: none of the environment's plugins are added.
Result<std::shared_ptr<const Registry>> registryOf(const TrainOptions& options);

// The plugins of a registry that registryWith() made, in their order; empty for others.
std::vector<std::shared_ptr<const PluginLibrary>> pluginsOf(const std::shared_ptr<const Registry>& registry);

}  // namespace stepscope
