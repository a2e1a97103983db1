// A pass of a plugin as the engine knows passes.
#pragma once

#include <string>

#include "engine/passes/pass.h"
#include "engine/plugin/plugin_library.h"

namespace stepscope {

// Stays where it is while a registry lists its pass; the library outlives it.
struct PassBridge {
  PassBridge(const PluginLibrary& library, const ssp_pass& pass);
  PassBridge(const PassBridge&) = delete;
  PassBridge& operator=(const PassBridge&) = delete;

  const PluginLibrary& library;
  const ssp_pass& pass;
  std::string runLabel;  // "plugin 'acme': run of pass 'fuse_gate'"
  Pass definition;       // `user` is the bridge
};

// The function of `definition`. Errors: kInvalidArgument with what the plugin says; kCorrupt, naming plugin and pass, for
// what is against the contract of the ABI: a result of another type or shape, an unknown op, a cycle. The graph is then as
// it was.
Status runPluginPass(Graph& graph, PassContext& context);

}  // namespace stepscope
