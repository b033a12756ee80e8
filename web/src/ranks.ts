// SPDX-License-Identifier: Apache-2.0
// Who is slow: a table of ranks, worst first, and the slowest rank of each step over time.
import { Chart } from './chart';
import { button, Cell, h, table } from './dom';
import { dash, grouped, percent, seconds } from './format';
import { t as say } from './i18n';
import { page } from './page';
import { boxOf, pixelOf } from './paint';
import { lineColor } from './palette';
import { timesOf } from './decode';
import type { Rank } from './run';
import type { EpochRow } from './types';

const MOST = 50;
const LANES = 16;

interface Row {
  name: string;
  gpus: string;
  steps: number;
  p50: number | null;
  p95: number | null;
  longest: number | null;
  wait: number | null;     // of the time of steps
  slowest: number;         // of how many steps it was the slowest
}

interface Sums {
  steps: number;
  p50: [number, number][];
  p95: [number, number][];
  max: number;
  wait: number;
  time: number;
}

function middle(items: [number, number][]): number | null {
  items.sort((a, b) => a[0] - b[0]);
  const half = items.reduce((sum, item) => sum + item[1], 0) / 2;
  let sum = 0;
  for (const [value, weight] of items) {
    sum += weight;
    if (sum >= half) return value;
  }
  return null;
}

const keyOf = (rank: number | null | undefined, pid: number | null | undefined): string =>
  typeof rank === 'number' ? `r${rank}` : `p${pid ?? ''}`;

function sumsOf(rows: EpochRow[]): Map<string, Sums> {
  const sums = new Map<string, Sums>();
  for (const row of rows) {
    const key = keyOf(row.rank, row.pid);
    let sum = sums.get(key);
    if (!sum) sums.set(key, sum = { steps: 0, p50: [], p95: [], max: -1, wait: 0, time: 0 });
    sum.steps += row.steps;
    if (typeof row.step_s?.p50 === 'number') sum.p50.push([row.step_s.p50, row.steps]);
    if (typeof row.step_s?.p95 === 'number') sum.p95.push([row.step_s.p95, row.steps]);
    if (typeof row.step_s?.max === 'number') sum.max = Math.max(sum.max, row.step_s.max);
    const mean = row.step_s?.mean;
    if (typeof mean === 'number' && typeof row.data_wait_ratio === 'number') {
      sum.time += mean * row.steps;
      sum.wait += mean * row.steps * row.data_wait_ratio;
    }
  }
  return sums;
}

function slowestCounts(): Map<number, number> {
  const counts = new Map<number, number>();
  for (const rank of page.run.payload.slowest?.rank ?? []) {
    counts.set(rank, (counts.get(rank) ?? 0) + 1);
  }
  return counts;
}

function rowOf(rank: Rank, sums: Map<string, Sums>, counts: Map<number, number>): Row {
  const sum = sums.get(keyOf(rank.raw.rank, rank.raw.pid));
  return {
    name: rank.name,
    gpus: (rank.raw.gpus ?? []).join(', ') || dash,
    steps: rank.count || (sum?.steps ?? 0),
    p50: sum ? middle(sum.p50) : null,
    p95: sum ? middle(sum.p95) : null,
    longest: sum && sum.max >= 0 ? sum.max : null,
    wait: sum && sum.time > 0 ? sum.wait / sum.time : null,
    slowest: typeof rank.raw.rank === 'number' ? counts.get(rank.raw.rank) ?? 0 : 0,
  };
}

type Order = 'slowest' | 'p50' | 'p95' | 'longest' | 'wait' | 'steps';

function rankTable(rows: Row[]): HTMLElement {
  const holder = h('div', null);
  const all = page.run.payload.slowest?.rank?.length ?? 0;
  let order: Order = all ? 'slowest' : 'p50';
  const show = (): void => {
    const sorted = [...rows].sort((a, b) => (b[order] ?? -1) - (a[order] ?? -1) ||
      (b.p50 ?? -1) - (a.p50 ?? -1)).slice(0, MOST);
    const head = (label: string, by: Order): HTMLElement => button(label, () => {
      order = by;
      show();
      (holder.querySelector(`[data-order=${by}]`) as HTMLElement | null)?.focus();
    }, { class: 'sort', 'aria-pressed': String(order === by), 'data-order': by });
    const time = (value: number | null): Cell =>
      ({ text: value === null ? dash : seconds(value), number: true });
    holder.replaceChildren(table(say('rankTable'),
      [say('rank'), say('gpu'), head(say('steps'), 'steps'), head(say('stepP50'), 'p50'),
        head(say('stepP95'), 'p95'), head(say('longest'), 'longest'),
        head(say('waitRatio'), 'wait'), ...(all ? [head(say('slowestCount'), 'slowest')] : [])],
      sorted.map((row): (Cell | string)[] => [
        row.name, { text: row.gpus, number: true }, { text: grouped(row.steps), number: true },
        time(row.p50), time(row.p95), time(row.longest),
        { text: row.wait === null ? dash : percent(row.wait), number: true },
        ...(all ? [{ text: `${grouped(row.slowest)} (${percent(row.slowest / all)})`, number: true,
          node: share(row.slowest / all, `${grouped(row.slowest)} (${percent(row.slowest / all)})`) }] : []),
      ])));
  };
  show();
  return holder;
}

function share(part: number, text: string): HTMLElement {
  return h('span', { class: 'share' }, h('i', { style: { width: `${Math.round(part * 60)}px` } }), text);
}

function slowestStrip(): HTMLElement | null {
  const slowest = page.run.payload.slowest;
  if (!slowest || !(slowest.t ?? []).length) return null;
  const times = timesOf(slowest.t);
  const worst = [...slowestCounts()].sort((a, b) => b[1] - a[1]).slice(0, LANES)
    .map(([rank]) => rank).sort((a, b) => a - b);
  const lane = new Map(worst.map((rank, i) => [rank, i]));
  const nameOf = (rank: number): string =>
    page.run.ranks.find((one) => one.raw.rank === rank)?.name ?? `rank${rank}`;
  const names = worst.map(nameOf);
  return new Chart({
    id: 'slowest', title: say('slowestStrip'), unit: '1', field: 'slowest', wide: true, lines: [],
    rows: () => names, height: Math.max(34 + worst.length * 18, 84),
    ...(worst.length < slowestCounts().size
      ? { note: say('linesLeft', worst.length, slowestCounts().size) } : {}),
    paint: (u) => {
      const box = boxOf(u);
      const height = box.height / worst.length;
      const width = Math.max(2 * box.ratio, Math.min(6 * box.ratio, box.width / times.length));
      slowest.rank.forEach((rank, i) => {
        const row = lane.get(rank);
        const x = pixelOf(u, times[i] ?? NaN);
        if (row === undefined || !(x >= box.left && x <= box.left + box.width)) return;
        u.ctx.fillStyle = lineColor(row);
        u.ctx.fillRect(x - width / 2, box.top + (row + 0.18) * height, width, height * 0.64);
      });
    },
  }).element;
}

export function ranksSection(): HTMLElement[] {
  const { ranks } = page.run;
  if (!ranks.some((rank) => rank.count > 0)) return [h('p', { class: 'empty' }, say('noRanks'))];
  const sums = sumsOf(page.run.data.epochs ?? []);
  const counts = slowestCounts();
  const rows = ranks.map((rank) => rowOf(rank, sums, counts));
  const parts: HTMLElement[] = [];
  if (ranks.length === 1) parts.push(h('p', { class: 'note' }, say('oneRank')));
  const strip = slowestStrip();
  if (strip) parts.push(strip);
  parts.push(rankTable(rows));
  if (rows.length > MOST) parts.push(h('p', { class: 'note' }, say('worst', MOST, grouped(rows.length))));
  const first = page.axis.rank?.raw.steps;
  if (first?.thinned) {
    parts.push(h('p', { class: 'note' }, say('thinnedSteps', grouped(first.t.length), grouped(first.count))));
  }
  return parts;
}
