// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/message_anomalies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace epochmeter::ingest::log {
namespace {

constexpr uint64_t kLeastLogLines = 200;  // shorter ones have no usual
constexpr uint32_t kLeastBurst = 20;
constexpr double kLeastDeviations = 6, kLeastTimesMean = 5;
constexpr size_t kMostStretches = 2;
constexpr double kUsualLineRatio = 0.2;  // of the log: its main content
constexpr uint64_t kBesideLines = 20;
constexpr size_t kMostQuietGroups = 4;  // more are a log that keeps bringing new texts
constexpr size_t kMostQuietBeside = 6;  // more are a new part of the training, not a message
constexpr uint32_t kMostNewBefore = 2;
constexpr double kLateRatio = 0.1, kStartRatio = 0.25, kEndRatio = 0.95;

struct Stretch {
  size_t first = 0, last = 0;  // buckets
  uint64_t count = 0;
};

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string StepsEn(const MessageAnomaly& anomaly) {
  if (anomaly.step_before && anomaly.step_after) {
    return fmt::format(", between steps {} and {}", *anomaly.step_before, *anomaly.step_after);
  }
  if (anomaly.step_before) return fmt::format(", after step {}", *anomaly.step_before);
  return anomaly.step_after ? fmt::format(", before step {}", *anomaly.step_after) : "";
}

std::string StepsZh(const MessageAnomaly& anomaly) {
  if (anomaly.step_before && anomaly.step_after) {
    return fmt::format("，位于第 {} 步与第 {} 步之间", *anomaly.step_before, *anomaly.step_after);
  }
  if (anomaly.step_before) return fmt::format("，在第 {} 步之后", *anomaly.step_before);
  return anomaly.step_after ? fmt::format("，在第 {} 步之前", *anomaly.step_after) : "";
}

// Looks through one table.
class AnomalyFinder {
 public:
  explicit AnomalyFinder(const TemplateTable& table)
      : table_(table), counts_(table.Fold()), buckets_((table.last_line() >> table.shift()) + 1) {}

  std::vector<MessageAnomaly> Find(size_t most) {
    if (table_.last_line() < kLeastLogLines) return {};
    for (uint32_t number = 1; number < table_.templates().size(); ++number) FindBurst(number);
    FindNew();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const MessageAnomaly& a, const MessageAnomaly& b) {
                       return a.score != b.score ? a.score > b.score : a.first_line < b.first_line;
                     });
    if (found_.size() > most) found_.resize(most);
    return std::move(found_);
  }

 private:
  size_t BucketOf(uint64_t line) const { return line >> table_.shift(); }

  // The buckets in which a template stands out, joined where they touch.
  std::vector<Stretch> StretchesOf(const TemplateCounts& counts, double* mean_elsewhere) const {
    std::vector<double> all(counts.buckets.begin(),
                            counts.buckets.begin() + static_cast<std::ptrdiff_t>(buckets_));
    const double median = MedianOf(all);
    std::vector<double> distances(all);
    for (double& value : distances) value = std::fabs(value - median);
    const double scale = std::max(1.4826 * MedianOf(distances), std::sqrt(median + 1));
    const double threshold = median + kLeastDeviations * scale;
    std::vector<Stretch> stretches;
    double rest = 0;
    size_t rest_buckets = 0;
    for (size_t i = 0; i < buckets_; ++i) {
      if (all[i] < threshold) {
        rest += all[i];
        ++rest_buckets;
        continue;
      }
      if (stretches.empty() || stretches.back().last + 1 != i) stretches.push_back({.first = i});
      stretches.back().last = i;
      stretches.back().count += counts.buckets[i];
    }
    *mean_elsewhere = rest_buckets == 0 ? 0 : rest / static_cast<double>(rest_buckets);
    return stretches;
  }

  void FindBurst(uint32_t number) {
    const TemplateCounts& counts = counts_[number];
    const MessageTemplate& of = table_.templates()[number];
    if (counts.count < kLeastBurst) return;
    double mean = 0;
    const std::vector<Stretch> stretches = StretchesOf(counts, &mean);
    if (stretches.empty() || stretches.size() > kMostStretches) return;
    const Stretch& most =
        *std::max_element(stretches.begin(), stretches.end(),
                          [](const Stretch& a, const Stretch& b) { return a.count < b.count; });
    const auto length = static_cast<double>(most.last - most.first + 1);
    if (most.count < kLeastBurst) return;
    if (static_cast<double>(most.count) / length < kLeastTimesMean * std::max(mean, 1.0)) return;
    if (length > static_cast<double>(buckets_) / 4) return;
    if (!IsBurst(number, most)) return;
    MessageAnomaly anomaly = Describe(number, AnomalyKind::kBurst);
    PlaceBurst(counts, most, &anomaly);
    anomaly.score = ScoreOf(of.alarm) +
                    std::min(2.0, std::log10(static_cast<double>(anomaly.count) / kLeastBurst));
    SetSteps(&anomaly);
    anomaly.why.en = fmt::format(
        "{} of its {} messages stand in lines {} to {}{}; elsewhere {:.1f} come in as many lines.",
        anomaly.count, anomaly.total, anomaly.first_line, anomaly.last_line, StepsEn(anomaly),
        mean * length);
    anomaly.why.zh = fmt::format(
        "共 {} 条，其中 {} 条集中在第 {} 至 {} 行{}；其他位置同样长度内平均 {:.1f} 条。",
        anomaly.total, anomaly.count, anomaly.first_line, anomaly.last_line, StepsZh(anomaly),
        mean * length);
    burst_.insert(number);
    found_.push_back(std::move(anomaly));
  }

  bool IsBurst(uint32_t number, const Stretch& stretch) const {
    const TemplateCounts& counts = counts_[number];
    const MessageTemplate& of = table_.templates()[number];
    const auto lines = static_cast<double>(table_.last_line());
    const bool starts = stretch.first == 0 || IsStartUp(of.file, of.first_line, stretch);
    if (starts) return of.alarm == Alarm::kError && stretch.count >= 5 * kLeastBurst;
    if (of.alarm >= Alarm::kWarning) return true;
    if (static_cast<double>(counts.count) > kUsualLineRatio * lines) return false;
    size_t elsewhere = 0;
    for (size_t i = 0; i < buckets_; ++i) {
      const bool inside = i >= stretch.first && i <= stretch.last;
      elsewhere += !inside && counts.buckets[i] > 0 ? 1 : 0;
    }
    return stretch.last + 2 < buckets_ && elsewhere * 4 >= buckets_;
  }

  // The whole stretch lies before the first step that its file prints.
  bool IsStartUp(uint32_t file, uint64_t first_line, const Stretch& stretch) const {
    const uint64_t end = (static_cast<uint64_t>(stretch.last) + 1) << table_.shift();
    return table_.TrainsAfter(file, 0) && !table_.TrainsBefore(file, first_line) &&
           !table_.TrainsBefore(file, end);
  }

  // The lines of the densest run where it makes up the stretch, else those of its buckets.
  void PlaceBurst(const TemplateCounts& counts, const Stretch& stretch,
                  MessageAnomaly* anomaly) const {
    const MessageRun& run = counts.run.count > counts.densest.count ? counts.run : counts.densest;
    const bool inside =
        BucketOf(run.last_line) >= stretch.first && BucketOf(run.first_line) <= stretch.last;
    if (inside && run.count * 2 >= stretch.count) {
      anomaly->first_line = run.first_line;
      anomaly->last_line = run.last_line;
      anomaly->count = run.count;
      anomaly->file = run.file;
      return;
    }
    const uint64_t begin = static_cast<uint64_t>(stretch.first) << table_.shift();
    const uint64_t end = (static_cast<uint64_t>(stretch.last) + 1) << table_.shift();
    anomaly->first_line = std::max(begin, anomaly->first_line);
    anomaly->last_line = std::min({end - 1, counts.last_line, table_.last_line()});
    anomaly->count = stretch.count;
  }

  static double ScoreOf(Alarm alarm) {
    switch (alarm) {
      case Alarm::kError:
        return 3;
      case Alarm::kWarning:
        return 2;
      case Alarm::kHint:
        return 1;
      default:
        return 0.5;
    }
  }

  MessageAnomaly Describe(uint32_t number, AnomalyKind kind) const {
    const MessageTemplate& of = table_.templates()[number];
    const TemplateCounts& counts = counts_[number];
    return {.kind = kind,
            .alarm = of.alarm,
            .text = of.text,
            .example = of.example,
            .file = of.file,
            .first_line = of.first_line,
            .last_line = std::max(counts.last_line, of.first_line),
            .count = counts.count,
            .total = counts.count,
            .step_before = {},
            .step_after = {},
            .why = {}};
  }

  void SetSteps(MessageAnomaly* anomaly) const {
    anomaly->step_before = table_.StepBefore(anomaly->file, anomaly->first_line);
    anomaly->step_after = table_.StepAfter(anomaly->file, anomaly->last_line);
  }

  void FindNew() {
    std::vector<uint32_t> late;
    for (uint32_t number = 1; number < table_.templates().size(); ++number) {
      const MessageTemplate& of = table_.templates()[number];
      ++new_in_[BucketOf(of.first_line)];
      if (of.part_of == 0 && IsLate(of)) late.push_back(number);
    }
    std::sort(late.begin(), late.end(), [this](uint32_t a, uint32_t b) {
      const MessageTemplate& first = table_.templates()[a];
      const MessageTemplate& second = table_.templates()[b];
      return first.file != second.file ? first.file < second.file
                                       : first.first_line < second.first_line;
    });
    std::vector<MessageAnomaly> quiet;
    for (size_t begin = 0; begin < late.size();) {
      size_t end = begin + 1;
      while (end < late.size() && IsBeside(late[end - 1], late[end])) ++end;
      JudgeGroup({late.begin() + static_cast<std::ptrdiff_t>(begin),
                  late.begin() + static_cast<std::ptrdiff_t>(end)},
                 &quiet);
      begin = end;
    }
    if (quiet.size() > kMostQuietGroups) return;
    for (MessageAnomaly& anomaly : quiet) found_.push_back(std::move(anomaly));
  }

  bool IsLate(const MessageTemplate& of) const {
    const auto lines = static_cast<double>(table_.last_line());
    if (static_cast<double>(of.first_line) < kLateRatio * lines) return false;
    if (table_.TrainsAfter(of.file, 0)) return table_.TrainsBefore(of.file, of.first_line);
    // Without a training nothing tells start-up from work: only errors count.
    return of.alarm == Alarm::kError && static_cast<double>(of.first_line) > kStartRatio * lines;
  }

  bool IsBeside(uint32_t before, uint32_t number) const {
    const MessageTemplate& a = table_.templates()[before];
    const MessageTemplate& b = table_.templates()[number];
    return a.file == b.file && b.first_line - a.first_line <= kBesideLines;
  }

  // From its first line on it comes at equal distances, or nearly everywhere.
  bool IsRegular(uint32_t number) const {
    const TemplateCounts& counts = counts_[number];
    const size_t first = BucketOf(table_.templates()[number].first_line);
    std::vector<size_t> at;
    for (size_t i = first; i < buckets_; ++i) {
      if (counts.buckets[i] > 0) at.push_back(i);
    }
    if (at.size() < 3) return false;
    if (at.size() * 4 >= buckets_ - first) return true;
    const double mean =
        static_cast<double>(at.back() - at.front()) / static_cast<double>(at.size() - 1);
    for (size_t i = 1; i < at.size(); ++i) {
      const auto gap = static_cast<double>(at[i] - at[i - 1]);
      if (std::fabs(gap - mean) > 0.34 * mean + 1) return false;
    }
    return true;
  }

  // New messages side by side are one anomaly, named after the loudest.
  void JudgeGroup(const std::vector<uint32_t>& group, std::vector<MessageAnomaly>* quiet) {
    uint32_t head = 0;
    for (const uint32_t number : group) {
      if (burst_.contains(number)) return;
      if (IsRegular(number) || table_.templates()[number].fixed == 0) continue;
      if (head == 0 || IsLouder(number, head)) head = number;
    }
    if (head == 0) return;
    const MessageTemplate& of = table_.templates()[head];
    const bool loud = of.alarm >= Alarm::kWarning;
    if (!loud && !IsQuietNews(group, of)) return;
    MessageAnomaly anomaly = Describe(head, AnomalyKind::kNewMessage);
    anomaly.beside = static_cast<uint32_t>(group.size() - 1);
    anomaly.score = ScoreOf(of.alarm) + (anomaly.count <= 3 ? 0.1 : 0);
    SetSteps(&anomaly);
    Explain(&anomaly);
    (loud ? found_ : *quiet).push_back(std::move(anomaly));
  }

  bool IsLouder(uint32_t number, uint32_t than) const {
    const MessageTemplate& a = table_.templates()[number];
    const MessageTemplate& b = table_.templates()[than];
    if (a.alarm != b.alarm) return a.alarm > b.alarm;
    // The exception says more than the line that announces its trace.
    return b.text.starts_with("Traceback") && !a.text.starts_with("Traceback");
  }

  bool IsQuietNews(const std::vector<uint32_t>& group, const MessageTemplate& of) const {
    if (group.size() > kMostQuietBeside || of.fixed < 2) return false;
    // Prose (samples of a language model) has no logger and seldom numbers.
    if (!of.logged && of.text.find('*') == std::string::npos) return false;
    const size_t bucket = BucketOf(of.first_line);
    const size_t quarter = std::max<size_t>(buckets_ / 4, 1);
    if (bucket < quarter) return false;
    uint32_t before = 0;
    for (size_t i = bucket - quarter; i < bucket; ++i) before += new_in_[i];
    if (before > kMostNewBefore) return false;
    if (static_cast<double>(of.first_line) > kEndRatio * static_cast<double>(table_.last_line())) {
      return false;
    }
    return table_.TrainsAfter(of.file, of.first_line);
  }

  static void Explain(MessageAnomaly* anomaly) {
    const std::string beside_en =
        anomaly->beside > 0
            ? fmt::format(", with {} other new messages next to it", anomaly->beside)
            : "";
    const std::string beside_zh =
        anomaly->beside > 0 ? fmt::format("，相邻还有 {} 条新消息", anomaly->beside) : "";
    anomaly->why.en =
        fmt::format("Not seen in the {} lines before line {}{}{}.", anomaly->first_line - 1,
                    anomaly->first_line, StepsEn(*anomaly), beside_en);
    anomaly->why.zh =
        fmt::format("在第 {} 行首次出现，此前 {} 行中从未有过{}{}。", anomaly->first_line,
                    anomaly->first_line - 1, StepsZh(*anomaly), beside_zh);
  }

  const TemplateTable& table_;
  std::vector<TemplateCounts> counts_;
  size_t buckets_;
  std::array<uint32_t, TemplateCounts::kBuckets> new_in_{};
  std::set<uint32_t> burst_;
  std::vector<MessageAnomaly> found_;
};

}  // namespace

std::vector<MessageAnomaly> FindMessageAnomalies(const TemplateTable& table, size_t most) {
  return AnomalyFinder(table).Find(most);
}

}  // namespace epochmeter::ingest::log
