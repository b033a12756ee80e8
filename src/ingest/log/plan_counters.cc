// SPDX-License-Identifier: Apache-2.0
// Which numbers of a line say where the training is: epoch, step, of how many.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "ingest/log/line_draft.h"
#include "ingest/log/quantities.h"
#include "ingest/log/vocabulary.h"

namespace epochmeter::ingest::log {
namespace {

// Where several names of one line mean the same counter, the one that the line is about.
int CounterRank(std::string_view key) {
  static constexpr std::string_view kBest[] = {"num_updates", "global_step", "current_steps",
                                               "epch"};
  static constexpr std::string_view kLast[] = {"update", "it",         "ep",   "episode",
                                               "rounds", "micro_step", "pass", "epochs",
                                               "steps",  "iterations"};
  const std::string name = NormalKey(key);
  if (std::find(std::begin(kBest), std::end(kBest), name) != std::end(kBest)) return 0;
  if (std::find(std::begin(kLast), std::end(kLast), name) != std::end(kLast)) return 2;
  return 1;
}

class CounterPlanner {
 public:
  explicit CounterPlanner(LineDraft& draft) : draft_(draft) {}

  void Run() {
    FindBar();
    PlaceBarPair();
    for (size_t i = 0; i < draft_.plan.fields.size(); ++i) {
      FieldPlan& field = draft_.plan.fields[i];
      if (!IsCounter(field.role)) continue;
      int* place = field.role == Role::kEpoch  ? &draft_.plan.epoch
                   : field.role == Role::kStep ? &draft_.plan.step
                                               : &draft_.plan.step_in_epoch;
      // "acc_iter=4879, cur_iter=0/271": of the run, and of the epoch.
      if (field.role == Role::kStep && field.form == FieldForm::kPair && *place >= 0 &&
          draft_.plan.epoch >= 0 && draft_.plan.step_in_epoch < 0) {
        field.role = Role::kStepInEpoch;
        place = &draft_.plan.step_in_epoch;
      }
      const bool first = *place < 0;
      if (!first && CounterRank(field.key) >=
                        CounterRank(draft_.plan.fields[static_cast<size_t>(*place)].key)) {
        field.role = Role::kOther;
        continue;
      }
      if (!first) draft_.plan.fields[static_cast<size_t>(*place)].role = Role::kOther;
      *place = static_cast<int>(i);
    }
    PlaceBareNumbers();
    PlaceNamedPairs();
    PlacePairs();
    draft_.plan.pair_in_epoch = PairBehindEpoch();
  }

 private:
  // "|####| 3/10 [00:01<00:02": the glyphs of a bar, next to a pair.
  void FindBar() {
    const std::string_view message = draft_.Message();
    const bool glyphs = message.find("%|") != std::string_view::npos ||
                        message.find("\xE2\x96\x88") != std::string_view::npos ||  // full block
                        message.find("\xE2\x94\x81") != std::string_view::npos ||  // heavy line
                        message.find("[==") != std::string_view::npos ||
                        message.find("[=>") != std::string_view::npos ||
                        message.find("[>.") != std::string_view::npos ||
                        message.find("....]") != std::string_view::npos ||
                        message.find("##]") != std::string_view::npos ||
                        message.find("\xE2\x94\x80\xE2\x94\x80") != std::string_view::npos;
    draft_.plan.bar = glyphs;
  }

  // A bar counts by its own pair; other counters are figures beside it.
  void PlaceBarPair() {
    if (!draft_.plan.bar) return;
    const auto pair = std::find_if(
        draft_.plan.fields.begin(), draft_.plan.fields.end(), [](const FieldPlan& field) {
          return field.form == FieldForm::kPair && field.role != Role::kEpoch;
        });
    if (pair == draft_.plan.fields.end()) return;
    for (FieldPlan& field : draft_.plan.fields) {
      const bool steps = field.role == Role::kStep || field.role == Role::kStepInEpoch;
      if (&field != &*pair && steps) field.role = Role::kOther;
    }
    if (pair->role != Role::kStep) pair->role = Role::kStepInEpoch;
  }

  // Numbers without a name, of which their place says what they count.
  void PlaceBareNumbers() {
    for (size_t i = 0; i < draft_.plan.fields.size(); ++i) {
      FieldPlan& field = draft_.plan.fields[i];
      const bool pair = field.form == FieldForm::kPair;
      const bool whole = field.form == FieldForm::kNumber && field.unit.empty() && !field.average;
      // "Train: 0 [  0/312]", "Train: 1/3 ( 33%) [  0/101]"
      if ((whole || pair) && NormalKey(field.key) == "train" && draft_.plan.epoch < 0 &&
          PairFollows(i)) {
        SetCounter(i, Role::kEpoch);
        continue;
      }
      if (!field.key.empty()) continue;
      // DeepSpeed's timer: "0/40, SamplesPerSec=83.5": epoch and step of the line before.
      if (pair && i == 0 && i + 1 < draft_.plan.fields.size() &&
          draft_.plan.fields[i + 1].key == "SamplesPerSec") {
        continue;
      }
      // "[8/100], [10/11], step: 98"
      if (pair && i == 0 && i + 1 < draft_.plan.fields.size() && draft_.plan.epoch < 0 &&
          IsBracketedPair(i) && IsBracketedPair(i + 1)) {
        SetCounter(i, Role::kEpoch);
        SetCounter(i + 1, Role::kStepInEpoch);
        continue;
      }
      // "(0/2)" in front: the rank, of how many.
      const bool in_parentheses = pair && i == 0 && InParentheses();
      if (in_parentheses) continue;
      if (pair && i == 0 && LeadsLine() && StepIsWeak()) {
        // "39160/50000: episode: 569"
        DropStep();
        SetCounter(i, draft_.plan.epoch < 0 ? Role::kStep : Role::kStepInEpoch);
      } else if (pair && draft_.plan.step_in_epoch < 0 &&
                 (draft_.plan.step < 0 || IsBehindEpoch(i))) {
        SetCounter(i, Role::kStepInEpoch);
      } else if (whole && i == 0 && BracketFirst() && draft_.plan.step < 0 &&
                 draft_.plan.epoch < 0) {
        // "[12]\ttrain-rmse:0.5"
        SetCounter(i, Role::kStep);
        draft_.plan.bare_step = true;
      } else if (whole && i == 0 && draft_.plan.epoch < 0 && draft_.plan.step >= 0 &&
                 BracketedFirst()) {
        SetCounter(i, Role::kEpoch);  // "[train][1] ... step: 100"
      } else if (whole && i == 0 && draft_.plan.step < 0 && draft_.plan.epoch < 0 && ColonFirst()) {
        SetCounter(i, Role::kStep);  // "100: 3.2, 3.4 avg loss, 0.001 rate"
      }
    }
  }

  bool IsBracketedPair(size_t index) const {
    const FieldPlan& field = draft_.plan.fields[index];
    if (field.form != FieldForm::kPair || !field.key.empty()) return false;
    size_t begin = draft_.skeleton.begin[field.number];
    while (begin > 0 && draft_.text[begin - 1] == ' ') --begin;
    return begin > 0 && draft_.text[begin - 1] == '[';
  }

  // "Train: 1/3 ( 33%) [0/101 ...", "{| Epoch: 1 (1158/1158) |": the field before is the epoch, or
  // its share in percent.
  bool IsBehindEpoch(size_t index) const {
    const auto at = static_cast<int>(index);
    const int epoch = draft_.plan.epoch;
    if (epoch < 0 || at <= epoch) return false;
    const bool share = at == epoch + 2 && draft_.plan.fields[index - 1].unit == "%";
    return at == epoch + 1 || share;
  }

  // "Epoch: [3][20/312]", "Epoch [3][20/312]"
  bool PairBehindEpoch() const {
    const int pair = draft_.plan.step_in_epoch;
    const bool next = draft_.plan.epoch >= 0 && pair == draft_.plan.epoch + 1;
    return next && IsBracketedPair(static_cast<size_t>(pair));
  }

  // The line begins with the pair and a colon.
  bool LeadsLine() const {
    const Field& first = draft_.scanned.fields[0];
    const std::string_view message = draft_.Message();
    const size_t begin = message.find_first_not_of(' ');
    return begin != std::string_view::npos &&
           first.begin == begin + draft_.text.size() - message.size() &&
           first.total_end < draft_.text.size() && draft_.text[first.total_end] == ':';
  }
  bool StepIsWeak() const {
    const int step = draft_.plan.step;
    return step >= 0 && CounterRank(draft_.plan.fields[static_cast<size_t>(step)].key) == 2;
  }
  void DropStep() {
    draft_.plan.fields[static_cast<size_t>(draft_.plan.step)].role = Role::kOther;
    draft_.plan.step = -1;
  }

  // Without another step: "i = 822990 / 973300", "Process 100/3161(3.16%)", "total_step 22050".
  void PlaceNamedPairs() {
    for (size_t i = 0; i < draft_.plan.fields.size(); ++i) {
      if (draft_.plan.step >= 0 || draft_.plan.step_in_epoch >= 0) return;
      const FieldPlan& field = draft_.plan.fields[i];
      const std::string name = NormalKey(field.key);
      const bool pair = field.form == FieldForm::kPair && field.role == Role::kOther;
      if (pair && (name == "i" || name == "progress" || (!name.empty() && PercentFollows(i)))) {
        const bool in_epoch = draft_.plan.epoch >= 0 && !EpochIsFraction();
        SetCounter(i, in_epoch ? Role::kStepInEpoch : Role::kStep);
      }
      const bool loss = std::any_of(draft_.plan.fields.begin(), draft_.plan.fields.end(), IsLoss);
      if (loss && draft_.plan.epoch < 0 && field.form == FieldForm::kNumber &&
          (name == "num_epoch" || name == "num_epochs")) {
        SetCounter(i, Role::kEpoch);
      }
      const bool total = field.form == FieldForm::kNumber && draft_.plan.epoch >= 0 &&
                         (name == "total_step" || name == "total_iter");
      if (total) SetCounter(i, Role::kStep);
    }
  }

  // The share that the pair is, in percent.
  bool PercentFollows(size_t index) const {
    if (index + 1 >= draft_.plan.fields.size() || draft_.plan.fields[index + 1].unit != "%") {
      return false;
    }
    const auto number = [this](size_t at) {
      return ScanNumber(draft_.text.substr(draft_.skeleton.begin[at])).number;
    };
    const FieldPlan& pair = draft_.plan.fields[index];
    const double total = number(pair.total_number);
    const double percent = number(draft_.plan.fields[index + 1].number);
    return total > 0 && std::abs(100 * number(pair.number) / total - percent) <= 1;
  }

  bool PairFollows(size_t index) const {
    const size_t end = std::min(draft_.plan.fields.size(), index + 4);
    for (size_t i = index + 1; i < end; ++i) {
      if (draft_.plan.fields[i].form == FieldForm::kPair && draft_.plan.fields[i].key.empty())
        return true;
    }
    return false;
  }

  void SetCounter(size_t index, Role role) {
    draft_.plan.fields[index].role = role;
    int& place = role == Role::kEpoch  ? draft_.plan.epoch
                 : role == Role::kStep ? draft_.plan.step
                                       : draft_.plan.step_in_epoch;
    if (place < 0) place = static_cast<int>(index);
  }

  // "[12]" alone, not "[12, 3]".
  bool BracketFirst() const {
    const size_t end = draft_.scanned.fields[0].end;
    return base::StartsWith(base::Trim(draft_.Message()), "[") && end < draft_.text.size() &&
           draft_.text[end] == ']';
  }

  bool InParentheses() const {
    const Field& first = draft_.scanned.fields[0];
    return first.begin > 0 && draft_.text[first.begin - 1] == '(' &&
           first.total_end < draft_.text.size() && draft_.text[first.total_end] == ')';
  }

  bool BracketedFirst() const {
    return !draft_.scanned.fields.empty() && draft_.scanned.fields[0].begin > 0 &&
           draft_.text[draft_.scanned.fields[0].begin - 1] == '[';
  }

  bool ColonFirst() const {
    const std::string_view message = base::Trim(draft_.Message());
    const size_t digits = message.find_first_not_of("0123456789");
    return digits != 0 && digits != std::string_view::npos &&
           (message[digits] == ':' || message.substr(digits, 2) == " |") &&
           digits + 1 < message.size() &&
           (message[digits + 1] == ' ' || message[digits + 1] == '\t' ||
            message[digits + 1] == '|');
  }

  // "Epoch 43.28": what counts next to it is the whole run.
  bool EpochIsFraction() const {
    const FieldPlan& epoch = draft_.plan.fields[static_cast<size_t>(draft_.plan.epoch)];
    const std::string_view text = draft_.text.substr(draft_.skeleton.begin[epoch.number]);
    return text.substr(0, ScanNumber(text).size).find('.') != std::string_view::npos;
  }

  // What the second number of a pair is, and whether a step of a pair counts within the epoch.
  void PlacePairs() {
    for (size_t i = 0; i < draft_.plan.fields.size(); ++i) {
      FieldPlan& field = draft_.plan.fields[i];
      if (field.form != FieldForm::kPair) continue;
      if (IsCounter(field.total_role)) continue;
      if (field.role == Role::kEpoch) field.total_role = Role::kEpochs;
      // Next to an epoch, steps of a pair mostly begin again with each epoch; not where they are
      // named first.
      if (field.role == Role::kStep && draft_.plan.epoch >= 0 &&
          draft_.plan.epoch < static_cast<int>(i) && !EpochIsFraction()) {
        field.role = Role::kStepInEpoch;
        draft_.plan.step = -1;
        if (draft_.plan.step_in_epoch < 0) draft_.plan.step_in_epoch = static_cast<int>(i);
      }
      if (field.role == Role::kStep) field.total_role = Role::kTotalSteps;
      if (field.role == Role::kStepInEpoch) field.total_role = Role::kStepsPerEpoch;
    }
  }

  LineDraft& draft_;
};

}  // namespace

void PlanCounters(LineDraft* draft) { CounterPlanner(*draft).Run(); }

}  // namespace epochmeter::ingest::log
