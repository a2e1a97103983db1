// Extents, strides and settings of attention: y = P · v, P = softmax(cap(scale · q · k^T) + mask) row by row, where cap(x)
// is softcap · tanh(x / softcap), or x where softcap is 0.
//
// Operands are stored in any order of their axes: permQ, permK, permV (ONNX Transpose's `perm`) give q [lead.., m, d],
// k [lead.., n, d] and v [lead.., n, e]; the result [lead.., m, e] is stored with its axes in the order permY. An absent
// permutation changes nothing. Leading axes (batch, heads) are equal, but k and v may have one element along the innermost
// of them: as many heads of q, one after the other, share keys and values. With `groups`, k and v have 1 / groups as many
// elements along the innermost leading axis, and each head of theirs serves `groups` heads of q that follow each other.
//
// Attributes viewQ, viewK and viewV may pick the operands from larger tensors (kernels/strided_view.h); permutations are of
// what they pick. Gradients are stored dense, with the extents of what was picked.
//
// Behind the mask may stand the numbers of rows of q that somebody reads, the first leading axis and the rows seen as one:
// int64 [K], a row of entry b is b · m + i. Rows behind the last one named of an entry are not computed: y, statistics and
// dq are 0 there, and they add nothing to dk and dv. There are two leading axes or more then.
//
// Source     ONNX Attention-23; FlashAttention (Dao et al., 2022) for what the backward pass computes again.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attributes.h"
#include "kernels/matmul_shape.h"

namespace stepscope {

// What is at or below it leaves exactly nothing of a score: keys that a mask drops in all rows that are computed together
// are not looked at, unless it drops all keys of one of them.
inline constexpr float kDroppedScore = -1e30F;

struct AttentionShape {
  MatMulShape scores;   // q · k^T: a is q, b is k^T, result row-major [lead.., m, n]
  MatMulShape context;  // P · v: a is P, row-major; b is v; y is the result as it is stored
  Dims maskLead;        // stride of the mask per axis of scores.batch, in elements; 0 where it is broadcast
  std::int64_t maskRow = 0, maskColumn = 0;

  std::int64_t shared = 1;  // heads that have keys and values in common

  float scale = 1;
  float softcap = 0;    // 0: scores are not bounded
  float fill = 0;       // of a bool mask: the score where the mask drops
  bool invert = false;  // a bool mask drops where it is true
  bool safe = false;    // a row whose scores are all -inf gives zeros instead of NaN
  double dropout = 0;   // share of P that is dropped; what stays is divided by 1 - dropout. Key: that of the call

  std::int64_t heads() const { return scores.batches(); }
  std::int64_t entries() const { return scores.batch.empty() ? 1 : scores.batch[0]; }  // of the first leading axis
  std::int64_t m() const { return scores.m; }
  std::int64_t n() const { return scores.n; }
  std::int64_t d() const { return scores.k; }
  std::int64_t e() const { return context.n; }
  std::int64_t maskOffset(std::int64_t head) const;  // of the first row of a head, in elements
};

// `mask`: extents of the mask, empty pointer for none. Errors: ranks below 2, permutations that are none of the axes,
// extents that do not fit, a mask that does not broadcast to [lead.., m, n], a share outside [0, 1), a softcap below 0,
// groups below 1 or that do not divide the heads of q. With groups, scores.batch has heads of k and heads of a group apart.
Result<AttentionShape> attentionShape(const Dims& q, const Dims& k, const Dims& v, const Dims* mask,
                                      const Attributes& attrs);

// The same with q, k and v stored dense, with the extents that the views pick: where gradients dq, dk and dv lie.
Result<AttentionShape> attentionGradientShape(const Dims& q, const Dims& k, const Dims& v, const Attributes& attrs);

// How many rows of each entry of the first leading axis are computed, `rows` having as many: up to the last that `kept`
// names. Errors: kInvalidArgument for a number that is no row, or fewer than two leading axes.
Status countKeptRows(const AttentionShape& shape, std::span<const std::int64_t> kept, std::span<std::int64_t> rows);

// The axes of `perm` with the last two exchanged; of the identity of `rank` axes for an empty one.
Dims exchangeLastTwo(Dims perm, std::size_t rank);

}  // namespace stepscope
