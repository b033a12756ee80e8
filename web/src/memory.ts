// SPDX-License-Identifier: Apache-2.0
// Memory: the ledger at one instant, and the charts that it is read from.
import { Chart } from './chart';
import { byField, byOwner, lineOf, MOST_LINES } from './curve_lines';
import { button, Cell, h, table } from './dom';
import { fieldLabel } from './fields';
import { dash, percent, si } from './format';
import { metricChart } from './gpus';
import { hostMemoryCharts } from './host';
import { t as say } from './i18n';
import { gpuOfPeak, Ledger, ledgerOf, peakTime } from './ledger';
import { page } from './page';
import { Curve } from './run';
import { on, setCursor, state } from './state';
import { cursorWords } from './words';

let chosen: number | null = null;

function bar(ledger: Ledger): HTMLElement {
  const whole = Math.max(ledger.total ?? 0, ledger.used ?? 0, 1);
  const width = (value: number): string => `${100 * value / whole}%`;
  const free = ledger.total !== null && ledger.used !== null ? ledger.total - ledger.used : 0;
  const words = ledger.parts.map((part) => `${say(part.label)} ${si(part.value ?? 0, 'B')}`);
  return h('div', { class: 'stack', role: 'img', 'aria-label': words.join('; ') || say('noNumbers') },
    ledger.parts.map((part) => h('span', {
      class: `seg ${part.id}`, style: { width: width(part.value ?? 0) },
      title: `${say(part.label)}: ${si(part.value ?? 0, 'B')}`,
    })),
    free > 0 ? h('span', { class: 'seg free', style: { width: width(free) },
      title: `${say('ledgerFree')}: ${si(free, 'B')}` }) : null,
    ledger.total !== null ? h('i', { class: 'limit', style: { left: width(ledger.total) } }) : null);
}

function rows(ledger: Ledger): (Cell | string)[][] {
  const share = (value: number | null): Cell => ({
    number: true,
    text: value !== null && ledger.total ? percent(value / ledger.total) : dash,
  });
  const row = (id: string, label: string, value: number | null, why = ''): (Cell | string)[] => [
    { text: label, node: h('span', { class: `dot ${id}` }, label) },
    { text: value === null ? dash : si(value, 'B'), number: true }, share(value), why,
  ];
  const list = ledger.used === null ? [] : [row('used', say('ledgerUsed'), ledger.used)];
  for (const part of [...ledger.parts, ...ledger.absent]) {
    list.push(row(part.value === null ? 'lack' : part.id, say(part.label), part.value, part.why));
  }
  if (ledger.total !== null && ledger.used !== null) {
    list.push(row('free', say('ledgerFree'), Math.max(ledger.total - ledger.used, 0)));
  }
  list.push(row('total', say('ledgerTotal'), ledger.total, ledger.total === null ? say('noTotal') : ''));
  return list;
}

function ledgerPanel(gpus: number[]): HTMLElement {
  if (chosen === null || !gpus.includes(chosen)) chosen = gpuOfPeak(gpus) ?? (gpus[0] as number);
  const body = h('div', { class: 'ledger-body' });
  const when = h('p', { class: 'note', id: 'ledger-when' });
  const back = button(say('toPeak'), () => setCursor(null), { class: 'small' });
  const select = h('select', {
    'aria-label': say('ledgerGpu'), id: 'ledger-gpu',
    onchange: () => { chosen = Number(select.value); show(); },
  }, gpus.map((gpu) => h('option', { value: gpu, selected: gpu === chosen }, `GPU ${gpu}`)));
  const show = (): void => {
    const gpu = chosen as number;
    const peak = peakTime(gpu);
    const time = state.cursor ?? peak ?? 0;
    const ledger = ledgerOf(gpu, time);
    back.hidden = state.cursor === null;
    when.textContent = say(state.cursor === null ? 'atPeak' : 'atCursor', cursorWords(time));
    body.replaceChildren(bar(ledger),
      table(say('ledger'), [say('part'), say('bytes'), say('share'), say('remark')], rows(ledger)));
    if (ledger.remark) {
      body.appendChild(h('p', { class: 'note' }, say('disagree', si(Number(ledger.remark), 'B'))));
    }
  };
  let pending = 0;
  on('cursor', () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(show);
  });
  show();
  return h('div', { class: 'panel', id: 'ledger' },
    h('div', { class: 'panel-head' }, h('h3', null, say('ledger')),
      h('div', { class: 'tools' }, select, back)), when, body);
}

function allocatorCharts(gpus: number[]): HTMLElement[] {
  const fields = ['allocated_bytes', 'reserved_bytes', 'max_allocated_bytes', 'max_reserved_bytes'];
  const of = (entity: string): Curve[] => fields.map((field) => page.run.curve(entity, field))
    .filter((curve): curve is Curve => curve !== undefined);
  const ranks = page.run.ranks.filter((rank) => of(rank.name).length > 0);
  if (ranks.length > 2) {
    return fields.slice(0, 2).flatMap((field) => {
      const curves = page.run.curvesOf(field, 'rank');
      if (!curves.length) return [];
      return [new Chart({
        id: `alloc-${field}`, title: `${say('frameworkMemory')}: ${fieldLabel(field)}`, unit: 'By', field,
        lines: byOwner(curves.slice(0, MOST_LINES)), keys: curves.map((curve) => curve.key),
        ...(curves.length > MOST_LINES ? { note: say('linesLeft', MOST_LINES, curves.length) } : {}),
      }).element];
    });
  }
  return ranks.map((rank) => {
    const gpu = (rank.raw.gpus ?? [])[0] ?? gpus[0];
    const device = gpu === undefined ? undefined : page.run.curve(`gpu${gpu}`, 'memory_used_bytes');
    const total = device?.max ?? null;
    const lines = byField(of(rank.name));
    if (device) lines.push({ ...lineOf(device, `${device.label}: ${say('deviceMemory')}`), key: '' });
    return new Chart({
      id: `alloc-${rank.name}`, title: `${say('frameworkMemory')}: ${rank.name}`, unit: 'By',
      field: 'allocated_bytes', lines, limit: total === null ? null : { value: total, label: say('limit') },
    }).element;
  });
}

// `taken` collects the host curves that are drawn here.
export function memorySection(taken: Set<string>): HTMLElement[] {
  const gpus = page.run.gpuIndexes();
  const used = page.run.gpuCurves('memory_used_bytes');
  const parts: HTMLElement[] = [];
  if (used.length) parts.push(ledgerPanel(gpus));
  const charts = [
    ...(used.length ? [metricChart('memory_used_bytes', used)] : []),
    ...allocatorCharts(gpus), ...hostMemoryCharts(taken),
  ];
  if (charts.length) parts.push(h('div', { class: 'grid' }, charts));
  if (!parts.length) parts.push(h('p', { class: 'empty' }, say('noMemory')));
  return parts;
}
