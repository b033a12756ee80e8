// SPDX-License-Identifier: Apache-2.0
// The numbers of a chart as a table: evenly spaced instants over what it shows.
import type { ChartSpec } from './chart_spec';
import { Cell, h, table } from './dom';
import { grouped, local, seconds, withUnit } from './format';
import { t as say } from './i18n';
import { page } from './page';
import { valueAt } from './run';
import { state } from './state';

const ROWS = 50;
const MOST_LINES = 16;

function instants(spec: ChartSpec): number[] {
  const times = new Set<number>();
  for (const line of spec.lines.slice(0, MOST_LINES)) {
    for (const t of line.points().t) {
      if (t >= state.from && t <= state.to) times.add(t);
      if (times.size > ROWS) break;
    }
  }
  if (times.size <= ROWS) return [...times].sort((a, b) => a - b);
  const width = state.to - state.from;
  return Array.from({ length: ROWS }, (_none, i) => state.from + width * i / (ROWS - 1));
}

export function chartTable(spec: ChartSpec): HTMLElement {
  const lines = spec.lines.slice(0, MOST_LINES);
  const t0 = page.run.payload.t0_ms;
  const hasStep = page.axis.has('step');
  const rows = instants(spec).map((at): (Cell | string)[] => {
    const step = page.axis.numberAt('step', at);
    const clock = typeof t0 === 'number' ? local(t0 + at) : '';
    return [
      { text: seconds(at / 1000), title: clock },
      ...(hasStep ? [{ text: step === null ? '–' : grouped(step), number: true }] : []),
      ...lines.map((line) => ({
        number: true,
        text: withUnit(valueAt(line.points(), at, Math.max(line.reach, (state.to - state.from) / ROWS)),
          line.unit ?? spec.unit, spec.field),
      })),
    ];
  });
  return h('div', null,
    table(say('dataOf', spec.title),
      [say('axisTime'), ...(hasStep ? [say('axisStep')] : []), ...lines.map((l) => l.label)], rows),
    h('p', { class: 'note' }, say('tableNote', rows.length)));
}
