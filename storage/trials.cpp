#include "storage/trials.h"

#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

constexpr int kFirstVersion = 7;

}  // namespace

Result<std::vector<snapshot::Trial>> readTrials(const Project& project, std::int64_t run) {
  std::vector<snapshot::Trial> out;
  if (project.schemaVersion() < kFirstVersion) return out;
  SS_STORE_ASSIGN(
      Statement rows,
      project.connection().prepare(
          "SELECT option, from_value, to_value, rounds, before_ns, after_ns, ratio, low, high, p, adjusted_p, before_peak, "
          "after_peak, before_measured_peak, after_measured_peak, before_expected_ns, after_expected_ns, compared, "
          "same_bits, loss_difference, gradient_difference, parameter_difference, gradient_error, parameter_error, cosine, "
          "worst, verdict, identical, note FROM trials WHERE run = ?1 AND session = (SELECT max(session) FROM trials WHERE "
          "run = ?1) ORDER BY position"));
  rows.bind(run);
  while (rows.next()) {
    snapshot::Trial& t = out.emplace_back();
    t.set_option(rows.text(0));
    t.set_from(rows.text(1));
    t.set_to(rows.text(2));
    t.set_rounds(static_cast<std::int32_t>(rows.integer(3)));
    t.set_median_ns_before(rows.real(4));
    t.set_median_ns_after(rows.real(5));
    t.set_ratio(rows.real(6));
    t.set_low(rows.real(7));
    t.set_high(rows.real(8));
    t.set_p(rows.real(9));
    t.set_adjusted_p(rows.real(10));
    t.set_peak_before(rows.integer(11));
    t.set_peak_after(rows.integer(12));
    t.set_measured_peak_before(rows.integer(13));
    t.set_measured_peak_after(rows.integer(14));
    t.set_expected_ns_before(rows.real(15));
    t.set_expected_ns_after(rows.real(16));
    snapshot::TrialParity& p = *t.mutable_parity();
    p.set_compared(rows.integer(17) != 0);
    p.set_bits(rows.integer(18) != 0);
    p.set_loss(rows.real(19));
    p.set_gradient(rows.real(20));
    p.set_parameter(rows.real(21));
    p.set_gradient_relative(rows.real(22));
    p.set_parameter_relative(rows.real(23));
    p.set_cosine(rows.real(24));
    p.set_worst(rows.text(25));
    t.set_verdict(rows.text(26));
    t.set_identical(rows.integer(27) != 0);
    t.set_note(rows.text(28));
  }
  SS_STORE_TRY(rows.status());
  return out;
}

}  // namespace stepscope::storage
