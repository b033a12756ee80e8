// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/vocabulary.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "ingest/log/units.h"

namespace epochmeter::ingest::log {
namespace {

using Entry = std::pair<std::string_view, Role>;

// Names as a whole, normalised. In the order of the alphabet within a role.
constexpr Entry kNames[] = {
    {"cur_epoch", Role::kEpoch},
    {"current_epoch", Role::kEpoch},
    {"ep", Role::kEpoch},
    {"epch", Role::kEpoch},
    {"epoch", Role::kEpoch},
    {"epoch_id", Role::kEpoch},
    {"epoch_idx", Role::kEpoch},
    {"epoch_num", Role::kEpoch},
    {"epoch_number", Role::kEpoch},
    {"pass", Role::kEpoch},
    {"train_epoch", Role::kEpoch},
    {"epoche", Role::kEpoch},
    {"epoca", Role::kEpoch},
    {"época", Role::kEpoch},
    {"époque", Role::kEpoch},
    {"эпоха", Role::kEpoch},
    {"エポック", Role::kEpoch},
    {"回合", Role::kEpoch},
    {"周期", Role::kEpoch},
    {"轮", Role::kEpoch},
    {"轮次", Role::kEpoch},
    {"epochs", Role::kEpochs},
    {"epochs_total", Role::kEpochs},
    {"轮数", Role::kEpoch},
    {"max_epoch", Role::kEpochs},
    {"max_epochs", Role::kEpochs},
    {"num_epochs", Role::kEpochs},
    {"total_epochs", Role::kEpochs},

    {"completed_step", Role::kStep},
    {"cur_iter", Role::kStep},
    {"cur_step", Role::kStep},
    {"current_iter", Role::kStep},
    {"current_step", Role::kStep},
    {"current_steps", Role::kStep},
    {"global_iter", Role::kStep},
    {"global_step", Role::kStep},
    {"global_steps", Role::kStep},
    {"it", Role::kStep},
    {"iter", Role::kStep},
    {"iter_num", Role::kStep},
    {"iteration", Role::kStep},
    {"iterations", Role::kStep},
    {"iters", Role::kStep},
    {"itr", Role::kStep},
    {"n_iter", Role::kStep},
    {"num_updates", Role::kStep},
    {"round", Role::kStep},
    {"step", Role::kStep},
    {"steps", Role::kStep},
    {"timestep", Role::kStep},
    {"timesteps", Role::kStep},
    {"timesteps_so_far", Role::kStep},
    {"total_timesteps", Role::kStep},
    {"train_iter", Role::kStep},
    {"train_step", Role::kStep},
    {"training_step", Role::kStep},
    {"训练次数", Role::kStep},
    {"步数", Role::kStep},
    {"迭代次数", Role::kStep},
    {"update", Role::kStep},
    {"updates", Role::kStep},
    {"episode", Role::kStep},
    {"イテレーション", Role::kStep},
    {"ステップ", Role::kStep},
    {"步", Role::kStep},
    {"迭代", Role::kStep},
    {"max_iter", Role::kTotalSteps},
    {"max_iters", Role::kTotalSteps},
    {"max_step", Role::kTotalSteps},
    {"max_steps", Role::kTotalSteps},
    {"total", Role::kTotalSteps},
    {"total_iters", Role::kTotalSteps},
    {"total_optimization_steps", Role::kTotalSteps},
    {"total_steps", Role::kTotalSteps},

    {"batch", Role::kStepInEpoch},
    {"batch_id", Role::kStepInEpoch},
    {"batch_idx", Role::kStepInEpoch},
    {"batch_index", Role::kStepInEpoch},
    {"batch_no", Role::kStepInEpoch},
    {"batch_num", Role::kStepInEpoch},
    {"batches", Role::kStepInEpoch},
    {"mini_batch", Role::kStepInEpoch},
    {"minibatch", Role::kStepInEpoch},
    {"批次", Role::kStepInEpoch},

    {"cost", Role::kLoss},
    {"cross_entropy", Role::kLoss},
    {"lm_loss", Role::kLoss},
    {"batch_loss", Role::kLoss},
    {"current_cost", Role::kLoss},
    {"loss", Role::kLoss},
    {"objective", Role::kLoss},
    {"objf", Role::kLoss},
    {"overall_loss", Role::kLoss},
    {"sum_loss", Role::kLoss},
    {"tot_loss", Role::kLoss},
    {"loss_all", Role::kLoss},
    {"loss_function", Role::kLoss},
    {"loss_sum", Role::kLoss},
    {"loss_total", Role::kLoss},
    {"nll", Role::kLoss},
    {"total_loss", Role::kLoss},
    {"train_loss", Role::kLoss},
    {"training_loss", Role::kLoss},
    {"xent", Role::kLoss},
    {"verlust", Role::kLoss},
    {"perte", Role::kLoss},
    {"pérdida", Role::kLoss},
    {"損失", Role::kLoss},
    {"损失", Role::kLoss},
    {"损失值", Role::kLoss},

    {"base_lr", Role::kLearningRate},
    {"current_lr", Role::kLearningRate},
    {"learn_rate", Role::kLearningRate},
    {"learning_rate", Role::kLearningRate},
    {"learningrate", Role::kLearningRate},
    {"lr", Role::kLearningRate},
    {"last_lr", Role::kLearningRate},
    {"rate", Role::kLearningRate},
    {"lernrate", Role::kLearningRate},
    {"学習率", Role::kLearningRate},
    {"学习率", Role::kLearningRate},

    {"clip_grad", Role::kGradNorm},
    {"gnorm", Role::kGradNorm},
    {"grad", Role::kGradNorm},
    {"grad_norm", Role::kGradNorm},
    {"gradient_norm", Role::kGradNorm},
    {"grdn", Role::kGradNorm},
    {"norm", Role::kGradNorm},
    {"loss_scale", Role::kLossScale},

    {"batch_cost", Role::kStepTime},
    {"batch_t", Role::kStepTime},
    {"batch_time", Role::kStepTime},
    {"dt", Role::kStepTime},
    {"elapsed_time_per_iteration", Role::kStepTime},
    {"elapsed_time_per_iteration_ms", Role::kStepTime},
    {"iter_time", Role::kStepTime},
    {"iteration_time", Role::kStepTime},
    {"ms_step", Role::kStepTime},
    {"ms_it", Role::kStepTime},
    {"ms_iter", Role::kStepTime},
    {"ms_per_iter", Role::kStepTime},
    {"ms_per_step", Role::kStepTime},
    {"s_it", Role::kStepTime},
    {"s_iter", Role::kStepTime},
    {"s_step", Role::kStepTime},
    {"sec_per_iter", Role::kStepTime},
    {"sec_per_step", Role::kStepTime},
    {"seconds_per_step", Role::kStepTime},
    {"sec_batch", Role::kStepTime},
    {"sec_step", Role::kStepTime},
    {"seconds", Role::kStepTime},
    {"step_time", Role::kStepTime},
    {"time", Role::kStepTime},
    {"time_cost", Role::kStepTime},
    {"time_data", Role::kStepTime},
    {"time_per_iter", Role::kStepTime},
    {"time_per_step", Role::kStepTime},
    {"train_cost", Role::kStepTime},
    {"updt_s", Role::kStepTime},
    {"耗时", Role::kStepTime},

    {"data", Role::kDataTime},
    {"data_cost", Role::kDataTime},
    {"data_load_time", Role::kDataTime},
    {"data_loading_time", Role::kDataTime},
    {"data_s", Role::kDataTime},
    {"data_t", Role::kDataTime},
    {"data_time", Role::kDataTime},
    {"dataload_time", Role::kDataTime},
    {"fetch_time", Role::kDataTime},
    {"load_time", Role::kDataTime},
    {"reader_cost", Role::kDataTime},
    {"reader_time", Role::kDataTime},

    {"interval_runtime", Role::kIntervalTime},
    {"elapsed", Role::kElapsed},
    {"elapsed_time", Role::kElapsed},
    {"time_elapsed", Role::kElapsed},
    {"total_time", Role::kElapsed},
    {"train_time", Role::kElapsed},
    {"training_time", Role::kElapsed},
    {"train_wall", Role::kOther},  // fairseq's, of an epoch; "wall" is since the begin
    {"wall", Role::kElapsed},
    {"wall_time", Role::kElapsed},
    {"epoch_time", Role::kEpochTime},
    {"time_per_epoch", Role::kEpochTime},
    {"eta", Role::kEta},
    {"remaining", Role::kEta},
    {"remaining_time", Role::kEta},

    {"fps", Role::kThroughput},
    {"ips", Role::kThroughput},
    {"speed", Role::kThroughput},
    {"sps", Role::kThroughput},
    {"thoughput", Role::kThroughput},
    {"throughput", Role::kThroughput},
    {"tps", Role::kThroughput},
    {"tgs", Role::kThroughput},
    {"ups", Role::kThroughput},
    {"wpb", Role::kTokens},
    {"wps", Role::kThroughput},

    {"allocated", Role::kMemory},
    {"cuda_mem", Role::kMemory},
    {"gpu_mem", Role::kMemory},
    {"gpu_memory", Role::kMemory},
    {"max_allocated", Role::kMemory},
    {"max_gpu_mem", Role::kMemory},
    {"max_mem", Role::kMemory},
    {"max_mem_allocated", Role::kMemory},
    {"max_mem_reserved", Role::kMemory},
    {"maxmemallocated", Role::kMemory},
    {"mem", Role::kMemory},
    {"mem_allocated", Role::kMemory},
    {"memallocated", Role::kMemory},
    {"memory", Role::kMemory},
    {"显存", Role::kMemory},
    {"显存占用", Role::kMemory},

    {"batch_size", Role::kBatchSize},
    {"bs", Role::kBatchSize},
    {"bsz", Role::kBatchSize},
    {"global_batch_size", Role::kBatchSize},
    {"consumed_samples", Role::kSamples},
    {"examples", Role::kSamples},
    {"images", Role::kSamples},
    {"nsentences", Role::kSamples},
    {"samples", Role::kSamples},
    {"smpl", Role::kSamples},
    {"consumed_tokens", Role::kTokens},
    {"ntokens", Role::kTokens},
    {"num_tokens", Role::kTokens},
    {"tokens", Role::kTokens},
    {"total_tokens", Role::kTokens},
    {"pct", Role::kPercent},
    {"percentage", Role::kPercent},
    {"rank", Role::kRank},
};

constexpr std::string_view kMetricWords[] = {
    "acc",      "accuracy",     "ap",      "auc",    "auroc",      "bleu",    "cer",       "dice",
    "err",      "error",        "f1",      "iou",    "kl",         "logloss", "mae",       "map",
    "mape",     "miou",         "mse",     "ndcg",   "perplexity", "ppl",     "precision", "psnr",
    "r2",       "recall",       "reward",  "rmse",   "rouge",      "ssim",    "top1",      "top5",
    "wer",      "mlogloss",     "merror",  "map50",  "准确率",     "精度",    "l1",        "l2",
    "smoothl1", "crossentropy", "entropy", "return", "ce",         "bpc",     "bpb",       "mpjpe",
    "epe",      "learn",        "rew",
};

// Words of a name that say whose figure it is, not what it is.
constexpr std::string_view kTrainWords[] = {"train", "training", "trn", "tr", "trainer", "训练"};
constexpr std::string_view kEvalWords[] = {
    "val",    "valid",      "validation", "eval",     "evaluation", "test",    "dev", "validate",
    "valid1", "val1",       "验证",       "测试",     "评估",       "testing", "tel", "valset",
    "evals",  "validating", "evaluating", "evaluate", "heldout",    "cv"};
constexpr std::string_view kAverageWords[] = {"avg",        "average",    "mean",   "running",
                                              "avr",        "smoothed",   "median", "avg.",
                                              "runningavg", "global_avg", "平均"};

bool Has(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<Role> NameRole(std::string_view name) {
  static const std::unordered_map<std::string_view, Role> names(std::begin(kNames),
                                                                std::end(kNames));
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

// "step_time_ms", "time (us)": a time with its unit behind it.
std::optional<Role> TimeWithUnit(std::string_view name) {
  const size_t last = name.rfind('_');
  if (last == std::string_view::npos || !SecondsOfUnit(name.substr(last + 1))) return std::nullopt;
  const std::optional<Role> role = NameRole(name.substr(0, last));
  return role && IsTime(*role) ? role : std::nullopt;
}

std::string JoinWords(std::span<const std::string_view> words) {
  std::string name;
  for (const std::string_view word : words) {
    if (!name.empty()) name += '_';
    name += word;
  }
  return name;
}

bool EndsWithAny(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [text](std::string_view end) { return base::EndsWith(text, end); });
}

// Of words that are no name as a whole: the rules that most names follow.
Role RoleByRule(const std::string& name, std::span<const std::string_view> words) {
  const auto has = [&words](std::string_view word) { return Has(words, word); };
  const bool loss = EndsWithAny(name, {"loss", "_losses"}) || base::StartsWith(name, "loss") ||
                    has("loss") || has("xent") || has("objf") || has("损失");
  if (has("eta")) return Role::kEta;
  // BasicSR: "l_pix"
  if (base::StartsWith(name, "l_") && words.size() <= 3 &&
      name.find_first_of(".0123456789") == std::string::npos) {
    return Role::kLossPart;
  }
  if (has("lr") || (has("learning") && has("rate"))) return Role::kLearningRate;
  if ((has("scale") || has("scaling")) && has("loss")) return Role::kLossScale;
  if (has("norm") && (has("grad") || has("gradient"))) return Role::kGradNorm;
  if (EndsWithAny(name, {"per_second", "per_sec", "persec", "_per_s"}) || has("throughput") ||
      has("ips") || EndsWithAny(name, {"_s", "_sec"}) || has("speed")) {
    return has("data") || has("time") ? Role::kOther : Role::kThroughput;
  }
  if (has("mem") || has("memory") || EndsWithAny(name, {"memory", "_mem"})) return Role::kMemory;
  if (loss) return Role::kLossPart;
  if (std::any_of(words.begin(), words.end(),
                  [](std::string_view word) { return Has(kMetricWords, word); })) {
    return Role::kMetric;
  }
  if (EndsWithAny(name, {"acc", "rmse", "accuracy", "logloss", "entropy", "auc", "error"})) {
    return Role::kMetric;
  }
  return Role::kOther;
}

// "TimestepsSoFar": "Timesteps_So_Far"
std::string SplitCamel(std::string_view key) {
  std::string split;
  for (size_t i = 0; i < key.size(); ++i) {
    const bool upper = key[i] >= 'A' && key[i] <= 'Z';
    const bool behind = i > 0 && ((key[i - 1] >= 'a' && key[i - 1] <= 'z') ||
                                  (key[i - 1] >= '0' && key[i - 1] <= '9'));
    if (upper && behind) split += '_';
    split += key[i];
  }
  return split;
}

// Of "GAN_loss/discrim/accuracy" the last part says what it is.
std::optional<Role> RoleOfPath(std::string_view key) {
  const size_t slash = key.rfind('/');
  if (slash == std::string_view::npos || slash + 1 >= key.size()) return std::nullopt;
  const Role role = MeaningOf(key.substr(slash + 1)).role;
  const bool figure = role == Role::kMetric || role == Role::kLearningRate ||
                      role == Role::kGradNorm || role == Role::kMemory;
  return figure ? std::optional(role) : std::nullopt;
}

// "END epoch", "global step", "Current Iter": a counter with one word in front of it. Not "skipped
// iterations" or "warmup steps".
std::optional<Role> CounterOfTwoWords(std::span<const std::string_view> words) {
  static constexpr std::string_view kFirst[] = {
      "end",   "begin", "start",     "current", "cur", "global", "completed", "finished",
      "epoch", "opt",   "optimizer", "this",    "at",  "in",     "env"};
  static constexpr std::string_view kOrdinal[] = {"count", "idx", "index", "no"};
  if (words.size() == 2 && words[0] == "batch" && Has(kOrdinal, words[1])) {
    return Role::kStepInEpoch;
  }
  if (words.size() == 3 && words[2] == "step" && (words[1] == "iter" || Has(kFirst, words[1])))
    return Role::kStep;
  static constexpr std::string_view kLimits[] = {
      "max",   "num",  "number", "total", "per", "warmup", "skipped", "save",  "eval", "log",
      "print", "each", "best",   "last",  "min", "decay",  "every",   "accum", "stop", "n"};
  const bool iteration = words.size() == 2 && (words[1] == "iter" || words[1] == "iteration") &&
                         !Has(kLimits, words[0]);
  if (words.size() != 2 || !(Has(kFirst, words[0]) || words[0] == "iter" || iteration)) {
    return std::nullopt;
  }
  const std::optional<Role> role = NameRole(words[1]);
  if ((words[0] == "start" || words[0] == "begin") && role != Role::kEpoch) return std::nullopt;
  const bool counter = role == Role::kEpoch || role == Role::kStep || role == Role::kStepInEpoch;
  return counter ? role : std::nullopt;
}

}  // namespace

bool IsTime(Role role) {
  return role == Role::kStepTime || role == Role::kDataTime || role == Role::kIntervalTime ||
         role == Role::kElapsed || role == Role::kEpochTime || role == Role::kEta;
}

std::string NormalKey(std::string_view key) {
  std::string name;
  for (const char byte : key) {
    const auto c = static_cast<unsigned char>(byte);
    if (c >= 'A' && c <= 'Z') {
      name += static_cast<char>(c | 0x20);
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80) {
      name += byte;
    } else if (c != '\'' && c != '"' && !name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

KeyMeaning MeaningOf(std::string_view key) {
  KeyMeaning meaning;
  const std::string name = NormalKey(key);
  std::vector<std::string_view> words;
  for (const std::string_view word : base::Split(name, '_')) {
    if (Has(kEvalWords, word)) {
      meaning.eval = true;
    } else if (Has(kTrainWords, word)) {
      meaning.train = true;
    } else if (Has(kAverageWords, word)) {
      meaning.average = true;
    } else {
      words.push_back(word);
    }
  }
  for (const auto& [prefix, train] : {std::pair{"训练", true}, {"验证", false}, {"测试", false}}) {
    if (base::StartsWith(name, prefix) && name.size() > 6 && !NameRole(name)) {
      KeyMeaning rest = MeaningOf(name.substr(6));
      (train ? rest.train : rest.eval) = true;
      const bool figure = rest.role == Role::kLoss || rest.role == Role::kMetric;
      if (rest.eval && figure) rest.role = Role::kEvalMetric;
      return rest;
    }
  }
  std::optional<Role> role = NameRole(name);
  if (!role) role = RoleOfPath(key);
  const std::string rest = JoinWords(words);
  if (!role) role = NameRole(rest);
  if (!role) role = TimeWithUnit(rest);
  if (!role) role = CounterOfTwoWords(words);
  if ((!role || *role == Role::kOther) && !words.empty()) role = RoleByRule(rest, words);
  if (!role && (meaning.train || meaning.eval)) role = Role::kMetric;
  meaning.role = role.value_or(Role::kOther);
  if (meaning.role == Role::kOther) {
    const std::string split = SplitCamel(key);
    if (split.size() != key.size()) return MeaningOf(split);
  }
  // What was best so far is no figure of this line.
  if (Has(words, "best") || Has(words, "lowest") || Has(words, "highest"))
    meaning.role = Role::kOther;
  const bool figure = meaning.role == Role::kLoss || meaning.role == Role::kLossPart ||
                      meaning.role == Role::kMetric;
  if (meaning.eval && figure) meaning.role = Role::kEvalMetric;
  // How long an evaluation took is no time of a step.
  if (meaning.eval && IsTime(meaning.role)) meaning.role = Role::kOther;
  return meaning;
}

LineWord LineWordOf(std::string_view word) {
  static constexpr std::string_view kInference[] = {"infer",      "inference",  "predict",
                                                    "prediction", "predicting", "benchmark"};
  static constexpr std::string_view kSummary[] = {
      "avg",     "average", "averaged", "end",  "done",     "finished", "finish", "best", "summary",
      "results", "overall", "total",    "mean", "complete", "ended",    "final",  "平均"};
  if (Has(kTrainWords, word)) return LineWord::kTrain;
  if (Has(kEvalWords, word) || word == "evaluated" || word == "validated") return LineWord::kEval;
  if (Has(kInference, word)) return LineWord::kInference;
  if (Has(kSummary, word)) return LineWord::kSummary;
  if (word == "epoch") return LineWord::kEpoch;
  return LineWord::kNone;
}

}  // namespace epochmeter::ingest::log
