#include "engine/lab/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "engine/ops/class_loss.h"

namespace stepscope {
namespace {

constexpr double kWorthTelling = 0.01;  // of the step

struct Shares {
  double padding = 0, ignored = 0;
};

// Rows of one input of tokens.
struct Tokens {
  std::int64_t batch = 0, length = 0, valid = 0, counted = 0, kept = 0, keptPadding = 0;
  double pairs = 1;  // share of pairs of valid tokens
};

bool among(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::ranges::find(ops, op) != ops.end();
}

class TokenRows {
 public:
  explicit TokenRows(const LedgerSubject& subject) {
    for (const KeptRows& rows : *subject.keptRows)
      if (!rows.tokens) addLabels(rows, subject);
    for (const DensityProbe::Entry& entry : subject.density->entries()) {
      const auto array = subject.batch->arrays.find(entry.input);
      if (array == subject.batch->arrays.end()) continue;
      const Dims& dims = array->second.dims();
      if (entry.kind == "labels") {
        std::int64_t counted = 0;
        for (std::int64_t i = 0; entry.invalid && i < array->second.elements(); ++i)
          counted += elementAsInt(array->second.view(), i) != *entry.invalid;
        labels_[array->second.elements()] = counted;
      }
      if (entry.kind != "tokens" || dims.size() != 2) continue;
      tokens_.push_back(tokensOf(entry, dims, subject));
    }
    for (Tokens& tokens : tokens_) {
      const auto counted = labels_.find(tokens.batch * tokens.length);
      tokens.counted = counted == labels_.end() ? tokens.valid : std::min(tokens.valid, counted->second);
    }
    for (const NodeId id : subject.graph->order()) {
      const Node& node = subject.graph->node(id);
      if (!isClassLoss(node)) continue;
      const auto& shape = subject.graph->value(node.input(0)).type.shape;
      if (shape && shape->size() >= 2 && (*shape)[1].known()) classes_ = (*shape)[1].value();
    }
    findPairs(*subject.graph);
  }

  bool ofPairs(ValueId value) const { return pairs_.contains(value); }

  // Of the rows of a value; nothing where its extents are not those of tokens.
  std::optional<Shares> of(const Value& value, ValueId id) const {
    const auto known = value.type.shape ? knownDims(*value.type.shape) : std::nullopt;
    if (!known) return std::nullopt;
    const Dims& dims = *known;
    if (const auto rows = dims.empty() ? labelRows_.end() : labelRows_.find(dims[0]); rows != labelRows_.end())
      return Shares{0, share(rows->first - rows->second, rows->first)};
    for (const Tokens& t : tokens_) {
      const bool scores = !dims.empty() && dims.back() == classes_ && classes_ > 0;
      const std::int64_t all = t.batch * t.length;
      if (isSquare(dims, t) && ofPairs(id)) return Shares{1 - t.pairs, 0};
      const bool grid = dims.size() >= 2 && dims[0] == t.batch && dims[1] == t.length;
      if (grid || (!dims.empty() && dims[0] == all))
        return Shares{share(all - t.valid, all), scores ? share(t.valid - t.counted, all) : 0};
      if (t.kept > 0 && !dims.empty() && dims[0] == t.kept)
        return Shares{share(t.keptPadding, t.kept), scores ? share(t.kept - t.keptPadding - t.counted, t.kept) : 0};
    }
    return std::nullopt;
  }

 private:
  static double share(std::int64_t part, std::int64_t all) {
    return all > 0 ? static_cast<double>(std::max<std::int64_t>(0, part)) / static_cast<double>(all) : 0;
  }
  static bool isSquare(const Dims& dims, const Tokens& t) {
    return dims.size() >= 3 && dims.back() == t.length && dims[dims.size() - 2] == t.length && t.length > 1 &&
           dims[0] % std::max<std::int64_t>(1, t.batch) == 0;
  }
  // A product makes pairs of two values of the batch that hold none, and other nodes make them of pairs: that is what tells
  // [B, S, S] from [B, S, C] where there are as many channels as tokens.
  void findPairs(const Graph& graph) {
    std::set<ValueId> ofBatch;
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      const auto isOfBatch = [&](ValueId in) {
        return in && (graph.value(in).role == ValueRole::kInput || ofBatch.contains(in));
      };
      const bool product =
          among(node.op, {"MatMul", "BatchedMatMul", "Product", "EpilogueProduct", "FusedMatMul", "Einsum", "EinsumGrad"});
      const bool pairs = product ? isOfBatch(node.input(0)) && isOfBatch(node.input(1)) && !ofPairs(node.input(0)) &&
                                       !ofPairs(node.input(1))
                                 : std::ranges::any_of(node.inputs, [&](ValueId in) { return ofPairs(in); });
      const bool batch = std::ranges::any_of(node.inputs, isOfBatch);
      for (const ValueId out : node.outputs) {
        if (!out) continue;
        if (batch) ofBatch.insert(out);
        const auto& shape = graph.value(out).type.shape;
        const auto dims = pairs && shape ? knownDims(*shape) : std::nullopt;
        if (dims && std::ranges::any_of(tokens_, [&](const Tokens& t) { return isSquare(*dims, t); })) pairs_.insert(out);
      }
    }
  }
  static std::int64_t extentOf(const LedgerSubject& subject, const std::string& input) {
    const ValueId id = subject.graph->findValue(input);
    const auto& shape = subject.graph->value(id).type.shape;
    return id && shape && shape->size() == 1 && (*shape)[0].known() ? (*shape)[0].value() : 0;
  }
  void addLabels(const KeptRows& rows, const LedgerSubject& subject) {
    const std::vector<bool> counts = countedRows(rows, *subject.batch);
    if (const std::int64_t kept = extentOf(subject, rows.input); kept > 0)
      labelRows_[kept] = std::count(counts.begin(), counts.end(), true);
  }
  static Tokens tokensOf(const DensityProbe::Entry& entry, const Dims& dims, const LedgerSubject& subject) {
    Tokens tokens{dims[0], dims[1], 0, 0, 0, 0, 1};
    KeptRows padding{"", entry.invalid ? entry.input : entry.mask, entry.invalid.value_or(0), false, {}};
    const std::vector<bool> valid = countedRows(padding, *subject.batch);
    double pairs = 0;
    for (std::int64_t row = 0; row < tokens.batch && !valid.empty(); ++row) {
      const auto begin = valid.begin() + row * tokens.length;
      const auto count = std::count(begin, begin + tokens.length, true);
      tokens.valid += count;
      pairs += static_cast<double>(count) * static_cast<double>(count);
    }
    const double most = static_cast<double>(tokens.batch) * static_cast<double>(tokens.length * tokens.length);
    tokens.pairs = most > 0 ? pairs / most : 1;
    for (const KeptRows& rows : *subject.keptRows)
      if (rows.tokens && rows.labels == padding.labels) {
        tokens.kept = extentOf(subject, rows.input);
        const std::vector<bool> counts = countedRows(rows, *subject.batch);
        tokens.keptPadding = tokens.kept - std::count(counts.begin(), counts.end(), true);
      }
    return tokens;
  }

  std::vector<Tokens> tokens_;
  std::set<ValueId> pairs_;                         // values with a number for each pair of tokens
  std::map<std::int64_t, std::int64_t> labels_;     // counted, by elements
  std::map<std::int64_t, std::int64_t> labelRows_;  // counted, by rows that pass sparse_labels keeps
  std::int64_t classes_ = 0;
};

LedgerFlops flopsOf(const LedgerSubject& subject, const TokenRows& rows, const Instruction& instruction) {
  LedgerFlops flops;
  const std::int64_t all = std::llround(instruction.flops);
  if (instruction.phase == Phase::kRecompute) {
    flops.recomputed = all;
    return flops;
  }
  Shares shares;
  if (instruction.phase != Phase::kOptimizer && instruction.node)
    for (const ValueId in : subject.graph->node(instruction.node).inputs) {
      if (!in) continue;
      const Value& value = subject.graph->value(in);
      if (value.role != ValueRole::kNodeOutput && value.role != ValueRole::kInput) continue;
      const auto found = rows.of(value, in);
      if (found && found->padding + found->ignored > shares.padding + shares.ignored) shares = *found;
    }
  // What a product makes may be pairs of tokens, or the rows of scores.
  if (instruction.phase != Phase::kOptimizer && instruction.node)
    if (const ValueId out = subject.graph->node(instruction.node).output(0))
      if (const auto found = rows.of(subject.graph->value(out), out))
        if (rows.ofPairs(out) ? found->padding > shares.padding
                              : instruction.phase == Phase::kForward && found->ignored > shares.ignored)
          shares = *found;
  flops.padding = std::llround(static_cast<double>(all) * shares.padding);
  flops.ignored = std::min<std::int64_t>(all - flops.padding, std::llround(static_cast<double>(all) * shares.ignored));
  flops.useful = all - flops.padding - flops.ignored;
  return flops;
}

LedgerBytes bytesOf(const Instruction& instruction, std::string_view op) {
  LedgerBytes bytes;
  const std::int64_t all = instruction.view ? 0 : instruction.bytesRead + instruction.bytesWritten;
  const bool picks = instruction.traffic.picked != 0 && op.starts_with("Gather");
  if (instruction.kind != InstructionKind::kKernel)
    bytes.copy = all;
  else if (among(op, {"Cast", "CastLike"}))
    bytes.cast = all;
  else if (among(op, {"Transpose", "Reorder", "DepthToSpace", "SpaceToDepth"}))
    bytes.layout = all;
  else if ((instruction.traffic.moves && !picks && instruction.traffic.base < 0) || op == "Identity")
    bytes.copy = all;
  else
    bytes.payload = all;
  return bytes;
}

// Time of the step, each nanosecond to one line.
void addTimes(const snapshot::StepRecord& record, const std::map<int, std::size_t>& lineOf, std::vector<LedgerLine>& lines,
              LedgerLine& rest) {
  std::vector<const snapshot::InstructionSpan*> spans;
  for (const auto& span : record.spans()) spans.push_back(&span);
  std::ranges::stable_sort(spans, {}, [](const auto* span) { return span->begin_ns(); });
  const std::int64_t end = record.begin_ns() + record.ns();
  std::int64_t now = record.begin_ns();
  bool first = true;
  for (const auto* span : spans) {
    LedgerTime& time = lines[lineOf.at(span->instruction())].time;
    const std::int64_t begin = std::clamp(span->begin_ns(), now, end), done = std::clamp(span->end_ns(), begin, end);
    (first ? rest.time.waiting : time.gap) += begin - now;
    time.kernel += done - begin;
    now = done;
    first = false;
  }
  rest.time.waiting += end - now;
}

std::string sourceOf(const Provenance& provenance) {
  return provenance.sourceFile.empty() ? std::string()
                                       : fmt::format("{}:{}", provenance.sourceFile.view(), provenance.sourceLine);
}

// Time of lines by the share of them that `part` says.
template <typename Part>
double timeOf(const Ledger& ledger, Part&& part) {
  double ns = 0;
  for (const LedgerLine& line : ledger.lines) ns += static_cast<double>(line.time.kernel) * part(line);
  return ns;
}

double ratio(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

void advise(const LedgerSubject& subject, Ledger& ledger) {
  const auto worth = [&](double ns) { return ns > kWorthTelling * static_cast<double>(ledger.ns); };
  const auto add = [&](std::string spent, std::string change, std::string option, std::string value, double ns) {
    if (!worth(ns)) return;
    std::string trial =
        option.empty() ? std::string() : fmt::format("stepscope trials {} --only '^{}={}$'", subject.model, option, value);
    ledger.advice.push_back(
        {std::move(spent), std::move(change), std::move(option), std::move(value), ns, std::move(trial)});
  };
  const auto isOff = [&](std::string_view option) { return subject.valueOf(option) == "off"; };
  // Attention keeps its padded tokens.
  const auto attention = [](const LedgerLine& line) { return line.op.find("Softmax") == std::string::npos; };
  const double padding = timeOf(
      ledger, [&](const LedgerLine& line) { return attention(line) ? ratio(line.flops.padding, line.flops.total()) : 0; });
  const double ignored =
      timeOf(ledger, [](const LedgerLine& line) { return ratio(line.flops.ignored, line.flops.total()); });
  const double recomputed = timeOf(ledger, [](const LedgerLine& line) { return line.phase == "recompute" ? 1.0 : 0.0; });
  const double casts = timeOf(ledger, [](const LedgerLine& line) { return line.bytes.cast > 0 ? 1.0 : 0.0; });
  const double layouts = timeOf(ledger, [](const LedgerLine& line) { return line.bytes.layout > 0 ? 1.0 : 0.0; });
  if (isOff("pass.eliminate_padding"))
    add("padding", "compute the tokens alone that count", "pass.eliminate_padding", "on", padding);
  else
    add("padding", "batches of rows of like length", "", "", padding);
  if (isOff("pass.sparse_labels"))
    add("ignored labels", "compute the scores of rows alone whose labels count", "pass.sparse_labels", "on", ignored);
  const bool budget = subject.valueOf("recompute.budget") != "0";
  add("recomputed", "keep what is computed again, where it fits into memory", budget ? "recompute.budget" : "recompute.plan",
      budget ? "0" : "", recomputed);
  if (isOff("pass.propagate_casts"))
    add("casts", "move casts away from between products", "pass.propagate_casts", "on", casts);
  if (isOff("pass.fold_transposes"))
    add("layout", "let products read and write where operands lie", "pass.fold_transposes", "on", layouts);
  else if (isOff("pass.assign_layouts"))
    add("layout", "keep what lies between convolutions in their layout", "pass.assign_layouts", "on", layouts);
  if (isOff("pass.strided_views"))
    add("copy", "let products, attention, chains and Concat read parts where they lie", "pass.strided_views", "on",
        timeOf(ledger, [](const LedgerLine& line) { return line.op == "Split" || line.op == "Slice" ? 1.0 : 0.0; }));
  const LedgerLine total = ledger.total();
  add("gaps", "a larger batch: the host's work between kernels stays as it is", "", "",
      static_cast<double>(total.time.gap) / 2);
  std::ranges::stable_sort(ledger.advice, std::ranges::greater{}, &LedgerAdvice::gainNs);
}

}  // namespace

void LedgerLine::add(const LedgerLine& other) {
  flops.useful += other.flops.useful;
  flops.padding += other.flops.padding;
  flops.ignored += other.flops.ignored;
  flops.recomputed += other.flops.recomputed;
  bytes.payload += other.bytes.payload;
  bytes.cast += other.bytes.cast;
  bytes.layout += other.bytes.layout;
  bytes.copy += other.bytes.copy;
  time.kernel += other.time.kernel;
  time.gap += other.time.gap;
  time.waiting += other.time.waiting;
  roofNs += other.roofNs;
}

LedgerLine Ledger::total() const {
  LedgerLine sum;
  for (const LedgerLine& line : lines) sum.add(line);
  return sum;
}

std::int64_t withoutCore(const Ledger& ledger) {
  return std::min(ledger.total().time.kernel, withoutCore(ledger.processor, ledger.threads, ledger.ns));
}

Result<Ledger> ledgerOf(const LedgerSubject& subject) {
  if (subject.record->spans().empty())
    return invalid("ledger: the step has no times of instructions; expected one that ran with record=instructions");
  Ledger ledger;
  ledger.step = subject.record->step();
  ledger.ns = subject.record->ns();
  ledger.signature = subject.plan->signature;
  if (subject.peak) ledger.roofWaiting = subject.peak->waiting;
  const TokenRows rows(subject);
  const auto roofs = subject.peak ? rooflineOf(*subject.plan, *subject.peak) : std::vector<InstructionRoof>();
  std::map<int, std::size_t> lineOf;  // of the instructions that ran
  for (const auto& span : subject.record->spans()) lineOf.emplace(span.instruction(), 0);
  for (auto& [index, at] : lineOf) {
    const Instruction& instruction = subject.plan->instructions[static_cast<std::size_t>(index)];
    LedgerLine line;
    line.instruction = index;
    line.phase = phaseName(instruction.phase);
    line.label = instructionLabel(*subject.plan, *subject.graph, index);
    if (instruction.node) {
      const Node& node = subject.graph->node(instruction.node);
      line.op = instruction.kind == InstructionKind::kCopy     ? "Copy"
                : instruction.kind == InstructionKind::kCommit ? "Commit"
                                                               : node.op.str();
      line.module = node.provenance.modulePath.view();
      line.source = sourceOf(node.provenance);
    }
    if (!instruction.view) line.flops = flopsOf(subject, rows, instruction);
    line.bytes = bytesOf(instruction, line.op);
    if (!roofs.empty()) line.roofNs = roofs[static_cast<std::size_t>(index)].ns;
    at = ledger.lines.size();
    ledger.lines.push_back(std::move(line));
  }
  LedgerLine rest;
  rest.label = "before the first kernel and after the last";
  addTimes(*subject.record, lineOf, ledger.lines, rest);
  ledger.lines.push_back(std::move(rest));
  advise(subject, ledger);
  return ledger;
}

std::vector<LedgerLine> groupedBy(const Ledger& ledger, std::string_view column) {
  const auto text = [column](const LedgerLine& line) -> const std::string& {
    return column == "phase" ? line.phase : column == "module" ? line.module : column == "op" ? line.op : line.source;
  };
  std::map<std::string, LedgerLine> groups;
  for (const LedgerLine& line : ledger.lines) {
    LedgerLine& group = groups[text(line)];
    group.label = text(line);
    group.add(line);
  }
  std::vector<LedgerLine> sorted;
  for (auto& [name, group] : groups) sorted.push_back(std::move(group));
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const LedgerLine& line) { return line.time.total(); });
  return sorted;
}

}  // namespace stepscope
