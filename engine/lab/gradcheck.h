// Gradient rules beside finite differences, at the values of the coming step.
//
// The step runs beside the session as the file has it, without passes. For each node that is asked for, its operands are
// taken there, the node alone becomes a graph in float64 with the loss sum(w * y), w fixed, and what its gradient rule gives
// is compared with (L(x + h d) - L(x - h d)) / 2h: along random directions d over all elements of an operand, and for single
// elements, the one with the largest gradient first. h d is a millionth of each element, so an operand keeps its sign; what
// stands for an infinity (a mask) stays as it is, and so do operands whose gradient the step does not need. Where the slopes
// of both sides differ (a kink: Relu at 0, a tie of Max) the operands are moved by a thousandth and all is compared there.
// A node whose operands hold NaN, or no elements, is "unchecked": it has no slopes there.
// State, plan and place of the session stay as they are.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "engine/lab/side_step.h"
#include "engine/snapshot/lab.pb.h"

namespace stepscope {

// Largest relative error that is the difference's own: central differences in float64 are good to 1e-7 and better.
inline constexpr double kGradcheckTolerance = 1e-4;

// `subject.request` is that of the present plan; `only` is searched in name, op and module path of the imported nodes, `id`
// is one of them (invalid: all that match). Seconds for large products: reference kernels compute in float64.
// Errors: a malformed `only`, or one that names no node through which a gradient flows; those of building and running the
// step; kCancelled. What a node fails with stands in its entry.
Result<snapshot::GradcheckReport> gradcheck(const SideSubject& subject, const std::string& only, NodeId id,
                                            const std::function<void(const std::string&, std::int64_t, std::int64_t)>& tell);

}  // namespace stepscope
