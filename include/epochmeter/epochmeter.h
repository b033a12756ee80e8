/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C client of the epochmeter flight recorder: one header for C99 and C++, without a library.
 *
 *     struct epochmeter_run run;
 *     epochmeter_open(&run, "my-trainer");        // does nothing below where nobody records
 *     epochmeter_train_begin(&run, 10, steps_per_epoch, batch_size);
 *     for (int epoch = 0; epoch < 10; epoch++) {
 *       epochmeter_epoch_begin(&run, epoch, 0);
 *       for (...) { load(); epochmeter_data_ready(&run); train();
 *                   struct epochmeter_scalar values[] = {{"loss", loss}};
 *                   epochmeter_step(&run, batch_size, values, 1); }
 *       epochmeter_epoch_end(&run, 0, NULL, 0);
 *     }
 *     epochmeter_train_end(&run, "completed");
 *     epochmeter_close(&run);
 *
 * Run the program under `epochmeter run -- ./trainer`, which sets EPOCHMETER_SOCKET.
 *
 * No call waits, allocates, prints or fails: what the recorder has no room for is kept in the
 * struct (64 KiB) and sent later, what does not fit there is counted and reported. A step costs one
 * system call. The struct belongs to one thread at a time; in a forked child its calls do nothing.
 * Numbers below zero mean "not known" where a count is asked for, and are then not sent.
 *
 * With -std=c99 or -std=c11 define _POSIX_C_SOURCE as 200809L before the first include.
 */
#ifndef EPOCHMETER_EPOCHMETER_H_
#define EPOCHMETER_EPOCHMETER_H_

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EPOCHMETER_MAX_DATAGRAM = 8192, EPOCHMETER_BACKLOG = 65536, EPOCHMETER_MAX_NAME = 200 };

struct epochmeter_scalar {
  const char* name; /* UTF-8 */
  double value;     /* NaN and infinities are kept */
};

/* A framework's own allocator, in bytes; below zero: not known. */
struct epochmeter_memory {
  int device; /* the framework's number of the GPU */
  int64_t allocated_bytes, reserved_bytes, max_allocated_bytes, max_reserved_bytes;
};

/* Everything in it is private. */
struct epochmeter_run {
  int fd; /* -1: nobody records */
  int rank, local_rank, world;
  const char* rank_source;
  pid_t pid;
  int connected, gone;
  struct sockaddr_un address;
  char framework[64];
  int64_t seq, dropped, step, step_in_epoch, epoch, epoch_steps;
  int64_t last_end_ns, epoch_began_ns, phase_began_ns, data_wait_ns, look_again_ns;
  size_t text_size, backlog_size;
  int overflow; /* the event in `text` did not fit */
  char text[EPOCHMETER_MAX_DATAGRAM];
  char backlog[EPOCHMETER_BACKLOG]; /* datagrams, each behind its size in two bytes */
};

/* ---- What follows is how it works; the functions to call are at the end. ---- */

static inline int64_t epochmeter_now_ns_(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void epochmeter_put_(struct epochmeter_run* run, const char* bytes, size_t size) {
  if (run->text_size + size > sizeof run->text) {
    run->overflow = 1;
    return;
  }
  memcpy(run->text + run->text_size, bytes, size);
  run->text_size += size;
}

static inline void epochmeter_word_(struct epochmeter_run* run, const char* word) {
  epochmeter_put_(run, word, strlen(word));
}

static inline void epochmeter_int_(struct epochmeter_run* run, const char* key, int64_t value) {
  char text[64];
  if (value < 0) return;
  snprintf(text, sizeof text, ",\"%s\":%lld", key, (long long)value);
  epochmeter_word_(run, text);
}

/* A JSON number in any locale, or the word that the protocol has for what JSON cannot say. */
static inline void epochmeter_real_(struct epochmeter_run* run, double value) {
  char text[40];
  char* at;
  if (isnan(value)) {
    epochmeter_word_(run, "\"NaN\"");
    return;
  }
  if (isinf(value)) {
    epochmeter_word_(run, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return;
  }
  snprintf(text, sizeof text, "%.17g", value);
  for (at = text; *at != 0; at++) {
    if (strchr("0123456789+-eE", *at) == NULL) *at = '.';
  }
  epochmeter_word_(run, text);
}

static inline void epochmeter_seconds_(struct epochmeter_run* run, const char* key, int64_t ns) {
  if (ns < 0) return;
  epochmeter_word_(run, ",\"");
  epochmeter_word_(run, key);
  epochmeter_word_(run, "\":");
  epochmeter_real_(run, (double)ns / 1e9);
}

/* Bytes of the UTF-8 character at `at`; 0 when there is none. */
static inline size_t epochmeter_character_(const unsigned char* at) {
  size_t size = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
  size_t i;
  if (at[0] > 0xf4) return 0;
  for (i = 1; i < size; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  if (size == 3 && ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f))) return 0;
  if (size == 4 && ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))) return 0;
  return size;
}

/* `text` as a JSON string of at most `most` bytes; what is no UTF-8 becomes '?'. */
static inline void epochmeter_string_(struct epochmeter_run* run, const char* text, size_t most) {
  const unsigned char* at = (const unsigned char*)text;
  size_t used = 0;
  char escape[8];
  epochmeter_word_(run, "\"");
  while (*at != 0) {
    size_t size = epochmeter_character_(at);
    if (used + (size == 0 ? 1 : size) > most) break;
    if (size == 0) {
      epochmeter_word_(run, "?");
    } else if (*at < 0x20) {
      snprintf(escape, sizeof escape, "\\u%04x", *at);
      epochmeter_word_(run, escape);
    } else {
      if (*at == '"' || *at == '\\') epochmeter_word_(run, "\\");
      epochmeter_put_(run, (const char*)at, size);
    }
    used += size == 0 ? 1 : size;
    at += size == 0 ? 1 : size;
  }
  epochmeter_word_(run, "\"");
}

static inline void epochmeter_text_(struct epochmeter_run* run, const char* key, const char* text,
                                    size_t most) {
  if (text == NULL || *text == 0) return;
  epochmeter_word_(run, ",\"");
  epochmeter_word_(run, key);
  epochmeter_word_(run, "\":");
  epochmeter_string_(run, text, most);
}

static inline void epochmeter_scalars_(struct epochmeter_run* run,
                                       const struct epochmeter_scalar* scalars, int count) {
  int i;
  if (count <= 0) return;
  for (i = 0; i < count; i++) {
    epochmeter_word_(run, i == 0 ? ",\"scalars\":{" : ",");
    epochmeter_string_(run, scalars[i].name, EPOCHMETER_MAX_NAME);
    epochmeter_word_(run, ":");
    epochmeter_real_(run, scalars[i].value);
  }
  epochmeter_word_(run, "}");
}

/* 1: sent; 0: the recorder has no room now; -1: nobody is there, or it can never be sent. */
static inline int epochmeter_try_(struct epochmeter_run* run, const char* bytes, size_t size) {
  int again;
  for (again = 0; again < 2; again++) {
    if (run->connected) {
      if (send(run->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return 1;
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == EINTR) return 0;
      run->connected = 0;
    }
    /* A recorder that was restarted listens on the same path. */
    if (epochmeter_now_ns_(CLOCK_MONOTONIC) < run->look_again_ns) return -1;
    run->connected =
        connect(run->fd, (const struct sockaddr*)&run->address, sizeof run->address) == 0;
    if (!run->connected) {
      run->look_again_ns = epochmeter_now_ns_(CLOCK_MONOTONIC) + 10000000;
      return -1;
    }
  }
  return -1;
}

/* Sends what waits, oldest first; 1 when nothing waits any more. */
static inline int epochmeter_flush_(struct epochmeter_run* run) {
  size_t at = 0;
  while (at < run->backlog_size) {
    const unsigned char* head = (const unsigned char*)run->backlog + at;
    size_t size = (size_t)head[0] << 8 | head[1];
    int sent = epochmeter_try_(run, run->backlog + at + 2, size);
    if (sent == 0) break;
    run->dropped += sent < 0;
    at += size + 2;
  }
  memmove(run->backlog, run->backlog + at, run->backlog_size - at);
  run->backlog_size -= at;
  return run->backlog_size == 0;
}

/* Begins an event in `text`; 0 when there is nobody to tell. */
static inline int epochmeter_begin_(struct epochmeter_run* run, const char* kind, int64_t t_ns) {
  if (run->fd < 0 || getpid() != run->pid) return 0;
  run->text_size = 0;
  run->overflow = 0;
  epochmeter_word_(run, "{\"v\":1,\"kind\":\"");
  epochmeter_word_(run, kind);
  epochmeter_word_(run, "\"");
  epochmeter_int_(run, "t_ns", t_ns);
  epochmeter_int_(run, "pid", run->pid);
  epochmeter_int_(run, "seq", run->seq++);
  epochmeter_int_(run, "dropped", run->dropped);
  epochmeter_int_(run, "rank", run->rank);
  return 1;
}

static inline void epochmeter_hello_(struct epochmeter_run* run);

static inline void epochmeter_send_(struct epochmeter_run* run) {
  int sent = -1;
  epochmeter_word_(run, "}");
  if (!run->overflow) {
    sent = epochmeter_flush_(run) ? epochmeter_try_(run, run->text, run->text_size) : 0;
  }
  if (sent == 0 && run->backlog_size + run->text_size + 2 <= sizeof run->backlog) {
    run->backlog[run->backlog_size] = (char)(run->text_size >> 8);
    run->backlog[run->backlog_size + 1] = (char)(run->text_size & 0xff);
    memcpy(run->backlog + run->backlog_size + 2, run->text, run->text_size);
    run->backlog_size += run->text_size + 2;
    return;
  }
  run->dropped += sent != 1;
  if (sent < 0 && !run->overflow) run->gone = 1;
  if (sent > 0 && run->gone) {
    /* A receiver is back that knows nothing of us. */
    run->gone = 0;
    epochmeter_hello_(run);
  }
}

/* For what the recorder reads its sensors at: rings as well, so that it looks now, not when a few
   events have come together. The bell's address is a zero byte and the path; none is no matter. */
static inline void epochmeter_send_now_(struct epochmeter_run* run) {
  struct sockaddr_un bell;
  size_t length = strlen(run->address.sun_path);
  epochmeter_send_(run);
  if (run->gone || length >= sizeof bell.sun_path) return;
  memset(&bell, 0, sizeof bell);
  bell.sun_family = AF_UNIX;
  memcpy(bell.sun_path + 1, run->address.sun_path, length);
  (void)sendto(run->fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr*)&bell,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
}

static inline int epochmeter_number_(const char* name) {
  const char* text = getenv(name);
  char* end = NULL;
  long value;
  if (text == NULL || *text == 0) return -1;
  value = strtol(text, &end, 10);
  return *end == 0 && value >= 0 && value <= 0x7fffffff ? (int)value : -1;
}

/* Rank from the launchers' variables, as the other clients read them. */
static inline void epochmeter_find_rank_(struct epochmeter_run* run) {
  static const char* const kLaunchers[][4] = {
      {"paddle", "PADDLE_TRAINER_ID", "PADDLE_LOCAL_RANK", "PADDLE_TRAINERS_NUM"},
      {"torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE"},
      {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"},
      {"pmi", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
      {"slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"}};
  size_t i;
  for (i = 0; i < sizeof kLaunchers / sizeof kLaunchers[0] && run->rank < 0; i++) {
    run->rank = epochmeter_number_(kLaunchers[i][1]);
    if (run->rank < 0) continue;
    run->local_rank = epochmeter_number_(kLaunchers[i][2]);
    run->world = epochmeter_number_(kLaunchers[i][3]);
    run->rank_source = kLaunchers[i][0];
  }
}

static inline void epochmeter_hello_(struct epochmeter_run* run) {
  if (!epochmeter_begin_(run, "hello", epochmeter_now_ns_(CLOCK_MONOTONIC))) return;
  epochmeter_int_(run, "wall_ns", epochmeter_now_ns_(CLOCK_REALTIME));
  epochmeter_text_(run, "framework", run->framework, EPOCHMETER_MAX_NAME);
  epochmeter_int_(run, "local_rank", run->local_rank);
  if (run->world > 0) epochmeter_int_(run, "world", run->world);
  epochmeter_text_(run, "rank_source", run->rank_source, EPOCHMETER_MAX_NAME);
  epochmeter_send_(run);
}

static inline void epochmeter_place_(struct epochmeter_run* run) {
  epochmeter_int_(run, "epoch", run->epoch);
  if (run->step > 0) epochmeter_int_(run, "step", run->step);
}

/* ---- The functions to call. ---- */

/* Joins the recorder that EPOCHMETER_SOCKET names; `framework` is a name for the report, such as
   "llm.c". 1 when one listens; else 0, and every other call does nothing. EPOCHMETER=0 is "no". */
static inline int epochmeter_open(struct epochmeter_run* run, const char* framework) {
  const char* path = getenv("EPOCHMETER_SOCKET");
  const char* word = getenv("EPOCHMETER");
  memset(run, 0, sizeof *run);
  run->fd = -1;
  run->rank = run->local_rank = run->world = -1;
  run->epoch = -1;
  run->pid = getpid();
  if (path == NULL || *path == 0 || strlen(path) >= sizeof run->address.sun_path) return 0;
  if (word != NULL && (strcmp(word, "0") == 0 || strcmp(word, "off") == 0 ||
                       strcmp(word, "false") == 0 || strcmp(word, "no") == 0)) {
    return 0;
  }
  run->address.sun_family = AF_UNIX;
  memcpy(run->address.sun_path, path, strlen(path));
  snprintf(run->framework, sizeof run->framework, "%s", framework == NULL ? "c" : framework);
  run->fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  if (run->fd < 0) return 0;
  fcntl(run->fd, F_SETFD, FD_CLOEXEC);
  epochmeter_find_rank_(run);
  epochmeter_hello_(run);
  return run->connected;
}

/* Where the launcher's variables say nothing, or the wrong thing. Before epochmeter_train_begin. */
static inline void epochmeter_set_rank(struct epochmeter_run* run, int rank, int local_rank,
                                       int world) {
  run->rank = rank;
  run->local_rank = local_rank;
  run->world = world;
  run->rank_source = NULL;
  epochmeter_hello_(run);
}

static inline void epochmeter_train_begin(struct epochmeter_run* run, int64_t epochs,
                                          int64_t steps_per_epoch, int64_t batch_size) {
  int64_t now_ns = epochmeter_now_ns_(CLOCK_MONOTONIC);
  run->step = run->step_in_epoch = 0;
  run->epoch = -1;
  run->last_end_ns = now_ns;
  run->data_wait_ns = -1;
  if (!epochmeter_begin_(run, "train_begin", now_ns)) return;
  epochmeter_text_(run, "framework", run->framework, EPOCHMETER_MAX_NAME);
  epochmeter_text_(run, "source", "client", EPOCHMETER_MAX_NAME);
  epochmeter_int_(run, "epochs", epochs);
  epochmeter_int_(run, "steps_per_epoch", steps_per_epoch);
  epochmeter_int_(run, "batch_size", batch_size);
  epochmeter_send_now_(run);
}

/* `status`: "completed" or "failed". */
static inline void epochmeter_train_end(struct epochmeter_run* run, const char* status) {
  if (!epochmeter_begin_(run, "train_end", epochmeter_now_ns_(CLOCK_MONOTONIC))) return;
  epochmeter_text_(run, "status", status, EPOCHMETER_MAX_NAME);
  epochmeter_send_now_(run);
}

/* `base` is the number of the first epoch, 0 or 1, where that is known. */
static inline void epochmeter_epoch_begin(struct epochmeter_run* run, int64_t epoch, int64_t base) {
  int64_t now_ns = epochmeter_now_ns_(CLOCK_MONOTONIC);
  run->epoch = epoch;
  run->step_in_epoch = 0;
  run->last_end_ns = run->epoch_began_ns = now_ns;
  run->data_wait_ns = -1;
  if (!epochmeter_begin_(run, "epoch_begin", now_ns)) return;
  epochmeter_int_(run, "epoch", epoch);
  epochmeter_int_(run, "epoch_base", base);
  epochmeter_text_(run, "epoch_from", "user", EPOCHMETER_MAX_NAME);
  epochmeter_send_now_(run);
}

/* `partial` is 1 when the epoch was left early. */
static inline void epochmeter_epoch_end(struct epochmeter_run* run, int partial,
                                        const struct epochmeter_scalar* scalars, int count) {
  int64_t now_ns = epochmeter_now_ns_(CLOCK_MONOTONIC);
  if (!epochmeter_begin_(run, "epoch_end", now_ns)) return;
  epochmeter_int_(run, "epoch", run->epoch);
  epochmeter_seconds_(run, "duration_s", now_ns - run->epoch_began_ns);
  epochmeter_int_(run, "steps", run->step_in_epoch);
  if (partial) epochmeter_word_(run, ",\"partial\":true");
  epochmeter_scalars_(run, scalars, count);
  epochmeter_send_now_(run);
}

/* The batch of the next step is there: the time since the last step ended was spent waiting for it.
   Without this call the wait is not known. */
static inline void epochmeter_data_ready(struct epochmeter_run* run) {
  run->data_wait_ns = epochmeter_now_ns_(CLOCK_MONOTONIC) - run->last_end_ns;
}

/* A step of the optimizer has ended. */
static inline void epochmeter_step(struct epochmeter_run* run, int64_t batch_size,
                                   const struct epochmeter_scalar* scalars, int count) {
  int64_t now_ns = epochmeter_now_ns_(CLOCK_MONOTONIC);
  run->step++;
  run->step_in_epoch++;
  if (epochmeter_begin_(run, "step", now_ns)) {
    epochmeter_int_(run, "step", run->step);
    epochmeter_int_(run, "epoch", run->epoch);
    if (run->epoch >= 0) epochmeter_int_(run, "step_in_epoch", run->step_in_epoch);
    epochmeter_seconds_(run, "duration_s", now_ns - run->last_end_ns);
    epochmeter_seconds_(run, "data_wait_s", run->data_wait_ns);
    epochmeter_int_(run, "batch_size", batch_size);
    epochmeter_scalars_(run, scalars, count);
    epochmeter_send_(run);
  }
  run->last_end_ns = epochmeter_now_ns_(CLOCK_MONOTONIC);
  run->data_wait_ns = -1;
}

/* Phases: "eval", "checkpoint", "data", "forward", "backward", "optimizer", "comm", "compile" or a
   name of your own. They do not nest here. */
static inline void epochmeter_phase_begin(struct epochmeter_run* run, const char* phase) {
  run->phase_began_ns = epochmeter_now_ns_(CLOCK_MONOTONIC);
  if (!epochmeter_begin_(run, "phase_begin", run->phase_began_ns)) return;
  epochmeter_text_(run, "phase", phase, EPOCHMETER_MAX_NAME);
  epochmeter_place_(run);
  epochmeter_send_(run);
}

static inline void epochmeter_phase_end(struct epochmeter_run* run, const char* phase,
                                        const struct epochmeter_scalar* scalars, int count) {
  int64_t now_ns = epochmeter_now_ns_(CLOCK_MONOTONIC);
  if (!epochmeter_begin_(run, "phase_end", now_ns)) return;
  epochmeter_text_(run, "phase", phase, EPOCHMETER_MAX_NAME);
  epochmeter_seconds_(run, "duration_s", now_ns - run->phase_began_ns);
  epochmeter_place_(run);
  epochmeter_scalars_(run, scalars, count);
  epochmeter_send_(run);
}

/* Numbers that come beside the steps. */
static inline void epochmeter_log(struct epochmeter_run* run,
                                  const struct epochmeter_scalar* scalars, int count) {
  if (count <= 0) return;
  if (!epochmeter_begin_(run, "scalar", epochmeter_now_ns_(CLOCK_MONOTONIC))) return;
  epochmeter_place_(run);
  epochmeter_scalars_(run, scalars, count);
  epochmeter_send_(run);
}

static inline void epochmeter_mark(struct epochmeter_run* run, const char* name) {
  if (!epochmeter_begin_(run, "mark", epochmeter_now_ns_(CLOCK_MONOTONIC))) return;
  epochmeter_text_(run, "name", name, EPOCHMETER_MAX_NAME);
  epochmeter_place_(run);
  epochmeter_send_(run);
}

static inline void epochmeter_report_memory(struct epochmeter_run* run,
                                            const struct epochmeter_memory* memory) {
  char device[32];
  if (!epochmeter_begin_(run, "memory", epochmeter_now_ns_(CLOCK_MONOTONIC))) return;
  snprintf(device, sizeof device, "gpu:%d", memory->device);
  epochmeter_text_(run, "framework", run->framework, EPOCHMETER_MAX_NAME);
  epochmeter_text_(run, "device", device, EPOCHMETER_MAX_NAME);
  epochmeter_int_(run, "allocated_bytes", memory->allocated_bytes);
  epochmeter_int_(run, "reserved_bytes", memory->reserved_bytes);
  epochmeter_int_(run, "max_allocated_bytes", memory->max_allocated_bytes);
  epochmeter_int_(run, "max_reserved_bytes", memory->max_reserved_bytes);
  epochmeter_send_(run);
}

/* Something went wrong that ends the training: `type` such as "CUDA error", and what it said. */
static inline void epochmeter_exception(struct epochmeter_run* run, const char* type,
                                        const char* message) {
  if (!epochmeter_begin_(run, "exception", epochmeter_now_ns_(CLOCK_MONOTONIC))) return;
  epochmeter_text_(run, "type", type, EPOCHMETER_MAX_NAME);
  epochmeter_text_(run, "message", message, 2000);
  epochmeter_send_(run);
}

/* Events lost so far, for want of room or of a recorder. */
static inline int64_t epochmeter_dropped(const struct epochmeter_run* run) { return run->dropped; }

/* Gives what waits a last chance, of at most 0.2 s where the recorder is behind, then closes. May
   be called twice. */
static inline void epochmeter_close(struct epochmeter_run* run) {
  struct timespec pause = {0, 1000000};
  int i;
  if (run->fd < 0) return;
  for (i = 0; i < 200 && getpid() == run->pid && !epochmeter_flush_(run); i++) {
    nanosleep(&pause, NULL);
  }
  close(run->fd);
  run->fd = -1;
}

#ifdef __cplusplus
}
#endif

#endif /* EPOCHMETER_EPOCHMETER_H_ */
