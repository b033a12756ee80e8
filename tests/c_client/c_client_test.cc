// SPDX-License-Identifier: Apache-2.0
#include <epochmeter/epochmeter.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "ingest/protocol.h"
#include "model/registry.h"
#include "model/sink.h"

namespace epochmeter {
namespace {

using Json = nlohmann::json;

// Bound to a path of its own for as long as it lives.
class Receiver {
 public:
  explicit Receiver(const std::string& path) : path_(path) {
    fd_ = base::UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Receiver() { ::unlink(path_.c_str()); }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::vector<std::string> Take() {
    std::vector<std::string> found;
    std::string buffer(9000, '\0');
    for (;;) {
      const ssize_t size = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (size < 0) return found;
      found.push_back(buffer.substr(0, static_cast<size_t>(size)));
    }
  }

 private:
  std::string path_;
  base::UniqueFd fd_;
};

class CClient : public testing::Test {
 protected:
  CClient() {
    char folder[] = "/tmp/epmcXXXXXX";
    folder_ = ::mkdtemp(folder);
    path_ = folder_ + "/s";
    ::setenv("EPOCHMETER_SOCKET", path_.c_str(), 1);
    for (const char* name : {"EPOCHMETER", "RANK", "LOCAL_RANK", "WORLD_SIZE"}) ::unsetenv(name);
  }
  ~CClient() override {
    epochmeter_close(run_.get());
    ::unsetenv("EPOCHMETER_SOCKET");
    std::filesystem::remove_all(folder_);
  }

  // Every datagram must be one that the recorder's own decoder takes; what it counts as lost is
  // only what the client says that it lost.
  static std::vector<Json> Decoded(const std::vector<std::string>& datagrams) {
    model::MemorySink sink;
    model::Registry registry(sink);
    ingest::ProtocolDecoder decoder(registry, sink);
    std::vector<Json> found;
    for (const std::string& datagram : datagrams) {
      const int64_t now_ns = epochmeter_now_ns_(CLOCK_MONOTONIC);
      EXPECT_NE(decoder.Decode(datagram, now_ns, std::nullopt), nullptr) << datagram;
      found.push_back(Json::parse(datagram));
    }
    for (const auto& record : sink.records) {
      const auto* loss = std::get_if<model::Loss>(&record);
      if (loss == nullptr) continue;
      EXPECT_EQ(loss->kind, "client.dropped");
    }
    return found;
  }

  std::string folder_, path_;
  std::unique_ptr<epochmeter_run> run_ = [] {
    auto made = std::make_unique<epochmeter_run>();
    made->fd = -1;
    return made;
  }();
};

void CallAll(epochmeter_run* run) {
  const epochmeter_scalar values[] = {{"loss", 0.5}, {"lr", 1e-3}};
  const epochmeter_memory memory = {1, 100, 200, 300, -1};
  epochmeter_train_begin(run, 2, -1, 32);
  epochmeter_epoch_begin(run, 7, 1);
  epochmeter_data_ready(run);
  epochmeter_step(run, 32, values, 2);
  epochmeter_step(run, -1, nullptr, 0);
  epochmeter_log(run, values, 1);
  epochmeter_report_memory(run, &memory);
  epochmeter_mark(run, "here");
  epochmeter_epoch_end(run, 1, values, 1);
}

void CallRest(epochmeter_run* run) {
  epochmeter_phase_begin(run, "eval");
  epochmeter_phase_end(run, "eval", nullptr, 0);
  epochmeter_exception(run, "CUDA error", "out of memory");
  epochmeter_train_end(run, "failed");
}

TEST_F(CClient, RingsForBeginsAndEndsAndNotForSteps) {
  Receiver receiver(path_);
  const base::UniqueFd bell(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path + 1, sizeof address.sun_path - 2);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path_.size());
  ASSERT_EQ(::bind(bell.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  epochmeter_open(run_.get(), "mine");
  epochmeter_train_begin(run_.get(), 1, 2, 8);
  epochmeter_epoch_begin(run_.get(), 0, 0);
  epochmeter_step(run_.get(), 8, nullptr, 0);
  epochmeter_step(run_.get(), 8, nullptr, 0);
  epochmeter_epoch_end(run_.get(), 0, nullptr, 0);
  epochmeter_train_end(run_.get(), "completed");
  int rings = 0;
  char byte = 0;
  while (::recv(bell.get(), &byte, sizeof byte, 0) == 0) ++rings;
  EXPECT_EQ(rings, 4);
  EXPECT_EQ(Decoded(receiver.Take()).size(), 7U);
}

TEST_F(CClient, EachCallIsAnEventThatTheRecorderTakes) {
  Receiver receiver(path_);
  ::setenv("RANK", "3", 1);
  ::setenv("WORLD_SIZE", "4", 1);
  ASSERT_EQ(epochmeter_open(run_.get(), "mine"), 1);
  CallAll(run_.get());
  std::vector<std::string> datagrams = receiver.Take();
  CallRest(run_.get());
  for (std::string& datagram : receiver.Take()) datagrams.push_back(std::move(datagram));
  const std::vector<Json> events = Decoded(datagrams);
  std::vector<std::string> kinds;
  for (const Json& event : events) {
    EXPECT_EQ(event["seq"], kinds.size());
    EXPECT_EQ(event["rank"], 3);
    kinds.push_back(event["kind"]);
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"hello", "train_begin", "epoch_begin", "step", "step",
                                             "scalar", "memory", "mark", "epoch_end", "phase_begin",
                                             "phase_end", "exception", "train_end"}));
  EXPECT_EQ(events[0]["world"], 4);
  EXPECT_EQ(events[0]["rank_source"], "torchrun");
  EXPECT_EQ(events[1]["epochs"], 2);
  EXPECT_FALSE(events[1].contains("steps_per_epoch")) << "not known";
  EXPECT_EQ(events[3]["scalars"], (Json{{"loss", 0.5}, {"lr", 1e-3}}));
  EXPECT_TRUE(events[3].contains("data_wait_s"));
  EXPECT_FALSE(events[4].contains("data_wait_s")) << "nobody said when the batch was there";
  EXPECT_EQ(events[4]["step_in_epoch"], 2);
  EXPECT_EQ(events[6]["max_allocated_bytes"], 300);
  EXPECT_FALSE(events[6].contains("max_reserved_bytes"));
  EXPECT_EQ(events[8]["steps"], 2);
  EXPECT_EQ(events[8]["partial"], true);
}

TEST_F(CClient, WithoutARecorderNothingHappens) {
  ::unsetenv("EPOCHMETER_SOCKET");
  EXPECT_EQ(epochmeter_open(run_.get(), "mine"), 0);
  CallAll(run_.get());
  CallRest(run_.get());
  EXPECT_EQ(epochmeter_dropped(run_.get()), 0);
}

TEST_F(CClient, TheSwitchTurnsItOff) {
  Receiver receiver(path_);
  for (const char* word : {"0", "off", "false", "no"}) {
    ::setenv("EPOCHMETER", word, 1);
    EXPECT_EQ(epochmeter_open(run_.get(), "mine"), 0);
    CallAll(run_.get());
  }
  ::unsetenv("EPOCHMETER");
  EXPECT_TRUE(receiver.Take().empty());
}

TEST_F(CClient, AnyNameAndNumberIsGoodJson) {
  Receiver receiver(path_);
  epochmeter_open(run_.get(), "a \"framework\"\\");
  const std::string longest(300, 'x');
  const std::string cut = std::string(199, 'y') + "\u00e9";
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const epochmeter_scalar odd[] = {
      {"nan", std::nan("")},   {"inf", kInfinity},        {"-inf", -kInfinity}, {"tab\t\n", -0.1},
      {"bad \xff\xc3", 1e308}, {longest.c_str(), 5e-324}, {cut.c_str(), 0.0}};
  epochmeter_log(run_.get(), odd, 7);
  const std::vector<Json> events = Decoded(receiver.Take());
  ASSERT_EQ(events.size(), 2U);
  const Json& scalars = events[1]["scalars"];
  EXPECT_EQ(scalars["nan"], "NaN");
  EXPECT_EQ(scalars["inf"], "Infinity");
  EXPECT_EQ(scalars["-inf"], "-Infinity");
  EXPECT_EQ(scalars["tab\t\n"], -0.1);
  EXPECT_EQ(scalars["bad ??"], 1e308);
  EXPECT_EQ(scalars[std::string(200, 'x')], 5e-324);
  EXPECT_EQ(scalars[std::string(199, 'y')], 0.0);
}

TEST_F(CClient, WhatTheReceiverHasNoRoomForComesLaterInOrder) {
  Receiver receiver(path_);
  epochmeter_open(run_.get(), "mine");
  epochmeter_train_begin(run_.get(), -1, -1, -1);
  // Far more than the queue of a datagram socket holds, and less than the backlog.
  for (int i = 0; i < 400; ++i) epochmeter_step(run_.get(), 1, nullptr, 0);
  std::vector<std::string> datagrams = receiver.Take();
  EXPECT_LT(datagrams.size(), 402U) << "the queue held all: the test shows nothing";
  while (run_->backlog_size > 0) {
    epochmeter_flush_(run_.get());
    for (std::string& datagram : receiver.Take()) datagrams.push_back(std::move(datagram));
  }
  const std::vector<Json> events = Decoded(datagrams);
  ASSERT_EQ(events.size(), 402U);
  for (size_t i = 0; i < events.size(); ++i) ASSERT_EQ(events[i]["seq"], i);
  EXPECT_EQ(epochmeter_dropped(run_.get()), 0);
}

TEST_F(CClient, WhatFitsNowhereIsCountedAndTold) {
  Receiver receiver(path_);
  epochmeter_open(run_.get(), "mine");
  for (int i = 0; i < 3000; ++i) epochmeter_step(run_.get(), 1, nullptr, 0);
  const int64_t lost = epochmeter_dropped(run_.get());
  EXPECT_GT(lost, 0);
  size_t came = 0;
  while (run_->backlog_size > 0) {
    epochmeter_flush_(run_.get());
    came += receiver.Take().size();
  }
  EXPECT_EQ(came + static_cast<size_t>(lost), 3001U);
  epochmeter_mark(run_.get(), "later");
  EXPECT_EQ(Decoded(receiver.Take()).at(0)["dropped"], lost);
}

TEST_F(CClient, AnEventTooLongForADatagramIsLostAlone) {
  Receiver receiver(path_);
  epochmeter_open(run_.get(), "mine");
  const std::string name(190, 'n');
  const std::vector<epochmeter_scalar> many(60, {name.c_str(), 1.0});
  epochmeter_log(run_.get(), many.data(), 60);
  epochmeter_mark(run_.get(), "after");
  const std::vector<Json> events = Decoded(receiver.Take());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1]["name"], "after");
  EXPECT_EQ(events[1]["dropped"], 1);
}

TEST_F(CClient, AReceiverThatComesBackGetsAHello) {
  {
    Receiver first(path_);
    epochmeter_open(run_.get(), "mine");
  }
  epochmeter_mark(run_.get(), "lost");
  Receiver second(path_);
  run_->look_again_ns = 0;
  epochmeter_mark(run_.get(), "found");
  const std::vector<Json> events = Decoded(second.Take());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["name"], "found");
  EXPECT_EQ(events[0]["dropped"], 1);
  EXPECT_EQ(events[1]["kind"], "hello");
}

TEST_F(CClient, AForkedChildSaysNothing) {
  Receiver receiver(path_);
  epochmeter_open(run_.get(), "mine");
  receiver.Take();
  const pid_t child = ::fork();
  if (child == 0) {
    epochmeter_mark(run_.get(), "child");
    epochmeter_close(run_.get());
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(receiver.Take().empty());
}

}  // namespace
}  // namespace epochmeter
