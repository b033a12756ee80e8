// SPDX-License-Identifier: Apache-2.0
// Marks and ranges of axes.
import { elapsed, grouped, percent, seconds, si, withUnit } from './format';
import type { Points } from './decode';
import { state } from './state';

export const GUTTER = 64;  // CSS pixels left of every plot, so that instants stand under each other

const TIME_STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60,
  120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5,
  1e6, 2e6, 5e6, 1e7, 1e8, 1e9];

export const xSteps = (): number[] => (state.axis === 'time' ? TIME_STEPS : WHOLE_STEPS);

export function xTick(value: number, step: number): string {
  if (state.axis === 'time') return elapsed(value, step);
  return Number.isInteger(value) ? grouped(value) : '';
}

// Where a few spikes would press all else flat: 1.6 times what 98 % stay below; null where none do.
export function spikeCap(lines: { points(): Points }[], high: number): number | null {
  const shown: number[] = [];
  for (const line of lines) {
    const { t, v } = line.points();
    for (let i = 0; i < v.length; i++) {
      const value = v[i];
      if (typeof value === 'number' && (t[i] as number) >= state.from && (t[i] as number) <= state.to) {
        shown.push(value);
      }
    }
  }
  if (shown.length < 30) return null;
  shown.sort((a, b) => a - b);
  const most = shown[Math.floor(shown.length * 0.98)] as number;
  return most > 0 && high > 4 * most ? most * 1.6 : null;
}

// Short text of a mark of the y axis.
export function yTick(value: number, unit: string, field: string): string {
  if (field.endsWith('_ratio')) return percent(value);
  if (unit === 'By') return si(value, 'B');
  if (unit === 'By/s') return si(value, 'B/s');
  if (unit === 's') return seconds(value);
  if (unit === 'Cel') return `${value} °C`;
  if (Math.abs(value) < 1e-3 && value !== 0) return value.toExponential(0);
  if (unit === '1' || unit === '' || unit.startsWith('{')) return si(value, '', '');
  return withUnit(value, unit, field);
}

// Where a y axis begins and ends: at zero for amounts, close about the values otherwise.
export function yRange(low: number | null, high: number | null, ceiling: number | null)
  : [number, number] {
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) {
    return [0, ceiling ?? 1];
  }
  if (ceiling !== null && ceiling > 0) {
    return [Math.min(0, low), Math.max(ceiling, high) * (ceiling === 1 ? 1.02 : 1.06)];
  }
  if (low === high) {
    const room = Math.abs(high) * 0.2 || 1;
    return low >= 0 ? [Math.max(0, low - room), high + room] : [low - room, high + room];
  }
  const room = (high - low) * 0.08;
  if (low >= 0 && low < high * 0.7) return [0, high + room];
  return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
}
