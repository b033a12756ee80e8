// SPDX-License-Identifier: Apache-2.0
#include "cli/recorder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/strings.h"
#include "cli/attach_target.h"
#include "cli/captured_output.h"
#include "cli/clock_watch.h"
#include "cli/core_keeper.h"
#include "cli/event_intake.h"
#include "cli/helper_process.h"
#include "cli/live_print.h"
#include "cli/predecessor.h"
#include "cli/process_priority.h"
#include "cli/record_writer.h"
#include "cli/recorder_sink.h"
#include "cli/run_facts.h"
#include "cli/sampler_link.h"
#include "cli/say.h"
#include "cli/writer_metrics.h"
#include "collect/schedule.h"
#include "collect/sources.h"
#include "model/registry.h"
#include "runfile/file_system.h"
#include "runfile/run_reader.h"

namespace epochmeter::cli {
namespace {

// On client events in one turn of the loop, and at the end of the run.
constexpr int64_t kEventsTurnNs = base::kNsPerSecond / 5;
constexpr int64_t kLastEventsNs = base::kNsPerSecond / 2;
// The launcher takes a loop that does not turn for some time for hung.
constexpr int64_t kBeatNs = 2 * base::kNsPerSecond;
// With the launcher killed: for the file's end, after the training's.
constexpr unsigned kOutlivedLauncherS = 2;
// After the training's end: how long the copy of its last output is waited for.
constexpr int64_t kLastOutputNs = 3 * base::kNsPerSecond / 2;

// Set by a signal to a recorder without a launcher; the loop looks each time it wakes.
volatile std::sig_atomic_t g_detach_requested = 0;

class Recorder {
 public:
  Recorder(const RunSettings& settings, const RecorderChannels& channels)
      : settings_(settings), channels_(channels) {}

  int Run(const RecorderStart& start) {
    LowerPriority();
    if (const base::Result<> ready = Open(start); !ready.ok()) {
      SayAtOnce("epochmeter: " + ready.error().Message() +
                "; the training goes on without recording");
      return kExitUnreadable;
    }
    if (!start.resume)
      Say("epochmeter: recording " + settings_.run_id + " to " + settings_.run_path);
    // One that died before it had written anything has left all of it to us.
    resumed_ = start.resume && writer_->info().has_value();
    if (start.training_pid > 0) FollowTraining(start.training_pid, &start);
    if (start.training_status) EndWithStatus(*start.training_status);
    while (!finished_) Step();
    return Finish();
  }

 private:
  base::Result<> Open(const RecorderStart& start) {
    // First: the socket holds 10 events, and a file may take its time to be made.
    EPM_ASSIGN(events_, EventIntake::Start(channels_.event_socket, channels_.words));
    EPM_ASSIGN(writer_, OpenWriter(start));
    if (settings_.print_ns > 0 || !settings_.print_path.empty()) MakePrinter();
    sink_ = std::make_unique<RecorderSink>(*writer_, printer_.get());
    registry_ = std::make_unique<model::Registry>(*sink_);
    // A resumed file's ids must mean the same again: same order, same ids.
    for (const model::EntityDef& entity : writer_->entities()) registry_->AddEntity(entity);
    for (const model::SeriesDef& series : writer_->series()) {
      registry_->AddSeries(series.entity, series.metric, series.period_ns);
    }
    cores_ = std::make_unique<CoreKeeper>(env_, *sink_);
    writer_metrics_ = std::make_unique<WriterMetrics>(*registry_, *sink_);
    started_ns_ = base::MonotonicNs();
    // Written again after a restart: the recorder before may have died before it was on disk. The
    // file keeps the first.
    model::RunInfo info = DescribeRun(settings_);
    if (!writer_->network_file_system().empty()) {
      info.attributes.emplace_back("run_folder_file_system", writer_->network_file_system());
    }
    run_began_ns_ = writer_->info() ? writer_->info()->anchor.mono_ns : info.anchor.mono_ns;
    sink_->Write(info);
    writer_->FlushSoon();  // what run this is, should all of it be killed now
    if (start.replacement) TellReplaced(*start.replacement, started_ns_, *sink_);
    output_ = std::make_unique<CapturedOutput>(
        *registry_, *sink_, env_,
        CapturedOutput::Options{.fd = channels_.capture,
                                .progress = settings_.output_progress,
                                .resumed = start.resume && writer_->info().has_value()});
    events_->Begin(*registry_, output_->client_sink(), {.not_before_ns = OldestEventNs(start)});
    sampler_ = SamplerLink::Make(*registry_, *sink_, settings_);
    clocks_ = std::make_unique<ClockWatch>(*sink_, base::ReadClockAnchor());
    return {};
  }

  // A file to go on with needs its disk: it is waited for, as long as the launcher has no news.
  base::Result<std::unique_ptr<RecordWriter>> OpenWriter(const RecorderStart& start) const {
    constexpr int kRetryMs = 500;
    const RecordWriter::Options options{
        .resume = start.resume, .force = settings_.force, .words = channels_.words};
    base::Result<std::unique_ptr<RecordWriter>> writer =
        RecordWriter::Open(settings_.run_path, options);
    while (start.resume && !writer.ok() && runfile::MayPass(writer.error())) {
      pollfd news{.fd = channels_.control, .events = POLLIN, .revents = 0};
      const bool last = ::poll(&news, 1, kRetryMs) > 0;
      if (channels_.words != nullptr) channels_.words->beat_ns = -base::MonotonicNs();
      writer = RecordWriter::Open(settings_.run_path, options);
      if (last) break;
    }
    return writer;
  }

  // Events older than the recording are garbage, but those of a training that was there before.
  int64_t OldestEventNs(const RecorderStart& start) const {
    constexpr int64_t kClockSlackNs = 10 * base::kNsPerSecond;
    const bool older = start.resume || start.training_pid > 0;
    return older ? 0 : started_ns_ - kClockSlackNs;
  }

  void MakePrinter() {
    const int64_t period_ns = settings_.print_ns > 0 ? settings_.print_ns : 5 * base::kNsPerSecond;
    base::Result<std::unique_ptr<LivePrinter>> printer =
        LivePrinter::Make(period_ns, settings_.print_path);
    if (printer.ok()) {
      printer_ = std::move(printer).value();
    } else {
      SayAtOnce("epochmeter: " + printer.error().Message() + "; live lines are off");
    }
  }

  void Say(const std::string& line) const {
    if (settings_.quiet) return;
    std::string text = line;
    if (settings_.json) {
      base::JsonWriter json;
      json.BeginObject().Field("message", line).Field("run_id", settings_.run_id);
      text = json.Field("run", settings_.run_path).EndObject().Take();
    }
    SayAtOnce(text);
  }

  // Starts what needs the training's pid: the sampler, the process tree, and its end by pidfd.
  // `start` is given when the process was there before us.
  void FollowTraining(pid_t pid, const RecorderStart* start = nullptr) {
    if (schedule_) return;
    job_.root_pid = pid;
    context_ = std::make_unique<collect::SourceContext>(
        collect::SourceContext{.env = env_,
                               .registry = *registry_,
                               .sink = *sink_,
                               .tick_ns = settings_.interval_ns,
                               .job = job_,
                               .cpu_ratio = settings_.recorder_cpu_ratio()});
    schedule_ = collect::Schedule::Make(*context_, collect::HostSources(), "recorder");
    cores_->Follow(pid, base::MonotonicNs());
    if (settings_.gpu) sampler_->Start(pid);
    if (start != nullptr && start->training_start_ticks != 0) {
      training_start_ticks_ = start->training_start_ticks;
      training_ = base::UniqueFd(::fcntl(start->training_fd, F_DUPFD_CLOEXEC, 3));
    } else {
      training_ = base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    }
    if (settings_.record_for_ns > 0) leave_at_ns_ = run_began_ns_ + settings_.record_for_ns;
    if (resumed_) return;
    const char* name = settings_.attached ? "training_attached" : "training_started";
    sink_->Write(model::Event{.t_ns = base::MonotonicNs(),
                              .kind = model::EventKind::kProcess,
                              .rank = {},
                              .epoch = {},
                              .step = {},
                              .name = name,
                              .fields = {{.key = "pid", .value = static_cast<int64_t>(pid)}}});
  }

  int64_t NextDueNs() const {
    int64_t due_ns = std::min(clocks_->NextDueNs(), sampler_->NextDueNs());
    due_ns = std::min(due_ns, output_->NextDueNs());
    if (channels_.words != nullptr) due_ns = std::min(due_ns, base::MonotonicNs() + kBeatNs);
    due_ns = std::min(due_ns, cores_->NextDueNs());
    if (schedule_) due_ns = std::min(due_ns, schedule_->NextDueNs());
    if (printer_) due_ns = std::min(due_ns, printer_->NextDueNs());
    if (ended_) due_ns = std::min(due_ns, ended_ns_ + kLastOutputNs);
    if (leave_at_ns_ > 0) due_ns = std::min(due_ns, leave_at_ns_);
    // Without a pidfd the training's end is looked for each second.
    if (!LauncherTellsTheEnd() && !training_.valid()) {
      due_ns = std::min(due_ns, base::MonotonicNs() + base::kNsPerSecond);
    }
    return due_ns;
  }

  void Step() {
    Wait(events_->HasBacklog() ? base::MonotonicNs() : NextDueNs());
    TakeControl();
    output_->Take();
    events_->Take(base::MonotonicNs() + kEventsTurnNs);
    const int64_t now_ns = base::MonotonicNs();
    if (channels_.words != nullptr) channels_.words->beat_ns = now_ns;
    events_->TellDropped(now_ns);
    for (const std::string& list : sink_->TakeNamedGpus()) {
      for (const std::string_view name : base::Split(list, ',')) {
        sampler_->NameGpu(std::string(base::Trim(name)));
      }
    }
    if (sink_->TakeBoundary()) SampleBoundary(now_ns);
    if (schedule_ && schedule_->NextDueNs() <= now_ns) schedule_->RunDue(now_ns);
    sampler_->Maintain(now_ns);
    cores_->Maintain(now_ns);
    writer_metrics_->Maintain(now_ns, *writer_);
    if (printer_) printer_->Tick(now_ns);
    clocks_->Maintain(now_ns);
    output_->Maintain(now_ns);
    if (ended_ && now_ns >= ended_ns_ + kLastOutputNs) finished_ = true;
  }

  void Wait(int64_t due_ns) {
    const int64_t wait_ns = std::max<int64_t>(0, due_ns - base::MonotonicNs());
    const timespec timeout{.tv_sec = wait_ns / base::kNsPerSecond,
                           .tv_nsec = wait_ns % base::kNsPerSecond};
    pollfd polls[] = {
        {.fd = events_->wake_fd(), .events = POLLIN, .revents = 0},
        {.fd = control_open_ ? channels_.control : -1, .events = POLLIN, .revents = 0},
        {.fd = output_->fd(), .events = POLLIN, .revents = 0},
        {.fd = sampler_->fd(), .events = POLLIN, .revents = 0},
        {.fd = ended_ || LauncherTellsTheEnd() ? -1 : training_.get(),
         .events = POLLIN,
         .revents = 0}};
    const bool any = ::ppoll(polls, 5, &timeout, nullptr) > 0;
    if (LauncherTellsTheEnd() || ended_) return;
    // Without a launcher it can be known only that the training ended, not how.
    const bool gone = training_.valid() ? any && polls[4].revents != 0 : !TrainingRuns();
    if (gone) End(settings_.attached ? "exited" : "lost", std::nullopt);
    const bool time_is_up = leave_at_ns_ > 0 && base::MonotonicNs() >= leave_at_ns_;
    if (g_detach_requested != 0 || time_is_up) End("detached", std::nullopt);
  }

  // For kernels without pidfd.
  bool TrainingRuns() const {
    if (training_start_ticks_ != 0) return StillRuns(job_.root_pid, training_start_ticks_);
    return ::kill(job_.root_pid, 0) == 0 || errno == EPERM;
  }

  // The launcher says how the training ended, while it is there.
  bool LauncherTellsTheEnd() const { return control_open_ && channels_.control >= 0; }

  void TakeControl() {
    ControlMessage message;
    while (control_open_ && channels_.control >= 0) {
      const ssize_t n = ::recv(channels_.control, &message, sizeof message, MSG_DONTWAIT);
      if (n < 0) return;
      if (n == 0) {
        control_open_ = false;
        if (ended_) finished_ = true;  // the launcher has passed on all output
        launcher_gone_ = !ended_;
        if (job_.root_pid == 0 && !ended_) End("lost", std::nullopt);
        ::unlink(settings_.socket_path.c_str());  // a launcher that was killed left it
        return;
      }
      if (n != static_cast<ssize_t>(sizeof message)) continue;
      if (message.kind == ControlMessage::Kind::kTrainingStarted) FollowTraining(message.pid);
      if (message.kind == ControlMessage::Kind::kTrainingEnded) EndWithStatus(message.wait_status);
      if (message.kind == ControlMessage::Kind::kHelperReplaced) {
        TellReplaced(message, base::MonotonicNs(), *sink_);
      }
    }
  }

  void EndWithStatus(int status) { End(WIFSIGNALED(status) ? "signalled" : "exited", status); }

  // The moment of the end: last samples now, while the GPU still shows what was.
  void End(const char* reason, std::optional<int> status) {
    if (ended_) return;
    ended_ = true;
    ended_ns_ = base::MonotonicNs();
    end_ = {.t_ns = ended_ns_, .reason = reason, .exit_code = {}, .signal = {}};
    if (status && WIFEXITED(*status)) end_.exit_code = WEXITSTATUS(*status);
    if (status && WIFSIGNALED(*status)) end_.signal = WTERMSIG(*status);
    sampler_->SampleNow();
    if (schedule_) schedule_->RunAtEnd(ended_ns_);
    writer_->FlushSoon();
    if (!LauncherTellsTheEnd()) finished_ = true;
    // Nobody else ends us when the disk stands still.
    if (launcher_gone_) DieWithin(kOutlivedLauncherS);
  }

  void SampleBoundary(int64_t now_ns) {
    if (schedule_) schedule_->RunAtEpoch(now_ns);
    sampler_->SampleNow();
    writer_->FlushSoon();
  }

  int Finish() {
    if (channels_.words != nullptr) channels_.words->finishing = true;
    output_->Take();
    // The launcher waits two seconds for the file's end, however much a flood has left.
    const int64_t until_ns = base::MonotonicNs() + kLastEventsNs;
    events_->Drain(until_ns);
    sampler_->Stop();
    clocks_->Look();
    events_->Finish(base::MonotonicNs());
    output_->Finish(end_, base::MonotonicNs());
    const base::Result<> result = writer_->Finish(end_);
    printer_.reset();
    if (!result.ok()) {
      SayAtOnce("epochmeter: recorded in part only: " + result.error().Message());
      return kExitPartial;
    }
    Say("epochmeter: " + EndText() + " -> " + writer_->path());
    Say("epochmeter: next: epochmeter report " + writer_->path());
    return kExitOk;
  }

  // Those that a recorder before this one took as well. 0, and so untold, for a file that takes
  // long to read: the launcher waits for us.
  uint64_t EpochsInFile() const {
    struct stat about {};
    constexpr off_t kQuicklyRead = off_t{32} << 20;
    if (::stat(settings_.run_path.c_str(), &about) != 0 || about.st_size > kQuicklyRead) return 0;
    const auto run = runfile::OpenRun(settings_.run_path);
    if (!run.ok()) return 0;
    return static_cast<uint64_t>(
        std::count_if(run->events.begin(), run->events.end(), IsEpochOfFirstRank));
  }

  std::string EndText() const {
    std::string text =
        "recorded " + base::FormatDuration(base::SecondsFromNs(ended_ns_ - run_began_ns_));
    const uint64_t epochs = resumed_ ? EpochsInFile() : sink_->epochs();
    if (epochs > 0) text += ", " + std::to_string(epochs) + " epochs";
    if (end_.exit_code) text += ", exit " + std::to_string(*end_.exit_code);
    if (end_.signal) text += ", signal " + std::to_string(*end_.signal);
    return text;
  }

  const RunSettings& settings_;
  RecorderChannels channels_;
  const model::Env env_;
  collect::JobScope job_;
  std::unique_ptr<RecordWriter> writer_;
  std::unique_ptr<LivePrinter> printer_;
  std::unique_ptr<RecorderSink> sink_;
  std::unique_ptr<model::Registry> registry_;
  std::unique_ptr<CapturedOutput> output_;
  std::unique_ptr<EventIntake> events_;
  std::unique_ptr<SamplerLink> sampler_;
  std::unique_ptr<CoreKeeper> cores_;
  std::unique_ptr<ClockWatch> clocks_;
  std::unique_ptr<WriterMetrics> writer_metrics_;
  std::unique_ptr<collect::SourceContext> context_;
  std::unique_ptr<collect::Schedule> schedule_;
  base::UniqueFd training_;  // pidfd
  uint64_t training_start_ticks_ = 0;
  int64_t leave_at_ns_ = 0;  // 0: at the training's end
  int64_t started_ns_ = 0, run_began_ns_ = 0, ended_ns_ = 0;
  bool resumed_ = false;
  bool control_open_ = true, launcher_gone_ = false, ended_ = false, finished_ = false;
  model::RunEnd end_;
};

}  // namespace

void RequestDetach(int) { g_detach_requested = 1; }

int RunRecorder(const RunSettings& settings, const RecorderChannels& channels,
                const RecorderStart& start) {
  return Recorder(settings, channels).Run(start);
}

}  // namespace epochmeter::cli
