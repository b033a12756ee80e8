// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/line_plan.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/strings.h"
#include "ingest/log/events.h"
#include "ingest/log/named_formats.h"
#include "ingest/log/units.h"
#include "ingest/log/vocabulary.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostFieldsKept = 128;

bool IsLoss(const FieldPlan& field) {
  return !field.eval && (field.role == Role::kLoss || field.role == Role::kLossPart);
}

// Figures that a training step has.
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

bool IsCounter(Role role) {
  return role == Role::kEpoch || role == Role::kStep || role == Role::kStepInEpoch;
}

uint32_t Fold(uint64_t hash) { return static_cast<uint32_t>(hash ^ (hash >> 32)); }

uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xCBF2'9CE4'8422'2325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100'0000'01B3;
  return hash;
}

// Where several names of one line mean the same counter, the one that the line is about.
int CounterRank(std::string_view key) {
  static constexpr std::string_view kBest[] = {"num_updates", "global_step", "current_steps",
                                               "epch"};
  static constexpr std::string_view kLast[] = {
      "update", "it", "ep", "rounds", "micro_step", "pass", "epochs", "steps", "iterations"};
  const std::string name = NormalKey(key);
  if (std::find(std::begin(kBest), std::end(kBest), name) != std::end(kBest)) return 0;
  if (std::find(std::begin(kLast), std::end(kLast), name) != std::end(kLast)) return 2;
  return 1;
}

class Planner {
 public:
  Planner(std::string_view text, const LinePrefix& prefix, const Skeleton& skeleton)
      : text_(text), prefix_(prefix), skeleton_(skeleton) {}

  LinePlan Make() {
    scanned_ = ScanFields(text_, prefix_.message);
    FindFormat();
    for (size_t i = 0; i < scanned_.fields.size() && plan_.fields.size() < kMostFieldsKept; ++i) {
      AddField(scanned_.fields[i], i);
    }
    FindBar();
    PreferLearningRate();
    PlaceCounters();
    PromoteLoss();
    ReadWords();
    Judge();
    FindColumns();
    return std::move(plan_);
  }

 private:
  std::string_view Message() const { return text_.substr(std::min(prefix_.message, text_.size())); }

  // The number in the skeleton at which a value begins; signs may differ.
  std::optional<uint16_t> NumberAt(size_t offset) const {
    const auto* begin = skeleton_.begin.data();
    const auto* end = begin + skeleton_.numbers;
    const auto* found = std::lower_bound(begin, end, static_cast<uint32_t>(offset));
    if (found == end || *found > offset + 1) return std::nullopt;
    return static_cast<uint16_t>(found - begin);
  }

  void FindFormat() {
    std::vector<std::string> names;
    for (const Field& field : scanned_.fields) names.push_back(NameOfField(field));
    const std::vector<std::string_view> views(names.begin(), names.end());
    format_ = FindNamedFormat(views);
    if (format_ != nullptr) names_ = std::move(names);
  }

  // "[1,  2000] loss: 1.8": an epoch and its batch.
  bool IsEpochAndBatch(size_t index) const {
    if (index > 1 || scanned_.fields.size() < 3) return false;
    const Field& first = scanned_.fields[0];
    const Field& second = scanned_.fields[1];
    const auto whole = [this](const Field& field) {
      return field.key.empty() && field.form == FieldForm::kNumber &&
             text_.substr(field.begin, field.end - field.begin).find('.') == std::string_view::npos;
    };
    const std::string_view message = base::Trim(Message());
    return !message.empty() && message[0] == '[' && whole(first) && whole(second) &&
           second.end + 1 < text_.size() && text_[second.end] == ']' &&
           (text_[second.end + 1] == ' ' || text_[second.end + 1] == ':') &&
           base::Trim(text_.substr(first.end, second.begin - first.end)) == ",";
  }

  void AddField(const Field& field, size_t index) {
    const bool pair_of_counters = IsEpochAndBatch(index);
    const NamedFormat::ValueRole* named =
        format_ == nullptr ? nullptr : format_->Find(names_[index], index);
    if (named == nullptr && !pair_of_counters && field.listed && field.binding == Binding::kNone &&
        field.form != FieldForm::kDuration && field.unit.empty()) {
      return;
    }
    if (field.form == FieldForm::kStamp) return;
    // An option of a command line.
    if (field.key_begin >= 2 && text_.substr(field.key_begin - 2, 2) == "--") return;
    FieldPlan plan;
    plan.form = field.form;
    plan.average = field.average;
    plan.key = field.group.empty() ? field.key : field.group + "." + field.key;
    plan.unit = field.unit;
    if (!PlaceValue(field, &plan)) return;
    KeyMeaning meaning = MeaningOf(plan.key);
    // Without a name of its own: "in 0 epoch", "0.001 rate".
    const bool of_unit = MeaningOf(field.unit).role == Role::kEpoch;
    // "1epoch:train:1-50batch"
    if (of_unit && meaning.role == Role::kOther) {
      meaning.role = Role::kEpoch;
      plan.key = field.unit;
    }
    const std::string_view after = of_unit ? field.unit : field.after;
    if (meaning.role == Role::kOther && field.binding != Binding::kSeparator && !after.empty()) {
      const KeyMeaning behind = MeaningOf(after);
      const bool usable =
          behind.role != Role::kOther && (field.key.empty() || field.key.size() <= 2 ||
                                          behind.role == Role::kEpoch || field.key == "第");
      if (usable) {
        meaning = behind;
        plan.key = after;
      }
    }
    if (!field.group.empty()) {
      const bool eval = meaning.eval;
      const KeyMeaning own = MeaningOf(field.key);
      if (own.role != Role::kOther) meaning = own;
      meaning.eval |= eval;
      if (meaning.eval && meaning.role == Role::kLoss) meaning.role = Role::kEvalMetric;
    }
    if (field.form == FieldForm::kPair && NormalKey(plan.key) == "epochs")
      meaning.role = Role::kEpoch;
    if (pair_of_counters) {
      meaning = {.role = index == 0 ? Role::kEpoch : Role::kStepInEpoch};
      plan.key = index == 0 ? "epoch" : "batch";
    }
    if (named != nullptr) meaning.role = named->role;
    plan.role = meaning.role;
    plan.eval = meaning.eval;
    plan.average |= meaning.average;
    train_key_ |= meaning.train;
    if (plan.key.empty() && named == nullptr && !pair_of_counters) plan.role = RoleOfUnit(field);
    train_names_ += base::StartsWith(NormalKey(plan.key), "train_") ? 1 : 0;
    run_total_ |= IsRunTotal(NormalKey(plan.key));
    if (NormalKey(plan.key) == "score") {
      const bool boosted =
          base::ToLowerAscii(text_).find("score at iteration") != std::string::npos;
      plan.role = boosted ? Role::kLoss : Role::kMetric;
    }
    const bool counts =
        IsCounter(plan.role) || (field.form == FieldForm::kPair && !plan.key.empty());
    if (counts && meaning.eval) eval_counter_ = true;
    if (plan.role == Role::kTotalSteps && UnitOf(field.unit).dimension == Dimension::kSeconds) {
      plan.role = Role::kElapsed;
    }
    FitUnit(&plan);
    // A counter is a whole number, and no part of a sentence's list of figures.
    if (IsCounter(plan.role) &&
        (field.form == FieldForm::kDuration || field.form == FieldForm::kWord)) {
      plan.role = Role::kOther;
    }
    if (IsCounter(plan.role) && field.unit == "%") plan.role = Role::kPercent;
    // BasicSR: "time (data): 0.771 (0.020)".
    if (plan.average && field.average && NormalKey(plan.key) == "time_data")
      plan.role = Role::kDataTime;
    key_at_.push_back(field.key_begin);
    bindings_.push_back(field.binding);
    plan_.fields.push_back(std::move(plan));
  }

  // What trainers print of a whole epoch or run.
  static bool IsRunTotal(std::string_view name) {
    return name == "train_runtime" || name == "train_wall" || name == "train_wps" ||
           name == "train_samples_per_second" || name == "train_steps_per_second";
  }

  bool PlaceValue(const Field& field, FieldPlan* plan) const {
    if (field.form == FieldForm::kWord) {
      const std::string word =
          base::ToLowerAscii(text_.substr(field.begin, field.end - field.begin));
      const bool minus = field.begin > 0 && text_[field.begin - 1] == '-';
      plan->constant = word == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                     : (minus ? -1 : 1) * std::numeric_limits<double>::infinity();
      return true;
    }
    const auto number = NumberAt(field.begin);
    if (!number) return false;
    plan->number = plan->last_number = *number;
    while (plan->last_number + 1U < skeleton_.numbers &&
           skeleton_.begin[plan->last_number + 1U] < field.end) {
      ++plan->last_number;
    }
    if (field.form != FieldForm::kPair) return true;
    const auto total = NumberAt(field.total_begin);
    if (!total) return false;
    plan->total_number = *total;
    return true;
  }

  static Role RoleOfUnit(const Field& field) {
    if (field.form == FieldForm::kDuration) return Role::kOther;
    const UnitMeaning unit = UnitOf(field.unit);
    if (unit.dimension == Dimension::kSecondsPer && unit.counted == Counted::kSteps)
      return Role::kStepTime;
    if (unit.dimension == Dimension::kPerSecond && field.form == FieldForm::kNumber) {
      return Role::kThroughput;
    }
    return Role::kOther;
  }

  static void FitUnit(FieldPlan* plan) {
    const bool memory = plan->role == Role::kMemory;
    // "elapsed time per iteration (ms)", "updt_s", "data_ms": the unit is in the name.
    std::string unit = plan->unit;
    if (unit.empty()) {
      const std::string name = NormalKey(plan->key);
      if (base::EndsWith(name, "_ms")) unit = "ms";
      if (memory && base::EndsWith(name, "_gb")) unit = "GB";
      if (memory && base::EndsWith(name, "_mb")) unit = "MB";
    }
    const UnitMeaning meaning = UnitOf(unit, memory ? UnitContext::kMemory : UnitContext::kAny);
    switch (plan->role) {
      case Role::kStepTime:
      case Role::kDataTime:
      case Role::kIntervalTime:
      case Role::kElapsed:
      case Role::kEpochTime:
      case Role::kEta:
        if (meaning.dimension == Dimension::kSeconds ||
            meaning.dimension == Dimension::kSecondsPer) {
          plan->factor = meaning.factor;
        }
        // "Speed: 3 s/it" and "time: 4 it/s" say by their unit what they are.
        if (meaning.dimension == Dimension::kPerSecond && plan->role == Role::kStepTime) {
          plan->role = Role::kThroughput;
          plan->factor = meaning.factor;
        }
        break;
      case Role::kThroughput:
        if (meaning.dimension == Dimension::kPerSecond) plan->factor = meaning.factor;
        if (meaning.dimension == Dimension::kSecondsPer) {
          plan->role = meaning.counted == Counted::kSteps ? Role::kStepTime : Role::kOther;
          plan->factor = meaning.factor;
        }
        if (meaning.dimension == Dimension::kSeconds) plan->role = Role::kStepTime;
        break;
      case Role::kMemory:
        // Frameworks that print no unit print MiB.
        plan->factor = meaning.dimension == Dimension::kBytes ? meaning.factor : 1024.0 * 1024.0;
        break;
      case Role::kPercent:
        break;
      default: {
        const double human = HumanFactor(unit);
        if (human > 0) plan->factor = human;
      }
    }
  }

  // "|####| 3/10 [00:01<00:02": the glyphs of a bar, next to a pair.
  void FindBar() {
    const std::string_view message = Message();
    const bool glyphs = message.find("%|") != std::string_view::npos ||
                        message.find("\xE2\x96\x88") != std::string_view::npos ||  // full block
                        message.find("\xE2\x94\x81") != std::string_view::npos ||  // heavy line
                        message.find("[==") != std::string_view::npos ||
                        message.find("[=>") != std::string_view::npos ||
                        message.find("[>.") != std::string_view::npos ||
                        message.find("....]") != std::string_view::npos ||
                        message.find("##]") != std::string_view::npos ||
                        message.find("\xE2\x94\x80\xE2\x94\x80") != std::string_view::npos;
    plan_.bar = glyphs;
  }

  // "base_lr: 1e-3 lr: 9e-4": the one that is used.
  void PreferLearningRate() {
    const auto exact =
        std::find_if(plan_.fields.begin(), plan_.fields.end(), [](const FieldPlan& field) {
          return field.role == Role::kLearningRate && NormalKey(field.key) == "lr";
        });
    if (exact == plan_.fields.end()) return;
    for (auto field = plan_.fields.begin(); field != exact; ++field) {
      if (field->role == Role::kLearningRate) field->role = Role::kOther;
    }
  }

  // A bar counts by its own pair; other counters are figures beside it.
  void PlaceBarPair() {
    if (!plan_.bar) return;
    const auto pair =
        std::find_if(plan_.fields.begin(), plan_.fields.end(), [](const FieldPlan& field) {
          return field.form == FieldForm::kPair && field.role != Role::kEpoch;
        });
    if (pair == plan_.fields.end()) return;
    for (FieldPlan& field : plan_.fields) {
      const bool steps = field.role == Role::kStep || field.role == Role::kStepInEpoch;
      if (&field != &*pair && steps) field.role = Role::kOther;
    }
    if (pair->role != Role::kStep) pair->role = Role::kStepInEpoch;
  }

  void PlaceCounters() {
    PlaceBarPair();
    for (size_t i = 0; i < plan_.fields.size(); ++i) {
      FieldPlan& field = plan_.fields[i];
      if (!IsCounter(field.role)) continue;
      int* place = field.role == Role::kEpoch  ? &plan_.epoch
                   : field.role == Role::kStep ? &plan_.step
                                               : &plan_.step_in_epoch;
      const bool first = *place < 0;
      if (!first &&
          CounterRank(field.key) >= CounterRank(plan_.fields[static_cast<size_t>(*place)].key)) {
        field.role = Role::kOther;
        continue;
      }
      if (!first) plan_.fields[static_cast<size_t>(*place)].role = Role::kOther;
      *place = static_cast<int>(i);
    }
    PlaceBareNumbers();
    PlacePairs();
  }

  // Numbers without a name, of which their place says what they count.
  void PlaceBareNumbers() {
    for (size_t i = 0; i < plan_.fields.size(); ++i) {
      FieldPlan& field = plan_.fields[i];
      const bool pair = field.form == FieldForm::kPair;
      const bool whole = field.form == FieldForm::kNumber && field.unit.empty() && !field.average;
      // "Train: 0 [  0/312]", "Train: 1/3 ( 33%) [  0/101]"
      if ((whole || pair) && NormalKey(field.key) == "train" && plan_.epoch < 0 && PairFollows(i)) {
        SetCounter(i, Role::kEpoch);
        continue;
      }
      if (!field.key.empty()) continue;
      // "(0/2)" in front: the rank, of how many.
      const bool in_parentheses = pair && i == 0 && InParentheses();
      if (in_parentheses) continue;
      if (pair && plan_.step < 0 && plan_.step_in_epoch < 0) {
        SetCounter(i, Role::kStepInEpoch);
      } else if (whole && i == 0 && BracketFirst() && plan_.step < 0 && plan_.epoch < 0) {
        // "[12]\ttrain-rmse:0.5"
        SetCounter(i, Role::kStep);
        plan_.bare_step = true;
      } else if (whole && i == 0 && plan_.epoch < 0 && plan_.step >= 0 && BracketedFirst()) {
        SetCounter(i, Role::kEpoch);  // "[train][1] ... step: 100"
      } else if (whole && i == 0 && plan_.step < 0 && plan_.epoch < 0 && ColonFirst()) {
        SetCounter(i, Role::kStep);  // "100: 3.2, 3.4 avg loss, 0.001 rate"
      }
    }
  }

  bool PairFollows(size_t index) const {
    const size_t end = std::min(plan_.fields.size(), index + 4);
    for (size_t i = index + 1; i < end; ++i) {
      if (plan_.fields[i].form == FieldForm::kPair && plan_.fields[i].key.empty()) return true;
    }
    return false;
  }

  void SetCounter(size_t index, Role role) {
    plan_.fields[index].role = role;
    int& place = role == Role::kEpoch  ? plan_.epoch
                 : role == Role::kStep ? plan_.step
                                       : plan_.step_in_epoch;
    if (place < 0) place = static_cast<int>(index);
  }

  // "[12]" alone, not "[12, 3]".
  bool BracketFirst() const {
    const size_t end = scanned_.fields[0].end;
    return base::StartsWith(base::Trim(Message()), "[") && end < text_.size() && text_[end] == ']';
  }
  bool InParentheses() const {
    const Field& first = scanned_.fields[0];
    return first.begin > 0 && text_[first.begin - 1] == '(' && first.total_end < text_.size() &&
           text_[first.total_end] == ')';
  }
  bool BracketedFirst() const {
    return !scanned_.fields.empty() && scanned_.fields[0].begin > 0 &&
           text_[scanned_.fields[0].begin - 1] == '[';
  }
  bool ColonFirst() const {
    const std::string_view message = base::Trim(Message());
    const size_t digits = message.find_first_not_of("0123456789");
    return digits != 0 && digits != std::string_view::npos &&
           (message[digits] == ':' || message.substr(digits, 2) == " |") &&
           digits + 1 < message.size() &&
           (message[digits + 1] == ' ' || message[digits + 1] == '\t' ||
            message[digits + 1] == '|');
  }

  // What the second number of a pair is, and whether a step of a pair counts within the epoch.
  void PlacePairs() {
    for (size_t i = 0; i < plan_.fields.size(); ++i) {
      FieldPlan& field = plan_.fields[i];
      if (field.form != FieldForm::kPair) continue;
      if (field.role == Role::kEpoch) field.total_role = Role::kEpochs;
      // Next to an epoch, steps of a pair mostly begin again with each epoch; not where they are
      // named first.
      if (field.role == Role::kStep && plan_.epoch >= 0 && plan_.epoch < static_cast<int>(i)) {
        field.role = Role::kStepInEpoch;
        plan_.step = -1;
        if (plan_.step_in_epoch < 0) plan_.step_in_epoch = static_cast<int>(i);
      }
      if (field.role == Role::kStep) field.total_role = Role::kTotalSteps;
      if (field.role == Role::kStepInEpoch) field.total_role = Role::kStepsPerEpoch;
    }
  }

  // One part alone is the loss; a name that is an average only where there is no other.
  void PromoteLoss() {
    std::vector<size_t> losses, parts;
    for (size_t i = 0; i < plan_.fields.size(); ++i) {
      if (!IsLoss(plan_.fields[i]) || (plan_.fields[i].average && Repeats(i))) continue;
      (plan_.fields[i].role == Role::kLoss ? losses : parts).push_back(i);
    }
    if (losses.empty() && parts.size() == 1) plan_.fields[parts[0]].role = Role::kLoss;
    if (losses.size() < 2) return;
    const auto plain = std::find_if(losses.begin(), losses.end(),
                                    [this](size_t i) { return !plan_.fields[i].average; });
    const size_t chosen = plain == losses.end() ? losses[0] : *plain;
    for (const size_t i : losses) {
      if (i != chosen) plan_.fields[i].role = Role::kLossPart;
    }
  }

  // "(1.2)" behind a value of the same name.
  bool Repeats(size_t i) const { return i > 0 && plan_.fields[i - 1].key == plan_.fields[i].key; }

  // Words in front of the first figure say what kind of line it is.
  void ReadWords() {
    size_t first_figure = text_.size();
    for (size_t i = 0; i < plan_.fields.size(); ++i) {
      if (!IsFigure(plan_.fields[i].role) && plan_.fields[i].role != Role::kEvalMetric) continue;
      first_figure = std::min(first_figure, std::max(key_at_[i], prefix_.message));
    }
    for (const auto& word : scanned_.words) {
      if (word.at <= first_figure) See(LineWordOf(word.text), word);
    }
    // The loggers' own names: fairseq's "valid", "train".
    const std::string logger = base::ToLowerAscii(prefix_.logger);
    if (LineWordOf(logger) == LineWord::kEval) eval_ = true;
    if (logger == "train" && plan_.fields.size() > 3) run_summary_ = true;
  }

  void See(LineWord meaning, const ScannedLine::Word& word) {
    const bool leads = &word == &scanned_.words.front() || IsTag(word);
    switch (meaning) {
      case LineWord::kTrain:
        plan_.told_train |= leads;
        break;
      case LineWord::kEval:
        eval_ = true;
        break;
      case LineWord::kInference:
        inference_ = true;
        break;
      case LineWord::kSummary:
        summary_ = true;
        break;
      default:
        break;
    }
  }

  // "[Eval]", "Epoch(val)", "mode: val"
  bool IsTag(const ScannedLine::Word& word) const {
    const char before = word.at > 0 ? text_[word.at - 1] : '\0';
    return before == '[' || before == '(' || before == '"' || before == ' ';
  }

  void Judge() {
    bool figure = false, own_figure = false, loss = false, eval_figure = false;
    for (const FieldPlan& field : plan_.fields) {
      eval_figure |= field.eval || field.role == Role::kEvalMetric;
      figure |= IsFigure(field.role);
      own_figure |= IsFigure(field.role) && !field.eval;
      loss |= IsLoss(field);
    }
    plan_.told_train |= train_key_;
    plan_.has_eval_values = eval_figure;
    plan_.has_epoch = plan_.epoch >= 0;
    plan_.has_step = plan_.step >= 0 || plan_.step_in_epoch >= 0;
    plan_.names_loss = loss;
    for (const FieldPlan& field : plan_.fields) {
      plan_.elapsed |= field.role == Role::kElapsed;
      plan_.pair |= field.form == FieldForm::kPair && IsCounter(field.role);
    }
    if (plan_.bare_step && eval_figure && !own_figure) own_figure = loss = true;
    if (plan_.bare_step && own_figure) loss = true;
    const bool counter = plan_.has_epoch || plan_.has_step;
    if (counter && loss) {
      plan_.tier = Tier::kLoss;
    } else if (counter && own_figure) {
      plan_.tier = Tier::kFigures;
    } else if (counter && !figure && !eval_figure) {
      plan_.tier = plan_.has_step ? Tier::kCounter : Tier::kHeader;
    } else if (own_figure || loss) {
      plan_.tier = Tier::kExtra;
    } else if (eval_figure) {
      plan_.tier = Tier::kExtra;
      eval_ = true;
    }
    if (counter && eval_figure && !own_figure) eval_ = true;
    if (!text_.empty() && IsConfiguration()) plan_.tier = Tier::kNone;
    run_summary_ |= run_total_ && (train_names_ >= 3 || !plan_.has_step);
    if (base::StartsWith(Message(), "Saving dict for global step")) eval_ = eval_counter_ = true;
    const bool latency =
        std::any_of(plan_.fields.begin(), plan_.fields.end(), [](const FieldPlan& field) {
          return NormalKey(field.key).find("latency") != std::string::npos;
        });
    if (latency && !loss) inference_ = true;
    if (run_summary_) summary_ = plan_.sure_summary = true;
    if (inference_) plan_.kind = RecordKind::kInference;
    if (summary_) plan_.kind = RecordKind::kSummary;
    if ((eval_ && !(plan_.told_train && own_figure && !eval_counter_)) || eval_counter_) {
      plan_.kind = RecordKind::kEval;
    }
    JudgeContext();
    Identify();
    const std::string_view line = base::Trim(text_);
    plan_.box = line.size() > 4 && line.front() == '|' && line.back() == '|' &&
                plan_.fields.size() == 1 && !plan_.fields[0].key.empty();
    if (plan_.box && plan_.tier == Tier::kNone) plan_.tier = Tier::kExtra;
    plan_.events = EventReader::MayMatter(text_);
  }

  // Code, settings, command lines: many names with words for values.
  bool IsConfiguration() const {
    const std::string_view message = Message();
    if (IsCode()) return true;
    if (message.find("Namespace(") != std::string_view::npos) return true;
    const std::string_view trimmed = base::Trim(text_);
    if (trimmed.empty()) return true;
    // A diff, a comment, a shell's trace.
    if ((trimmed[0] == '+' || trimmed[0] == '-') && trimmed.size() > 1 && trimmed[1] == ' ' &&
        text_[0] == trimmed[0] && plan_.tier != Tier::kLoss) {
      return true;
    }
    size_t settings = 0;
    for (const auto& word : scanned_.words) {
      settings += word.text == "none" || word.text == "false" || word.text == "true";
    }
    return settings >= 2 && !plan_.names_loss;
  }

  // Source code, a diff, a shell's trace, a request to a web server.
  bool IsCode() const {
    const std::string_view text = text_;
    const auto has = [text](std::string_view what) {
      return text.find(what) != std::string_view::npos;
    };
    if (base::StartsWith(text, "+ ") || base::StartsWith(text, "# ") ||
        base::StartsWith(text, "// ")) {
      return true;
    }
    const bool diff = (text[0] == '+' || text[0] == '-') && text.substr(1, 4) == "    ";
    if (diff || has("print(") || has("logger.") || has("logging.info(") || has(" HTTP/1.") ||
        has(".....")) {
      return !plan_.bar;
    }
    const size_t comment = text.find(" # ");
    if (comment != std::string_view::npos &&
        text.substr(0, comment).find('=') != std::string_view::npos) {
      return true;
    }
    return std::any_of(plan_.fields.begin(), plan_.fields.end(), [](const FieldPlan& field) {
      for (const std::string_view owner : {"args.", "cfg.", "config.", "opt.", "self.", "FLAGS."}) {
        if (base::StartsWith(field.key, owner)) return true;
      }
      return field.key.find('(') != std::string::npos && field.key.find(')') == std::string::npos;
    });
  }

  // Lines that say what the next ones are.
  void JudgeContext() {
    if (plan_.tier == Tier::kLoss || plan_.tier == Tier::kFigures) return;
    const std::string lower = base::ToLowerAscii(Message().substr(0, 200));
    const auto has = [&lower](std::string_view text) {
      return lower.find(text) != std::string::npos;
    };
    plan_.repeats_best = has("best iteration is") && base::EndsWith(base::Trim(lower), ":");
    if (!prefix_.logger.empty() && lower.size() > 120) return;
    // "Evaluation:" alone.
    const bool short_line = scanned_.words.size() <= 3 && plan_.fields.empty() && lower.size() < 40;
    const bool names_eval =
        short_line &&
        std::any_of(scanned_.words.begin(), scanned_.words.end(),
                    [](const auto& word) { return LineWordOf(word.text) == LineWord::kEval; });
    plan_.begins_eval = names_eval || has("eval begin") || has("running evaluation") ||
                        has("begin validation") || has("start evaluat") || has("start validat") ||
                        has("begin evaluat") || has("evaluating...") || has("validating...") ||
                        has("running validation") || has("running prediction") ||
                        has("begin test") || has("start testing") || has("predict begin") ||
                        has("***** eval");
    plan_.begins_train = has("eval samples") || has("running training") || has("start train") ||
                         has("begin training") || has("end of validation") || has("***** train");
  }

  void Identify() {
    std::string keys;
    size_t lead_end = text_.size();
    for (size_t i = 0; i < plan_.fields.size(); ++i) {
      keys += plan_.fields[i].key;
      keys += '\x1f';
      if (IsFigure(plan_.fields[i].role) || plan_.fields[i].role == Role::kEvalMetric) {
        lead_end = std::min(lead_end, key_at_[i]);
      }
    }
    plan_.shape = Fold(HashText(keys));
    std::string lead;
    const size_t from = std::min(prefix_.message, lead_end);
    for (const char c : text_.substr(from, lead_end - from)) {
      if ((c >= '0' && c <= '9') || c == ' ') continue;
      lead += c;
    }
    plan_.family = Fold(HashText(lead));
  }

  // "Epoch  gpu_mem  box  obj": names without numbers, of which one is a counter.
  void FindColumns() {
    const std::string_view message = Message();
    if (!plan_.fields.empty()) {
      const auto named = std::count_if(plan_.fields.begin(), plan_.fields.end(),
                                       [](const FieldPlan& field) { return !field.key.empty(); });
      plan_.rows = named == 0 && plan_.fields.size() >= 2;
      return;
    }
    if (message.size() > 400 || message.find_first_of(".!?=") != std::string_view::npos) {
      if (message.find(',') == std::string_view::npos) return;
    }
    bool counter = false;
    size_t names = 0;
    for (const auto& word : scanned_.words) {
      const KeyMeaning meaning = MeaningOf(word.text);
      const bool spacy = word.text == "e" && message.find('#') != std::string_view::npos;
      counter |= IsCounter(meaning.role) || spacy;
      ++names;
    }
    plan_.columns = counter && names >= 2;
  }

  std::string_view text_;
  const LinePrefix& prefix_;
  const Skeleton& skeleton_;
  ScannedLine scanned_;
  LinePlan plan_;
  std::vector<size_t> key_at_;
  std::vector<Binding> bindings_;
  const NamedFormat* format_ = nullptr;
  std::vector<std::string> names_;
  bool train_key_ = false, eval_counter_ = false, run_summary_ = false, run_total_ = false;
  int train_names_ = 0;
  bool eval_ = false, inference_ = false, summary_ = false;
};

}  // namespace

LinePlan MakePlan(std::string_view text, const LinePrefix& prefix, const Skeleton& skeleton) {
  return Planner(text, prefix, skeleton).Make();
}

}  // namespace epochmeter::ingest::log
