// SPDX-License-Identifier: Apache-2.0
// Above each chart: which line is which, what it is at the cursor, and a switch for each.
import type { ChartSpec } from './chart_spec';
import type { LineStat } from './chart_words';
import { h, svg } from './dom';
import { withUnit } from './format';
import { t as say } from './i18n';
import { lineColor, lineDash } from './palette';

export interface Legend {
  element: HTMLElement;
  shown(index: number): boolean;
  values(texts: string[]): void;
  rest(stats: (LineStat | null)[]): void;
}

function swatch(index: number): SVGElement {
  return svg('svg', { class: 'swatch', viewBox: '0 0 22 8', 'aria-hidden': 'true' },
    svg('line', {
      x1: 0, x2: 22, y1: 4, y2: 4, stroke: lineColor(index), 'stroke-width': 2.4,
      'stroke-dasharray': lineDash(index).join(' '),
    }));
}

export function legendOf(spec: ChartSpec, toggle: (index: number, show: boolean) => void): Legend {
  const hidden = new Set<number>();
  const values = spec.lines.map(() => h('span', { class: 'v' }, ''));
  const items = spec.lines.map((line, i) => {
    const inner = [spec.paint ? null : swatch(line.color ?? i), h('span', null, line.label), values[i]];
    if (spec.paint) return h('span', { class: 'key' }, inner);
    const item = h('button', {
      type: 'button', class: 'key', 'aria-pressed': 'true', title: say('hide', line.label),
      onclick: () => {
        if (!hidden.delete(i)) hidden.add(i);
        item.setAttribute('aria-pressed', String(!hidden.has(i)));
        toggle(i, !hidden.has(i));
      },
    }, inner);
    return item;
  });
  const show = (texts: string[]): void => texts.forEach((text, i) => {
    const value = values[i];
    if (value && value.textContent !== text) value.textContent = text;
  });
  return {
    element: h('div', { class: 'legend' }, items),
    shown: (index) => !hidden.has(index),
    values: show,
    rest: (stats) => show(stats.map((stat, i) => {
      if (!stat) return '–';
      const unit = spec.lines[i]?.unit ?? spec.unit;
      const low = withUnit(stat.low, unit, spec.field);
      const high = withUnit(stat.high, unit, spec.field);
      return low === high ? low : `${low} – ${high}`;
    })),
  };
}
