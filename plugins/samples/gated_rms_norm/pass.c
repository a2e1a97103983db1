// Finds RMSNormalization(x, weight) * SiLU(gate) and computes it in one node. SiLU is com.microsoft.QuickGelu with alpha 1
// once the built-in pass fuse_swish has seen it, or gate * Sigmoid(gate).
#include <stdlib.h>
#include <string.h>

#include "gated_rms_norm.h"

static int is_op(ssp_pass_context* p, ssp_node node, const char* domain, const char* op) {
  return node != 0 && strcmp(p->node_domain(p, node), domain) == 0 && strcmp(p->node_op(p, node), op) == 0;
}

// The gate where `value` is its SiLU, else 0.
static ssp_value gate_of(ssp_pass_context* p, ssp_value value) {
  const ssp_node node = p->producer(p, value);
  if (is_op(p, node, "com.microsoft", "QuickGelu")) {
    const ssp_attr* alpha = p->attr(p, node, "alpha");
    return alpha != NULL && alpha->kind == SSP_ATTR_FLOAT && alpha->f == 1.0f ? p->input(p, node, 0) : 0;
  }
  if (!is_op(p, node, "", "Mul")) return 0;
  for (uint32_t i = 0; i < 2; ++i) {
    const ssp_value gate = p->input(p, node, i);
    const ssp_node other = p->producer(p, p->input(p, node, 1 - i));
    if (is_op(p, other, "", "Sigmoid") && p->input(p, other, 0) == gate) return gate;
  }
  return 0;
}

// Why the norm cannot be taken over; NULL when it can.
static const char* obstacle(ssp_pass_context* p, ssp_node product, ssp_node norm, ssp_value gate) {
  const ssp_value normal = p->output(p, norm, 0), x = p->input(p, norm, 0);
  const ssp_attr* axis = p->attr(p, norm, "axis");
  const int32_t rank = p->rank(p, x);
  if (p->reader_count(p, normal) != 1 || p->is_kept(p, normal)) return "the normalised value is read elsewhere too";
  if (!p->same_branch(p, product, norm)) return "the norm belongs to another branch";
  if (rank < 1) return "the rank of x is not known";
  if (axis != NULL && axis->i != -1 && axis->i != rank - 1) return "it normalises more than the last axis";
  if (p->rank(p, p->input(p, norm, 1)) != 1) return "the weight is no vector";
  if (p->dtype(p, x) != p->dtype(p, gate) || p->rank(p, gate) != rank) return "x and gate differ in type or rank";
  for (uint32_t a = 0; a < (uint32_t)rank; ++a) {
    int64_t of_x = 0, of_gate = 0;
    if (p->extent(p, x, a, &of_x) && p->extent(p, gate, a, &of_gate) && of_x != of_gate) return "the gate is broadcast";
  }
  const char* least = p->option(p, "gated_rms_norm.least_columns");
  int64_t columns = 0;
  if (least != NULL && p->extent(p, x, (uint32_t)rank - 1, &columns) && columns < atoll(least))
    return "fewer columns than option gated_rms_norm.least_columns asks for";
  return NULL;
}

static ssp_status run(const ssp_pass* pass, ssp_pass_context* p) {
  (void)pass;
  for (uint32_t k = 0; k < p->node_count; ++k) {
    const ssp_node product = p->node(p, k);
    if (!is_op(p, product, "", "Mul")) continue;
    for (uint32_t i = 0; i < 2; ++i) {
      const ssp_node norm = p->producer(p, p->input(p, product, i));
      if (!is_op(p, norm, "", "RMSNormalization")) continue;
      const ssp_value gate = gate_of(p, p->input(p, product, 1 - i));
      if (gate == 0) {
        p->miss(p, product, "the other factor is no SiLU");
        continue;
      }
      const char* reason = obstacle(p, product, norm, gate);
      if (reason != NULL) {
        p->miss(p, product, reason);
        continue;
      }
      const ssp_attr* epsilon = p->attr(p, norm, "epsilon");
      const ssp_attr attr = ssp_float_attr("epsilon", epsilon == NULL ? 1e-5f : epsilon->f);
      const ssp_value inputs[3] = {p->input(p, norm, 0), gate, p->input(p, norm, 1)};
      ssp_value y = 0;
      if (p->add_node(p, product, GATED_DOMAIN, "GatedRMSNorm", inputs, 3, &attr, 1, &y, 1)) return SSP_ERROR;
      if (p->replace(p, p->output(p, product, 0), y)) return SSP_ERROR;
      p->match(p);
      break;
    }
  }
  return SSP_OK;
}

const ssp_pass fuse_gated_rms_norm = {
    .size = sizeof(ssp_pass),
    .name = "fuse_gated_rms_norm",
    .doc = "recognises RMSNormalization(x) * SiLU(gate)",
    .phase = "pre-grad passes",
    .run = run,
};

const ssp_option least_columns = {
    .size = sizeof(ssp_option),
    .name = "gated_rms_norm.least_columns",
    .default_value = "1",
    .doc = "rows with fewer columns stay as they are",
};
