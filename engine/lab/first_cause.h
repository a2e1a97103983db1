// Where the first number that is not finite came from, when a loss or a gradient is not.
//
// The step is replayed beside the session (side_step.h), node by node as the file has them (without passes; where that does
// not show it, under the passes of the run), and every value is looked at. From the loss or gradient the way back leads
// along values that are not finite to the instruction that made one of operands that were: the first cause. An infinity is
// no cause where it comes from an infinite constant (an attention mask) alone, unless it reaches the loss; what a Where
// drops is not on the way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/lab/side_step.h"

namespace stepscope {

// An operand of the first cause. Elementwise: the element that met the result's; else the first that is not finite, or the
// largest.
struct CauseOperand {
  std::string name;
  double value = 0;
  std::vector<std::int64_t> index;
};

struct FirstCause {
  std::int64_t step = 0;
  int instruction = -1;  // of the session's plan
  NodeId node;           // of the imported graph
  std::string name, op;  // of that node; in the backward phase its gradient is meant
  std::string value;     // the output that holds it, or the input, or the parameter
  bool backward = false;
  std::string module, source;  // "model.py:12 y = x.log()"; empty where the file does not say
  std::string kind;            // "overflow", "invalid operand", "division by zero", "log or root out of domain",
                               // "all-masked softmax", "mean of no elements", "bad input", "exploded weights since step N",
                               // "no label of the batch counts, so the loss is undefined"
  bool nan = false;            // else an infinity
  std::vector<std::int64_t> index;
  std::vector<CauseOperand> operands;
  std::vector<std::int64_t> rows;  // of the batch, as far as the value has them; the first kMostCauseRows
  // "NaN in 'y' [3, 0], made by Log 'log_3': log or root out of domain; x = 0; batch row 3; model.py:12 …"
  std::string text() const;
};
inline constexpr std::size_t kMostCauseRows = 64;

// The largest parameter, step by step: since when weights explode.
class WeightWatch {
 public:
  // Before the first step, then after step `step`. One pass over the trained parameters.
  void look(const State& state, const std::vector<std::string>& trained, std::int64_t step);
  void note(double largest, std::int64_t step);  // the same, of a caller who knows the largest
  // The step whose update made the largest element more than a hundred times what it was at first, and it stayed there.
  std::optional<std::int64_t> explodedSince() const { return since_; }
  bool begun() const { return first_.has_value(); }

 private:
  std::optional<double> first_;
  std::optional<std::int64_t> since_;
};

// The imported node that a node of a later graph belongs to: itself, the forward node of a gradient, what a pass made it of.
// Invalid: none, as of an update.
NodeId importedNodeOf(const Graph& graph, NodeId node);

// Nothing: the replay is finite (another plan rounds in another way). Errors: those of building and running; kCancelled.
Result<std::optional<FirstCause>> findFirstCause(const SideSubject& subject, const WeightWatch& weights);

}  // namespace stepscope
