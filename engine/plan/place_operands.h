// Where instructions run and where their operands are: spaces, falling back to the CPU, copies.
#pragma once

#include "engine/ops/op_registry.h"
#include "engine/plan/plan.h"
#include "engine/plan/spec_table.h"
#include "kernels/kernel_registry.h"

namespace stepscope {

// Gives every instruction of a plan whose device is not on the host a place to run and every buffer a space, and inserts
// copies before the first instruction that reads a value in the other space. Needs instructions with buffers and specs;
// instructionOfNode is found anew. Each value is copied once; a copy runs under the conditions of If of the value's
// producer.
//  - On the CPU run: what the device does not take (Device::takes, and the kernels that
//    plugins add for it), what has extents that are known only at run time, and
//    what has strings; with `referenceKernels` everything, where the device runs other kernels than the CPU. The reason is
//    kept in the instruction. Collectives too, unless `deviceRanks` and the device can sum up their type
//    (kernels/device_ranks.h).
//  - On the host are: the batch, constants (the device has its own, made at bind), conditions of If, and the inputs that an
//    op reads on the host (OpDef::hostInputs). Specs say of every operand where it is. Copies of the batch to the device
//    stand first, whoever reads them.
void placeOperands(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, const KernelRegistry& kernels,
                   const Device& device, bool referenceKernels, bool deviceRanks, SpecTable& specs);

}  // namespace stepscope
