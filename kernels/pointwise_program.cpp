#include "kernels/pointwise_program.h"

#include <charconv>
#include <optional>

namespace stepscope {
namespace {

constexpr std::array<PointwiseOpInfo, 43> kOps{{
    {"Abs"},
    {"Add", 2},
    {"Div", 2},
    {"Erf"},
    {"Exp"},
    {"Greater", 2, true},
    {"GreaterOrEqual", 2, true},
    {"Less", 2, true},
    {"LessOrEqual", 2, true},
    {"Log"},
    {"Max", 2},
    {"Min", 2},
    {"Mul", 2},
    {"Neg"},
    {"Not", 1, true, 1},
    {"Pow", 2},
    {"Reciprocal"},
    {"Relu"},
    {"Sigmoid"},
    {"Sqrt"},
    {"Sub", 2},
    {"Tanh"},
    {"Where", 3, false, 1},
    {"And", 2, true, 2},
    {"Ceil"},
    {"Equal", 2, true},
    {"Floor"},
    {"FromMask", 1, false, 1},
    {"Gelu"},
    {"GeluGrad", 2},
    {"GeluTanh"},
    {"GeluTanhGrad", 2},
    {"HardSwish"},
    {"IsNaN", 1, true},
    {"Mish"},
    {"Or", 2, true, 2},
    {"ReluGrad", 2},
    {"Round"},
    {"Sign"},
    {"Softplus"},
    {"Softsign"},
    {"ToBFloat16"},
    {"ToFloat16"},
}};

Result<PointwiseStep> parseStep(std::string_view text, std::size_t known) {
  const auto bad = [&](std::string_view why) {
    return invalid("Pointwise: step '" + std::string(text) + "': " + std::string(why));
  };
  const auto space = text.find(' ');
  const auto op = pointwiseOp(text.substr(0, space));
  if (!op) return bad("unknown op");
  PointwiseStep step{*op, {}};
  const char* at = space == std::string_view::npos ? text.data() + text.size() : text.data() + space;
  const char* end = text.data() + text.size();
  for (std::size_t i = 0; i < infoOf(*op).arity; ++i) {
    if (at == end || *at != ' ') return bad("an operand is missing");
    const auto [next, error] = std::from_chars(at + 1, end, step.operands[i]);
    if (error != std::errc() || step.operands[i] >= known)
      return bad("an operand that is not there; expected a number below " + std::to_string(known));
    at = next;
  }
  if (at != end) return bad("more operands than the op has");
  return step;
}

}  // namespace

const PointwiseOpInfo& infoOf(PointwiseOp op) { return kOps[static_cast<std::size_t>(op)]; }

std::optional<PointwiseOp> pointwiseOp(std::string_view name) {
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (kOps[i].name == name) return static_cast<PointwiseOp>(i);
  return std::nullopt;
}

Result<PointwiseProgram> PointwiseProgram::of(const Attributes& attrs, const std::vector<bool>& maskInputs) {
  const AttrValue* found = attrs.find("steps");
  const auto* lines = found ? std::get_if<std::vector<std::string>>(found) : nullptr;
  if (!lines || lines->empty() || lines->size() > kMostPointwiseSteps || maskInputs.size() > kMostPointwiseInputs)
    return invalid("Pointwise: attribute steps: " + std::to_string(lines ? lines->size() : 0) + " steps and " +
                   std::to_string(maskInputs.size()) + " inputs; expected 1 to " + std::to_string(kMostPointwiseSteps) +
                   " and at most " + std::to_string(kMostPointwiseInputs));
  PointwiseProgram program;
  program.inputs = maskInputs.size();
  std::vector<bool> mask = maskInputs;
  for (const std::string& line : *lines) {
    SS_ASSIGN(const PointwiseStep step, parseStep(line, mask.size()));
    const PointwiseOpInfo& info = infoOf(step.op);
    for (std::size_t i = 0; i < info.arity; ++i)
      if (mask[step.operands[i]] != (i < info.masks))
        return invalid("Pointwise: step '" + line + "': operand " + std::to_string(i) + " is of the wrong type");
    mask.push_back(info.mask);
    program.steps.push_back(step);
  }
  if (mask.back()) return invalid("Pointwise: the last step makes a mask; expected a number");
  return program;
}

std::vector<std::string> PointwiseProgram::text() const {
  std::vector<std::string> lines;
  for (const PointwiseStep& step : steps) {
    std::string line(infoOf(step.op).name);
    for (std::size_t i = 0; i < infoOf(step.op).arity; ++i) line += " " + std::to_string(step.operands[i]);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace stepscope
