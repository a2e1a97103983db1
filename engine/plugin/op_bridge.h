// An op of a plugin as the engine knows ops: an OpDef whose rules call the plugin.
#pragma once

#include <span>
#include <string>

#include "engine/ops/op_def.h"
#include "engine/plugin/plugin_library.h"

namespace stepscope {

// Stays where it is while something knows its definition; the library outlives it.
struct OpBridge {
  OpBridge(const PluginLibrary& library, const ssp_op& op);
  OpBridge(const OpBridge&) = delete;
  OpBridge& operator=(const OpBridge&) = delete;

  const PluginLibrary& library;
  const ssp_op& op;
  std::string shapeLabel, gradientLabel;  // "plugin 'acme': infer_shape of op 'acme.Gate'" …
  OpDef definition;                       // `user` is the bridge

  std::span<const ssp_attr_info> schema() const { return {op.attrs, op.attr_count}; }
};

// The rules of `definition`. Errors: kInvalidArgument with what the plugin says of the node; kCorrupt, naming plugin and
// function, for what is against the contract of the ABI.
Status inferPluginShape(ShapeContext& context);
Status emitPluginGradient(GradientContext& context);

}  // namespace stepscope
