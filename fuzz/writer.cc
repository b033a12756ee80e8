// SPDX-License-Identifier: Apache-2.0
// What a recorder does to a run file, by the fuzzer's bytes: records, flushes, seals, full disks,
// and crashes of the writer that another one resumes from. What is read back at the end is what
// was written, bit by bit; after a crash, everything up to the last flush that succeeded. The file
// is intact, unless a record of it tells that an earlier one was not.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz/make_record.h"
#include "fuzz/output.h"
#include "fuzz/run_image.h"
#include "fuzz/target.h"
#include "model/run_builder.h"
#include "runfile/record_codec.h"
#include "runfile/run_reader.h"
#include "runfile/run_writer.h"
#include "runfile/unsealed.h"

namespace epochmeter::fuzz {
namespace {

class Session {
 public:
  explicit Session(Input& in) : in_(in), options_{.file_system = &files_} {
    options_.ticks_per_seal = static_cast<uint32_t>(2 + in_.Below(8));
    auto created = runfile::RunWriter::Create(kRunPath, options_);
    EPM_CHECK(created.ok()) << created.error().Message();
    writer_ = std::move(*created);
    Write(MakeRunInfo(in_));
    const auto count = static_cast<uint32_t>(1 + in_.Below(kSeries));
    for (uint32_t id = 0; id < kEntities; ++id) Write(MakeEntity(in_, id));
    for (uint32_t id = 0; id < count; ++id) Define(MakeSeries(in_, id));
    Flush();
  }

  void Step() {
    switch (in_.Below(12)) {
      case 0:
        return Write(MakeEvent(in_, &now_ns_));
      case 1:
        return Write(MakeLog(in_, &now_ns_));
      case 2:
        return Write(MakeState(in_, &now_ns_));
      case 3:
        return Write(MakeLoss(in_, &now_ns_));
      case 4:
        return Write(model::Anchor{.clocks = MakeRunInfo(in_).anchor});
      case 5:
        return Flush();
      case 6:
        EPM_CHECK(writer_->Seal().ok());
        flushed_ = written_.size();
        return;
      case 7:
        return Crash();
      case 8:
        return FailOnce();
      default:
        return WriteSamples();
    }
  }

  void Finish() {
    const auto ended = writer_->Finish(MakeEnd(in_, &now_ns_));
    EPM_CHECK(ended.ok()) << ended.error().Message();
    writer_.reset();
    const auto run = runfile::OpenRun(kRunPath, &files_);
    EPM_CHECK(run.ok()) << run.error().Message();
    const auto verified = runfile::VerifyRun(kRunPath, &files_);
    EPM_CHECK(verified.ok() && verified->finished);
    EPM_CHECK(verified->Intact() != TellsDamage());
    CheckStore(*run);
    Compare(*run);
  }

 private:
  void Write(const model::Record& record) {
    writer_->Write(record);
    written_.push_back(record);
  }

  void Define(model::SeriesDef series) {
    if (!(series.metric.resolution >= 0)) series.metric.resolution = 0;
    known_.Add(series, {});
    Write(series);
  }

  // As they are kept: in steps of the resolution, without those of unknown series.
  void WriteSamples() {
    model::Samples samples = MakeSamples(in_, &now_ns_);
    writer_->Write(samples);
    known_.MakeStorable(samples);
    written_.emplace_back(std::move(samples));
  }

  void Flush() {
    const auto done = writer_->Flush();
    EPM_CHECK(done.ok()) << done.error().Message();
    flushed_ = written_.size();
  }

  // The disk is full for one operation; the next flush must bring everything.
  void FailOnce() {
    const uint64_t at = files_.operations() + in_.Below(6);
    const size_t part = in_.Byte();
    files_.on_operation = [at, part](uint64_t number) {
      std::optional<runfile::MemoryFileSystem::Fault> fault;
      if (number == at) fault = {.error = ENOSPC, .written_bytes = part};
      return fault;
    };
    (void)(in_.Bit() ? writer_->Seal() : writer_->Flush());
    files_.on_operation = nullptr;
    Flush();
  }

  void Crash() {
    writer_.reset();
    written_.resize(flushed_);
    auto resumed = runfile::RunWriter::Resume(kRunPath, options_);
    EPM_CHECK(resumed.ok()) << resumed.error().Message();
    writer_ = std::move(*resumed);
  }

  // As a recovery does, which writes what it had to leave behind.
  bool TellsDamage() const {
    return std::any_of(written_.begin(), written_.end(), [](const model::Record& record) {
      const auto* loss = std::get_if<model::Loss>(&record);
      return loss != nullptr && loss->kind.starts_with("file.") &&
             loss->severity != model::LossSeverity::kInfo;
    });
  }

  void Compare(const model::Run& run) const {
    model::RunBuilder builder;
    for (const model::Record& record : written_) builder.Write(record);
    const model::Run expected = builder.Finish();
    EPM_CHECK(run.entities == expected.entities && run.info == expected.info);
    EPM_CHECK(Events(run) == Events(expected)) << "events differ";
    EPM_CHECK(run.states == expected.states) << "states differ";
    EPM_CHECK(run.anchors == expected.anchors) << "anchors differ";
    EPM_CHECK(Texts(run) == Texts(expected)) << "text differs";
    for (const auto& [process, steps] : expected.steps) {
      const auto found = run.steps.find(process);
      EPM_CHECK(found != run.steps.end() && found->second.size() == steps.size());
      EPM_CHECK(found->second.t_ns == steps.t_ns && found->second.step == steps.step);
    }
    for (size_t id = 0; id < expected.series.size(); ++id) CompareSeries(run, expected, id);
  }

  static void CompareSeries(const model::Run& run, const model::Run& expected, size_t id) {
    const auto series = static_cast<model::SeriesId>(id);
    const auto found = run.store->Read(series, {}), wanted = expected.store->Read(series, {});
    EPM_CHECK(found.ok() && wanted.ok());
    EPM_CHECK(found->t_ns == wanted->t_ns) << "times of series " << id << " differ";
    for (size_t i = 0; i < wanted->value.size(); ++i) {
      EPM_CHECK(std::bit_cast<uint64_t>(found->value[i]) ==
                std::bit_cast<uint64_t>(wanted->value[i]))
          << "series " << id << ": " << found->value[i] << " in place of " << wanted->value[i];
    }
  }

  // By their encoding, because a NaN is not equal to itself.
  static std::string Events(const model::Run& run) {
    std::string all;
    for (const model::Event& event : run.events) all += Encoded(event);
    return all;
  }
  // A piece may be stored as several.
  static std::map<uint8_t, std::string> Texts(const model::Run& run) {
    std::map<uint8_t, std::string> texts;
    for (const model::LogText& piece : run.log) texts[piece.stream] += piece.text;
    return texts;
  }

  Input& in_;
  runfile::MemoryFileSystem files_;
  runfile::RunWriter::Options options_;
  std::unique_ptr<runfile::RunWriter> writer_;
  runfile::Unsealed known_;  // only to ask what can be stored
  std::vector<model::Record> written_;
  size_t flushed_ = 0;
  int64_t now_ns_ = 0;
};

}  // namespace

void FeedWriter(std::string_view bytes) {
  Input in(bytes);
  Session session(in);
  // More would only repeat, and each may be a sync of all that is there.
  for (int i = 0; i < 400 && !in.done(); ++i) session.Step();
  session.Finish();
}

}  // namespace epochmeter::fuzz
