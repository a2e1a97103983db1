#include "kernels/einsum_equation.h"

#include <algorithm>
#include <array>

namespace stepscope {
namespace {

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Result<EinsumTerm> parseTerm(std::string_view text) {
  EinsumTerm term;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i, 3) == "...") {
      if (term.ellipsis >= 0) return invalid("einsum term '" + std::string(text) + "': two ellipses; expected one at most");
      term.ellipsis = static_cast<int>(term.letters.size());
      i += 2;
    } else if (isLetter(text[i])) {
      term.letters += text[i];
    } else {
      return invalid("einsum term '" + std::string(text) + "': unexpected character; expected letters and '...'");
    }
  }
  return term;
}

}  // namespace

std::string EinsumTerm::text() const {
  std::string result = letters;
  if (ellipsis >= 0) result.insert(static_cast<std::size_t>(ellipsis), "...");
  return result;
}

Result<EinsumEquation> parseEinsum(std::string_view equation, std::size_t operands) {
  EinsumEquation result;
  const std::size_t arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  std::array<int, 128> seen{};
  bool anyEllipsis = false;
  while (true) {
    const std::size_t comma = left.find(',');
    SS_ASSIGN(EinsumTerm term, parseTerm(left.substr(0, comma)));
    anyEllipsis = anyEllipsis || term.ellipsis >= 0;
    for (const char c : term.letters) ++seen[static_cast<std::size_t>(c)];
    result.operands.push_back(std::move(term));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (result.operands.size() != operands)
    return invalid("einsum equation '" + std::string(equation) + "': " + std::to_string(result.operands.size()) +
                   " terms; expected " + std::to_string(operands));
  if (arrow == std::string_view::npos) {
    if (anyEllipsis) result.output.ellipsis = 0;
    for (std::size_t c = 0; c < seen.size(); ++c)
      if (seen[c] == 1) result.output.letters += static_cast<char>(c);
    return result;
  }
  SS_ASSIGN(result.output, parseTerm(equation.substr(arrow + 2)));
  std::array<int, 128> used{};
  for (const char c : result.output.letters)
    if (seen[static_cast<std::size_t>(c)] == 0 || used[static_cast<std::size_t>(c)]++ > 0)
      return invalid("einsum equation '" + std::string(equation) + "': output letter '" + std::string(1, c) +
                     "' repeats or is in no operand");
  if (result.output.ellipsis >= 0 && !anyEllipsis)
    return invalid("einsum equation '" + std::string(equation) + "': ellipsis in the output; expected one in an operand");
  return result;
}

Result<std::vector<int>> einsumLabels(const EinsumTerm& term, std::size_t rank) {
  const std::size_t letters = term.letters.size();
  if (rank < letters || (term.ellipsis < 0 && rank != letters) || rank > letters + 1000)
    return invalid("einsum term '" + term.text() + "': operand of rank " + std::to_string(rank) + "; expected " +
                   std::to_string(letters) + (term.ellipsis >= 0 ? " or more" : ""));
  std::vector<int> labels;
  const auto code = [](char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; };
  for (std::size_t i = 0; i <= letters; ++i) {
    if (term.ellipsis == static_cast<int>(i))
      for (std::size_t k = rank - letters; k-- > 0;) labels.push_back(kEinsumEllipsis + static_cast<int>(k));
    if (i < letters) labels.push_back(code(term.letters[i]));
  }
  return labels;
}

}  // namespace stepscope
