// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/line_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "ingest/log/line_draft.h"
#include "ingest/log/name_lists.h"
#include "ingest/log/quantities.h"
#include "ingest/log/vocabulary.h"

namespace epochmeter::ingest::log {
namespace {

uint32_t Fold(uint64_t hash) { return static_cast<uint32_t>(hash ^ (hash >> 32)); }

uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xCBF2'9CE4'8422'2325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100'0000'01B3;
  return hash;
}

class Planner {
 public:
  Planner(std::string_view text, const LinePrefix& prefix, const Skeleton& skeleton)
      : prefix_(prefix), draft_{.text = text, .prefix = prefix_, .skeleton = skeleton} {}

  LinePlan Make() {
    SkipBar();
    draft_.scanned = ScanFields(draft_.text, draft_.prefix.message);
    NameLists(draft_.text, &draft_.scanned);
    PlanFields(&draft_);
    PreferLearningRate();
    PlanCounters(&draft_);
    PromoteLoss();
    JudgeLine(&draft_);
    Identify();
    FindColumns();
    draft_.plan.counts_samples = CountsSamples();
    return std::move(draft_.plan);
  }

 private:
  // "  1%|1    | 10/1000 [00:10<16:30, 1.00s/it]{'loss': 0.3}": another message behind a bar whose
  // line was not ended.
  void SkipBar() {
    const std::string_view message = draft_.Message();
    size_t end = message.find("%|");
    for (const std::string_view close : {"it/s]", "s/it]"}) {
      const size_t found = end == std::string_view::npos ? end : message.find(close, end);
      if (found == std::string_view::npos) continue;
      const std::string_view rest = message.substr(found + close.size());
      const bool glued = !rest.empty() && rest[0] != ' ' && rest[0] != ',' && rest[0] != '\r' &&
                         rest.find_first_of("0123456789") != std::string_view::npos;
      if (!glued) return;
      const size_t at = draft_.text.size() - rest.size();
      const LinePrefix inner = ReadLinePrefix(rest);
      prefix_.message = at + inner.message;
      return;
    }
  }

  // "base_lr: 1e-3 lr: 9e-4": the one that is used.
  void PreferLearningRate() {
    const auto exact = std::find_if(
        draft_.plan.fields.begin(), draft_.plan.fields.end(), [](const FieldPlan& field) {
          return field.role == Role::kLearningRate && NormalKey(field.key) == "lr";
        });
    if (exact == draft_.plan.fields.end()) return;
    for (auto field = draft_.plan.fields.begin(); field != exact; ++field) {
      if (field->role == Role::kLearningRate) field->role = Role::kOther;
    }
  }

  // One part alone is the loss; a name that is an average only where there is no other.
  void PromoteLoss() {
    std::vector<size_t> losses, parts;
    for (size_t i = 0; i < draft_.plan.fields.size(); ++i) {
      if (!IsLoss(draft_.plan.fields[i]) || (draft_.plan.fields[i].average && Repeats(i))) continue;
      (draft_.plan.fields[i].role == Role::kLoss ? losses : parts).push_back(i);
    }
    if (losses.empty() && parts.empty()) PromoteTotal();
    if (losses.empty() && parts.size() == 1) draft_.plan.fields[parts[0]].role = Role::kLoss;
    if (losses.size() < 2) return;
    const auto plain = std::find_if(losses.begin(), losses.end(),
                                    [this](size_t i) { return !draft_.plan.fields[i].average; });
    const size_t chosen = plain == losses.end() ? losses[0] : *plain;
    for (const size_t i : losses) {
      if (i != chosen) draft_.plan.fields[i].role = Role::kLossPart;
    }
  }

  // "policy=6.17 mse=0.17 total=7.24": the sum of what has no "loss" in its name.
  void PromoteTotal() {
    const auto total =
        std::find_if(draft_.plan.fields.begin(), draft_.plan.fields.end(),
                     [](const FieldPlan& field) { return NormalKey(field.key) == "total"; });
    if (total == draft_.plan.fields.end() || total->form != FieldForm::kNumber) return;
    const double number =
        ScanNumber(draft_.text.substr(draft_.skeleton.begin[total->number])).number;
    const bool metric = std::any_of(
        draft_.plan.fields.begin(), draft_.plan.fields.end(),
        [](const FieldPlan& field) { return field.role == Role::kMetric && !field.eval; });
    if (metric && number != std::floor(number)) total->role = Role::kLoss;
  }

  // "(1.2)" behind a value of the same name.
  bool Repeats(size_t i) const {
    return i > 0 && draft_.plan.fields[i - 1].key == draft_.plan.fields[i].key;
  }

  void Identify() {
    std::string keys;
    size_t lead_end = draft_.text.size();
    for (size_t i = 0; i < draft_.plan.fields.size(); ++i) {
      for (const char byte : draft_.plan.fields[i].key) {
        if (byte < '0' || byte > '9') keys += byte;  // "E5 iter"
      }
      keys += '\x1f';
      if (IsFigure(draft_.plan.fields[i].role) || draft_.plan.fields[i].role == Role::kEvalMetric) {
        lead_end = std::min(lead_end, draft_.key_at[i]);
      }
    }
    draft_.plan.shape = Fold(HashText(keys));
    std::string lead;
    const size_t from = std::min(draft_.prefix.message, lead_end);
    for (const char c : draft_.text.substr(from, lead_end - from)) {
      // Numbers and what bars are drawn with.
      if ((c >= '0' && c <= '9') || std::string_view(" #=>.-*").find(c) != std::string_view::npos) {
        continue;
      }
      lead += c;
    }
    draft_.plan.family = Fold(HashText(lead));
  }

  // "Train Epoch: 1 [640/60000 (1%)]", the words of PyTorch's examples and of what was made of
  // them: that counts samples. Others print steps just so, by other words.
  bool CountsSamples() const {
    for (const FieldPlan& field : draft_.plan.fields) {
      if (field.form != FieldForm::kPair || !IsSteps(field.total_role)) continue;
      const size_t total = draft_.skeleton.begin[field.total_number];
      const std::string_view after =
          draft_.text.substr(total + ScanNumber(draft_.text.substr(total)).size);
      const size_t share = after.find_first_not_of(' ');
      if (share == std::string_view::npos || after[share] != '(') return false;
      const size_t end = after.find(')');
      if (end == std::string_view::npos || end < 2 || after[end - 1] != '%') return false;
      return draft_.text.substr(0, total).find("Train Epoch:") != std::string_view::npos;
    }
    return false;
  }

  // "0 ,04.29_01:45:54 ,0.001": cells of which not all are numbers.
  static bool HasCells(std::string_view message) {
    const std::string_view row = base::Trim(message);
    const auto separators = std::count_if(row.begin(), row.end(), [](char c) {
      return c == ',' || c == ';' || c == '|' || c == '\t';
    });
    return !row.empty() && row[0] >= '0' && row[0] <= '9' && separators >= 2 &&
           row.find('=') == std::string_view::npos && row.find(": ") == std::string_view::npos;
  }

  // "Epoch  gpu_mem  box  obj": names without numbers, of which one is a counter.
  void FindColumns() {
    const std::string_view message = draft_.Message();
    if (!draft_.plan.fields.empty()) {
      const auto named = std::count_if(draft_.plan.fields.begin(), draft_.plan.fields.end(),
                                       [](const FieldPlan& field) { return !field.key.empty(); });
      draft_.plan.rows = (named == 0 || HasCells(message)) && draft_.plan.fields.size() >= 2;
      return;
    }
    if (message.size() > 400 || message.find_first_of(".!?=") != std::string_view::npos) {
      if (message.find(',') == std::string_view::npos) return;
    }
    bool counter = false;
    size_t names = 0;
    for (const auto& word : draft_.scanned.words) {
      const KeyMeaning meaning = MeaningOf(word.text);
      const bool spacy = word.text == "e" && message.find('#') != std::string_view::npos;
      counter |= IsCounter(meaning.role) || spacy;
      ++names;
    }
    draft_.plan.columns = counter && names >= 2;
  }

  LinePrefix prefix_;
  LineDraft draft_;
};

}  // namespace

bool IsFigure(Role role) {
  switch (role) {
    case Role::kLoss:
    case Role::kLossPart:
    case Role::kMetric:
    case Role::kLearningRate:
    case Role::kGradNorm:
    case Role::kLossScale:
    case Role::kStepTime:
    case Role::kDataTime:
    case Role::kIntervalTime:
    case Role::kEpochTime:
    case Role::kThroughput:
      return true;
    default:
      return false;
  }
}

LinePlan MakePlan(std::string_view text, const LinePrefix& prefix, const Skeleton& skeleton) {
  return Planner(text, prefix, skeleton).Make();
}

}  // namespace epochmeter::ingest::log
