#include "engine/passes/pattern_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>
#include <set>

namespace stepscope {
namespace {

bool isLetter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Parser {
 public:
  using Rule = std::pair<std::string, std::vector<PatternForm>>;

  Parser(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  Result<std::vector<Rule>> rules() {
    std::vector<Rule> rules;
    while (skipBlanks(), at_ < text_.size()) {
      SS_ASSIGN(std::string name, word("the name of a rule"));
      SS_TRY(expect('='));
      Rule rule{std::move(name), {}};
      do {
        SS_ASSIGN(PatternForm form, this->form());
        rule.second.push_back(std::move(form));
      } while (take('|'));
      rules.push_back(std::move(rule));
    }
    return rules;
  }

 private:
  tl::unexpected<Error> error(std::string_view expected) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
    std::string found = at_ < text_.size() ? fmt::format("'{}'", text_.substr(at_, text_.find('\n', at_) - at_)) : "the end";
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} line {}: found {}; expected {}", origin_, line, found, expected));
  }

  void skipBlanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
        ++at_;
      else
        break;
    }
  }
  bool take(char wanted) {
    skipBlanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  Status expect(char wanted) {
    if (!take(wanted)) return error(fmt::format("'{}'", wanted));
    return {};
  }
  std::string_view letters() {
    skipBlanks();
    const std::size_t from = at_;
    while (at_ < text_.size() && isLetter(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  Result<std::string> word(std::string_view expected) {
    const std::string_view found = letters();
    if (found.empty() || std::isdigit(static_cast<unsigned char>(found.front())) != 0) {
      at_ -= found.size();
      return error(expected);
    }
    return std::string(found);
  }
  // A number at this place: digits, or inf, with a sign.
  std::optional<double> number() {
    skipBlanks();
    const std::string_view rest = text_.substr(at_);
    const bool negative = rest.starts_with('-');
    const std::string_view digits = rest.substr(negative ? 1 : 0);
    if (digits.starts_with("inf") && (digits.size() == 3 || !isLetter(digits[3]))) {
      at_ += negative ? 4 : 3;
      return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    }
    if (digits.empty() || std::isdigit(static_cast<unsigned char>(digits.front())) == 0) return std::nullopt;
    double value = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (read.ec != std::errc()) return std::nullopt;
    at_ += static_cast<std::size_t>(read.ptr - rest.data());
    return value;
  }

  Result<PatternForm> form() {
    // Forms stand in one another as deep as a person writes them; a file of brackets alone must not end the program.
    if (depth_ > 100) return error("fewer than 100 forms in one another");
    PatternForm form;
    form.marked = take('!');
    if (!form.marked) {
      form.divides = take('/');
      if (form.divides || take('*')) {
        form.kind = PatternForm::Kind::kFactor;
        SS_ASSIGN(form.name, word("the name of a number"));
        return form;
      }
      if (const auto value = number()) {
        form.kind = PatternForm::Kind::kNumber;
        form.number = *value;
        return form;
      }
      const std::size_t from = at_;
      SS_ASSIGN(form.as, word("an op, a rule, a name or a number"));
      if (!take(':')) {
        form.as.clear();
        at_ = from;
      }
      form.marked = take('!');
    }
    SS_ASSIGN(form.name, word("an op, a rule or a name"));
    if (take('(')) SS_TRY(operands(form));
    if (form.marked && form.kind != PatternForm::Kind::kNode) return error("'(', as ! marks a node");
    form.optional = take('?');
    return form;
  }

  Status operands(PatternForm& form) {
    form.kind = PatternForm::Kind::kNode;
    ++depth_;
    do {
      SS_ASSIGN(PatternForm operand, this->form());
      form.operands.push_back(std::move(operand));
    } while (take(','));
    --depth_;
    SS_TRY(expect(')'));
    if (!take('[')) return {};
    do {
      SS_ASSIGN(std::string attribute, word("the name of an attribute"));
      SS_TRY(expect('='));
      skipBlanks();
      const std::size_t from = at_;
      std::int64_t value = PatternForm::kLastAxis;
      if (const auto whole = number())
        value = static_cast<std::int64_t>(*whole);
      else if (letters() != "last")
        return at_ = from, error("a whole number or last");
      form.attributes.emplace_back(std::move(attribute), value);
    } while (take(','));
    return expect(']');
  }

  std::string_view text_, origin_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Status PatternFile::add(std::string_view text, std::string_view origin) {
  SS_ASSIGN(auto rules, Parser(text, origin).rules());
  PatternFile whole = *this;
  for (auto& [name, alternatives] : rules) {
    auto& own = whole.rules_[name];
    own.insert(own.end(), std::make_move_iterator(alternatives.begin()), std::make_move_iterator(alternatives.end()));
  }
  SS_TRY(whole.check(origin));
  *this = std::move(whole);
  return {};
}

const std::vector<PatternForm>* PatternFile::rule(std::string_view name) const {
  const auto it = rules_.find(name);
  return it == rules_.end() ? nullptr : &it->second;
}

Status PatternFile::check(std::string_view origin) const {
  const auto invalid = [&](const std::string& rule, const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}, rule '{}': {}", origin, rule, what));
  };
  const auto known = [](std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  std::function<Status(const std::string&, const PatternForm&)> names = [&](const std::string& of,
                                                                            const PatternForm& form) -> Status {
    const bool value = form.kind == PatternForm::Kind::kName, factor = form.kind == PatternForm::Kind::kFactor;
    if (value && !rule(form.name) && !known(names_.values, form.name))
      return invalid(
          of, fmt::format("found name '{}'; expected a rule or one of {}", form.name, fmt::join(names_.values, ", ")));
    if (!form.as.empty() && !known(names_.values, form.as))
      return invalid(of, fmt::format("found name '{}'; expected one of {}", form.as, fmt::join(names_.values, ", ")));
    if (factor && !known(names_.numbers, form.name))
      return invalid(of, fmt::format("found number '{}'; expected one of {}", form.name, fmt::join(names_.numbers, ", ")));
    for (const PatternForm& operand : form.operands) SS_TRY(names(of, operand));
    return {};
  };
  for (const auto& [name, alternatives] : rules_) {
    if (known(names_.values, name)) return invalid(name, "it has the name of a value; expected another one");
    for (const PatternForm& form : alternatives) SS_TRY(names(name, form));
    // Rules that lead back here before a node was read would never end.
    std::set<std::string, std::less<>> reached;
    std::vector<std::string> open{name};
    while (!open.empty()) {
      const std::string at = std::move(open.back());
      open.pop_back();
      for (const PatternForm& form : *rule(at)) {
        if (form.kind != PatternForm::Kind::kName || !rule(form.name)) continue;
        if (form.name == name) return invalid(name, fmt::format("'{}' leads back to it; expected a node between", at));
        if (reached.insert(form.name).second) open.push_back(form.name);
      }
    }
  }
  return {};
}

}  // namespace stepscope
