// SPDX-License-Identifier: Apache-2.0
// Loss and what else the training told: scalars, step times, pace, and its epochs as a table.
import { Chart } from './chart';
import type { Line } from './chart_spec';
import { hasValues, MOST_LINES, stepLine } from './curve_lines';
import type { Points } from './decode';
import { Cell, h, table } from './dom';
import { fieldLabel } from './fields';
import { grouped, percent, scalar, seconds, si } from './format';
import { t as say } from './i18n';
import { page } from './page';
import type { Rank } from './run';
import { state } from './state';
import type { EpochRow } from './types';

const MOST_RANKS = 8;
const MOST_ROWS = 200;
const FIRST = ['loss', 'train_loss', 'accuracy', 'acc', 'lr', 'learning_rate'];

function ranksShown(): Rank[] {
  return page.run.ranks.filter((rank) => rank.count > 0).slice(0, MOST_RANKS);
}

function scalarTitle(name: string): string {
  if (/^(train_)?loss$/.test(name)) return say('loss');
  if (/^(lr|learning_rate)$/.test(name)) return say('lr');
  return name;
}

function scalarCharts(ranks: Rank[]): HTMLElement[] {
  const names = [...new Set(ranks.flatMap((rank) => rank.scalarNames))];
  const place = (name: string): number => (FIRST.includes(name) ? FIRST.indexOf(name) : 99);
  names.sort((a, b) => place(a) - place(b));
  return names.slice(0, 40).flatMap((name, i) => {
    const lines = ranks.filter((rank) => hasValues(rank.scalar(name)))
      .map((rank) => stepLine(rank, name, rank.name, () => rank.scalar(name)));
    if (!lines.length) return [];
    return [new Chart({
      id: `scalar-${i}`, title: scalarTitle(name), unit: '1', field: name, lines, logScale: true,
      keys: ranks.map((rank) => `${rank.name} scalar.${name}`),
    }).element];
  });
}

// One chart of both for a rank or two, else one for each.
function stepCharts(ranks: Rank[]): (HTMLElement | null)[] {
  if (ranks.length <= 2) return [stepChart('step-time', say('stepTimeChart'), ranks, true, true)];
  return [stepChart('step-time', say('stepTime'), ranks, true, false),
    stepChart('data-wait', fieldLabel('data_wait_s'), ranks, false, true)];
}

function stepChart(id: string, title: string, ranks: Rank[], withStep: boolean, withWait: boolean)
  : HTMLElement | null {
  const lines: Line[] = [];
  for (const rank of ranks) {
    const name = (what: string): string => (!withStep || !withWait ? rank.name
      : ranks.length > 1 ? `${rank.name} ${what}` : what);
    if (withStep && hasValues(rank.duration())) {
      lines.push(stepLine(rank, 'duration_s', name(say('stepTimeLine')), () => rank.duration()));
    }
    if (withWait && hasValues(rank.dataWait())) {
      lines.push(stepLine(rank, 'data_wait_s', name(say('dataWaitLine')), () => rank.dataWait()));
    }
  }
  if (!lines.length) return null;
  return new Chart({
    id, title, unit: 's', field: 'duration_s',
    lines: lines.slice(0, MOST_LINES), logScale: true, robust: true,
    keys: page.run.ranks.slice(0, 2000).flatMap((rank) =>
      [...(withStep ? ['duration_s', 'step_s'] : []), ...(withWait ? ['data_wait_s'] : [])].map((field) => `${rank.name} ${field}`)),
  }).element;
}

// Steps that were taken by the time they took, over equal stretches: thinning does not change it.
function pace(rank: Rank): Points {
  const t = rank.t();
  const steps = rank.stepNumbers();
  const least = state.duration / 250;
  const times: number[] = [];
  const v: (number | null)[] = [];
  let from = -1;
  for (let i = 0; i < t.length; i++) {
    const step = steps[i];
    if (step === null || step === undefined) continue;
    if (from < 0) { from = i; continue; }
    const begin = steps[from] as number;
    const width = (t[i] as number) - (t[from] as number);
    if (step < begin) { from = i; v.push(null); times.push(t[i] as number); continue; }
    if (width < least || width <= 0) continue;
    times.push(t[i] as number);
    v.push((step - begin) / (width / 1000));
    from = i;
  }
  return { t: Float64Array.from(times), v, odd: [] };
}

function paceChart(ranks: Rank[]): HTMLElement | null {
  const lines = ranks.map((rank) => {
    const points = pace(rank);
    return { line: stepLine(rank, '', rank.name, () => points), points };
  }).filter((one) => one.points.v.length > 1).map((one) => ({
    ...one.line, reach: state.duration / 100,
  }));
  if (!lines.length) return null;
  return new Chart({ id: 'pace', title: say('throughput'), unit: '1', field: '', lines, zero: true }).element;
}

function epochPoints(rows: EpochRow[]): Points {
  const t: number[] = [];
  const v: (number | null)[] = [];
  for (const row of rows) {
    const begin = page.run.timeOf(row.begin);
    const end = page.run.timeOf(row.end);
    if (begin === null || end === null || typeof row.samples !== 'number') continue;
    if (!(row.duration_s > 0)) continue;
    const rate = row.samples / row.duration_s;
    t.push(begin, end);
    v.push(rate, rate);
    t.push(end);
    v.push(null);
  }
  return { t: Float64Array.from(t), v, odd: [] };
}

function samplesChart(): HTMLElement | null {
  const byRank = new Map<string, EpochRow[]>();
  for (const row of page.run.data.epochs ?? []) {
    const name = row.rank === null || row.rank === undefined ? `pid ${row.pid ?? '?'}` : `rank${row.rank}`;
    const rows = byRank.get(name);
    if (rows) rows.push(row);
    else if (byRank.size < MOST_RANKS) byRank.set(name, [row]);
  }
  const lines = [...byRank].map(([label, rows]) => ({ label, points: epochPoints(rows) }))
    .filter((one) => one.points.v.length > 0)
    .map((one): Line => ({ key: '', label: one.label, points: () => one.points, reach: state.duration }));
  if (!lines.length) return null;
  return new Chart({ id: 'samples', title: say('samplesChart'), unit: '1', field: '', lines, zero: true }).element;
}

function epochTable(): HTMLElement | null {
  const all = page.run.data.epochs ?? [];
  if (!all.length) return null;
  const rows = all.slice(0, MOST_ROWS);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.scalars ?? {})))].slice(0, 6);
  const several = new Set(rows.map((row) => row.rank)).size > 1;
  const number = (text: string): Cell => ({ text, number: true });
  const time = (value: number | null | undefined): Cell =>
    number(typeof value === 'number' ? seconds(value) : '–');
  const cells = rows.map((row): (Cell | string)[] => [
    { text: `${row.epoch ?? '–'}${row.complete ? '' : ` (${say('incomplete')})`}` },
    ...(several ? [number(String(row.rank ?? row.pid ?? '–'))] : []),
    time(row.duration_s), number(grouped(row.steps)), time(row.step_s?.p50), time(row.step_s?.p95),
    number(typeof row.data_wait_ratio === 'number' ? percent(row.data_wait_ratio) : '–'),
    number(typeof row.energy_j === 'number' ? si(row.energy_j / 3600, 'Wh') : '–'),
    ...names.map((name) => number(scalar(row.scalars?.[name]))),
  ]);
  return h('details', { class: 'fold' },
    h('summary', null, say('epochTable')),
    rows.length < all.length ? h('p', { class: 'note' }, say('firstRows', rows.length, all.length)) : null,
    table(say('epochTable'), [say('epoch'), ...(several ? [say('rank')] : []), say('duration'),
      say('steps'), say('stepP50'), say('stepP95'), say('waitRatio'), say('energy'), ...names], cells));
}

export function trainingSection(): HTMLElement[] {
  const ranks = ranksShown();
  const charts = [...scalarCharts(ranks), ...stepCharts(ranks), paceChart(ranks), samplesChart()]
    .filter((one): one is HTMLElement => one !== null);
  const parts: HTMLElement[] = [];
  if (!charts.length) parts.push(h('p', { class: 'empty' }, say('noTraining')));
  else parts.push(h('div', { class: 'grid' }, charts));
  const told = page.run.ranks.filter((rank) => rank.count > 0).length;
  if (told > ranks.length) parts.push(h('p', { class: 'note' }, say('linesLeft', ranks.length, told)));
  const epochs = epochTable();
  return epochs ? [...parts, epochs] : parts;
}
