// SPDX-License-Identifier: Apache-2.0
// Payloads of runs that never were, for the tests of the page: node test/make_payload.mjs KIND FILE
// Kinds: big (8 GPUs, 24 h, 100,000 steps), hostile, ranks (10,000 of them), empty, one, fine.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const T0 = Date.UTC(2026, 7, 22, 10, 15, 30);

// The same numbers on each call: tests compare.
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

// Differences of scaled whole numbers; null stays, and breaks the line.
export function deltas(values, scale = 1) {
  let last = 0;
  return values.map((value) => {
    if (typeof value !== 'number') return value;
    const whole = Math.round(value / scale);
    const delta = whole - last;
    last = whole;
    return delta;
  });
}

function curve(entity, label, scope, field, unit, times, values, more = {}) {
  const scale = more.scale ?? 0.001;
  return {
    entity, label, scope, gpu: null, rank: null, field, unit, kind: 'gauge', period_ms: 1000,
    derived: false, exact: false, max: null, ...more, scale,
    t: deltas(times), v: deltas(values, scale),
  };
}

const iso = (ms) => new Date(T0 + ms).toISOString();

function finding(rule, severity, en, zh, more = {}) {
  return {
    rule, severity, title: en, title_zh: zh, summary: `${en}: measured over the whole run.`,
    summary_zh: `${zh}：在全程中测得。`, explanation: 'Judged over steps after warm-up.',
    explanation_zh: '在预热之后的步骤中判断。', advice: [], rank: null, pid: null, gpu: null,
    confidence: 0.9, lost_gpu_s: null, gain_ratio: null, evidence: [], ...more,
  };
}

function evidence(series, begin, end, values, steps = []) {
  return { series, begin: iso(begin), end: iso(end), begin_s: begin / 1000, end_s: end / 1000, values, note: 'the middle of the run',
    note_zh: '运行的中段', steps };
}

const stat = (mean, min, max) => ({ count: 86400, mean, min, max, p50: mean, p95: max, last: mean,
  coverage_ratio: 0.998 });

function report(duration, data = {}) {
  return {
    schema_version: 1,
    tool: { name: 'epochmeter', version: '0.1.0', revision: 'fixture' },
    data: {
      run: { run_id: '20260822T101530Z-fixture', begin: iso(0), end: iso(duration),
        duration_s: duration / 1000, progress_source: 'client', energy_j: null, framework: 'pytorch',
        exit: { reason: 'exited', exit_code: 0, signal: null, oom_cgroup: null },
        attributes: { name: 'resnet50', command: 'python train.py --batch 256' } },
      epochs: [], after_training: [], incidents: [], gpus: [], host: {}, process: {}, findings: [],
      rules_judged: [], losses: [], not_measured: [], ...data,
    },
    warnings: [],
  };
}

function payload(duration, more = {}, data = {}) {
  return {
    payload_version: 1, lang: 'en', report: report(duration, data), t0_ms: T0, duration_ms: duration,
    redacted: ['home folder', 'token'], curves: [], ranks: [], events: [], log: [], log_omitted: 0,
    slowest: null,
    thinning: { en: 'Of each bucket the first, lowest, highest and last sample are kept.',
      zh: '每个区间保留第一个、最低、最高和最后一个样本。' },
    ...more,
  };
}

const GPU_FIELDS = [
  ['utilization_ratio', '1', 0.01, 1, (r, p) => 0.55 + 0.4 * p * r()],
  ['sm_active_ratio', '1', 1e-5, 1, (r, p) => 0.3 + 0.3 * p * r()],
  ['power_w', 'W', 0.001, 700, (r, p) => 300 + 330 * p * r()],
  ['memory_used_bytes', 'By', 1, 150754820096, (r, p, x) => 6e10 + 7e10 * x + 1e9 * r()],
  ['process_memory_bytes', 'By', 1, null, (r, p, x) => 5.9e10 + 7e10 * x],
  ['memory_total_bytes', 'By', 1, null, () => 150754820096],
  ['temperature_c', 'Cel', 1, null, (r, p) => 55 + 20 * p * r()],
  ['sm_clock_hz', 'Hz', 1e6, null, (r) => 1.7e9 + 2.8e8 * r()],
  ['tensor_active_ratio', '1', 1e-5, 1, (r, p) => 0.1 + 0.2 * p * r()],
  ['dram_active_ratio', '1', 1e-5, 1, (r, p) => 0.2 + 0.3 * p * r()],
  ['pcie_receive_bytes_per_s', 'By/s', 1, null, (r) => 3e9 * r()],
  ['nvlink_receive_bytes_per_s', 'By/s', 1, null, (r) => 9e10 * r()],
  ['fan_speed_ratio', '1', 0.01, 1, (r) => 0.4 + 0.1 * r()],
];

function gpuCurves(gpu, duration, points) {
  const r = random(17 + gpu);
  const times = Array.from({ length: points }, (_n, i) => Math.round(i * duration / points));
  const curves = GPU_FIELDS.map(([field, unit, scale, max, value]) => curve(
    `gpu${gpu}`, `GPU ${gpu}`, 'gpu', field, unit, times,
    times.map((t, i) => (i > points * 0.42 && i < points * 0.44 ? null
      : value(r, (t / duration * 12) % 1 < 0.92 ? 1 : 0.2, t / duration))),
    { gpu, scale, max }));
  curves.push(curve(`gpu${gpu}`, `GPU ${gpu}`, 'gpu', 'throttle_reasons', '1', times,
    times.map((_t, i) => (Math.floor(i / 200) % 5 === gpu % 5 ? 4 : 0)),
    { gpu, scale: 1, kind: 'state' }));
  return curves;
}

function rankOf(rank, duration, count, rows, epochs, slow = 1) {
  const r = random(900 + rank);
  const begin = duration * 0.01;
  const t = Array.from({ length: rows }, (_n, i) => Math.round(begin + i * (duration * 0.98) / rows));
  const step = t.map((_n, i) => Math.floor(i * count / rows));
  const seconds = t.map((_n, i) => (i === 0 ? 9 : 0.21 * slow * (0.9 + 0.2 * r()) + (r() > 0.995 ? 0.5 : 0)));
  const per = duration * 0.98 / epochs;
  return {
    name: `rank${rank}`, rank, pid: 4000 + rank, gpus: [rank % 8],
    steps: {
      count, thinned: rows < count, step0: 0, t: deltas(t), step: deltas(step),
      epoch: deltas(step.map((n) => Math.floor(n * epochs / count))),
      duration: { scale: 1e-6, v: deltas(seconds, 1e-6) },
      data_wait: { scale: 1e-6, v: deltas(seconds.map((s) => s * 0.3 * r()), 1e-6) },
      scalars: {
        loss: { scale: 1e-6, v: deltas(t.map((_n, i) => (i % 3 ? null
          : 2.3 * Math.exp(-4 * i / rows) + 0.1 + 0.05 * r())), 1e-6) },
        lr: { scale: null, v: t.map((_n, i) => (i % 5 ? null : 3e-4 * (1 - i / rows))) },
      },
    },
    epochs: Array.from({ length: epochs }, (_n, i) => ({
      epoch: i, begin: Math.round(begin + i * per), end: Math.round(begin + (i + 0.92) * per) })),
    phases: Array.from({ length: epochs }, (_n, i) => [
      { name: 'eval', begin: Math.round(begin + (i + 0.92) * per), end: Math.round(begin + (i + 0.98) * per) },
      { name: 'checkpoint', begin: Math.round(begin + (i + 0.98) * per), end: Math.round(begin + (i + 1) * per) },
    ]).flat(),
  };
}

function epochRows(ranks, epochs, duration, steps) {
  return ranks.flatMap((rank) => Array.from({ length: epochs }, (_n, i) => ({
    rank, pid: 4000 + rank, epoch: i, begin: iso(duration * (0.01 + 0.98 * i / epochs)),
    end: iso(duration * (0.01 + 0.98 * (i + 0.92) / epochs)), complete: true,
    duration_s: duration * 0.9 / epochs / 1000, steps: Math.round(steps / epochs),
    samples: Math.round(steps / epochs) * 256,
    step_s: { count: Math.round(steps / epochs), mean: 0.212, min: 0.19, max: 0.9 + (rank % 7) / 10,
      p50: 0.21 + (rank % 11) / 1000, p95: 0.25 + (rank % 5) / 100, last: 0.2, coverage_ratio: null },
    data_wait_s: { count: 10 }, data_wait_ratio: 0.15 + (rank % 3) / 100,
    scalars: { loss: 2.3 * Math.exp(-4 * i / epochs) }, phases: [], energy_j: 2e6,
  })));
}

function bill(duration, devices) {
  const total = duration * 1e6 * devices;
  const parts = { productive: 0.55, data_wait: 0.14, evaluation: 0.08, checkpoint: 0.03,
    throttle: 0.02, communication: 0.06, start_up: 0.04, idle: 0.05, stall: 0.02, unknown: 0.01 };
  const uses = Object.fromEntries(Object.entries(parts).map(([name, part]) =>
    [name, { ns: Math.round(total * part), energy_j: 5e8 * part, cost: 800 * part }]));
  const sums = (part) => ({ total_ns: Math.round(total * part), uses, activity_ratio: 0.44,
    activity_coverage_ratio: 0.98, effective_ns: Math.round(total * 0.55 * 0.44 * part),
    energy_j: 3.5e8 * part, energy_coverage_ratio: 0.997, counter_j: 3.5e8 * part,
    counter_coverage_ratio: 0.997, integral_j: 3.47e8 * part, integral_coverage_ratio: 0.99,
    cost: 576 * part, cost_coverage_ratio: 1, electricity_cost: 29.1 * part, carbon_g: 37000 * part });
  return {
    basis: 'gpu', wall_ns: duration * 1e6, devices, activity_source: 'sm_active_ratio',
    mixed_activity: false, energy_disagreement_ratio: 0.008,
    rates: { currency: 'EUR', gpus: [{ name: '*', gpu_hour: 3 }], electricity_kwh: 0.3, pue: 1.2,
      carbon_g_per_kwh: 380 },
    total: sums(1), epochs: [0, 1, 2].map((epoch) => ({ epoch, ...sums(1 / 3) })), phases: [], ranks: [],
    gpus: [0, 1].map((gpu) => ({ gpu, name: 'H200', ...sums(0.5) })),
    notes: [{ text: 'Time at the end is counted as idle.', text_zh: '结尾的时间计为空闲。' }],
  };
}

function hostCurves(duration, points) {
  const r = random(5);
  const times = Array.from({ length: points }, (_n, i) => Math.round(i * duration / points));
  const make = (entity, label, scope, field, unit, scale, value, max = null) =>
    curve(entity, label, scope, field, unit, times, times.map((_t, i) => value(r, i / points)), { scale, max });
  return [
    make('host', 'host', 'host', 'cpu_ratio', '1', 0.001, (k) => 0.3 + 0.4 * k(), 1),
    make('host', 'host', 'host', 'iowait_ratio', '1', 0.001, (k) => 0.05 * k(), 1),
    make('host', 'host', 'host', 'memory_used_bytes', 'By', 1024, (k, x) => 2e11 + 5e10 * x, 5.4e11),
    make('host', 'host', 'host', 'pressure_io_waiting_ratio', '1', 1e-4, (k) => 0.1 * k(), 1),
    make('tree', 'processes', 'process', 'rss_bytes', 'By', 1024, (k, x) => 9e10 + 4e10 * x),
    make('tree', 'processes', 'process', 'cpu_cores', '1', 0.001, (k) => 20 + 9 * k()),
    make('tree', 'processes', 'process', 'read_bytes_per_s', 'By/s', 1, (k) => 1.2e9 * k()),
    make('tree', 'processes', 'process', 'threads', '{thread}', 1, (k) => 300 + Math.round(9 * k())),
    make('disk nvme0n1', 'nvme0n1', 'host', 'disk_read_bytes_per_s', 'By/s', 1, (k) => 1.1e9 * k()),
    make('eth0', 'eth0', 'host', 'network_receive_bytes_per_s', 'By/s', 1, (k) => 4e8 * k()),
  ];
}

function findings(duration) {
  const middle = [duration * 0.45, duration * 0.55];
  return [
    finding('data_starvation', 'warning', 'The training waits for its data', '训练在等待数据', {
      rank: 0, lost_gpu_s: 8 * 0.14 * duration / 1000, gain_ratio: 0.14,
      summary: 'rank0 waits for data in 15 % of the time of its steps (32 ms of 212 ms a step).',
      summary_zh: 'rank0 的步骤时间中有 15 % 在等待数据（每步 32 ms / 212 ms）。',
      advice: [
        { framework: 'paddle', text: 'Load in worker processes.', text_zh: '用子进程加载数据。',
          code: 'paddle.io.DataLoader(dataset, num_workers=8)' },
        { framework: 'pytorch', text: 'Load in worker processes, and keep them between epochs.',
          text_zh: '用子进程加载数据，并在各轮之间保留。',
          code: 'DataLoader(dataset, num_workers=8, prefetch_factor=4, persistent_workers=True, pin_memory=True)' },
        { framework: null, text: 'Store the images decoded, or smaller.', text_zh: '以解码后或更小的尺寸存储图像。', code: null },
      ],
      evidence: [evidence('rank0 data_wait_s', ...middle, { data_wait_ratio: 0.15, steps: 9900 }, [45000, 45001]),
        evidence('gpu3 utilization_ratio', ...middle, { mean_ratio: 0.61 })],
    }),
    finding('oom_forecast', 'critical', 'The GPU will run out of memory', '显存将会耗尽', {
      gpu: 3, gain_ratio: null,
      summary: 'Memory of gpu3 grows by 2.9 GB an hour; at this pace it is full in epoch 96.',
      summary_zh: 'gpu3 的显存每小时增长 2.9 GB；照此速度将在第 96 轮耗尽。',
      advice: [{ framework: 'pytorch', text: 'Keep the number, not the graph.', text_zh: '保存数值而不是计算图。',
        code: 'losses.append(loss.item())' }],
      evidence: [evidence('gpu3 memory_used_bytes', duration * 0.2, duration * 0.9, { growth_bytes_per_s: 805555, last_bytes: 1.29e11 })],
    }),
    finding('worker_count', 'info', 'Few loader workers', '加载子进程较少', {}),
    finding('straggler_rank', 'not_applicable', 'One rank holds up the others', '某个 rank 拖慢其他', {
      summary: 'the run has one rank', summary_zh: '本次运行只有一个 rank' }),
  ];
}

function big() {
  const duration = 86400000;
  const points = 4000;
  const gpus = Array.from({ length: 8 }, (_n, i) => i);
  const curves = [...gpus.flatMap((gpu) => gpuCurves(gpu, duration, points)), ...hostCurves(duration, points)];
  for (const rank of gpus) {
    const times = Array.from({ length: 1000 }, (_n, i) => Math.round(duration * (0.01 + 0.98 * i / 1000)));
    for (const [field, base] of [['allocated_bytes', 4.6e10], ['reserved_bytes', 5.5e10]]) {
      curves.push(curve(`rank${rank}`, `rank ${rank}`, 'rank', field, 'By', times,
        times.map((_t, i) => base + 7e10 * i / 1000), { rank, scale: 1, period_ms: 0 }));
    }
  }
  const ranks = gpus.map((rank) => rankOf(rank, duration, 100000, 4000, 90, rank === 5 ? 1.2 : 1));
  const r = random(3);
  const slowT = Array.from({ length: 1000 }, (_n, i) => Math.round(duration * (0.01 + 0.98 * i / 1000)));
  return payload(duration, {
    curves, ranks,
    slowest: { t: deltas(slowT), rank: slowT.map(() => (r() < 0.7 ? 5 : Math.floor(r() * 8))) },
    events: [
      { t: 4.1e7, kind: 'incident', rank: null, name: 'gpu.xid', text: 'GPU 3: XID 63, row remapping',
        text_zh: 'GPU 3：XID 63，行重映射' },
      { t: 5.5e7, kind: 'exception', rank: 2, name: 'RuntimeError', text: 'DataLoader worker exited' },
      { t: 6.2e7, kind: 'mark', rank: 0, name: 'lr drop', text: '' },
      { t: 7.0e7, kind: 'loss', rank: null, name: 'late_sample', text: '3 samples came late' },
    ],
    log: Array.from({ length: 2000 }, (_n, i) => ({
      t: Math.round(i * duration / 2000), stream: i % 3 ? 'stdout' : 'stderr',
      text: i % 400 === 199 ? 'ERROR dataloader worker 3 died, restarting' : i % 150 === 0
        ? 'WARNING: slow batch' : `INFO epoch ${Math.floor(i / 22)} step ${i * 50} loss ${(2.3 / (1 + i / 200)).toFixed(4)}` })),
    log_omitted: 98000,
  }, {
    run: { ...report(duration).data.run, energy_j: 3.5e8 },
    epochs: epochRows(gpus, 90, duration, 100000),
    gpus: gpus.map((gpu) => ({ gpu, uuid: `GPU-${gpu}`, job: true, energy_j: 4.4e7, energy_source: 'counter',
      utilization_ratio: stat(0.61, 0, 1), sm_active_ratio: stat(0.44, 0, 0.6),
      memory_used_bytes: stat(9e10, 6e10, 1.31e11), memory_total_bytes: stat(150754820096, 150754820096, 150754820096),
      power_w: stat(500, 90, 660) })),
    host: { cpu_ratio: stat(0.5, 0.3, 0.7), memory_used_bytes: stat(2.2e11, 2e11, 2.5e11) },
    process: { rss_bytes: stat(1.1e11, 9e10, 1.3e11) },
    findings: findings(duration), bill: bill(duration, 8),
    losses: [{ time: iso(7e7), kind: 'late_sample', severity: 'data_loss', count: 3,
      detail: 'three samples came after their second', help: 'Nothing to do: they are left out.' }],
    not_measured: [{ subject: 'gpu fan speed', subject_zh: null, reason: 'this GPU has no fan', reason_zh: '这块 GPU 没有风扇' },
      { subject: 'host energy', reason: 'no permission to read /sys/class/powercap' }],
  });
}

const EVIL = '</script><img src=x onerror="document.title=1"><!--${alert(1)}-->\u202e"\'`&lt;';

function hostile() {
  const duration = 60000;
  const times = Array.from({ length: 40 }, (_n, i) => i * 1500);
  const rank = rankOf(0, duration, 40, 40, 3);
  rank.name = EVIL;
  rank.steps.scalars = {
    loss: { scale: 1e-3, v: times.map((_t, i) => (i < 20 ? 10 - i : i % 2 ? 'nan' : 'inf')) },
    [EVIL]: { scale: null, v: times.map((_t, i) => (i % 7 === 0 ? '-inf' : i * 1e300)) },
    constructor: { scale: null, v: times.map(() => null) },
    __proto__x: { scale: null, v: times.map(() => 0) },
  };
  const odd = { ...findings(duration)[0], severity: 'critical', title: EVIL, title_zh: EVIL, summary: EVIL, summary_zh: EVIL,
    evidence: [evidence(`${EVIL} duration_s`, 1e9, -1e9, { [EVIL]: 'NaN', x_bytes: 1e308 }),
      { series: 'nothing here', begin: null, end: null, values: {}, note: null, note_zh: null, steps: [] }],
    advice: [{ framework: EVIL, text: EVIL, text_zh: EVIL, code: EVIL }] };
  return payload(duration, {
    curves: [
      curve(EVIL, EVIL, 'gpu', 'utilization_ratio', '1', times, times.map((_t, i) => (i % 5 ? 0.5 : null)), { gpu: 0, scale: 0.01, max: 1 }),
      curve('gpu1', 'GPU 1', 'gpu', 'memory_used_bytes', 'By', times, times.map(() => null), { gpu: 1, scale: 1, max: null }),
      curve('gpu2', 'GPU 2', 'gpu', 'power_w', 'W', [], [], { gpu: 2 }),
      curve('host', EVIL, 'host', 'cpu_ratio', '1', [0], [0.5], { max: 1 }),
      curve('host', 'host', 'host', EVIL, EVIL, times, times.map((_t, i) => (i ? 1e300 : -1e300)), { scale: 1e290 }),
      curve('rank0', 'r', 'rank', 'allocated_bytes', 'By', times, times.map((_t, i) => i * 1e9), { rank: 0, scale: 1 }),
      curve('x', 'x', 'planet', 'y', 'z', times, times.map(() => 1)),
    ],
    ranks: [rank, { name: '', rank: null, pid: null, gpus: [], steps: null, epochs: [], phases: [] }],
    events: [{ t: -5000, kind: EVIL, rank: null, name: EVIL, text: EVIL },
      { t: 1e12, kind: 'exception', rank: 1, name: '', text: 'x'.repeat(20000) }],
    log: [{ t: -4000, stream: 'stderr', text: EVIL }, { t: 500, stream: 'stdout', text: 'y'.repeat(5000) },
      { t: 900, stream: EVIL, text: '' }],
    redacted: [EVIL],
    thinning: { en: EVIL, zh: EVIL },
  }, {
    run: { ...report(duration).data.run, run_id: EVIL, energy_j: null,
      exit: { reason: EVIL, exit_code: null, signal: null, oom_cgroup: null },
      attributes: { name: EVIL, [EVIL]: EVIL, constructor: 'c' } },
    epochs: [{ rank: null, pid: null, epoch: null, begin: null, end: null, complete: false, duration_s: 0, steps: 0,
      samples: null, step_s: { count: 0 }, data_wait_s: { count: 0 }, data_wait_ratio: null,
      scalars: { [EVIL]: 'NaN', loss: 'Infinity' }, phases: [], energy_j: null }],
    gpus: [{ gpu: null, uuid: null, job: null, energy_j: null, energy_source: null },
      { gpu: 0, uuid: EVIL, job: true, energy_j: 0, energy_source: EVIL, utilization_ratio: { count: 0, mean: null } }],
    findings: [odd],
    losses: [{ time: null, kind: EVIL, severity: 'error', count: 18446744073709551615, detail: EVIL, help: EVIL }],
    not_measured: [{ subject: EVIL, reason: EVIL }],
    bill: { total: { total_ns: 0, uses: { [EVIL]: { ns: 5, energy_j: null, cost: null } } } },
  });
}

function manyRanks() {
  const duration = 600000;
  const count = 10000;
  const ranks = Array.from({ length: count }, (_n, rank) => rankOf(rank, duration, 20, rank < 4 ? 20 : 4, 1, rank === 777 ? 2 : 1));
  const slowT = Array.from({ length: 20 }, (_n, i) => 6000 + i * 29000);
  return payload(duration, {
    curves: [...gpuCurves(0, duration, 300), ...hostCurves(duration, 300)], ranks,
    slowest: { t: deltas(slowT), rank: slowT.map((_t, i) => (i % 4 ? 777 : 4000 + i)) },
  }, { epochs: epochRows(ranks.map((rank) => rank.rank), 1, duration, 20),
    gpus: [{ gpu: 0, uuid: 'GPU-0', job: true, energy_j: 1e5, energy_source: 'power_integral' }] });
}

function empty() {
  const made = payload(0);
  return { ...made, t0_ms: null, thinning: null, redacted: [],
    report: { ...made.report, data: { ...made.report.data,
      run: { ...made.report.data.run, run_id: null, begin: null, end: null, duration_s: null, exit: null, attributes: {} } } } };
}

function one() {
  return payload(1000, {
    curves: [curve('gpu0', 'GPU 0', 'gpu', 'utilization_ratio', '1', [500], [0.5], { gpu: 0, max: 1 }),
      curve('gpu0', 'GPU 0', 'gpu', 'memory_used_bytes', 'By', [500], [2e9], { gpu: 0, scale: 1, max: 8e9 })],
    ranks: [{ ...rankOf(0, 1000, 1, 1, 1), phases: [], epochs: [] }],
  }, { gpus: [{ gpu: 0, uuid: null, job: true, energy_j: null, energy_source: null, utilization_ratio: { count: 1, mean: 0.5 } }] });
}

function fine() {
  const duration = 3600000;
  return payload(duration, {
    curves: [...gpuCurves(0, duration, 2000), ...hostCurves(duration, 800)],
    ranks: [rankOf(0, duration, 15000, 2000, 12)],
  }, {
    run: { ...report(duration).data.run, energy_j: 1.9e6 },
    epochs: epochRows([0], 12, duration, 15000),
    gpus: [{ gpu: 0, uuid: 'GPU-0', job: true, energy_j: 1.9e6, energy_source: 'counter',
      utilization_ratio: stat(0.93, 0, 1), sm_active_ratio: stat(0.7, 0, 0.8) }],
    findings: findings(duration).filter((one) => one.severity === 'not_applicable'),
    rules_judged: Array.from({ length: 36 }, (_n, i) => `rule_${i}`),
  });
}

export const KINDS = { big, hostile, ranks: manyRanks, empty, one, fine };

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [kind, path] = process.argv.slice(2);
  if (!KINDS[kind] || !path) throw new Error(`one of ${Object.keys(KINDS).join(', ')}, and a file`);
  writeFileSync(path, JSON.stringify(KINDS[kind]()));
}
