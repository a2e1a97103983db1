#include "engine/train/synthetic_dims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace stepscope {

std::vector<std::string> symbolsOf(const Dim& dim) {
  if (dim.known()) return {};
  if (const auto symbol = dim.asSymbol()) return {*symbol};
  std::vector<std::string> symbols;
  std::string factor;
  int depth = 0;
  const auto take = [&] {
    const bool number = std::all_of(factor.begin(), factor.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number && std::find(symbols.begin(), symbols.end(), factor) == symbols.end()) symbols.push_back(factor);
    factor.clear();
  };
  for (const char c : dim.text()) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth == 0 && (c == '+' || c == '-' || c == '*'))
      take();
    else
      factor += c;
  }
  take();
  return symbols;
}

namespace {

// "batch", "batch_size", "N_batch": a batch wherever it stands, as in the state of a recurrent layer [layers, batch, size].
bool isBatchName(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find("batch") != std::string::npos;
}

// "NAME.dim1": the file has no name for the extent.
bool isNameless(const std::string& symbol, const std::string& input, std::size_t axis) {
  return symbol == fmt::format("{}.dim{}", input, axis);
}

}  // namespace

SyntheticDims::SyntheticDims(const Graph& graph, const std::vector<ValueId>& inputs,
                             const std::map<std::string, std::int64_t>& given, const std::vector<DimChoice>& fitted)
    : given_(given) {
  std::vector<std::string> order;
  std::map<std::string, bool> leads;  // stands on first axes only
  std::map<std::string, bool> used;
  for (const auto& [name, extent] : given) used[name] = false;
  // Extents without a name on the same axis of inputs of one rank are one, as long as nothing says otherwise.
  std::map<std::string, std::pair<std::size_t, std::size_t>> places;        // nameless symbol → rank, axis
  std::map<std::pair<std::size_t, std::size_t>, std::string> givenAtPlace;  // → the one that is given
  for (const ValueId id : inputs) {
    const auto& shape = graph.value(id).type.shape;
    for (std::size_t axis = 0; shape && axis < shape->size(); ++axis) {
      const Dim& dim = (*shape)[axis];
      if (const auto whole = used.find(dim.text()); whole != used.end()) {
        whole->second = true;
        if (!dim.asSymbol()) continue;
      }
      for (const std::string& symbol : symbolsOf(dim)) {
        if (const auto it = used.find(symbol); it != used.end()) it->second = true;
        const auto [it, fresh] = leads.emplace(symbol, axis == 0);
        if (fresh) order.push_back(symbol);
        it->second = it->second && axis == 0;
        if (!isNameless(symbol, graph.value(id).name, axis)) continue;
        const auto& place = places[symbol] = {shape->size(), axis};
        if (given.contains(symbol)) givenAtPlace.emplace(place, symbol);
      }
    }
  }
  for (const std::string& symbol : order) {
    const auto set = given.find(symbol);
    const auto fit = std::find_if(fitted.begin(), fitted.end(),
                                  [&](const DimChoice& choice) { return choice.fixed && choice.name == symbol; });
    DimChoice choice{symbol, leads[symbol] || isBatchName(symbol) ? 2 : 128, "default", false};
    if (set != given.end())
      choice = {symbol, set->second, "set by --dim", false};
    else if (fit != fitted.end())
      choice = *fit;
    else if (const auto place = places.find(symbol); place != places.end() && givenAtPlace.contains(place->second)) {
      const std::string& other = givenAtPlace.at(place->second);
      choice = {symbol, given.at(other), fmt::format("as '{}'", other), false};
    }
    symbols_[symbol] = Dim(choice.extent);
    if (set == given.end())
      notes_.push_back(
          fmt::format("dimension '{}' = {} ({}; --dim {}=N sets it)", symbol, choice.extent, choice.reason, symbol));
    choices_.push_back(std::move(choice));
  }
  for (const auto& [name, found] : used)
    if (!found) unused_.push_back(name);
}

Result<std::int64_t> SyntheticDims::extent(const std::string& input, const Dim& dim) const {
  if (const auto whole = given_.find(dim.text()); whole != given_.end() && !dim.known()) return whole->second;
  const Dim result = dim.substitute(symbols_);
  if (result.known() && result.value() >= 0) return result.value();
  std::string where;
  for (const std::string& symbol : symbolsOf(dim))
    where += fmt::format("{}{} = {}", where.empty() ? "" : ", ", symbol, symbols_.at(symbol).text());
  return invalid(fmt::format("input '{}': extent {} is {} with {}; expected 0 or more; hint: --dim NAME=N", input,
                             dim.text(), result.text(), where));
}

}  // namespace stepscope
