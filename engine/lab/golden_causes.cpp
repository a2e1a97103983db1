#include "engine/lab/golden_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

namespace stepscope {
namespace {

using Kind = GoldenRow::Kind;

constexpr double kParallel = 0.9999;  // cosine of gradients that differ by a factor alone

bool near(double a, double b) { return std::abs(a - b) <= 2e-3 * std::max(std::abs(a), std::abs(b)); }

// A whole number from 2, or nothing.
std::optional<std::int64_t> whole(double x) {
  const double n = std::round(x);
  return n >= 2 && n < 1e9 && near(x, n) ? std::optional(static_cast<std::int64_t>(n)) : std::nullopt;
}

// What all rows together show.
struct Pattern {
  const Graph& graph;
  UseTable uses;
  std::int64_t rows = 0;  // of the batch
  bool lossDiffers = false, lossKnown = false;
  double lossFactor = 1;  // here over PyTorch
  std::int64_t gradients = 0, differing = 0;
  std::optional<double> factor;      // that all differing gradients have in common
  std::set<std::string> bufferLost;  // modules whose forward pass changes a buffer that nothing here writes
};

Pattern patternOf(const Graph& graph, std::int64_t rows, const GoldenReport& report) {
  Pattern pattern{graph, graph.uses(), rows};
  bool common = true;
  for (const GoldenRow& row : report.rows) {
    if (row.kind == Kind::kLoss && row.name == "loss") {
      pattern.lossKnown = true;
      pattern.lossDiffers = row.verdict == GoldenVerdict::kDiffers;
      pattern.lossFactor = row.factor;
    }
    if (row.kind == Kind::kStatistic && row.verdict == GoldenVerdict::kDiffers && !row.words.empty() && !row.module.empty())
      pattern.bufferLost.insert(row.module);
    if (row.kind != Kind::kGradient) continue;
    ++pattern.gradients;
    if (row.verdict != GoldenVerdict::kDiffers) continue;
    ++pattern.differing;
    if (std::isnan(row.cosine) || std::abs(row.cosine) < kParallel || row.largest == 0)
      common = false;
    else if (!pattern.factor)
      pattern.factor = row.factor;
    else
      common = common && near(*pattern.factor, row.factor);
  }
  if (!common) pattern.factor.reset();
  return pattern;
}

bool sameContents(const Graph& graph, ValueId a, ValueId b) {
  const InitialContents &of = graph.value(a).data, &other = graph.value(b).data;
  if (!of || !other || of.dtype() != other.dtype() || of.dims() != other.dims() || of.dtype() == DType::kString)
    return false;
  const auto x = of.read(), y = other.read();
  if (!x || !y) return false;
  return std::equal(static_cast<const std::byte*>(x->data()), static_cast<const std::byte*>(x->data()) + x->bytes(),
                    static_cast<const std::byte*>(y->data()));
}

// Zeros, ones: many have the same contents.
bool oneNumber(const Tensor& tensor) {
  for (std::int64_t i = 1; i < tensor.elements(); ++i)
    if (elementAsDouble(tensor.view(), i) != elementAsDouble(tensor.view(), 0)) return false;
  return true;
}

// Another initializer of the same contents: one parameter of PyTorch's that the exporter wrote twice.
std::string twin(const Graph& graph, std::string_view name) {
  const ValueId id = graph.findValue(name);
  const auto contents = id && graph.value(id).data ? graph.value(id).data.read() : Result<Tensor>(Tensor());
  if (!contents || !contents->valid() || oneNumber(*contents)) return {};
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    const Value& other = graph.value({static_cast<std::int32_t>(i)});
    if (graph.alive(other.id) && other.id != id && other.role == ValueRole::kInitializer &&
        sameContents(graph, id, other.id))
      return other.name;
  }
  return {};
}

// One cause: the words where the row has its pattern, else empty. The first that fits is told.
using Cause = std::function<std::string(const Pattern&, const GoldenRow&)>;

std::string tiedApart(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kGradient) return {};
  const bool alone = row.words.starts_with("trained here") || row.words.starts_with("a gradient in PyTorch");
  const bool part = !std::isnan(row.cosine) && row.found != 0;
  if (!alone && !part) return {};
  const std::string other = twin(p.graph, row.name);
  if (other.empty()) return {};
  return fmt::format(
      "tied weights counted once each: '{}' has the same contents; in PyTorch they may be one parameter, with the sum of "
      "both",
      other);
}

std::string noParameter(const Pattern&, const GoldenRow& row) {
  if (!row.words.starts_with("trained here")) return {};
  return "a constant or a buffer of the exporter that was taken for a parameter; hint: --freeze it";
}

std::string notFinite(const Pattern&, const GoldenRow& row) {
  if (!std::isnan(row.cosine) || !row.words.empty() || std::isfinite(row.found)) return {};
  return "not finite here: a logarithm of 0, a division by 0 or a softmax whose row is all masked, which PyTorch's form "
         "avoids; `stepscope train --on-nan blame` names the node";
}

std::string finiteHere(const Pattern&, const GoldenRow& row) {
  if (!std::isnan(row.cosine) || !row.words.empty() || !std::isfinite(row.found) || std::isfinite(row.expected)) return {};
  return "finite here and not in PyTorch: a step that goes wrong, where the order of the same operators decides between 0 "
         "and 0 times infinity; or a gradient that PyTorch computes as NaN";
}

std::string blockLost(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kGradient || row.largest != 0 || row.maxAbs == 0 || p.lossDiffers) return {};
  return "no_grad or detach lost: a gradient here but not in PyTorch";
}

std::string ruleLost(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kGradient || row.largest == 0 || row.zeroHere == 0 || row.cosine != 0 || p.lossDiffers) return {};
  return "a gradient in PyTorch but none here: an autograd.Function (straight-through), or an operator that stops it here";
}

std::string stopped(const Pattern&, const GoldenRow& row) {
  if (row.words.find("does not reach the loss") == std::string::npos) return {};
  return "an autograd.Function (straight-through) was lost: the operators in its place let no gradient through";
}

std::string reversed(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kGradient || std::isnan(row.cosine) || row.cosine > -kParallel || p.lossDiffers) return {};
  return fmt::format("gradient reversal lost: an autograd.Function or a hook that multiplies it by {:.4g}", 1 / row.factor);
}

std::string meanForSum(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kLoss && row.kind != Kind::kGradient) return {};
  const double factor = row.kind == Kind::kLoss ? p.lossFactor : row.factor;
  if (std::isnan(row.cosine) || row.cosine < kParallel || !p.lossDiffers || !near(factor, p.lossFactor)) return {};
  if (const auto n = whole(factor))
    return fmt::format("factor {}: a sum here where PyTorch takes the mean{}", *n,
                       *n == p.rows ? " over the rows of the batch" : "");
  if (const auto n = whole(1 / factor))
    return fmt::format("factor 1/{}: a mean here where PyTorch takes the sum{}", *n,
                       *n == p.rows ? " over the rows of the batch" : "");
  return p.factor ? fmt::format("the loss is {:.4g} times PyTorch's: a factor was lost or applied twice", factor)
                  : std::string();
}

std::string scaled(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kGradient || std::isnan(row.cosine) || row.cosine < kParallel || p.lossDiffers) return {};
  return fmt::format("{:.4g} times PyTorch's: a hook or an autograd.Function that scales the gradient by {:.4g} was lost",
                     row.factor, 1 / row.factor);
}

// Whole elements that PyTorch leaves at zero.
std::string masked(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kGradient || row.zeroThere == 0 || row.largest == 0 || p.lossDiffers) return {};
  return fmt::format(
      "{} of {} elements are 0 in PyTorch and not here: padding_idx, a hook that masks, max_norm, or a clamp at its bound",
      row.zeroThere, row.elements);
}

std::string smoothing(const Pattern& p, const GoldenRow& row) {
  if (!p.lossDiffers || (row.kind != Kind::kLoss && row.kind != Kind::kGradient)) return {};
  return "the forward pass differs: the exporter changed or dropped a part (label smoothing, ignored labels, class weights, "
         "a branch of Python on the data, an operator of another version)";
}

std::string byRow(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kGradient || !row.rowsScaled || p.lossDiffers) return {};
  return "every row has a factor of its own: Embedding(scale_grad_by_freq=True) was lost, or a hook that scales rows";
}

std::string buffer(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kGradient || !p.bufferLost.contains(row.module)) return {};
  return "forward() updates a buffer of this module and the file does not: the power iteration of spectral_norm, a "
         "codebook, "
         "a moving average";
}

std::string statistics(const Pattern&, const GoldenRow& row) {
  if (row.kind != Kind::kStatistic) return {};
  if (!row.words.empty()) return "a buffer that forward() updates: the exporter keeps what the loss reads alone";
  return "running statistics: another momentum (None in PyTorch: a plain average), or counted already in the file";
}

std::string rounding(const Pattern& p, const GoldenRow& row) {
  if (std::isnan(row.cosine) || p.lossDiffers || row.tolerance <= 0 || row.maxAbs > 8 * row.tolerance) return {};
  return "just outside of the tolerance: perhaps rounding of a long sum in another order, or of a tie";
}

std::string backwardOnly(const Pattern& p, const GoldenRow& row) {
  if (row.kind != Kind::kGradient || p.lossDiffers || !p.lossKnown || !row.words.empty()) return {};
  return "the loss agrees and this gradient does not: a part of the backward pass was lost (no_grad, detach, hook, "
         "autograd.Function, checkpoint), or a tie is shared in another way";
}

const std::vector<Cause>& causes() {
  static const std::vector<Cause> list = {notFinite, finiteHere, tiedApart,  noParameter, stopped,     blockLost,
                                          ruleLost,  reversed,   meanForSum, rounding,    scaled,      byRow,
                                          masked,    smoothing,  statistics, buffer,      backwardOnly};
  return list;
}

}  // namespace

void findCauses(const Graph& graph, std::int64_t rows, GoldenReport& report) {
  if (report.count(GoldenVerdict::kDiffers) == 0) return;
  const Pattern pattern = patternOf(graph, rows, report);
  for (GoldenRow& row : report.rows) {
    if (row.verdict != GoldenVerdict::kDiffers || !row.cause.empty()) continue;
    for (const Cause& cause : causes())
      if (row.cause = cause(pattern, row); !row.cause.empty()) break;
  }
}

}  // namespace stepscope
