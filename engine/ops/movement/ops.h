// The definitions of this group, from ops.inc; list.cpp makes the table.
#pragma once

#include "engine/ops/op_def.h"

namespace stepscope::ops {

#define SS_OP(definition, file) extern const OpDef definition;
#include "engine/ops/movement/ops.inc"
#undef SS_OP

}  // namespace stepscope::ops
