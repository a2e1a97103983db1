#include "engine/build/splice.h"

#include <fmt/format.h>

namespace stepscope {
namespace {

class Splicer {
 public:
  Splicer(Graph& graph, Inference& inference, const ImportedModel& part, const Splice& request)
      : graph_(graph), inference_(inference), part_(part.graph), file_(part.path.filename().string()), request_(request) {}

  Result<std::map<std::string, ValueId>> run() {
    places_.resize(part_.valueCapacity());
    for (const ValueId id : part_.inputs())
      if (const auto joined = request_.joined.find(part_.value(id).name); joined != request_.joined.end())
        SS_TRY(join(part_.value(id), joined->second));
    // After those that are joined: they tell what the symbols stand for.
    for (const ValueId id : part_.inputs()) {
      if (at(id)) continue;
      const Value& input = part_.value(id);
      SS_ASSIGN(at(id), request_.input(input, {input.type.kind, input.type.dtype, substituted(input.type.shape)}));
    }
    for (std::size_t i = 0; i < part_.valueCapacity(); ++i) bringAlong(part_.value({static_cast<std::int32_t>(i)}));
    for (const NodeId id : part_.order()) SS_TRY(add(part_.node(id)));
    for (const StateUpdate& update : part_.stateUpdates) graph_.stateUpdates.push_back({at(update.state), at(update.next)});
    std::map<std::string, ValueId> outputs;
    for (const ValueId id : part_.outputs()) outputs.emplace(part_.value(id).name, at(id));
    return outputs;
  }

 private:
  ValueId& at(ValueId id) { return places_[static_cast<std::size_t>(id.index)]; }
  ValueId placeOf(ValueId id) { return id ? at(id) : ValueId{}; }

  std::optional<Shape> substituted(const std::optional<Shape>& shape) const {
    if (!shape) return std::nullopt;
    Shape result;
    for (const Dim& dim : *shape) result.push_back(dim.substitute(symbols_));
    return result;
  }

  Status join(const Value& input, ValueId value) {
    const ValueType &wanted = input.type, &found = graph_.value(value).type;
    const auto differs = [&] {
      return invalid(
          fmt::format("{}: input '{}' is {}; value '{}' of the step is {}; expected equal types; hint: an input without a "
                      "shape takes any",
                      file_, input.name, wanted.text(), graph_.value(value).name, found.text()));
    };
    if (wanted.kind != found.kind || wanted.dtype != found.dtype) return differs();
    if (wanted.shape && found.shape) {
      if (wanted.shape->size() != found.shape->size()) return differs();
      for (std::size_t axis = 0; axis < wanted.shape->size(); ++axis) {
        const Dim dim = (*wanted.shape)[axis].substitute(symbols_);
        if (const auto symbol = dim.asSymbol(); symbol && !(dim == (*found.shape)[axis]))
          symbols_.emplace(*symbol, (*found.shape)[axis]);
        else if (dim.known() && (*found.shape)[axis].known() && !(dim == (*found.shape)[axis]))
          return differs();
      }
    }
    at(input.id) = value;
    return {};
  }

  void bringAlong(const Value& value) {
    if (!part_.alive(value.id) || value.role == ValueRole::kNodeOutput || value.role == ValueRole::kInput) return;
    const bool isState = !request_.constant && value.role != ValueRole::kConstant;
    const ValueId id = graph_.addValue(isState ? value.name : request_.prefix + value.name, value.type,
                                       isState ? value.role : ValueRole::kConstant);
    graph_.mutableValue(id).data = value.data;
    at(value.id) = id;
  }

  Status add(const Node& node) {
    if (!node.subgraphs.empty())
      return unsupported(fmt::format("{}: {} holds a graph of its own; expected nodes without", file_, node.label()));
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(placeOf(input));
    std::vector<std::string> outputs;
    for (const ValueId output : node.outputs) outputs.push_back(output ? request_.prefix + part_.value(output).name : "");
    const NodeId id =
        graph_.addNode(request_.prefix + node.name, node.domain, node.op, std::move(inputs), outputs, node.attrs);
    Node& made = graph_.mutableNode(id);
    made.sinceVersion = node.sinceVersion;
    made.phase = request_.phase;
    made.provenance = node.provenance;
    made.provenance.sources.clear();
    made.provenance.imported = id;
    made.provenance.forward = {};
    if (made.provenance.modulePath.empty()) made.provenance.modulePath = InternedText(request_.modulePath);
    made.origin = request_.origin ? request_.origin(node.name)
                                  : Origin{.kind = Origin::Kind::kRoot, .detail = InternedText(request_.prefix + node.name)};
    for (const Predicate& predicate : node.predicates)
      made.predicates.edit().push_back({placeOf(predicate.condition), predicate.expected});
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i]) at(node.outputs[i]) = graph_.node(id).outputs[i];
    return inference_.inferNode(id);
  }

  Graph& graph_;
  Inference& inference_;
  const Graph& part_;
  std::string file_;
  const Splice& request_;
  std::vector<ValueId> places_;         // by value of the part
  std::map<std::string, Dim> symbols_;  // of the part → extents of the graph
};

}  // namespace

Result<std::shared_ptr<const ImportedModel>> importPart(std::string_view what, const std::filesystem::path& path,
                                                        std::shared_ptr<const Registry> registry) {
  BuildLog quiet{Observer{}};
  auto part = importModel(path, {}, quiet, nullptr, std::move(registry));
  if (!part)
    return tl::unexpected(Error{part.error().code, fmt::format("{} '{}': {}", what, path.string(), part.error().message)});
  return part;
}

Result<std::map<std::string, ValueId>> splice(Graph& graph, Inference& inference, const ImportedModel& part,
                                              const Splice& request) {
  return Splicer(graph, inference, part, request).run();
}

}  // namespace stepscope
