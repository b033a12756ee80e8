// SPDX-License-Identifier: Apache-2.0
#include "week_peers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <utility>

#ifdef EPM_HAVE_SQLITE
#include <sqlite3.h>
#endif

#include "base/check.h"
#include "measure.h"

namespace epochmeter::bench {
namespace {

// Sums over epochs, for formats that have none.
class Means {
 public:
  Means(int64_t begin_ns, int64_t epoch_ns) : begin_ns_(begin_ns), epoch_ns_(epoch_ns) {}
  void Add(int64_t t_ns, size_t series, double value) {
    const auto epoch = static_cast<size_t>((t_ns - begin_ns_) / epoch_ns_);
    if (sums_.size() <= epoch) sums_.resize(epoch + 1);
    if (sums_[epoch].size() <= series) sums_[epoch].resize(series + 1);
    sums_[epoch][series].first += value;
    ++sums_[epoch][series].second;
  }
  double Sum() const {
    double sum = 0;
    for (const auto& epoch : sums_) {
      for (const auto& [total, count] : epoch) {
        sum += count > 0 ? total / static_cast<double>(count) : 0;
      }
    }
    return sum;
  }

 private:
  int64_t begin_ns_, epoch_ns_;
  std::vector<std::vector<std::pair<double, uint64_t>>> sums_;
};

// Lines that are written with one call a tick and read back from the first to the last.
class Lines : public Peer {
 public:
  Lines(std::string path, std::vector<std::string> fields)
      : fields_(std::move(fields)),
        path_(std::move(path)),
        fd_(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    EPM_CHECK(fd_ >= 0) << path_;
  }
  ~Lines() override {
    close(fd_);
    unlink(path_.c_str());
  }

  void Append(const model::Samples& samples) override {
    line_.clear();
    for (size_t at = 0; at < samples.values.size(); at += fields_.size()) {
      AddLine(samples.t_ns, at / fields_.size(), samples.values.data() + at);
    }
    EPM_CHECK(write(fd_, line_.data(), line_.size()) == static_cast<ssize_t>(line_.size()));
  }
  void Finish() override {}
  uint64_t bytes() const override { return FileBytes(path_); }

  size_t ReadOne(size_t gpu, size_t metric) override {
    std::vector<double> values;
    ForEachLine([&](int64_t, size_t its_gpu, const char* at) {
      if (its_gpu != gpu) return;
      for (size_t i = 0; i < metric; ++i) (void)NextValue(&at);
      values.push_back(NextValue(&at));
    });
    return values.size();
  }
  double EpochMeans(int64_t begin_ns, int64_t epoch_ns) override {
    Means means(begin_ns, epoch_ns);
    ForEachLine([&](int64_t t_ns, size_t gpu, const char* at) {
      for (size_t i = 0; i < fields_.size(); ++i) {
        means.Add(t_ns, gpu * fields_.size() + i, NextValue(&at));
      }
    });
    return means.Sum();
  }

 protected:
  virtual void AddLine(int64_t t_ns, size_t gpu, const model::SampleValue* values) = 0;
  // Moves on to the next number of a line.
  virtual const char* SkipToNumber(const char* at) const = 0;

  const std::vector<std::string> fields_;
  std::string line_;

 private:
  using EachLine = std::function<void(int64_t t_ns, size_t gpu, const char* rest)>;

  double NextValue(const char** at) const {
    double value = 0;
    const char* const begin = SkipToNumber(*at);
    *at = std::from_chars(begin, begin + 32, value).ptr;
    return value;
  }
  void ForEachLine(const EachLine& each) const {
    std::ifstream in(path_);
    for (std::string line; std::getline(in, line);) {
      line.append(40, '\0');  // a number may be looked for behind the last one
      const char* at = line.c_str();
      int64_t t_ns = 0;
      size_t gpu = 0;
      at = std::from_chars(SkipToNumber(at), line.data() + line.size(), t_ns).ptr;
      at = std::from_chars(SkipToNumber(at), line.data() + line.size(), gpu).ptr;
      each(t_ns, gpu, at);
    }
  }

  std::string path_;
  int fd_;
};

class JsonLines : public Lines {
 public:
  using Lines::Lines;
  std::string name() const override { return "JSONL"; }

 private:
  void AddLine(int64_t t_ns, size_t gpu, const model::SampleValue* values) override {
    fmt::format_to(std::back_inserter(line_), "{{\"t_ns\":{},\"gpu\":{}", t_ns, gpu);
    for (size_t i = 0; i < fields_.size(); ++i) {
      fmt::format_to(std::back_inserter(line_), ",\"{}\":{}", fields_[i], values[i].value);
    }
    line_ += "}\n";
  }
  // Names may have digits, but no colon.
  const char* SkipToNumber(const char* at) const override {
    while (*at != ':' && *at != '\0') ++at;
    return *at == ':' ? at + 1 : at;
  }
};

class Csv : public Lines {
 public:
  using Lines::Lines;
  std::string name() const override { return "CSV"; }

 private:
  void AddLine(int64_t t_ns, size_t gpu, const model::SampleValue* values) override {
    fmt::format_to(std::back_inserter(line_), "{},{}", t_ns, gpu);
    for (size_t i = 0; i < fields_.size(); ++i) {
      fmt::format_to(std::back_inserter(line_), ",{}", values[i].value);
    }
    line_ += '\n';
  }
  const char* SkipToNumber(const char* at) const override { return *at == ',' ? at + 1 : at; }
};

#ifdef EPM_HAVE_SQLITE
class Sqlite : public Peer {
 public:
  Sqlite(std::string path, std::vector<std::string> fields)
      : path_(std::move(path)), fields_(std::move(fields)) {
    RemoveFiles();
    EPM_CHECK(sqlite3_open(path_.c_str(), &db_) == SQLITE_OK) << path_;
    Run("PRAGMA journal_mode=WAL");
    Run("PRAGMA synchronous=OFF");
    std::string columns, marks;
    for (const std::string& field : fields_) {
      columns += ",\"" + field + "\"";
      marks += ",?";
    }
    Run("CREATE TABLE sample(t_ns INTEGER, gpu INTEGER" + columns + ")");
    insert_ = Prepare("INSERT INTO sample VALUES(?,?" + marks + ")");
  }
  ~Sqlite() override {
    sqlite3_finalize(insert_);
    sqlite3_close(db_);
    RemoveFiles();
  }

  std::string name() const override { return "SQLite rows"; }
  void Append(const model::Samples& samples) override {
    Run("BEGIN");
    for (size_t at = 0; at < samples.values.size(); at += fields_.size()) {
      sqlite3_bind_int64(insert_, 1, samples.t_ns);
      sqlite3_bind_int64(insert_, 2, static_cast<sqlite3_int64>(at / fields_.size()));
      for (size_t i = 0; i < fields_.size(); ++i) Bind(i, samples.values[at + i].value);
      EPM_CHECK(sqlite3_step(insert_) == SQLITE_DONE) << sqlite3_errmsg(db_);
      sqlite3_reset(insert_);
    }
    Run("COMMIT");
  }
  void Finish() override { Run("PRAGMA wal_checkpoint(TRUNCATE)"); }
  uint64_t bytes() const override { return FileBytes(path_); }

  size_t ReadOne(size_t gpu, size_t metric) override {
    std::vector<double> values;
    ForEachRow("SELECT \"" + fields_[metric] + "\" FROM sample WHERE gpu=" + std::to_string(gpu),
               [&values](sqlite3_stmt* row) { values.push_back(sqlite3_column_double(row, 0)); });
    return values.size();
  }
  double EpochMeans(int64_t begin_ns, int64_t epoch_ns) override {
    std::string columns;
    for (const std::string& field : fields_) columns += ",avg(\"" + field + "\")";
    double sum = 0;
    ForEachRow(fmt::format("SELECT gpu,(t_ns-{})/{} AS epoch{} FROM sample GROUP BY gpu,epoch",
                           begin_ns, epoch_ns, columns),
               [&](sqlite3_stmt* row) {
                 for (size_t i = 0; i < fields_.size(); ++i) {
                   sum += sqlite3_column_double(row, static_cast<int>(i) + 2);
                 }
               });
    return sum;
  }

 private:
  void RemoveFiles() const {
    for (const char* end : {"", "-wal", "-shm"}) unlink((path_ + end).c_str());
  }
  void Run(const std::string& sql) {
    EPM_CHECK(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK)
        << sqlite3_errmsg(db_);
  }
  sqlite3_stmt* Prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EPM_CHECK(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK)
        << sqlite3_errmsg(db_);
    return statement;
  }
  // Whole numbers as integers: SQLite stores these in fewer bytes.
  void Bind(size_t field, double value) {
    const int place = static_cast<int>(field) + 3;
    const auto whole = static_cast<sqlite3_int64>(value);
    if (static_cast<double>(whole) == value) {
      sqlite3_bind_int64(insert_, place, whole);
    } else {
      sqlite3_bind_double(insert_, place, value);
    }
  }
  void ForEachRow(const std::string& sql, const std::function<void(sqlite3_stmt*)>& each) {
    sqlite3_stmt* const statement = Prepare(sql);
    while (sqlite3_step(statement) == SQLITE_ROW) each(statement);
    sqlite3_finalize(statement);
  }

  std::string path_;
  std::vector<std::string> fields_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
};
#endif

}  // namespace

std::vector<std::unique_ptr<Peer>> MakePeers(const std::string& folder,
                                             const std::vector<std::string>& fields) {
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(std::make_unique<JsonLines>(folder + "/week_bench.jsonl", fields));
  peers.push_back(std::make_unique<Csv>(folder + "/week_bench.csv", fields));
#ifdef EPM_HAVE_SQLITE
  peers.push_back(std::make_unique<Sqlite>(folder + "/week_bench.sqlite", fields));
#endif
  return peers;
}

}  // namespace epochmeter::bench
