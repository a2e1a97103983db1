// Attention in plain loops: sums in double, one row of scores at a time.
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention_shape.h"
#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"

namespace stepscope::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What both directions read of one head.
template <typename T>
struct Head {
  const T *q, *k, *v;
  const AttentionShape& s;

  double qAt(std::int64_t i, std::int64_t c) const {
    return static_cast<double>(q[i * s.scores.aRow + c * s.scores.aColumn]);
  }
  double kAt(std::int64_t j, std::int64_t c) const {
    return static_cast<double>(k[c * s.scores.bRow + j * s.scores.bColumn]);
  }
  double vAt(std::int64_t j, std::int64_t c) const {
    return static_cast<double>(v[j * s.context.bRow + c * s.context.bColumn]);
  }
};

struct Mask {
  const TensorView* mask = nullptr;
  std::int64_t offset = 0;

  // Whether a bool mask drops the score.
  bool drops(const AttentionShape& s, std::int64_t i, std::int64_t j) const {
    return mask && mask->dtype == DType::kBool &&
           static_cast<const bool*>(mask->data)[offset + i * s.maskRow + j * s.maskColumn] == s.invert;
  }
  template <typename T>
  double apply(const AttentionShape& s, double score, std::int64_t i, std::int64_t j) const {
    if (!mask) return score;
    if (mask->dtype == DType::kBool) return drops(s, i, j) ? static_cast<double>(s.fill) : score;
    return score + static_cast<double>(static_cast<const T*>(mask->data)[offset + i * s.maskRow + j * s.maskColumn]);
  }
};

// `slopes`: of the score by the scaled product, where somebody asks for them.
template <typename T>
void scoresOf(const Head<T>& head, const Mask& mask, std::int64_t i, std::vector<double>& row,
              std::vector<double>* slopes = nullptr) {
  const AttentionShape& s = head.s;
  const auto cap = static_cast<double>(s.softcap);
  for (std::int64_t j = 0; j < s.n(); ++j) {
    double sum = 0;
    for (std::int64_t c = 0; c < s.d(); ++c) sum += head.qAt(i, c) * head.kAt(j, c);
    double score = sum * static_cast<double>(s.scale), slope = 1;
    if (cap > 0) {
      const double bent = std::tanh(score / cap);
      score = cap * bent;
      slope = 1 - bent * bent;
    }
    if (slopes) (*slopes)[static_cast<std::size_t>(j)] = slope;
    row[static_cast<std::size_t>(j)] = mask.apply<T>(s, score, i, j);
  }
}

// The factor of an element of P: 0 where it is dropped.
double keptFactor(const AttentionShape& s, const RandomKey& key, std::int64_t head, std::int64_t i, std::int64_t j) {
  if (s.dropout == 0) return 1;
  const auto element = static_cast<std::uint64_t>((head * s.m() + i) * s.n() + j);
  return static_cast<double>(uniform01(key, element)) >= s.dropout ? 1 / (1 - s.dropout) : 0;
}

Result<AttentionShape> shapeOf(const KernelSpec& spec, const KernelCall& call, std::size_t first) {
  const Dims* mask = call.inputPresent(first + 3) ? &call.inputs[first + 3].dims.get() : nullptr;
  return attentionShape(call.inputs[first].dims, call.inputs[first + 1].dims, call.inputs[first + 2].dims, mask, spec.attrs);
}

// Rows that are computed, by entry of the first leading axis. `at`: the input that names those that are kept.
Result<std::vector<std::int64_t>> rowsOf(const KernelCall& call, std::size_t at, const AttentionShape& s) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(s.entries()), s.m());
  if (call.inputPresent(at)) SS_TRY(countKeptRows(s, call.inputs[at].as<std::int64_t>(), rows));
  return rows;
}

Status badType(const KernelSpec& spec) {
  return unsupported(spec.op + ": dtype " + std::string(dtypeName(spec.inputs[0].dtype)) + "; expected floats");
}

}  // namespace

Status fusedAttention(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const AttentionShape s, shapeOf(spec, call, 0));
  SS_ASSIGN(const std::vector<std::int64_t> rows, rowsOf(call, 4, s));
  const bool known = dispatchFloat(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    std::vector<double> row(static_cast<std::size_t>(s.n()));
    const auto* v = static_cast<const T*>(call.inputs[2].data);
    auto* y = static_cast<T*>(call.outputs[0].data);
    for (std::int64_t h = 0; h < s.heads(); ++h) {
      const Head<T> head{static_cast<const T*>(call.inputs[0].data) + s.scores.aOffset(h),
                         static_cast<const T*>(call.inputs[1].data) + s.scores.bOffset(h), v + s.context.bOffset(h), s};
      const Mask mask{call.inputPresent(3) ? &call.inputs[3] : nullptr, s.maskOffset(h)};
      T* out = y + s.context.yOffset(h);
      const std::int64_t computed = rows[static_cast<std::size_t>(h / (s.heads() / s.entries()))];
      for (std::int64_t i = 0; i < s.m(); ++i) {
        double max = -kInfinity, sum = 0;
        if (i < computed) scoresOf(head, mask, i, row);
        for (const double score : row)
          if (score > max || score != score) max = score;
        const bool dead = i >= computed || (s.safe && max == -kInfinity);
        for (double& score : row) sum += score = std::exp(score - max);
        for (std::int64_t c = 0; c < s.e(); ++c) {
          double value = 0;
          for (std::int64_t j = 0; j < s.n() && !dead; ++j)
            value += row[static_cast<std::size_t>(j)] / sum * keptFactor(s, call.random, h, i, j) * head.vAt(j, c);
          out[i * s.context.yRow + c * s.context.yColumn] = static_cast<T>(value);
        }
        if (!call.outputPresent(1)) continue;
        const std::int64_t at = 2 * (h * s.m() + i);
        const double statistics[2] = {dead ? 0 : max, dead ? 0 : 1 / sum};
        for (const std::size_t which : {0u, 1u}) {
          const auto to = static_cast<std::size_t>(at) + which;
          if (call.outputs[1].dtype == DType::kF64)
            static_cast<double*>(call.outputs[1].data)[to] = statistics[which];
          else
            static_cast<float*>(call.outputs[1].data)[to] = static_cast<float>(statistics[which]);
        }
      }
    }
  });
  if (!known) return badType(spec);
  return {};
}

Status fusedAttentionGrad(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const AttentionShape s, shapeOf(spec, call, 2));
  SS_ASSIGN(const AttentionShape to,
            attentionGradientShape(call.inputs[2].dims, call.inputs[3].dims, call.inputs[4].dims, spec.attrs));
  SS_ASSIGN(const std::vector<std::int64_t> rows, rowsOf(call, 6, s));
  const bool known = dispatchFloat(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto n = static_cast<std::size_t>(s.n());
    std::vector<double> p(n), dp(n), slopes(n), dk(n * static_cast<std::size_t>(s.d())),
        dv(n * static_cast<std::size_t>(s.e()));
    const auto* dy = static_cast<const T*>(call.inputs[0].data);
    const TensorView& statistics = call.inputs[1];
    auto *dqAll = static_cast<T*>(call.outputs[0].data), *dkAll = static_cast<T*>(call.outputs[1].data),
         *dvAll = static_cast<T*>(call.outputs[2].data);
    for (std::int64_t h = 0; h < s.heads(); ++h) {
      const Head<T> head{static_cast<const T*>(call.inputs[2].data) + s.scores.aOffset(h),
                         static_cast<const T*>(call.inputs[3].data) + s.scores.bOffset(h),
                         static_cast<const T*>(call.inputs[4].data) + s.context.bOffset(h), s};
      const Mask mask{call.inputPresent(5) ? &call.inputs[5] : nullptr, s.maskOffset(h)};
      const T* dOut = dy + s.context.yOffset(h);
      T* dq = dqAll + to.scores.aOffset(h);
      if (h % s.shared == 0) {
        std::fill(dk.begin(), dk.end(), 0.0);
        std::fill(dv.begin(), dv.end(), 0.0);
      }
      const std::int64_t computed = rows[static_cast<std::size_t>(h / (s.heads() / s.entries()))];
      for (std::int64_t i = computed; i < s.m(); ++i)
        for (std::int64_t c = 0; c < s.d(); ++c) dq[i * to.scores.aRow + c * to.scores.aColumn] = T(0);
      for (std::int64_t i = 0; i < computed; ++i) {
        const std::int64_t at = 2 * (h * s.m() + i);
        const double max = elementAsDouble(statistics, at), factor = elementAsDouble(statistics, at + 1);
        scoresOf(head, mask, i, p, &slopes);
        double dot = 0;
        for (std::int64_t j = 0; j < s.n(); ++j) {
          const auto at2 = static_cast<std::size_t>(j);
          p[at2] = std::exp(p[at2] - max) * factor;
          const double kept = keptFactor(s, call.random, h, i, j);
          double sum = 0;
          for (std::int64_t c = 0; c < s.e(); ++c) {
            const auto dout = static_cast<double>(dOut[i * s.context.yRow + c * s.context.yColumn]);
            sum += dout * head.vAt(j, c);
            dv[at2 * static_cast<std::size_t>(s.e()) + static_cast<std::size_t>(c)] += p[at2] * kept * dout;
          }
          dp[at2] = sum * kept;
          dot += p[at2] * dp[at2];
        }
        for (std::int64_t j = 0; j < s.n(); ++j) {
          const auto at2 = static_cast<std::size_t>(j);
          dp[at2] = mask.drops(s, i, j) ? 0 : p[at2] * (dp[at2] - dot) * slopes[at2] * static_cast<double>(s.scale);
        }
        for (std::int64_t c = 0; c < s.d(); ++c) {
          double sum = 0;
          for (std::int64_t j = 0; j < s.n(); ++j) {
            const auto at2 = static_cast<std::size_t>(j);
            sum += dp[at2] * head.kAt(j, c);
            dk[at2 * static_cast<std::size_t>(s.d()) + static_cast<std::size_t>(c)] += dp[at2] * head.qAt(i, c);
          }
          dq[i * to.scores.aRow + c * to.scores.aColumn] = static_cast<T>(sum);
        }
      }
      if ((h + 1) % s.shared != 0) continue;
      T* dkHead = dkAll + to.scores.bOffset(h);
      T* dvHead = dvAll + to.context.bOffset(h);
      for (std::int64_t j = 0; j < s.n(); ++j) {
        for (std::int64_t c = 0; c < s.d(); ++c)
          dkHead[c * to.scores.bRow + j * to.scores.bColumn] = static_cast<T>(dk[static_cast<std::size_t>(j * s.d() + c)]);
        for (std::int64_t c = 0; c < s.e(); ++c)
          dvHead[j * to.context.bRow + c * to.context.bColumn] = static_cast<T>(dv[static_cast<std::size_t>(j * s.e() + c)]);
      }
    }
  });
  if (!known) return badType(spec);
  return {};
}

}  // namespace stepscope::reference
