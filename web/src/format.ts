// SPDX-License-Identifier: Apache-2.0
// Numbers with units, SI prefixes (GB = 1e9), and times. What is not known is a dash, never 0.
import { state } from './state';

const DASH = '–';

function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace('e+', 'e');
  const places = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  return trim(value.toFixed(places));
}

const trim = (text: string): string =>
  text.includes('.') ? text.replace(/\.?0+$/, '') : text;

const PREFIXES: [number, string][] = [
  [1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, ''],
];

export function si(value: number, unit: string, space = ' '): string {
  const size = Math.abs(value);
  const [factor, prefix] = PREFIXES.find(([f]) => size >= f * 0.9995) ?? [1, ''];
  const text = digits(value / (factor as number));
  return prefix || unit ? `${text}${space}${prefix}${unit}` : text;
}

// Seconds as a person reads them: 212 ms, 4.2 s, 3 h 12 min.
export function seconds(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(size)) return DASH;
  if (size === 0) return '0 s';
  if (size < 0.9995e-3) return `${digits(value * 1e6)} µs`;
  if (size < 0.9995) return `${digits(value * 1e3)} ms`;
  if (size < 59.95) return `${digits(value)} s`;
  const whole = Math.round(size);
  const sign = value < 0 ? '-' : '';
  const zh = state.lang === 'zh';
  const parts: [number, string][] = zh
    ? [[Math.floor(whole / 86400), '天'], [Math.floor(whole / 3600) % 24, '小时'],
      [Math.floor(whole / 60) % 60, '分'], [whole % 60, '秒']]
    : [[Math.floor(whole / 86400), 'd'], [Math.floor(whole / 3600) % 24, 'h'],
      [Math.floor(whole / 60) % 60, 'min'], [whole % 60, 's']];
  const first = parts.findIndex(([n]) => n > 0);
  const shown = parts.slice(first, first + 2).filter(([n], i) => i === 0 || n > 0);
  return sign + shown.map(([n, unit]) => `${n} ${unit}`).join(' ');
}

export function percent(value: number): string {
  const size = Math.abs(value) * 100;
  if (!Number.isFinite(size)) return DASH;
  // Nearly all is not all.
  if (size < 100 && size >= 99.5) return `${size >= 99.95 ? '> 99.9' : trim(size.toFixed(1))} %`;
  return `${trim((value * 100).toFixed(size >= 10 || size === 0 ? 0 : size >= 1 ? 1 : 2))} %`;
}

const PLAIN: Record<string, string> = { Cel: '°C', W: 'W', Hz: 'Hz', J: 'J', 'J/s': 'W' };

// A value with the UCUM unit of its series. `field` tells ratios from plain numbers.
export function withUnit(value: number | null | undefined, unit: string, field = ''): string {
  if (value === null || value === undefined) return DASH;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value < 0 ? '−∞' : '∞';
  if (field.endsWith('_ratio') || unit === '%') return percent(unit === '%' ? value / 100 : value);
  if (unit === 'By' || unit === 'By/s') return si(value, unit === 'By' ? 'B' : 'B/s');
  if (unit === 's') return seconds(value);
  if (unit === 'Cel') return `${digits(value)} °C`;
  if (field.endsWith('_cores')) return `${digits(value)}`;
  const plain = PLAIN[unit];
  if (plain) return si(value, plain);
  if (unit.startsWith('{') || unit === '1' || unit === '') {
    const text = Number.isInteger(value) && Math.abs(value) < 1e6 ? grouped(value) : scalar(value);
    return unit.endsWith('/s') ? `${text} /s` : text;
  }
  return si(value, unit);
}

export function grouped(value: number): string {
  if (!Number.isFinite(value)) return DASH;
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

// A number without a unit: a loss, a learning rate.
export function scalar(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return DASH;
  if (typeof value === 'string') return value;
  if (!Number.isFinite(value)) return withUnit(value, '1');
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? grouped(value) : digits(value);
}

// Since the begin of the run, with its sign.
export function since(ms: number, text = seconds(Math.abs(ms) / 1000)): string {
  return `${ms < 0 ? '−' : '+'}${text}`;
}

// The unit of a figure by the end of its name, for values of evidence and the bill.
export function byName(name: string, value: number | string | null | undefined): string {
  if (typeof value === 'string' || value === null || value === undefined) return scalar(value);
  const units: [RegExp, string][] = [
    [/_bytes_per_s$/, 'By/s'], [/_bytes$/, 'By'], [/_ratio$/, '1'], [/_gpu_s$|_s$|^seconds$/, 's'],
    [/_w$/, 'W'], [/_c$/, 'Cel'], [/_hz$/, 'Hz'], [/_j$/, 'J'],
  ];
  if (/_bytes_per_(step|epoch)$/.test(name)) return si(value, 'B');
  if (/_kwh$/.test(name)) return `${digits(value)} kWh`;
  if (/_hours$|_h$/.test(name)) return `${digits(value)} h`;
  const found = units.find(([pattern]) => pattern.test(name));
  return found ? withUnit(value, found[1], name) : scalar(value);
}

// Elapsed time on an axis; `step` is the distance of two marks in seconds.
export function elapsed(value: number, step: number): string {
  if (value === 0) return '0';
  const total = Math.round(value * 1000) / 1000;
  if (Math.abs(total) < 60) {
    const places = step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3;
    return `${total.toFixed(places)} s`;
  }
  const whole = Math.round(total);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const two = (n: number): string => String(n).padStart(2, '0');
  const rest = step < 60 ? `:${two(whole % 60)}` : '';
  return hours > 0 ? `${hours}:${two(minutes)}${rest || ' h'}` : `${minutes}${rest} min`;
}

let clock: Intl.DateTimeFormat | null = null;

function clockOf(): Intl.DateTimeFormat {
  if (!clock) {
    clock = new Intl.DateTimeFormat('sv-SE', {
      year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit',
      second: '2-digit', hourCycle: 'h23',
    });
  }
  return clock;
}

// Wall clock of the reader; `ms` since 1970.
export function local(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? DASH : clockOf().format(date);
}

export function zoneName(): string {
  try {
    return Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
  } catch {
    return 'UTC';
  }
}

export const dash = DASH;
