// SPDX-License-Identifier: Apache-2.0
// Takes off what container runtimes, launchers and system logs wrote in front of lines, and keeps
// what it says: who wrote it, which rank, when. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/log/docker_line.h"
#include "ingest/log/log_line.h"
#include "ingest/log/segment_splitter.h"
#include "ingest/log/wrapper_learner.h"

namespace epochmeter::ingest::log {

// Wrappers may stand in each other. Those that look like a training's own text ("15: ", "gpu-01: ")
// are believed when most lines of a stretch have them; meanwhile its lines, at most 256 and
// kMostHeldBytes, wait. The other states of a bar belong to the source that began their line.
class WrapperReader : public SegmentSink {
 public:
  // Borrows the sink. `file_rank` stands for lines whose wrapper names none.
  WrapperReader(PayloadSink& sink, std::optional<int32_t> file_rank);
  ~WrapperReader() override;

  // When the next segments were written, for those whose wrapper does not say.
  void SetWallNs(std::optional<int64_t> wall_ns) { capture_wall_ns_ = wall_ns; }
  void OnSegment(const Segment& segment) override;
  // A live file has nothing more for now: lines that wait for a decision go out as they are.
  void Flush();
  // The end of the file: also what has no line end goes out.
  void Finish();

 private:
  static constexpr size_t kMostHeldBytes = 256 * 1024;
  static constexpr int kMostNested = 6;

  // A segment with what is known of it before its marks are read.
  struct Input {
    Segment segment;      // its line is that of the channel
    uint64_t place = 0;   // line of the file
    uint8_t channel = 0;  // the file itself, or one of Docker's two output streams
    std::optional<int64_t> wall_ns;
    std::string_view stamp;
  };
  // What the marks of a line said; its later segments share it.
  struct Line {
    void Clear();

    uint64_t number = 0;
    bool marked = false;
    bool cri = false;
    bool cri_error = false;
    bool partial = false;
    bool ray = false;
    std::string source;
    std::string stamp;
    std::optional<int32_t> rank;
    std::optional<int64_t> wall_ns;
  };
  // A line of which the runtime wrote only the begin yet.
  struct Part {
    std::string text;
    Line line;
    uint64_t place = 0;
  };
  struct Held {
    Input input;  // its texts stand in held_text_
    size_t text = 0, stamp = 0;
  };
  class Channel;

  bool GivePlain(const Segment& segment);
  void Take(const Input& input, bool learn);
  bool Learn(const Input& input, bool fresh, std::string_view text);
  void Hold(const Input& input);
  void Release(bool learn);
  std::string_view Strip(Line& line, std::string_view text, bool fresh);
  static void Note(Line& line, const WrapperMark& mark);
  void GiveCri(Line& line, const Input& input, std::string_view text, bool fresh);
  void Give(const Line& line, const Input& input, std::string_view text);

  PayloadSink& sink_;
  std::optional<int32_t> file_rank_;
  std::optional<int64_t> capture_wall_ns_;
  LearnedWrappers learned_;
  WrapperLearner learner_;
  uint64_t pause_ = 0;  // lines before a stretch is looked at again
  unsigned refused_ = 0;
  std::vector<Held> held_;
  std::string held_text_;
  std::array<Line, 3> lines_;         // of the channels
  std::array<Line, 3> lines_before_;  // what was held
  std::array<Part, 2> parts_;
  std::array<std::unique_ptr<Channel>, 2> docker_;
  DockerLine docker_line_;
};

}  // namespace epochmeter::ingest::log
