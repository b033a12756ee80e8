// SPDX-License-Identifier: Apache-2.0
// One run, decoded when asked: curves by name, steps by rank, times of the report.
import { columnOf, NO_POINTS, numbersOf, Points, timesOf, toldOf } from './decode';
import type { Column, CurvePayload, GpuReport, Payload, RankPayload, Stat } from './types';

export interface Curve extends CurvePayload {
  key: string;  // "gpu0 power_w", as evidence names it
  points(): Points;
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

function curveOf(raw: CurvePayload): Curve {
  return {
    ...raw,
    key: `${raw.entity} ${raw.field}`,
    points: once(() => columnOf(raw.v ?? [], raw.scale ?? 1, timesOf(raw.t))),
  };
}

export class Rank {
  readonly name: string;
  private columns = new Map<string, Points>();

  constructor(readonly raw: RankPayload) {
    this.name = raw.name;
  }
  readonly t = once(() => timesOf(this.raw.steps?.t));
  readonly stepNumbers = once(() => numbersOf(this.raw.steps?.step));

  get count(): number {
    return this.raw.steps?.count ?? 0;
  }
  get scalarNames(): string[] {
    return Object.keys(this.raw.steps?.scalars ?? {});
  }
  private column(name: string, raw: Column | null | undefined): Points {
    const known = this.columns.get(name);
    if (known) return known;
    const made = raw ? toldOf(raw, this.t()) : NO_POINTS;
    this.columns.set(name, made);
    return made;
  }
  duration(): Points {
    return this.column('duration_s', this.raw.steps?.duration);
  }
  dataWait(): Points {
    return this.column('data_wait_s', this.raw.steps?.data_wait);
  }
  scalar(name: string): Points {
    return this.column(`scalar.${name}`, this.raw.steps?.scalars?.[name]);
  }
}

const list = <T>(value: T[] | null | undefined): T[] => (Array.isArray(value) ? value : []);

export class Run {
  readonly curves: Curve[];
  readonly ranks: Rank[];
  readonly duration: number;
  private byKey = new Map<string, Curve>();

  constructor(readonly payload: Payload) {
    this.curves = list(payload.curves).map(curveOf);
    this.ranks = list(payload.ranks).map((rank) => new Rank(rank));
    for (const curve of this.curves) {
      const other = this.byKey.get(curve.key);
      if (other === undefined) this.byKey.set(curve.key, curve);
      else this.apart(other, curve);
    }
    for (const curve of this.curves) {
      const key = `${curve.alias ?? curve.entity} ${curve.field}`;
      if (!this.byKey.has(key)) this.byKey.set(key, curve);
    }
    const told = Number(payload.duration_ms);
    this.duration = Number.isFinite(told) && told > 0 ? told : 1;
  }
  // Two sources may tell the same figure, such as a counter and the driver's own rate: the counter
  // keeps the name, the other is called sampled.
  private apart(first: Curve, second: Curve): void {
    const counter = second.kind === 'counter' ? second : first;
    const sampled = counter === first ? second : first;
    sampled.field = `sampled_${sampled.field}`;
    this.byKey.set(counter.key, counter);
  }
  get data() {
    return this.payload.report.data;
  }
  curve(entity: string, field: string): Curve | undefined {
    return this.byKey.get(`${entity} ${field}`);
  }
  curvesOf(field: string, scope: string): Curve[] {
    return this.curves.filter((curve) => curve.field === field && curve.scope === scope);
  }
  // Milliseconds in the run of an instant of the report; null without a clock.
  timeOf(text: string | null | undefined): number | null {
    const t0 = this.payload.t0_ms;
    if (!text || typeof t0 !== 'number') return null;
    const at = Date.parse(text);
    return Number.isNaN(at) ? null : at - t0;
  }
  // GPUs of the job by the report; all where it does not say which are.
  readonly jobGpus = once(() => {
    const all = list(this.data.gpus).filter((gpu) => typeof gpu.gpu === 'number');
    const own = all.filter((gpu) => gpu.job === true);
    return own.length ? own : all.filter((gpu) => gpu.job !== false);
  });
  readonly gpuIndexes = once(() => {
    const told = this.jobGpus().map((gpu) => gpu.gpu as number);
    if (told.length) return told;
    const seen = this.curves.filter((c) => c.scope === 'gpu' && typeof c.gpu === 'number');
    return [...new Set(seen.map((curve) => curve.gpu as number))].sort((a, b) => a - b);
  });
  gpuCurves(field: string): Curve[] {
    const own = new Set(this.gpuIndexes());
    return this.curvesOf(field, 'gpu').filter((c) => typeof c.gpu !== 'number' || own.has(c.gpu));
  }
  readonly framework = once(() => {
    const told = this.data.run.framework ?? this.data.run.attributes?.['framework'] ?? '';
    return String(told).toLowerCase();
  });
}

export function stat(gpu: GpuReport, field: string): Stat | undefined {
  const value = gpu[field];
  return value && typeof value === 'object' ? (value as Stat) : undefined;
}

export function mean(values: (number | null | undefined)[]): number | null {
  const known = values.filter((v): v is number => typeof v === 'number' && Number.isFinite(v));
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

export function largest(values: (number | null | undefined)[]): number | null {
  let most: number | null = null;
  for (const v of values) {
    if (typeof v === 'number' && Number.isFinite(v) && (most === null || v > most)) most = v;
  }
  return most;
}

// The last index with t[index] <= at; -1 before the first.
export function lastBefore(t: ArrayLike<number>, at: number): number {
  let low = 0;
  let high = t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((t[middle] as number) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The value at an instant: the sample nearest to it, no farther away than `reach` ms.
export function valueAt(points: Points, at: number, reach: number): number | null {
  const before = lastBefore(points.t, at);
  let best: number | null = null;
  let distance = Infinity;
  for (const i of [before, before + 1]) {
    const t = points.t[i];
    if (t === undefined) continue;
    const value = points.v[i];
    // The line breaks here.
    if (value === null && i === before) return null;
    if (value === null || value === undefined) continue;
    if (Math.abs(t - at) < distance) {
      distance = Math.abs(t - at);
      best = value;
    }
  }
  if (distance <= reach) return best;
  // Far from both, but on the line that joins them: equal values in a row are left out of a curve.
  const [a, b] = [points.v[before], points.v[before + 1]];
  return typeof a === 'number' && typeof b === 'number' ? best : null;
}
