// SPDX-License-Identifier: Apache-2.0
#include "export/log_merge.h"

#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace epochmeter::exporting {
namespace {

using model::LogEventRow;
using model::LogField;
using model::LogPoint;

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

// Plain values and texts, one behind the other.
class Packer {
 public:
  template <typename T>
  void Put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Put(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  void Put(const std::string& text) { Put(std::string_view(text)); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Unpacked {
 public:
  explicit Unpacked(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T Take() {
    T value{};
    if (rest_.size() < sizeof value) return value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string Text() {
    const size_t size = std::min<size_t>(Take<uint32_t>(), rest_.size());
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view rest_;
};

void Put(const LogPoint& point, Packer* out) {
  out->Put(point.kind);
  for (const uint64_t number : {uint64_t{point.file}, point.line, point.last_line}) {
    out->Put(number);
  }
  out->Put(point.start);
  out->Put(point.rank);
  out->Put(point.wall_ns);
  out->Put(point.stamp);
  out->Put(point.header_epoch);
  out->Put(static_cast<uint32_t>(point.fields.size()));
  for (const LogField& field : point.fields) {
    for (const std::string* text : {&field.key, &field.text, &field.unit, &field.role}) {
      out->Put(*text);
    }
    out->Put(field.number);
    out->Put(field.value);
  }
}

LogPoint TakePoint(Unpacked* in) {
  LogPoint point;
  point.kind = in->Text();
  point.file = static_cast<uint32_t>(in->Take<uint64_t>());
  point.line = in->Take<uint64_t>();
  point.last_line = in->Take<uint64_t>();
  point.start = in->Take<uint32_t>();
  point.rank = in->Take<std::optional<int32_t>>();
  point.wall_ns = in->Take<std::optional<int64_t>>();
  point.stamp = in->Text();
  point.header_epoch = in->Take<std::optional<double>>();
  point.fields.resize(in->Take<uint32_t>());
  for (LogField& field : point.fields) {
    for (std::string* text : {&field.key, &field.text, &field.unit, &field.role}) {
      *text = in->Text();
    }
    field.number = in->Take<double>();
    field.value = in->Take<double>();
  }
  return point;
}

void Put(const LogEventRow& event, Packer* out) {
  out->Put(event.kind);
  out->Put(event.file);
  out->Put(event.lines.front());
  out->Put(event.rank);
  out->Put(event.wall_ns);
  out->Put(event.text);
  out->Put(event.bad);
  out->Put(static_cast<uint32_t>(event.numbers.size()));
  for (const auto& [key, number] : event.numbers) {
    out->Put(key);
    out->Put(static_cast<uint8_t>(number.index()));
    if (const auto* whole = std::get_if<int64_t>(&number)) out->Put(*whole);
    if (const auto* real = std::get_if<double>(&number)) out->Put(*real);
    if (const auto* text = std::get_if<std::string>(&number)) out->Put(*text);
  }
}

LogEventRow TakeEvent(Unpacked* in) {
  LogEventRow event;
  event.kind = in->Text();
  event.count = 1;
  event.file = in->Take<uint32_t>();
  event.lines = {in->Take<uint64_t>()};
  event.rank = in->Take<std::optional<int32_t>>();
  event.wall_ns = in->Take<std::optional<int64_t>>();
  event.text = in->Text();
  event.bad = in->Take<bool>();
  event.numbers.resize(in->Take<uint32_t>());
  for (auto& [key, number] : event.numbers) {
    key = in->Text();
    const auto index = in->Take<uint8_t>();
    if (index == 0) number = in->Take<int64_t>();
    if (index == 1) number = in->Take<double>();
    if (index == 2) number = in->Text();
  }
  return event;
}

// In front of each row in the file.
struct RowHead {
  int64_t wall_ns = kNoTime;  // does not fall within a log
  uint32_t bytes = 0;
  bool event = false;
};

// The rows of one log in the temporary file.
class Cursor {
 public:
  Cursor(std::FILE* file, uint64_t begin, uint64_t end) : file_(file), at_(begin), end_(end) {}

  // False at the end, or when the file cannot be read.
  bool Next() {
    if (!Fill(sizeof head_)) return false;
    std::memcpy(&head_, buffer_.data() + used_, sizeof head_);
    used_ += sizeof head_;
    if (!Fill(head_.bytes)) return false;
    row_ = std::string_view(buffer_).substr(used_, head_.bytes);
    used_ += head_.bytes;
    return true;
  }
  const RowHead& head() const { return head_; }
  std::string_view row() const { return row_; }
  bool complete() const { return at_ == end_ && used_ == buffer_.size(); }

 private:
  bool Fill(size_t bytes) {
    if (buffer_.size() - used_ >= bytes) return true;
    buffer_.erase(0, used_);
    used_ = 0;
    const size_t had = buffer_.size();
    const auto left = static_cast<size_t>(end_ - at_);
    const size_t want = std::min(left, std::max(bytes, kReadBytes));
    buffer_.resize(had + want);
    if (std::fseek(file_, static_cast<long>(at_), SEEK_SET) != 0) return false;
    const size_t got = std::fread(buffer_.data() + had, 1, want, file_);
    buffer_.resize(had + got);
    at_ += got;
    return buffer_.size() >= bytes;
  }

  std::FILE* file_;
  uint64_t at_, end_;
  std::string buffer_;
  size_t used_ = 0;
  RowHead head_;
  std::string_view row_;
};

class Merged : public LogRowWriter {
 public:
  explicit Merged(LogRowWriter* rows) : rows_(*rows), file_(std::tmpfile(), &std::fclose) {}

  void Record(const LogPoint& point, std::string_view file, std::string_view text) override {
    if (point.kind == "train") all_timed_ = all_timed_ && point.wall_ns;
    Packer packed;
    packed.Put(file);
    packed.Put(text);
    Put(point, &packed);
    Add(point.file, point.wall_ns, false, packed.bytes());
  }

  void Event(const LogEventRow& event, std::string_view file) override {
    Packer packed;
    packed.Put(file);
    Put(event, &packed);
    Add(event.file, event.wall_ns, true, packed.bytes());
  }

  base::Result<> Finish() override {
    if (file_ == nullptr || failed_) return Failed();
    std::vector<Cursor> cursors;
    for (size_t i = 0; i < logs_.size(); ++i) {
      const uint64_t end = i + 1 < logs_.size() ? logs_[i + 1].begin : bytes_;
      cursors.emplace_back(file_.get(), logs_[i].begin, end);
    }
    std::multimap<int64_t, Cursor*> heads;  // equal times: the order in which they came
    const auto advance = [this, &heads](Cursor* cursor) {
      const int64_t order = cursor - first_;
      if (cursor->Next()) {
        heads.emplace(all_timed_ ? cursor->head().wall_ns : order, cursor);
      } else if (!cursor->complete()) {
        failed_ = true;
      }
    };
    first_ = cursors.data();
    for (Cursor& cursor : cursors) advance(&cursor);
    while (!heads.empty() && !failed_) {
      Cursor* next = heads.begin()->second;
      heads.erase(heads.begin());
      Give(*next);
      advance(next);
    }
    if (failed_) return Failed();
    return rows_.Finish();
  }

 private:
  struct Log {
    uint32_t file = 0;
    uint64_t begin = 0;
    int64_t last_ns = kNoTime;
  };

  static base::Result<> Failed() {
    return base::Error{.what = "cannot put the rows of several logs in order",
                       .where = "",
                       .why = "the temporary file could not be written or read",
                       .what_to_do = "is there room in /tmp? read the logs one by one"};
  }

  void Add(uint32_t file, const std::optional<int64_t>& wall_ns, bool event,
           const std::string& row) {
    if (file_ == nullptr || failed_) return;
    // Logs are read one after the other; one that comes again goes on as another.
    if (logs_.empty() || logs_.back().file != file)
      logs_.push_back({.file = file, .begin = bytes_});
    Log& log = logs_.back();
    log.last_ns = std::max(log.last_ns, wall_ns.value_or(kNoTime));
    const RowHead head{
        .wall_ns = log.last_ns, .bytes = static_cast<uint32_t>(row.size()), .event = event};
    failed_ = std::fwrite(&head, sizeof head, 1, file_.get()) != 1 ||
              std::fwrite(row.data(), 1, row.size(), file_.get()) != row.size();
    bytes_ += sizeof head + row.size();
  }

  void Give(const Cursor& cursor) {
    Unpacked row(cursor.row());
    const std::string file = row.Text();
    if (cursor.head().event) return rows_.Event(TakeEvent(&row), file);
    const std::string text = row.Text();
    rows_.Record(TakePoint(&row), file, text);
  }

  LogRowWriter& rows_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::vector<Log> logs_;
  uint64_t bytes_ = 0;
  bool all_timed_ = true, failed_ = false;
  const Cursor* first_ = nullptr;
};

}  // namespace

std::unique_ptr<LogRowWriter> MergeLogRows(LogRowWriter* rows) {
  return std::make_unique<Merged>(rows);
}

}  // namespace epochmeter::exporting
