// SPDX-License-Identifier: Apache-2.0
// What the GPU time and the energy went to: the bill of the report as a bar and a table. Each sum
// says how much of the time it covers.
import { Cell, h, table } from './dom';
import { dash, grouped, percent, seconds, si, withUnit } from './format';
import { isTextKey, said, t as say, TextKey } from './i18n';
import { page } from './page';
import { heatColor, lineColor } from './palette';
import type { Maybe } from './types';

interface Use {
  ns: number;
  energy_j: Maybe<number>;
  cost: Maybe<number>;
}

interface Sums {
  total_ns: number;
  uses: Record<string, Use>;
  activity_ratio?: Maybe<number>;
  activity_coverage_ratio?: Maybe<number>;
  effective_ns?: Maybe<number>;
  energy_j?: Maybe<number>;
  energy_coverage_ratio?: Maybe<number>;
  counter_j?: Maybe<number>;
  counter_coverage_ratio?: Maybe<number>;
  integral_j?: Maybe<number>;
  integral_coverage_ratio?: Maybe<number>;
  cost?: Maybe<number>;
  cost_coverage_ratio?: Maybe<number>;
  electricity_cost?: Maybe<number>;
  carbon_g?: Maybe<number>;
  name?: Maybe<string>;
  epoch?: Maybe<number>;
  rank?: Maybe<number>;
  gpu?: Maybe<number>;
}

interface Bill {
  basis: string;
  wall_ns: number;
  devices: number;
  activity_source: Maybe<string>;
  energy_disagreement_ratio?: Maybe<number>;
  rates?: { currency?: Maybe<string> };
  total: Sums;
  epochs?: Sums[];
  gpus?: Sums[];
  notes?: { text: string; text_zh: string }[];
}

const MOST_ROWS = 100;
// Time that trained the model is blue and green; what was lost is warm; what nobody knows is grey.
const COLORS: Record<string, () => string> = {
  productive: () => lineColor(0), communication: () => lineColor(4), evaluation: () => lineColor(2),
  checkpoint: () => lineColor(5), data_wait: () => lineColor(1), compile: () => lineColor(3),
  throttle: () => '#a33b00', repeated: () => '#8b1a4a', stall: () => '#b3261e',
  other: () => '#6f7fb0', idle: () => '#c9a227', start_up: () => '#8aa0b8',
  tear_down: () => '#a9b4c0', unused: () => '#9c7a5b', unknown: () => '#8a8f98',
};

const colorOf = (use: string): string => (COLORS[use] ?? (() => heatColor(0.5)))();

function billOf(raw: unknown): Bill | null {
  const bill = raw as Bill | null | undefined;
  return bill && typeof bill === 'object' && bill.total && typeof bill.total.uses === 'object' ? bill : null;
}

function useName(use: string): string {
  const key = `use_${use}`;
  return isTextKey(key) ? say(key as TextKey) : use.replace(/_/g, ' ');
}

const hours = (ns: number): string => seconds(ns / 1e9);
const ratio = (value: Maybe<number>): string => (typeof value === 'number' ? percent(value) : dash);
const energy = (joules: Maybe<number>): string =>
  (typeof joules === 'number' ? si(joules / 3600, 'Wh') : dash);

function money(value: Maybe<number>, bill: Bill): string {
  if (typeof value !== 'number') return dash;
  return `${value >= 100 ? grouped(value) : value.toFixed(2)} ${bill.rates?.currency ?? ''}`.trim();
}

export function billCost(raw: unknown): string | null {
  const bill = billOf(raw);
  return bill && typeof bill.total.cost === 'number' ? money(bill.total.cost, bill) : null;
}

function ordered(sums: Sums): [string, Use][] {
  return Object.entries(sums.uses).filter(([, use]) => use.ns > 0).sort((a, b) => b[1].ns - a[1].ns);
}

function bar(sums: Sums): HTMLElement {
  const total = Math.max(sums.total_ns, 1);
  const uses = ordered(sums);
  return h('div', {
    class: 'stack', role: 'img',
    'aria-label': uses.map(([use, figures]) => `${useName(use)} ${percent(figures.ns / total)}`).join('; '),
  }, uses.map(([use, figures]) => h('span', {
    class: 'seg', title: `${useName(use)}: ${hours(figures.ns)} (${percent(figures.ns / total)})`,
    style: { width: `${100 * figures.ns / total}%`, backgroundColor: colorOf(use) },
  })));
}

function useTable(bill: Bill): HTMLElement {
  const { total } = bill;
  const priced = typeof total.cost === 'number';
  const number = (text: string): Cell => ({ text, number: true });
  const row = (name: string | Cell, ns: number, joules: Maybe<number>, cost: Maybe<number>) => [
    name, number(hours(ns)), number(percent(ns / Math.max(total.total_ns, 1))), number(energy(joules)),
    ...(priced ? [number(money(cost, bill))] : []),
  ];
  const rows = ordered(total).map(([use, figures]) => row({
    text: useName(use),
    node: h('span', { class: 'use' }, h('i', { style: { backgroundColor: colorOf(use) } }), useName(use)),
  }, figures.ns, figures.energy_j, figures.cost));
  rows.push(row(say('inTotal'), total.total_ns, total.energy_j, total.cost));
  return table(say('hoursByCategory'), [say('category'), say('gpuTime'), say('shareOfTime'),
    say('energy'), ...(priced ? [say('costKpi')] : [])], rows);
}

function figures(bill: Bill): HTMLElement {
  const { total } = bill;
  const rows: (Cell | string)[][] = [];
  const add = (name: string, value: string, covered: Maybe<number>): void => {
    rows.push([name, { text: value, number: true }, { text: ratio(covered), number: true }]);
  };
  const productive = total.uses['productive']?.ns;
  if (productive !== undefined) add(useName('productive'), hours(productive), 1);
  add(say('effective'), typeof total.effective_ns === 'number' ? hours(total.effective_ns) : dash,
    total.activity_coverage_ratio);
  add(say('activity'), `${ratio(total.activity_ratio)}${bill.activity_source ? ` (${bill.activity_source})` : ''}`,
    total.activity_coverage_ratio);
  add(say('byCounter'), energy(total.counter_j), total.counter_coverage_ratio);
  add(say('byIntegral'), energy(total.integral_j), total.integral_coverage_ratio);
  if (typeof bill.energy_disagreement_ratio === 'number') {
    add(say('disagreement'), percent(bill.energy_disagreement_ratio), null);
  }
  add(say('costKpi'), money(total.cost, bill), total.cost_coverage_ratio);
  if (typeof total.electricity_cost === 'number') {
    add(say('electricity'), money(total.electricity_cost, bill), total.energy_coverage_ratio);
  }
  if (typeof total.carbon_g === 'number') {
    add('CO₂', withUnit(total.carbon_g, 'g'), total.energy_coverage_ratio);
  }
  return table(say('cost'), [say('figure'), say('value'), say('covered')], rows, 'narrow');
}

function lines(title: string, name: string, list: Sums[], of: (line: Sums) => string): HTMLElement | null {
  if (list.length < 2) return null;
  const uses = [...new Set(list.flatMap((line) => ordered(line).map(([use]) => use)))];
  const rows = list.slice(0, MOST_ROWS).map((line): (Cell | string)[] => [
    of(line), { text: hours(line.total_ns), number: true },
    ...uses.map((use) => {
      const ns = line.uses[use]?.ns;
      return { text: ns ? percent(ns / Math.max(line.total_ns, 1)) : '0 %', number: true };
    }),
    { text: energy(line.energy_j), number: true },
  ]);
  return h('details', { class: 'fold' }, h('summary', null, title),
    list.length > MOST_ROWS ? h('p', { class: 'note' }, say('firstRows', MOST_ROWS, list.length)) : null,
    table(title, [name, say('gpuTime'), ...uses.map(useName), say('energy')], rows));
}

function energyTable(): HTMLElement | null {
  const gpus = (page.run.data.gpus ?? []).filter((gpu) => typeof gpu.energy_j === 'number');
  if (!gpus.length) return null;
  return table(say('energyBySource'), [say('gpu'), say('energy'), say('source')],
    gpus.map((gpu): (Cell | string)[] => [
      String(gpu.gpu ?? gpu.uuid ?? dash), { text: energy(gpu.energy_j), number: true },
      gpu.energy_source ?? dash,
    ]), 'narrow');
}

export function billSection(): HTMLElement[] {
  const bill = billOf(page.run.data.bill);
  if (!bill) {
    const known = energyTable();
    return [h('p', { class: 'empty' }, say('noBill')), ...(known ? [h('h3', null, say('energyBySource')), known] : [])];
  }
  const notes = bill.notes ?? [];
  const parts: (HTMLElement | null)[] = [
    h('div', { class: 'panel' },
      h('div', { class: 'panel-head' }, h('h3', null, say('hoursByCategory'))),
      h('p', { class: 'note' }, say(bill.basis === 'rank' ? 'billRanks' : 'billGpus',
        grouped(bill.devices), hours(bill.wall_ns), hours(bill.total.total_ns))),
      bar(bill.total), useTable(bill)),
    figures(bill),
    notes.length ? h('ul', { class: 'notes' }, notes.map((note) => h('li', null, said(note, 'text')))) : null,
    lines(say('billByEpoch'), say('epoch'), bill.epochs ?? [],
      (line) => (typeof line.epoch === 'number' ? String(line.epoch) : say('outsideEpochs'))),
    lines(say('billByGpu'), say('gpu'), bill.gpus ?? [], (line) => String(line.gpu ?? dash)),
  ];
  return parts.filter((part): part is HTMLElement => part !== null);
}
