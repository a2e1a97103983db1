// SPDX-License-Identifier: GPL-3.0-or-later
// Answers to single questions that views ask with a wish: how two tensors differ, what each row adds to the loss, what may
// be computed again, what a low precision costs, what every option gives, what a step is spent on, the text of a source
// file. Written by the workbench, read by views. GUI thread only.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/snapshot/worker.pb.h"
#include "views/common/golden_finding.h"
#include "views/common/option_trials.h"
#include "views/common/study.h"

namespace stepscope {

// A value compared with something else, by the rule of engine/snapshot/number_rule.h.
struct TensorComparison {
  int value = -1;   // value id; -1: nothing was compared
  QString with;     // path of a file, or "value:ID"
  QString problem;  // why it could not be compared, hostile text; empty: `result` holds
  snapshot::ComparisonResult result;
};

// The contents that a value once had, written to a file of this session.
struct KeptTensor {
  QString path;
  QString name;           // of the value, hostile text
  std::int64_t step = 0;  // micro step that computed it
};

// A question about recompute, and its answer: the newest report stays when a question has none.
struct RecomputeAnswer {
  bool whatIf = false;  // the report's what_if is of this plan and budget
  QString plan;
  qint64 budget = 0;
  QString problem;  // why there is no answer, hostile text; empty: there is one
};

// How the last edit of an element ended.
struct EditAnswer {
  int value = -1;
  std::vector<qint64> index;
  QString problem;  // why it was refused, hostile text; empty: it was made
};

// A value whose contents were set by hand in this session, and still stand: an edit that was taken back is none.
struct EditedValue {
  int value = -1;
  std::int64_t step = 0;
  int instruction = -1;  // before which; -1: before the step began
  bool operator==(const EditedValue&) const = default;
};

// A breakpoint that the worker did not take.
struct RefusedBreakpoint {
  snapshot::Breakpoint breakpoint;
  QString problem;  // hostile text
};

struct SourceText {
  QStringList lines;  // hostile text
  QString problem;    // why the file cannot be read; empty: `lines` holds
};

class Findings : public QObject {
  Q_OBJECT

 public:
  explicit Findings(QObject* parent = nullptr) : QObject(parent) {}

  const TensorComparison& tensorComparison() const { return comparison_; }
  const std::vector<KeptTensor>& kept() const { return kept_; }  // newest first
  const std::shared_ptr<const snapshot::RowLosses>& rowLosses() const {
    return rowLosses_;
  }  // nullptr until it was asked for
  const std::shared_ptr<const snapshot::RecomputeReport>& recompute() const {
    return recompute_;
  }  // nullptr until it was asked for
  const RecomputeAnswer& recomputeAnswer() const { return recomputeAnswer_; }
  const Study& recomputeStudy() const { return recomputeStudy_; }  // that of the question under way
  Study& recomputeStudy() { return recomputeStudy_; }
  const std::shared_ptr<const snapshot::PrecisionReport>& precision() const {
    return precision_;
  }                                                                      // of the newest study; nullptr before one
  const QString& precisionProblem() const { return precisionProblem_; }  // why the newest has no answer, hostile text
  bool studiesPrecision() const { return studiesPrecision_; }            // one runs
  const OptionTrials& trials() const { return trials_; }                 // what every option gives
  OptionTrials& trials() { return trials_; }
  const StudyOf<snapshot::LedgerReport>& ledger() const { return ledger_; }  // what a step is spent on
  StudyOf<snapshot::LedgerReport>& ledger() { return ledger_; }
  const StudyOf<snapshot::CapacityReport>& capacity() const { return capacity_; }  // what fits where
  StudyOf<snapshot::CapacityReport>& capacity() { return capacity_; }
  const StudyOf<snapshot::BisectFinding>& bisect() const { return bisect_; }  // why numbers differ
  StudyOf<snapshot::BisectFinding>& bisect() { return bisect_; }
  // The options under which bisect().report() was found; what the report says is of them.
  const std::vector<snapshot::Option>& bisectedOptions() const { return bisectedOptions_; }
  const GoldenFinding& golden() const { return golden_; }  // the model next to PyTorch
  GoldenFinding& golden() { return golden_; }
  const std::shared_ptr<const snapshot::OptionProof>& optionProof() const {
    return optionProof_;
  }  // of the last change of options; nullptr before one
  // What the proof says, as text, with the role "ok", "warn" or "muted"; empty without one.
  QString optionProofText(QString* role) const;
  const EditAnswer& edit() const { return edit_; }
  const std::vector<EditedValue>& edited() const { return edited_; }
  // Of the last time that breakpoints were set.
  const std::optional<RefusedBreakpoint>& refusedBreakpoint() const { return refusedBreakpoint_; }
  const SourceText* source(const QString& path) const {  // nullptr until it was asked for
    const auto it = sources_.find(path);
    return it == sources_.end() ? nullptr : &it->second;
  }

  void setTensorComparison(TensorComparison comparison) {
    comparison_ = std::move(comparison);
    emit tensorComparisonChanged();
  }
  // The path of what was dropped; there is one.
  QString dropOldestKept() {
    const QString path = kept_.back().path;
    kept_.pop_back();
    return path;
  }
  void addKept(KeptTensor kept) {
    kept_.insert(kept_.begin(), std::move(kept));
    emit keptChanged();
  }
  void setRowLosses(std::shared_ptr<const snapshot::RowLosses> losses) {
    rowLosses_ = std::move(losses);
    emit rowLossesChanged();
  }
  void setRecompute(std::shared_ptr<const snapshot::RecomputeReport> report, RecomputeAnswer answer) {
    if (report || answer.problem.isEmpty()) recompute_ = std::move(report);
    recomputeAnswer_ = std::move(answer);
    emit recomputeChanged();
  }
  void beginPrecision() {
    studiesPrecision_ = true;
    precisionProblem_.clear();
    emit precisionChanged();
  }
  // Without a report the one before stays.
  void setPrecision(std::shared_ptr<const snapshot::PrecisionReport> report, const QString& problem) {
    studiesPrecision_ = false;
    if (report) precision_ = std::move(report);
    precisionProblem_ = problem;
    emit precisionChanged();
  }
  void setEdit(EditAnswer answer) {
    edit_ = std::move(answer);
    emit editAnswered();
  }
  void setEdited(std::vector<EditedValue> edited) {
    if (edited == edited_) return;
    edited_ = std::move(edited);
    emit editedChanged();
  }
  void setRefusedBreakpoint(std::optional<RefusedBreakpoint> refused) {
    if (!refused && !refusedBreakpoint_) return;
    refusedBreakpoint_ = std::move(refused);
    emit refusedBreakpointChanged();
  }
  void setOptionProof(std::shared_ptr<const snapshot::OptionProof> proof) {
    optionProof_ = std::move(proof);
    emit optionProofChanged();
  }
  void setBisectedOptions(std::vector<snapshot::Option> options) {
    bisectedOptions_ = std::move(options);
    emit bisectedOptionsChanged();
  }
  void setSource(const QString& path, SourceText text) {
    sources_[path] = std::move(text);
    emit sourceArrived(path);
  }
  // A rewind took these steps back; what was kept of them says itself of which step it is.
  void takeBackFrom(std::int64_t step) {
    setTensorComparison({});
    if (rowLosses_ && rowLosses_->step() >= step) setRowLosses(nullptr);
  }
  // The model was closed: what was found of it is of no use; files that were read stay.
  void clear() {
    kept_.clear();
    rowLosses_ = nullptr;
    setTensorComparison({});
    setRecompute(nullptr, {});
    recomputeStudy_.finish({});
    precision_ = nullptr;
    setPrecision(nullptr, {});
    setOptionProof(nullptr);
    trials_.clear();
    ledger_.clear();
    capacity_.clear();
    bisect_.clear();
    bisectedOptions_.clear();
    golden_.clear();
    setRefusedBreakpoint(std::nullopt);
    emit keptChanged();
    emit rowLossesChanged();
  }

 signals:
  void tensorComparisonChanged();
  void keptChanged();
  void rowLossesChanged();
  void recomputeChanged();
  void precisionChanged();
  void optionProofChanged();
  void bisectedOptionsChanged();
  void editAnswered();
  void editedChanged();
  void refusedBreakpointChanged();
  void sourceArrived(const QString& path);

 private:
  TensorComparison comparison_;
  std::vector<KeptTensor> kept_;
  std::shared_ptr<const snapshot::RowLosses> rowLosses_;
  std::shared_ptr<const snapshot::RecomputeReport> recompute_;
  RecomputeAnswer recomputeAnswer_;
  Study recomputeStudy_;
  std::shared_ptr<const snapshot::PrecisionReport> precision_;
  QString precisionProblem_;
  bool studiesPrecision_ = false;
  EditAnswer edit_;
  std::vector<EditedValue> edited_;
  std::optional<RefusedBreakpoint> refusedBreakpoint_;
  std::shared_ptr<const snapshot::OptionProof> optionProof_;
  std::map<QString, SourceText> sources_;
  OptionTrials trials_;
  StudyOf<snapshot::LedgerReport> ledger_;
  StudyOf<snapshot::CapacityReport> capacity_;
  StudyOf<snapshot::BisectFinding> bisect_;
  std::vector<snapshot::Option> bisectedOptions_;
  GoldenFinding golden_;
};

}  // namespace stepscope
