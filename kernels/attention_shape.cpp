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

namespace {

bool isPermutation(Dims perm, std::size_t rank) {
  std::sort(perm.begin(), perm.end());
  for (std::size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  return perm.size() == rank;
}

// The operands as attention reads them: with heads of k and heads of a group as two axes where there are groups.
struct Axes {
  StridedView q, k, v;
  Dims mask, permQ, permK, permV, permY;

  Status split(std::int64_t groups) {
    const std::size_t rank = q.dims.size();
    for (const Dims* perm : {&permQ, &permK, &permV, &permY})
      if (!perm->empty() && !isPermutation(*perm, rank))
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("attention: permutation {}; expected {} axes in some order", dimsText(*perm), rank));
    if (rank < 3)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("attention: groups of heads, q {}; expected heads", dimsText(q.dims)));
    const std::size_t head = rank - 3;
    const std::int64_t heads = q.dims[storedAxis(permQ, head)], ofMask = mask.size() < 3 ? 1 : mask[mask.size() - 3];
    if (groups < 1 || heads % groups != 0 || (ofMask != 1 && ofMask != heads))
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("attention: groups of {}, {} heads of q, {} of the mask; expected a divisor of q's heads, and as "
                      "many of the mask, or 1",
                      groups, heads, ofMask));
    splitOperand(q, permQ, groups);
    splitOperand(k, permK, 1);
    splitOperand(v, permV, 1);
    if (mask.size() >= 3) {
      const auto at = mask.end() - 3;
      *at = ofMask == 1 ? 1 : heads / groups;
      mask.insert(at + 1, ofMask == 1 ? 1 : groups);
    }
    Dims order;
    const auto axis = static_cast<std::int64_t>(head);
    for (const std::int64_t of : permY) {
      order.push_back(of > axis ? of + 1 : of);
      if (of == axis) order.push_back(axis + 1);
    }
    permY = order;
    return {};
  }

 private:
  static std::size_t storedAxis(const Dims& perm, std::size_t axis) {
    return perm.empty() ? axis : static_cast<std::size_t>(perm[axis]);
  }
  // The axis of heads becomes two, the second of extent `inner`.
  static void splitOperand(StridedView& view, Dims& perm, std::int64_t inner) {
    const std::size_t rank = view.dims.size(), head = rank - 3, stored = storedAxis(perm, head);
    if (perm.empty()) {
      perm.resize(rank);
      std::iota(perm.begin(), perm.end(), 0);
    }
    for (std::int64_t& axis : perm) axis += axis > static_cast<std::int64_t>(stored) ? 1 : 0;
    perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(head) + 1, static_cast<std::int64_t>(stored) + 1);
    const auto at = static_cast<std::ptrdiff_t>(stored);
    view.dims[stored] /= inner;
    view.dims.insert(view.dims.begin() + at + 1, inner);
    view.strides.insert(view.strides.begin() + at + 1, view.strides[stored]);
    view.strides[stored] *= inner;
  }
};

}  // namespace

std::int64_t AttentionShape::maskOffset(std::int64_t head) const {
  std::int64_t offset = 0;
  for (std::size_t i = scores.batch.size(); i-- > 0; head /= scores.batch[i]) offset += head % scores.batch[i] * maskLead[i];
  return offset;
}

namespace {

Result<AttentionShape> shapeOf(const StridedView& q, const StridedView& k, const StridedView& v, const Dims* mask,
                               const Attributes& attrs) {
  if (q.dims.size() < 2 || k.dims.size() != q.dims.size() || v.dims.size() != q.dims.size())
    return fail(ErrorCode::kInvalidArgument, fmt::format("attention: q {}, k {}, v {}; expected the same rank, 2 or more",
                                                         dimsText(q.dims), dimsText(k.dims), dimsText(v.dims)));
  Axes axes{q,
            k,
            v,
            mask ? *mask : Dims{},
            attrs.integers("permQ"),
            attrs.integers("permK"),
            attrs.integers("permV"),
            attrs.integers("permY")};
  if (const std::int64_t groups = attrs.integer("groups", 1); groups != 1) SS_TRY(axes.split(groups));
  AttentionShape s;
  ProductForm form;
  form.permA = axes.permQ;
  form.permB = exchangeLastTwo(axes.permK, axes.k.dims.size());
  SS_ASSIGN(s.scores, matMulShape(axes.q, axes.k, form));
  Dims probabilities = s.scores.batch;
  probabilities.push_back(s.scores.m);
  probabilities.push_back(s.scores.n);
  ProductForm second;
  second.permB = axes.permV;
  second.permY = axes.permY;
  SS_ASSIGN(s.context, matMulShape(StridedView::whole(probabilities), axes.v, second));
  // The innermost leading axes along which k and v have one element.
  const auto extentOf = [](const Dims& dims, const Dims& perm, std::size_t i) {
    return dims[perm.empty() ? i : static_cast<std::size_t>(perm[i])];
  };
  for (std::size_t i = s.scores.batch.size(); i-- > 0;) {
    if (extentOf(axes.k.dims, axes.permK, i) != 1 || extentOf(axes.v.dims, axes.permV, i) != 1) break;
    s.shared *= s.scores.batch[i];
  }
  const std::int64_t heads = s.heads(), own = heads / std::max<std::int64_t>(1, s.shared);
  if (elementCount(q.dims) != heads * s.m() * s.d() || elementCount(k.dims) != own * s.n() * s.d() ||
      elementCount(v.dims) != own * s.n() * s.e())
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("attention: q {}, k {}, v {}; expected equal leading extents, or 1 along the innermost of k and v",
                    dimsText(q.dims), dimsText(k.dims), dimsText(v.dims)));
  s.maskLead.assign(s.scores.batch.size(), 0);
  if (mask) {
    const Dims ownStrides = rowMajorStrides(axes.mask);
    Dims strides(probabilities.size(), 0);
    if (axes.mask.size() > probabilities.size())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("attention: mask {} does not broadcast to {}", dimsText(*mask), dimsText(probabilities)));
    const std::size_t lead = probabilities.size() - axes.mask.size();
    for (std::size_t i = 0; i < axes.mask.size(); ++i) {
      if (axes.mask[i] != 1 && axes.mask[i] != probabilities[lead + i])
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("attention: mask {} does not broadcast to {}", dimsText(*mask), dimsText(probabilities)));
      strides[lead + i] = axes.mask[i] == 1 ? 0 : ownStrides[i];
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

}  // namespace

Result<AttentionShape> attentionShape(const Dims& q, const Dims& k, const Dims& v, const Dims* mask,
                                      const Attributes& attrs) {
  SS_ASSIGN(const StridedView ofQ, StridedView::of(q, attrs, "viewQ"));
  SS_ASSIGN(const StridedView ofK, StridedView::of(k, attrs, "viewK"));
  SS_ASSIGN(const StridedView ofV, StridedView::of(v, attrs, "viewV"));
  return shapeOf(ofQ, ofK, ofV, mask, attrs);
}

Result<AttentionShape> attentionGradientShape(const Dims& q, const Dims& k, const Dims& v, const Attributes& attrs) {
  SS_ASSIGN(const StridedView ofQ, StridedView::of(q, attrs, "viewQ"));
  SS_ASSIGN(const StridedView ofK, StridedView::of(k, attrs, "viewK"));
  SS_ASSIGN(const StridedView ofV, StridedView::of(v, attrs, "viewV"));
  return shapeOf(StridedView::whole(ofQ.dims), StridedView::whole(ofK.dims), StridedView::whole(ofV.dims), nullptr, attrs);
}

Status countKeptRows(const AttentionShape& shape, std::span<const std::int64_t> kept, std::span<std::int64_t> rows) {
  if (shape.scores.batch.size() < 2)
    return fail(ErrorCode::kInvalidArgument, "attention: rows that are kept and one leading axis; expected two or more");
  std::ranges::fill(rows, 0);
  const std::int64_t all = shape.entries() * shape.m();
  for (const std::int64_t number : kept) {
    if (number < 0 || number >= all)
      return fail(ErrorCode::kInvalidArgument, fmt::format("attention: row {} is kept; expected 0 to {}", number, all - 1));
    std::int64_t& count = rows[static_cast<std::size_t>(number / shape.m())];
    count = std::max(count, number % shape.m() + 1);
  }
  return {};
}

}  // namespace stepscope
