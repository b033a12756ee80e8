// SPDX-License-Identifier: Apache-2.0
// Where it ran, how much of it was seen, what was not measured and why, and who made this page.
import { Cell, h, table } from './dom';
import { fieldLabel } from './fields';
import { dash, grouped, percent, since, zoneName } from './format';
import { said, t as say } from './i18n';
import { page } from './page';
import { state } from './state';
import type { Stat } from './types';

const MOST = 200;

export function environmentSection(): HTMLElement[] {
  const attributes = Object.entries(page.run.data.run.attributes ?? {});
  const redacted = page.run.payload.redacted ?? [];
  return [
    attributes.length ? table(say('environment'), [say('attribute'), say('value')],
      attributes.map(([name, value]) => [name, { text: String(value), node: h('code', null, String(value)) }]),
      'narrow') : h('p', { class: 'empty' }, say('none')),
    h('p', { class: 'note' }, redacted.length ? say('redacted', redacted.join(', ')) : say('noneRedacted')),
  ];
}

interface Covered {
  entity: string;
  field: string;
  ratio: number;
  series: number;
}

// Of one table of figures, the least covered.
function leastOf(entity: string, table: Record<string, unknown>): Covered | null {
  let least: Covered | null = null;
  let series = 0;
  for (const [field, value] of Object.entries(table)) {
    const ratio = value && typeof value === 'object' ? (value as Stat).coverage_ratio : null;
    if (typeof ratio !== 'number') continue;
    series++;
    if (!least || ratio < least.ratio) least = { entity, field, ratio, series: 0 };
  }
  return least ? { ...least, series } : null;
}

function coverageTable(): HTMLElement | null {
  const data = page.run.data;
  const found = [
    ...(data.gpus ?? []).map((gpu) => leastOf(`GPU ${gpu.gpu ?? gpu.uuid ?? dash}`, gpu)),
    leastOf(say('host'), data.host ?? {}),
    leastOf(say('training'), data.process ?? {}),
  ].filter((one): one is Covered => one !== null);
  if (!found.length) return null;
  return h('div', null, h('h3', null, say('coverageTable')),
    table(say('coverageTable'), [say('entity'), say('series'), say('leastCovered'), say('covered')],
      found.map((one): (Cell | string)[] => [
        one.entity, { text: String(one.series), number: true }, fieldLabel(one.field),
        { text: percent(one.ratio), number: true },
      ]), 'narrow'));
}

function lossTable(): HTMLElement {
  const losses = page.run.data.losses ?? [];
  if (!losses.length) return h('p', { class: 'empty' }, say('noLosses'));
  return table(say('losses'), [say('kind'), say('when'), say('count'), say('what'), say('help')],
    losses.slice(0, MOST).map((loss): (Cell | string)[] => {
      const at = page.run.timeOf(loss.time);
      return [loss.kind, at === null ? dash : since(at),
        { text: grouped(loss.count), number: true }, loss.detail ?? '', loss.help ?? ''];
    }));
}

export function coverageSection(): HTMLElement[] {
  const missing = page.run.data.not_measured ?? [];
  const warnings = page.run.payload.report.warnings ?? [];
  const parts: (HTMLElement | null)[] = [
    coverageTable(),
    h('h3', null, say('notMeasured')),
    missing.length ? table(say('notMeasured'), [say('subject'), say('reason')],
      missing.slice(0, MOST).map((one) => [said(one, 'subject'), said(one, 'reason')]))
      : h('p', { class: 'empty' }, say('allMeasured')),
    missing.length > MOST ? h('p', { class: 'note' }, say('firstRows', MOST, missing.length)) : null,
    h('h3', null, say('losses')), lossTable(),
    warnings.length ? h('div', null, h('h3', null, say('warnings')),
      h('ul', null, warnings.map((warning) => h('li', null, warning)))) : null,
  ];
  return parts.filter((one): one is HTMLElement => one !== null);
}

export function foot(): HTMLElement {
  const { tool, schema_version: schema } = page.run.payload.report;
  const thinning = page.run.payload.thinning;
  const words = thinning ? (state.lang === 'zh' ? thinning.zh || thinning.en : thinning.en || thinning.zh) : '';
  const clock = typeof page.run.payload.t0_ms === 'number' ? say('times', zoneName()) : say('noClock');
  return h('footer', { class: 'foot' },
    h('p', null, say('madeBy', tool.name, tool.version, tool.revision || dash), ' · ',
      say('schema', schema, page.run.payload.payload_version)),
    words ? h('p', null, words) : null,
    h('p', null, `${clock} ${say('offline')}`));
}
