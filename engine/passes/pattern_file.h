// Patterns of nodes as text: what a pass looks for, written so that a person can read it and add a form of their own.
//
//   # a comment
//   rows    = Where(IsNaN(p), 0, p: softmax)      a rule: what may make a value, from the result back; alternatives are
//           | softmax                             tried in their order, and lines that begin with | go on
//   softmax = !Softmax(s: scores) [axis = last]
//
//   Op(a, b)     a node of the default domain with these operands; those of Add and Mul in either order
//   rule         what that rule says
//   name         any value, which gets this name; where it has a value already, that value
//   name: form   the value that the form makes, which gets this name
//   name?        an operand that may be absent
//   *c  /c       a constant of one element; number c, 1 at first, is multiplied or divided by it
//   0  -inf      a constant of one element that is this number
//   [axis = 1]   an attribute that is set so; `last`: the last axis of the result, counted from either end
//   !Op(…)       what gets this far and then fails is a near miss
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/status.h"

namespace stepscope {

// One thing that may make a value.
struct PatternForm {
  enum class Kind : std::uint8_t { kNode, kName, kFactor, kNumber };
  static constexpr std::int64_t kLastAxis = INT64_MIN;  // of an attribute: `last`

  Kind kind = Kind::kName;
  std::string name;   // the op, the rule or value, the number
  std::string as;     // name that the value gets; empty: none
  double number = 0;  // of kNumber
  bool optional = false, marked = false, divides = false;
  std::vector<PatternForm> operands;
  std::vector<std::pair<std::string, std::int64_t>> attributes;
};

// The names that a pass reads from a match; every other name has to be a rule.
struct PatternNames {
  std::span<const std::string_view> values, numbers;
};

class PatternFile {
 public:
  explicit PatternFile(PatternNames names) : names_(names) {}

  // Adds the rules of a text; one that is there already gets the alternatives after its own. `origin` names the text in
  // errors. Errors: kInvalidArgument with origin, line, what was found and what was expected: syntax, a name that is neither
  // a rule nor one of the pass, a rule that has the name of a value, rules that lead to themselves without a node.
  Status add(std::string_view text, std::string_view origin);

  // Null where there is no such rule.
  const std::vector<PatternForm>* rule(std::string_view name) const;

 private:
  Status check(std::string_view origin) const;

  PatternNames names_;
  std::map<std::string, std::vector<PatternForm>, std::less<>> rules_;
};

}  // namespace stepscope
