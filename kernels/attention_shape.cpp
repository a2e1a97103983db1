#include "kernels/attention_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace stepscope {

Dims exchangeLastTwo(Dims perm, std::size_t rank) {
  if (perm.empty()) {
    perm.resize(rank);
    std::iota(perm.begin(), perm.end(), 0);
  }
  if (perm.size() >= 2) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return perm;
}

std::int64_t AttentionShape::maskOffset(std::int64_t head) const {
  std::int64_t offset = 0;
  for (std::size_t i = scores.batch.size(); i-- > 0; head /= scores.batch[i]) offset += head % scores.batch[i] * maskLead[i];
  return offset;
}

Result<AttentionShape> attentionShape(const Dims& q, const Dims& k, const Dims& v, const Dims* mask,
                                      const Attributes& attrs) {
  if (q.size() < 2 || k.size() != q.size() || v.size() != q.size())
    return fail(ErrorCode::kInvalidArgument, fmt::format("attention: q {}, k {}, v {}; expected the same rank, 2 or more",
                                                         dimsText(q), dimsText(k), dimsText(v)));
  AttentionShape s;
  ProductForm form;
  form.permA = attrs.integers("permQ");
  form.permB = exchangeLastTwo(attrs.integers("permK"), k.size());
  SS_ASSIGN(s.scores, matMulShape(q, k, form));
  Dims probabilities = s.scores.batch;
  probabilities.push_back(s.scores.m);
  probabilities.push_back(s.scores.n);
  ProductForm second;
  second.permB = attrs.integers("permV");
  second.permY = attrs.integers("permY");
  SS_ASSIGN(s.context, matMulShape(probabilities, v, second));
  // The innermost leading axes along which k and v have one element.
  const auto extentOf = [](const Dims& dims, const Dims& perm, std::size_t i) {
    return dims[perm.empty() ? i : static_cast<std::size_t>(perm[i])];
  };
  const Dims permK = attrs.integers("permK"), permV = attrs.integers("permV");
  for (std::size_t i = s.scores.batch.size(); i-- > 0;) {
    if (extentOf(k, permK, i) != 1 || extentOf(v, permV, i) != 1) break;
    s.shared *= s.scores.batch[i];
  }
  const std::int64_t heads = s.heads(), own = heads / std::max<std::int64_t>(1, s.shared);
  if (elementCount(q) != heads * s.m() * s.d() || elementCount(k) != own * s.n() * s.d() ||
      elementCount(v) != own * s.n() * s.e())
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("attention: q {}, k {}, v {}; expected equal leading extents, or 1 along the innermost of k and v",
                    dimsText(q), dimsText(k), dimsText(v)));
  s.maskLead.assign(s.scores.batch.size(), 0);
  if (mask) {
    const Dims ownStrides = rowMajorStrides(*mask);
    Dims strides(probabilities.size(), 0);
    if (mask->size() > probabilities.size())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("attention: mask {} does not broadcast to {}", dimsText(*mask), dimsText(probabilities)));
    const std::size_t lead = probabilities.size() - mask->size();
    for (std::size_t i = 0; i < mask->size(); ++i) {
      if ((*mask)[i] != 1 && (*mask)[i] != probabilities[lead + i])
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("attention: mask {} does not broadcast to {}", dimsText(*mask), dimsText(probabilities)));
      strides[lead + i] = (*mask)[i] == 1 ? 0 : ownStrides[i];
    }
    s.maskLead.assign(strides.begin(), strides.end() - 2);
    s.maskRow = strides[strides.size() - 2];
    s.maskColumn = strides.back();
  }
  s.scale = attrs.real("scale", 1.0F);
  s.softcap = attrs.real("softcap", 0.0F);
  if (!(s.softcap >= 0))
    return fail(ErrorCode::kInvalidArgument, fmt::format("attention: softcap is {}; expected 0 or more", s.softcap));
  s.fill = attrs.real("fill", 0.0F);
  s.invert = attrs.integer("invert", 0) != 0;
  s.safe = attrs.integer("safe", 0) != 0;
  s.dropout = static_cast<double>(attrs.real("dropout", 0.0F));
  if (!(s.dropout >= 0 && s.dropout < 1))
    return fail(ErrorCode::kInvalidArgument, fmt::format("attention: dropout is {}; expected [0, 1)", s.dropout));
  return s;
}

}  // namespace stepscope
