#include "engine/build/input_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "engine/build/step_inputs.h"
#include "engine/ops/class_loss.h"

namespace stepscope {
namespace {

// Where "len", "length" or "lengths" begins in the name, as the end of one of its words: 6 in "x_seq_lens", 4 in
// "text_length".
std::optional<std::size_t> lengthWord(const std::string& name) {
  std::string lower;
  for (const char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* word : {"lengths", "length", "lens", "len"}) {
    const std::size_t at = lower.rfind(word), end = at + std::string_view(word).size();
    if (at != std::string::npos && (end == lower.size() || std::isalpha(static_cast<unsigned char>(lower[end])) == 0))
      return at;
  }
  return std::nullopt;
}

// Lengths, by the name of an integer input of one element per batch entry: of the input whose name stands before that word,
// else of the first one that has an axis to count, where it is not known when the file is opened.
std::optional<InputRole> lengthsRole(const Graph& graph, const Value& value) {
  const auto& own = value.type.shape;
  const auto at = lengthWord(value.name);
  if (!isInteger(value.type.dtype) || !at || !own || own->size() > 2) return std::nullopt;
  if (own->size() == 2 && own->back() != Dim(1)) return std::nullopt;
  std::string stem = value.name.substr(0, *at);
  while (!stem.empty() && (stem.back() == '_' || stem.back() == '.')) stem.pop_back();
  if (stem.ends_with("_seq")) stem.resize(stem.size() - 4);
  InputRole role{InputRole::Kind::kLengths, 0, "", 0, "", ""};
  for (const ValueId id : graph.inputs()) {
    const Value& other = graph.value(id);
    const auto& shape = other.type.shape;
    if (id == value.id || !shape || shape->empty() || (shape->size() == 1 && !own->empty()) || lengthWord(other.name) ||
        isStepInput(other.name))
      continue;
    const bool named = !stem.empty() && other.name.starts_with(stem);
    if (!role.counted.empty() && !named) continue;
    const auto open =
        std::find_if(shape->begin() + (shape->size() > 1), shape->end(), [](const Dim& dim) { return !dim.known(); });
    role.counted = other.name;
    role.axis = open != shape->end() ? static_cast<std::size_t>(open - shape->begin()) : shape->size() > 1 ? 1 : 0;
    if (named) break;
  }
  if (role.counted.empty()) return std::nullopt;
  role.text = fmt::format("lengths: the extent of axis {} of '{}'", role.axis, role.counted);
  role.reason = "by its name";
  return role;
}

}  // namespace

InputRole inferRole(const Graph& graph, ValueId input) {
  const Value& value = graph.value(input);
  const auto uses = graph.uses();
  if (isInteger(value.type.dtype)) {
    // Follows the value through nodes that keep its elements, to the first use that bounds them.
    std::vector<ValueId> front{input};
    std::vector<bool> seen(graph.valueCapacity(), false);
    for (std::size_t i = 0; i < front.size(); ++i) {
      for (const Use& use : uses[static_cast<std::size_t>(front[i].index)]) {
        if (use.input > 100) continue;
        const Node& node = graph.node(use.node);
        const auto extent = [&](ValueId of, std::size_t axis) -> std::int64_t {
          const auto& shape = graph.value(of).type.shape;
          if (!shape || axis >= shape->size() || !(*shape)[axis].known()) return 0;
          return (*shape)[axis].value();
        };
        if (node.op == "Gather" && use.input == 1) {
          const std::int64_t axis = node.attrs.integer("axis", 0);
          const std::int64_t rows = extent(node.input(0), static_cast<std::size_t>(std::max<std::int64_t>(axis, 0)));
          if (rows > 0 && graph.value(node.input(0)).role == ValueRole::kInitializer)
            return {InputRole::Kind::kTokens,
                    rows,
                    "",
                    0,
                    fmt::format("token ids below {}", rows),
                    fmt::format("indexes '{}' ({} rows) through {}", graph.value(node.input(0)).name, rows, node.label())};
        }
        if (isClassLoss(node) && use.input == 1) {
          const std::int64_t classes = extent(node.input(0), 1);
          return {InputRole::Kind::kLabels,
                  classes,
                  "",
                  0,
                  fmt::format("class labels below {}", classes),
                  fmt::format("labels of {}", node.label())};
        }
        if (node.op == "OneHot" && use.input == 0 && graph.value(node.input(1)).data) {
          const std::int64_t depth = elementAsInt(graph.value(node.input(1)).data->view(), 0);
          return {InputRole::Kind::kLabels,
                  depth,
                  "",
                  0,
                  fmt::format("class labels below {}", depth),
                  fmt::format("expanded by {}", node.label())};
        }
        if ((node.op == "GatherElements" || node.op == "GatherND") && use.input == 1) {
          const std::int64_t axis =
              node.attrs.integer("axis", node.op == "GatherND" ? node.attrs.integer("batch_dims", 0) : 0);
          const auto& shape = graph.value(node.input(0)).type.shape;
          const std::int64_t rank = shape ? static_cast<std::int64_t>(shape->size()) : 0;
          const std::int64_t rows = extent(node.input(0), static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
          if (rows > 0)
            return {InputRole::Kind::kLabels,
                    rows,
                    "",
                    0,
                    fmt::format("indices below {}", rows),
                    fmt::format("indices of {}", node.label())};
        }
        const bool keeps = node.op == "Cast" || node.op == "Identity" || node.op == "Reshape" || node.op == "Squeeze" ||
                           node.op == "Unsqueeze" || node.op == "Slice" || node.op == "Flatten" || node.op == "Transpose" ||
                           node.op == "Concat" || node.op == "Gather" || node.op == "Expand";
        if (keeps && use.input == 0 && node.output(0) && !seen[static_cast<std::size_t>(node.output(0).index)]) {
          seen[static_cast<std::size_t>(node.output(0).index)] = true;
          front.push_back(node.output(0));
        }
      }
    }
  }
  const auto contains = [&](const char* part) { return value.name.find(part) != std::string::npos; };
  if (contains("mask") || value.type.dtype == DType::kBool)
    return {InputRole::Kind::kMask, 2, "", 0, "mask of ones and zeros", "by its name or type"};
  if (isInteger(value.type.dtype) && contains("position"))
    return {InputRole::Kind::kPositions, 0, "", 0, "positions", "by its name"};
  if (auto lengths = lengthsRole(graph, value)) return std::move(*lengths);
  return {InputRole::Kind::kData,
          0,
          "",
          0,
          isFloating(value.type.dtype) ? "data; standard normal if synthetic" : "data; zeros and ones if synthetic",
          "no use bounds its values"};
}

}  // namespace stepscope
