// SPDX-License-Identifier: Apache-2.0
// A chart in one sentence, for those who can't see it.
import type { ChartSpec, Line } from './chart_spec';
import { withUnit } from './format';
import { t as say } from './i18n';

export interface LineStat {
  low: number;
  mean: number | null;  // weighted by time; null when a single sample
  high: number;
  text: string;
}

const known = new WeakMap<Line, LineStat | null>();

function work(line: Line): Omit<LineStat, 'text'> | null {
  const { t, v } = line.points();
  let low = Infinity;
  let high = -Infinity;
  let area = 0;
  let time = 0;
  for (let i = 0; i < v.length; i++) {
    const value = v[i];
    if (value === null || value === undefined) continue;
    if (value < low) low = value;
    if (value > high) high = value;
    const before = i > 0 ? v[i - 1] : null;
    if (before === null || before === undefined) continue;
    const width = (t[i] as number) - (t[i - 1] as number);
    area += width * (value + before) / 2;
    time += width;
  }
  return high >= low ? { low, high, mean: time > 0 ? area / time : null } : null;
}

export function statOf(line: Line, unit = '', field = ''): LineStat | null {
  let stat = known.get(line);
  if (stat === undefined) {
    const found = work(line);
    stat = found ? { ...found, text: '' } : null;
    known.set(line, stat);
  }
  if (stat && unit) stat.text = words(line, stat, unit, field);
  return stat;
}

function words(line: Line, stat: LineStat, unit: string, field: string): string {
  const format = (value: number): string => withUnit(value, line.unit ?? unit, field);
  const middle = stat.mean === null ? '–'
    : line.thinned ? say('about', format(stat.mean)) : format(stat.mean);
  return say('chartStat', line.label, format(stat.low), middle, format(stat.high));
}

export function sentence(spec: ChartSpec): string {
  const parts: string[] = [];
  for (const line of spec.lines.slice(0, 4)) {
    const stat = statOf(line, spec.unit || '1', spec.field);
    parts.push(stat ? stat.text : `${line.label}: ${say('noNumbers')}`);
  }
  const rest = spec.lines.length - parts.length;
  if (rest > 0) parts.push(say('chartMore', rest));
  return `${parts.join('; ')}.`;
}
