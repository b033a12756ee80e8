// SPDX-License-Identifier: Apache-2.0
// What kind of line it is: of training, an evaluation, a summary, code.
#include <algorithm>

#include "base/strings.h"
#include "ingest/log/events.h"
#include "ingest/log/line_draft.h"
#include "ingest/log/vocabulary.h"

namespace epochmeter::ingest::log {
namespace {

class LineJudge {
 public:
  explicit LineJudge(LineDraft& draft) : draft_(draft) {}

  void Run() {
    ReadWords();
    JudgeTier();
    JudgeContext();
    JudgeBox();
    draft_.plan.events = EventReader::MayMatter(draft_.text);
  }

 private:
  // Words in front of the first figure say what kind of line it is.
  void ReadWords() {
    size_t first_figure = draft_.text.size();
    for (size_t i = 0; i < draft_.plan.fields.size(); ++i) {
      if (!IsFigure(draft_.plan.fields[i].role) && draft_.plan.fields[i].role != Role::kEvalMetric)
        continue;
      first_figure = std::min(first_figure, std::max(draft_.key_at[i], draft_.prefix.message));
    }
    for (const auto& word : draft_.scanned.words) {
      if (word.at <= first_figure) See(LineWordOf(word.text), word);
    }
    // "Validation: 100%|###| 8/8": what a bar is called.
    for (const Field& field : draft_.scanned.fields) {
      const bool bar = field.unit == "%" && draft_.text.substr(field.end, 2) == "%|";
      if (bar && MeaningOf(field.key).eval) eval_ = true;
    }
    // YOLO's validation: "Class Images Targets P R mAP@.5: 100% 350/350".
    const std::string_view message = draft_.Message();
    if (message.find("Class") != std::string_view::npos &&
        message.find("Images") != std::string_view::npos &&
        message.find("mAP") != std::string_view::npos) {
      eval_ = true;
    }
    // PaddleOCR, PaddleDetection; PyTorch's ImageNet example prints a star.
    const bool star =
        base::StartsWith(base::Trim(message), "* ") && message.find('@') != std::string_view::npos;
    if (star || message.find("cur metric, ") != std::string_view::npos ||
        message.find("Total sample number: ") != std::string_view::npos) {
      eval_ = true;
    }
    // The loggers' own names: fairseq's "valid", "train".
    const std::string logger = base::ToLowerAscii(draft_.prefix.logger);
    if (LineWordOf(logger) == LineWord::kEval) eval_ = true;
    if (logger == "train" && draft_.plan.fields.size() > 3) run_summary_ = true;
  }

  void See(LineWord meaning, const ScannedLine::Word& word) {
    const bool leads = &word == &draft_.scanned.words.front() || IsTag(word);
    switch (meaning) {
      case LineWord::kTrain:
        draft_.plan.told_train |= leads && !eval_;  // "Evaluating train: ..."
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
    const char before = word.at > 0 ? draft_.text[word.at - 1] : '\0';
    return before == '[' || before == '(' || before == '"' || before == ' ';
  }

  void JudgeTier() {
    bool figure = false, own_figure = false, loss = false, eval_figure = false;
    for (const FieldPlan& field : draft_.plan.fields) {
      eval_figure |= field.eval || field.role == Role::kEvalMetric;
      figure |= IsFigure(field.role);
      own_figure |= IsFigure(field.role) && !field.eval;
      loss |= IsLoss(field);
    }
    draft_.plan.names_eval_figure = NamesEvalFigure();
    draft_.plan.told_train |= draft_.train_key;
    draft_.plan.has_eval_values = eval_figure;
    draft_.plan.has_epoch = draft_.plan.epoch >= 0;
    draft_.plan.has_step = draft_.plan.step >= 0 || draft_.plan.step_in_epoch >= 0;
    draft_.plan.names_loss = loss;
    for (const FieldPlan& field : draft_.plan.fields) {
      draft_.plan.has_step |=
          field.total_role == Role::kStep || field.total_role == Role::kStepInEpoch;
      draft_.plan.elapsed |= field.role == Role::kElapsed;
      draft_.plan.pair |= field.form == FieldForm::kPair && IsCounter(field.role);
    }
    if (draft_.plan.bare_step && eval_figure && !own_figure) own_figure = loss = true;
    if (draft_.plan.bare_step && own_figure) loss = true;
    const bool counter = draft_.plan.has_epoch || draft_.plan.has_step;
    if (counter && loss) {
      draft_.plan.tier = Tier::kLoss;
    } else if (counter && own_figure) {
      draft_.plan.tier = Tier::kFigures;
    } else if (counter && !figure && !eval_figure) {
      draft_.plan.tier = draft_.plan.has_step ? Tier::kCounter : Tier::kHeader;
    } else if (own_figure || loss) {
      draft_.plan.tier = Tier::kExtra;
    } else if (eval_figure) {
      draft_.plan.tier = Tier::kExtra;
      eval_ = true;
    }
    if (counter && eval_figure && !own_figure) eval_ = true;
    if (!loss && eval_figure && EvalComesFirst()) eval_ = true;
    // "[1/200] Building CXX object": a number of how many is not yet a training's.
    if (draft_.plan.tier == Tier::kCounter && !draft_.plan.bar && !draft_.plan.has_epoch &&
        std::all_of(
            draft_.plan.fields.begin(), draft_.plan.fields.end(),
            [](const FieldPlan& field) { return !IsCounter(field.role) || field.key.empty(); })) {
      draft_.plan.tier = Tier::kNone;
    }
    // "Epoch 4, global step 31: 'val_auc' reached 0.95, saving model to ..."
    if (draft_.plan.tier == Tier::kCounter && TellsOfSaving()) draft_.plan.tier = Tier::kNone;
    if (!draft_.text.empty() && IsConfiguration()) draft_.plan.tier = Tier::kNone;
    JudgeKind(loss, own_figure);
  }

  // "eval_loss_weight", "target_val_acc"
  static bool IsSetting(std::string_view key) {
    static constexpr std::string_view kWords[] = {
        "weight", "weights",   "coef",     "coeff", "threshold", "target", "fn",       "func",
        "steps",  "every",     "interval", "freq",  "patience",  "delta",  "min",      "scale",
        "factor", "tolerance", "metric",   "name",  "type",      "limit",  "frequency"};
    const std::string name = NormalKey(key);
    const std::vector<std::string_view> words = base::Split(name, '_');
    return std::any_of(words.begin(), words.end(), [](std::string_view word) {
      return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
    });
  }

  // Not "test: 0.9" without a counter, which settings have, too.
  bool NamesEvalFigure() const {
    if (TellsOfSaving() || draft_.Message().find(".ckpt") != std::string_view::npos) return false;
    const bool counts = draft_.plan.epoch >= 0 || draft_.plan.step >= 0;
    return std::any_of(
        draft_.plan.fields.begin(), draft_.plan.fields.end(), [counts](const FieldPlan& field) {
          const bool figure = field.role == Role::kEvalMetric || field.role == Role::kMetric ||
                              field.role == Role::kLoss || field.role == Role::kLossPart;
          return figure && !IsSetting(field.key) &&
                 (counts || LineWordOf(NormalKey(field.key)) != LineWord::kEval);
        });
  }

  // "Validation loss: 1.9 accuracy: 0.5": what follows is of the validation, too.
  bool EvalComesFirst() const {
    for (const FieldPlan& field : draft_.plan.fields) {
      if (field.eval || field.role == Role::kEvalMetric) return true;
      if (IsFigure(field.role)) return false;
    }
    return false;
  }

  void JudgeKind(bool loss, bool own_figure) {
    run_summary_ |= draft_.run_total && (draft_.train_names >= 3 || !draft_.plan.has_step);
    if (draft_.Message().find("Saving dict for global step") != std::string_view::npos)
      eval_ = draft_.eval_counter = true;
    const bool latency = std::any_of(
        draft_.plan.fields.begin(), draft_.plan.fields.end(), [](const FieldPlan& field) {
          return NormalKey(field.key).find("latency") != std::string::npos;
        });
    if (latency && !loss) inference_ = true;
    eval_ |= draft_.named_eval;
    if (run_summary_) summary_ = draft_.plan.sure_summary = true;
    if (inference_) draft_.plan.kind = RecordKind::kInference;
    if (summary_) draft_.plan.kind = RecordKind::kSummary;
    if ((eval_ && !(draft_.plan.told_train && own_figure && !draft_.eval_counter)) ||
        draft_.eval_counter) {
      draft_.plan.kind = RecordKind::kEval;
    }
  }

  // Code, settings, command lines: many names with words for values.
  bool IsConfiguration() const {
    const std::string_view message = draft_.Message();
    if (IsCode()) return true;
    if (message.find("Namespace(") != std::string_view::npos) return true;
    const std::string_view trimmed = base::Trim(draft_.text);
    if (trimmed.empty()) return true;
    // A diff, a comment, a shell's trace.
    if ((trimmed[0] == '+' || trimmed[0] == '-') && trimmed.size() > 1 && trimmed[1] == ' ' &&
        draft_.text[0] == trimmed[0] && draft_.plan.tier != Tier::kLoss) {
      return true;
    }
    size_t settings = 0;
    for (const auto& word : draft_.scanned.words) {
      settings += word.text == "none" || word.text == "false" || word.text == "true";
    }
    return settings >= 2 && !draft_.plan.names_loss;
  }

  bool TellsOfSaving() const {
    return std::any_of(draft_.scanned.words.begin(), draft_.scanned.words.end(),
                       [](const auto& word) {
                         return word.text == "saving" || word.text == "saved" ||
                                word.text == "checkpoint" || word.text == "loading";
                       });
  }

  // "logger.info(", not the file "logger.py".
  static bool Calls(std::string_view text, std::string_view object) {
    const size_t at = text.find(object);
    if (at == std::string_view::npos) return false;
    const size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + object.size());
    return end != std::string_view::npos && text[end] == '(';
  }

  // Source code, a diff, a shell's trace, a request to a web server.
  bool IsCode() const {
    const std::string_view text = draft_.text;
    const auto has = [text](std::string_view what) {
      return text.find(what) != std::string_view::npos;
    };
    if (base::StartsWith(text, "+ ") || base::StartsWith(text, "# ") ||
        base::StartsWith(text, "// ")) {
      return true;
    }
    const bool diff = (text[0] == '+' || text[0] == '-') && text.substr(1, 4) == "    ";
    const bool logs = Calls(text, "logger.");
    if (has("Assertion `")) return true;  // a storm of them on a GPU
    if (diff || has("print(") || logs || has("logging.info(") || has(" HTTP/1.") || has(".....")) {
      return !draft_.plan.bar;
    }
    const size_t comment = text.find(" # ");
    if (comment != std::string_view::npos &&
        text.substr(0, comment).find('=') != std::string_view::npos) {
      return true;
    }
    return std::any_of(draft_.plan.fields.begin(), draft_.plan.fields.end(),
                       [](const FieldPlan& field) {
                         for (const std::string_view owner :
                              {"args.", "cfg.", "config.", "opt.", "self.", "FLAGS."}) {
                           if (base::StartsWith(field.key, owner)) return true;
                         }
                         return field.key.find('(') != std::string::npos &&
                                field.key.find(')') == std::string::npos;
                       });
  }

  // Lines that say what the next ones are.
  void JudgeContext() {
    if (draft_.plan.tier == Tier::kLoss || draft_.plan.tier == Tier::kFigures) return;
    const std::string lower = base::ToLowerAscii(draft_.Message().substr(0, 200));
    const auto has = [&lower](std::string_view text) {
      return lower.find(text) != std::string::npos;
    };
    draft_.plan.repeats_best = has("best iteration is") && base::EndsWith(base::Trim(lower), ":");
    if (!draft_.prefix.logger.empty() && lower.size() > 120) return;
    // "Evaluation:" alone.
    const bool short_line =
        draft_.scanned.words.size() <= 3 && draft_.plan.fields.empty() && lower.size() < 40;
    const auto titles = [this, short_line](LineWord meaning) {
      const auto& words = draft_.scanned.words;
      return short_line && std::any_of(words.begin(), words.end(), [meaning](const auto& word) {
               return LineWordOf(word.text) == meaning;
             });
    };
    draft_.plan.begins_eval =
        titles(LineWord::kEval) || has("eval begin") || has("running evaluation") ||
        has("begin validation") || has("start evaluat") || has("start validat") ||
        has("begin evaluat") || has("evaluating...") || has("validating...") ||
        has("running validation") || has("running prediction") || has("begin test") ||
        has("start testing") || has("predict begin") || has("***** eval");
    draft_.plan.titles_train = titles(LineWord::kTrain);
    draft_.plan.begins_train = draft_.plan.titles_train || has("eval samples") ||
                               has("running training") || has("start train") ||
                               has("begin training") || has("end of validation") ||
                               has("***** train");
  }

  void JudgeBox() {
    const std::string_view line = base::Trim(draft_.Message());
    draft_.plan.box = line.size() > 4 && line.front() == '|' && line.back() == '|' &&
                      draft_.plan.fields.size() == 1 && !draft_.plan.fields[0].key.empty();
    if (draft_.plan.box && draft_.plan.tier == Tier::kNone) draft_.plan.tier = Tier::kExtra;
  }

  LineDraft& draft_;
  bool eval_ = false, inference_ = false, summary_ = false, run_summary_ = false;
};

}  // namespace

void JudgeLine(LineDraft* draft) { LineJudge(*draft).Run(); }

}  // namespace epochmeter::ingest::log
