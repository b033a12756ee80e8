// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/events.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingest/log/events_test_util.h"

namespace epochmeter::ingest::log {
namespace {

constexpr int64_t kMiB = 1048576, kGiB = 1024 * kMiB;

struct OneLine {
  const char* text;
  const char* kinds;
};

void ExpectKinds(const std::vector<OneLine>& cases) {
  for (const OneLine& one : cases) EXPECT_EQ(EventsOf(one.text).Kinds(), one.kinds) << one.text;
}

TEST(Events, EachSentenceOfGpuMemoryHasItsKind) {
  ExpectKinds({
      {"Out of memory error on GPU 3. Cannot allocate 46.875000MB memory on GPU 3, 30.9GB memory "
       "has been allocated and available memory is only 0.000000B.",
       "oom_gpu@1"},
      {"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 10.76 GiB total "
       "capacity; 9.50 GiB already allocated; 10.50 MiB free; 9.80 GiB reserved in total by "
       "PyTorch)",
       "oom_gpu@1"},
      {"[rank2]: torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 64.00 MiB. GPU "
       "2 "
       "has a total capacity of 63.98 GiB of which 0 bytes is free. Of the allocated memory 60.00 "
       "GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
       "oom_gpu@1"},
      {"2024-01-02 03:04:05.678: W tensorflow/core/framework/op_kernel.cc:1780] OP_REQUIRES failed "
       "at conv_ops.cc:1068 : RESOURCE_EXHAUSTED: OOM when allocating tensor with "
       "shape[64,256,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by "
       "allocator GPU_0_bfc",
       "oom_gpu@1"},
      {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
       "allocate 8589934592 bytes.",
       "oom_gpu@1"},
      {"RuntimeError: CUDA error: out of memory", "oom_gpu@1"},
  });
}

TEST(Events, EachSentenceOfHostMemoryHasItsKind) {
  ExpectKinds({
      {"[12.3] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python,pid=77,uid=0",
       "oom_kill_host@1"},
      {"May  6 07:08:09 n1 kernel: Memory cgroup out of memory: Killed process 71 (python3) "
       "total-vm:9000kB, anon-rss:8000kB",
       "oom_kill_host@1"},
      {"slurmstepd: error: Detected 1 oom-kill event(s) in StepId=77.batch. Some of your processes "
       "may have been killed by the cgroup out-of-memory handler.",
       "oom_kill_host@1"},
      {"srun: error: gpu07: tasks 0,3-5: Out Of Memory", "srun_oom@1"},
      {"RuntimeError: [enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: can't allocate "
       "memory: you tried to allocate 1073741824 bytes.",
       "oom_host@1"},
      {"Killed", "killed@1"},
      {"./go.sh: line 4: 5150 Killed                  python train.py --lr 0.1", "killed@1"},
      {"[1]+  Killed                  python train.py", "killed@1"},
      {"run.sh: line 9: 4242 Segmentation fault      (core dumped) python x.py", "fatal_signal@1"},
      {"Segmentation fault (core dumped)", "fatal_signal@1"},
      {"Fatal Python error: Bus error", "fatal_signal@1"},
      {"slurmstepd: error: Job 71 exceeded memory limit (9000 > 8000), being killed",
       "oom_kill_host@1"},
      {"slurmstepd: error: Exceeded step memory limit at some point.", "oom_kill_host@1"},
      {"mxnet.base.MXNetError: [07:08:09] src/storage/pooled.h:143: cudaMalloc retry failed: out "
       "of "
       "memory",
       "oom_gpu@1"},
      {"F0506 07:08:09.1 99 syncedmem.cpp:71] Check failed: error == cudaSuccess (2 vs. 0)  out of "
       "memory",
       "oom_gpu@1"},
  });
}

TEST(Events, EachSentenceOfLaunchersHasItsKind) {
  ExpectKinds({
      {"srun: error: n01: task 0: Segmentation fault (core dumped)", "fatal_signal@1"},
      {"srun: error: n01: tasks 0-3: Exited with exit code 1", "exitcode@1"},
      {"Container rank 6 status failed cmd ['python', '-u', 't.py'] code 1 log log/workerlog.6",
       "exitcode@1"},
      {"slurmstepd: error: *** JOB 9 ON n01 CANCELLED AT 2024-05-06T07:08:09 DUE TO PREEMPTION ***",
       "slurm_cancelled@1"},
      {"=>> PBS: job killed: walltime 3612 exceeded limit 3600", "time_limit@1"},
      {"[2024-05-06 07:08:09,100] [ERROR] [launch.py:321:sigkill_handler] ['python', 't.py'] exits "
       "with return code = -9",
       "process_exit@1"},
      {"mpirun noticed that process rank 3 with PID 812 on node n2 exited on signal 11.",
       "process_exit@1"},
      {"  exitcode  : -9 (pid: 4711)", "exitcode@1"},
      {"FatalError: `Segmentation fault` is detected by the operating system.",
       "fatal_signal_paddle@1"},
      {"  [TimeInfo: *** Aborted at 1700000000 (unix time) try \"date -d @1700000000\" ***]",
       "unix_abort_time@1"},
  });
}

TEST(Events, EachSentenceOfDevicesHasItsKind) {
  ExpectKinds({
      {"n1:71:99 [2] transport/net_ib.cc:92 NCCL WARN NET/IB : Got completion with error 12",
       "nccl_warn@1"},
      {"torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1275, unhandled "
       "system error, NCCL version 2.18.1",
       "nccl_error@1"},
      {"ExternalError: NCCL error(5), invalid usage.", "nccl_error@1"},
      {"RuntimeError: CUDA error: device-side assert triggered", "cuda_error@1"},
      {"OSError: (External) CUDA error(700), an illegal memory access was encountered. ",
       "cuda_error@1"},
      {"RuntimeError: CUDA driver error: an illegal memory access was encountered", "cuda_error@1"},
      {"  what():  CUDA error: an illegal memory access was encountered", "cuda_error@1"},
      {"F0506 07:08:09.1 99 math.cu:28] Check failed: error == cudaSuccess (77 vs. 0)  an illegal "
       "memory access was encountered",
       "cuda_error@1"},
      {"RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "cuda_error@1"},
      {"/x/native/cuda/Indexing.cu:1292: indexSelectLargeIndex: block: [17,0,0], thread: [96,0,0] "
       "Assertion `srcIndex < srcSelectDimSize` failed.",
       "cuda_assert@1"},
      {"RuntimeError: No CUDA GPUs are available", "device_not_bound@1"},
      {"RuntimeError: CUDA error: no CUDA-capable device is detected", "device_not_bound@1"},
      {"RuntimeError: CUDA error: invalid device ordinal", "device_not_bound@1"},
      {"AssertionError: Torch not compiled with CUDA enabled", "device_not_bound@1"},
      {"[ 9.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=3100, name=python, GPU has fallen off the bus.",
       "xid@1"},
      {"jax.errors.JaxRuntimeError: INTERNAL: cuSolver failed", "xla_error@1"},
      {"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
       "grad_overflow@1"},
      {"[deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 65536, reducing to "
       "32768.0",
       "fp16_overflow@1"},
      {"Loss is nan, stopping training", "nan_loss@1"},
      {"ERROR:tensorflow:Model diverged with loss = NaN.", "nan_loss@1"},
      {"| WARNING: overflow detected, setting loss scale to: 0.5", "grad_overflow@1"},
      {"*** SIGSEGV (@0x0) received by PID 71 (TID 0x7f01) from PID 0; stack trace: ***",
       "fatal_signal@1"},
  });
}

TEST(Events, EachSentenceOfWorkersAndStopsHasItsKind) {
  ExpectKinds({
      {"RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed. ",
       "dataloader_worker@1"},
      {"RuntimeError: DataLoader worker (pid(s) 71, 72) exited unexpectedly",
       "dataloader_worker@1"},
      {"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
       "shared memory (shm).",
       "dataloader_worker@1"},
      {"tensorflow.python.framework.errors_impl.DataLossError: corrupted record at 71",
       "data_error@1"},
      {"KeyError: Caught KeyError in DataLoader worker process 3.", "dataloader_worker@1"},
      {"[2024/05/06 07:08:09] ppocr ERROR: When parsing line train/a_1.jpg\tlabel", "data_error@1"},
      {"PIL.UnidentifiedImageError: cannot identify image file '/data/x/7.png'", "data_error@1"},
      {"ray.exceptions.RayTaskError(ValueError): ray::train() (pid=12, ip=10.0.0.3)",
       "ray_worker_died@1"},
      {"(raylet) A worker died or was killed while executing a task by an unexpected system error.",
       "ray_worker_died@1"},
      {"OSError: [Errno 28] No space left on device: '/scratch/ck.pt'", "disk_full@1"},
      {"PermissionError: [Errno 13] Permission denied: '/out'", "permission_denied@1"},
      {"KeyboardInterrupt", "keyboard_interrupt@1"},
      {"^CKeyboardInterrupt", "keyboard_interrupt@1"},
      {"Epoch 00012: early stopping", "early_stopping@1"},
      {"INFO: Early stopping triggered at epoch 41", "early_stopping@1"},
      {"Early stopping: val_loss did not improve for 5 epochs", "early_stopping@1"},
      {"EarlyStopping: Training stopped early as no improvement observed in last 50 epochs.",
       "early_stopping@1"},
      {"Monitored metric val_loss did not improve in the last 3 records. Best score: 0.100. "
       "Signaling Trainer to stop.",
       "early_stopping@1"},
      {"[2024/05/06 07:08:09] ppcls INFO: train with paddle 2.5.1 and device Place(gpu:0)",
       "run_start@1"},
      {"[INFO|trainer.py:9] 2024-05-06 07:08:09,100 >>   Total optimization steps = 900",
       "total_steps@1"},
      {"W0506 07:08:09.123456  1308 device_context.cc:252] Please NOTE: device: 0",
       "glog_warning@1"},
      {"[LightGBM] [Warning] No further splits with positive gain, best gain: -inf", "warning@1"},
  });
}

TEST(Events, CodeHelpAndSettingsAreNone) {
  for (const char* text : {
           "+        print(\"Traceback (most recent call last):\")",
           "    raise RuntimeError('CUDA out of memory. Try a smaller batch')",
           "    except torch.cuda.OutOfMemoryError as e:",
           "# RuntimeError: CUDA error: an illegal memory access was encountered",
           "| RuntimeError: CUDA error: out of memory | use a smaller batch |",
           "* torch.cuda.OutOfMemoryError: CUDA out of memory.",
           "   // RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
           "If you get CUDA out of memory, use --batch_size 8",
           "  --early_stopping PATIENCE   stop when nothing improves",
           "Will use valid_rmse for early stopping.",
           "early_stopping: EarlyStopping(patience=5)",
           "Using early stopping after 10 rounds without progress",
           "Early stopping, best iteration is:",
           "except KeyboardInterrupt:",
           "        # the worker is Killed by the scheduler",
           "n1:71:99 [0] NCCL INFO Using network Socket",
           "n1:71:99 [0] NCCL INFO bootstrap.cc:40 -> 6",
           "I0506 07:08:09.1 99 device.cc:1] Use CUDA Place 0",
           "  oom_kill_disable: false",
           "  raise ChildFailedError(",
           "srun: error: gpu01: tasks 0-2: Killed",
           "Execution of replica 0 failed: RESOURCE_EXHAUSTED: Out of memory while trying to "
           "allocate 8589934592 bytes.",
           "oom_reaper: reaped process 71 (python), now anon-rss:0kB",
           "server not ready, wait 3 sec to retry...",
           "max_tokens_to_oom ....... 12000",
           "W tensorflow/bfc_allocator.cc:290] Allocator (GPU_0_bfc) ran out of memory trying to "
           "allocate 2.2GiB. The caller indicates that this is not a failure",
           "Main process received SIGTERM, exiting",
           "Could not find cuda drivers on your machine, GPU will not be used.",
           "assert device != 'cuda', 'Torch not compiled with CUDA enabled'",
           "loss scale overflow handling: dynamic",
       }) {
    EXPECT_EQ(EventsOf(text).Kinds(), "") << text;
  }
}

TEST(Events, LinesThatReportNothingAreNotLookedAt) {
  for (const char* text : {
           "Epoch: [0][ 10/500]\tTime 0.2 (0.3)\tData 0.0 (0.1)\tLoss 6.9e+00 (6.9e+00)",
           "[05/06 07:08:09] ppdet.engine INFO: Epoch: [0] [  20/900] loss: 1.2 eta: 0:11:09",
           "{'loss': 0.71, 'grad_norm': 14.5, 'learning_rate': 3.0e-05, 'epoch': 0.09}",
           "  hidden_dropout_prob ............ 0.1",
           "  File \"/x/train.py\", line 7, in <module>",
       }) {
    EXPECT_FALSE(EventReader::MayMatter(text)) << text;
  }
}

TEST(Events, WhetherALineMattersDoesNotDependOnItsNumbers) {
  EXPECT_TRUE(EventReader::MayMatter("CUDA out of memory. Tried to allocate 2.00 GiB"));
  EXPECT_TRUE(EventReader::MayMatter("CUDA   out of memory. Tried to allocate -17 GiB"));
  EXPECT_TRUE(EventReader::MayMatter("  exitcode  : 1 (pid: 2)"));
  EXPECT_TRUE(EventReader::MayMatter("  exitcode  : -11 (pid: 71234)"));
}

TEST(Events, OutOfMemoryOfPyTorchHasItsSizes) {
  const EventsOf events(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 3 has a total "
      "capacity of 16.00 GiB of which 768.00 MiB is free. Process 71 has 2.00 GiB memory in use. "
      "Including non-PyTorch memory, this process has 13.00 GiB memory in use. Of the allocated "
      "memory 9.00 GiB is allocated by PyTorch, and 3.00 GiB is reserved by PyTorch but "
      "unallocated.");
  const LogEvent& oom = events.First("oom_gpu");
  EXPECT_EQ(FindInt(oom, "gpu"), 3);
  EXPECT_EQ(FindInt(oom, "requested_bytes"), 512 * kMiB);
  EXPECT_EQ(FindInt(oom, "total_bytes"), 16 * kGiB);
  EXPECT_EQ(FindInt(oom, "free_bytes"), 768 * kMiB);
  EXPECT_EQ(FindInt(oom, "allocated_bytes"), 9 * kGiB);
  EXPECT_EQ(FindInt(oom, "unallocated_bytes"), 3 * kGiB);
  EXPECT_EQ(FindInt(oom, "process_bytes"), 13 * kGiB);
  EXPECT_EQ(FindInt(oom, "others_bytes"), 2 * kGiB);
  EXPECT_EQ(FindInt(oom, "fragmented"), 1);
}

TEST(Events, AWrappedSentenceIsReadToItsEnd) {
  const EventsOf events(
      "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB\n"
      "total capacity; 5.00 GiB already allocated; 1.00 GiB free;\n"
      "6.00 GiB reserved in total by PyTorch)\n"
      "step 7 done\n");
  EXPECT_EQ(events.Kinds(), "oom_gpu@1");
  const LogEvent& oom = events.First("oom_gpu");
  EXPECT_EQ(oom.last_line, 3U);
  EXPECT_EQ(FindInt(oom, "total_bytes"), 8 * kGiB);
  EXPECT_EQ(FindInt(oom, "free_bytes"), 1 * kGiB);
  EXPECT_EQ(FindInt(oom, "unallocated_bytes"), 1 * kGiB);
  EXPECT_FALSE(FindInt(oom, "fragmented"));
}

TEST(Events, AWrappedSentenceThatIsCutOffKeepsWhatItSaid) {
  const EventsOf events(
      "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB\n"
      "done\n");
  EXPECT_EQ(events.Kinds(), "oom_gpu@1");
  EXPECT_EQ(FindInt(events.First("oom_gpu"), "requested_bytes"), 2 * kGiB);
  EXPECT_FALSE(FindInt(events.First("oom_gpu"), "free_bytes"));
}

TEST(Events, TheKernelsLinesOfOneKillAreOneEvent) {
  const EventsOf events(
      "[1] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/job/7,task=python,"
      "pid=71,uid=0\n"
      "[1] Memory cgroup out of memory: Killed process 71 (python) total-vm:2048kB, "
      "anon-rss:1024kB, file-rss:0kB\n"
      "[2] oom_reaper: reaped process 71 (python)\n");
  EXPECT_EQ(events.Kinds(), "oom_kill_host@1");
  const LogEvent& kill = events.First("oom_kill_host");
  EXPECT_EQ(FindText(kill, "constraint"), "CONSTRAINT_MEMCG");
  EXPECT_EQ(FindText(kill, "process"), "python");
  EXPECT_EQ(FindInt(kill, "pid"), 71);
  EXPECT_EQ(FindInt(kill, "anonymous_bytes"), kMiB);
}

TEST(Events, SlurmsLinesOfOneKillAreOneEvent) {
  const EventsOf events(
      "slurmstepd: error: Job 71 exceeded memory limit (9000 > 8000), being killed\n"
      "slurmstepd: error: Exceeded job memory limit\n");
  EXPECT_EQ(events.Kinds(), "oom_kill_host@1");
  EXPECT_EQ(FindInt(events.First("oom_kill_host"), "used_bytes"), 9000 * 1024);
  EXPECT_EQ(FindInt(events.First("oom_kill_host"), "limit_bytes"), 8000 * 1024);
}

TEST(Events, ATimedOutCollectiveNamesTheRankThatDidNotCome) {
  const EventsOf events(
      "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=71, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for "
      "600123 milliseconds before timing out.\n"
      " - [1] Timeout at collective: ALLREDUCE, #71\n"
      " - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
      "     [2] finished collective #70, but didn't join collective #71 (count from 1)\n");
  EXPECT_EQ(events.Kinds(), "nccl_timeout@1");
  const LogEvent& timeout = events.First("nccl_timeout");
  EXPECT_EQ(FindInt(timeout, "rank"), 1);
  EXPECT_EQ(FindInt(timeout, "seq"), 71);
  EXPECT_EQ(FindText(timeout, "op"), "ALLREDUCE");
  EXPECT_EQ(FindInt(timeout, "culprit_rank"), 2);
  EXPECT_EQ(FindInt(timeout, "culprit_missed"), 71);
}

TEST(Events, TorchrunsTableGivesTheRankOfEachExitCode) {
  const EventsOf events(
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
      "=====\nt.py FAILED\n-----\nFailures:\n[1]:\n  host      : n7\n  rank      : 5 (local_rank: "
      "1)\n"
      "  exitcode  : -9 (pid: 72)\nRoot Cause (first observed failure):\n[0]:\n"
      "  host      : n6\n  rank      : 4 (local_rank: 0)\n  exitcode  : 1 (pid: 71)\n=====\n");
  EXPECT_EQ(events.Kinds(), "child_failed@1 exitcode@9 exitcode@14");
  EXPECT_EQ(FindInt(events.First("child_failed"), "named_rank"), 4);
  EXPECT_EQ(FindInt(events.First("exitcode"), "rank"), 5);
  EXPECT_EQ(FindInt(events.First("exitcode"), "signal"), 9);
  EXPECT_EQ(FindText(events.First("exitcode"), "host"), "n7");
}

TEST(Events, AReasonOfSlurmIsTold) {
  const EventsOf events(
      "slurmstepd: error: *** STEP 7.0 ON n01 CANCELLED AT 2024-05-06T07:08:09 DUE TO TIME LIMIT "
      "***");
  const LogEvent& end = events.First("slurm_cancelled");
  EXPECT_EQ(FindText(end, "what"), "STEP");
  EXPECT_EQ(FindText(end, "id"), "7.0");
  EXPECT_EQ(FindText(end, "node"), "n01");
  EXPECT_EQ(FindText(end, "at"), "2024-05-06T07:08:09");
  EXPECT_EQ(FindText(end, "reason"), "time limit");
}

TEST(Events, WaitingForPeersIsAnEventWhenItDoesNotEnd) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "server not ready, wait 3 sec to retry...\n";
  const EventsOf events(text);
  EXPECT_EQ(events.Kinds(), "peers_not_ready@1");
  EXPECT_EQ(FindInt(events.First("peers_not_ready"), "waited_s"), 60);
}

TEST(Events, ALossThatIsNotFiniteIsOneEventARecord) {
  EventsOf events;
  LogValue loss{.key = "loss", .text = "nan", .unit = "", .role = Role::kLoss};
  for (uint64_t line = 1; line <= 4; ++line) {
    loss.number = line == 1 ? 2.5 : (line == 2 ? -HUGE_VAL : NAN);
    LogRecord record;
    record.place.line = line;
    record.values = {&loss, 1};
    record.kind = line == 4 ? RecordKind::kEval : RecordKind::kTrain;
    events.reader().Record(record);
  }
  EXPECT_EQ(events.Kinds(), "nan_loss@2 nan_loss@3");
  EXPECT_EQ(FindText(events.all[0], "loss"), "-Infinity");
  EXPECT_EQ(FindText(events.all[1], "loss"), "NaN");
}

TEST(Events, AnEventsTextIsTheMessageCutToALength) {
  const EventsOf events("[2024-05-06 07:08:09,100] [WARNING] [engine.py:7:init] " +
                        std::string(2000, 'x'));
  ASSERT_EQ(events.all.size(), 1U);
  EXPECT_EQ(events.all[0].text.size(), 500U);
}

}  // namespace
}  // namespace epochmeter::ingest::log
