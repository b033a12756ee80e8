// SPDX-License-Identifier: Apache-2.0
// One x axis for all charts: elapsed time, step or epoch. Everything is kept in milliseconds of the
// run; steps and epochs are read off a table of (time, number) that only rises.
import { lastBefore, Rank, Run } from './run';
import { AxisMode, state } from './state';

interface Scale {
  t: Float64Array;
  x: Float64Array;
}

function rising(pairs: [number, number][]): Scale | null {
  const sorted = pairs.filter(([t, x]) => Number.isFinite(t) && Number.isFinite(x))
    .sort((a, b) => a[0] - b[0]);
  let most = -Infinity;
  const kept: [number, number][] = [];
  for (const [t, x] of sorted) {
    most = Math.max(most, x);
    kept.push([t, most]);
  }
  const first = kept[0];
  const last = kept[kept.length - 1];
  if (!first || !last || !(last[1] > first[1])) return null;
  return { t: Float64Array.from(kept, (p) => p[0]), x: Float64Array.from(kept, (p) => p[1]) };
}

function stepScale(rank: Rank): Scale | null {
  const t = rank.t();
  const pairs: [number, number][] = [];
  rank.stepNumbers().forEach((step, i) => {
    if (step !== null) pairs.push([t[i] as number, step]);
  });
  return rising(pairs);
}

function epochScale(rank: Rank): Scale | null {
  const pairs: [number, number][] = [];
  for (const span of rank.raw.epochs ?? []) {
    pairs.push([span.begin, span.epoch], [span.end, span.epoch + 1]);
  }
  return rising(pairs);
}

function interpolate(from: Float64Array, to: Float64Array, at: number): number {
  const i = lastBefore(from, at);
  if (i < 0) return NaN;
  const a = from[i] as number;
  if (i + 1 >= from.length) return at === a ? (to[i] as number) : NaN;
  const b = from[i + 1] as number;
  const part = b > a ? (at - a) / (b - a) : 0;
  return (to[i] as number) + part * ((to[i + 1] as number) - (to[i] as number));
}

export class Axis {
  private scales: Partial<Record<AxisMode, Scale>> = {};
  readonly rank: Rank | undefined;  // whose steps and epochs count

  constructor(run: Run) {
    const told = run.ranks.filter((rank) => rank.count > 0);
    this.rank = told.find((rank) => rank.raw.rank === 0) ?? told[0] ??
      run.ranks.find((rank) => (rank.raw.epochs ?? []).length > 0);
    if (!this.rank) return;
    const step = stepScale(this.rank);
    const epoch = epochScale(this.rank);
    if (step) this.scales.step = step;
    if (epoch) this.scales.epoch = epoch;
  }
  has(mode: AxisMode): boolean {
    return mode === 'time' || this.scales[mode] !== undefined;
  }
  private scale(): Scale | undefined {
    return this.scales[state.axis];
  }
  // NaN where the axis does not reach, such as a time before the first step.
  toX(ms: number): number {
    const scale = this.scale();
    return scale ? interpolate(scale.t, scale.x, ms) : ms / 1000;
  }
  toMs(x: number): number {
    const scale = this.scale();
    if (!scale) return x * 1000;
    const first = scale.x[0] as number;
    const last = scale.x[scale.x.length - 1] as number;
    const at = interpolate(scale.x, scale.t, Math.min(Math.max(x, first), last));
    return Number.isNaN(at) ? (scale.t[scale.t.length - 1] as number) : at;
  }
  // What all charts show, in units of the axis.
  range(from = state.from, to = state.to): [number, number] {
    const scale = this.scale();
    if (!scale) return [from / 1000, to / 1000];
    const begin = scale.t[0] as number;
    const end = scale.t[scale.t.length - 1] as number;
    const clamp = (ms: number): number => this.toX(Math.min(Math.max(ms, begin), end));
    const low = clamp(from);
    const high = clamp(to);
    return high > low ? [low, high] : [low - 0.5, low + 0.5];
  }
  // The step and epoch numbers that hold at an instant, for the read-out.
  numberAt(mode: 'step' | 'epoch', ms: number): number | null {
    const scale = this.scales[mode];
    if (!scale) return null;
    const x = interpolate(scale.t, scale.x, ms);
    return Number.isNaN(x) ? null : Math.floor(x + 1e-9);
  }
}
