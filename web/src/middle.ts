// SPDX-License-Identifier: Apache-2.0
// Where a line has more samples than pixels its samples fill an area. They are drawn pale then, and
// over them goes their median over a few pixels, so that several lines stay apart.
import type uPlot from 'uplot';
import type { Points } from './decode';
import { boxOf, pixelOf } from './paint';
import { lastBefore } from './run';
import { state } from './state';

const WIDE = 8;         // CSS pixels of one median
const PER_PIXEL = 1.1;  // samples that make a crowd
const ROUGH = 0.25;     // part of the samples at which the line turns round

// Only what goes up and down: a smooth line is as clear with many samples as with few.
export function crowded(points: Points, width: number): boolean {
  const from = Math.max(lastBefore(points.t, state.from), 0);
  const to = lastBefore(points.t, state.to);
  if (to - from < width * PER_PIXEL) return false;
  let turns = 0;
  for (let i = from + 1; i < to; i++) {
    const [a, b, c] = [points.v[i - 1], points.v[i], points.v[i + 1]];
    if (typeof a !== 'number' || typeof b !== 'number' || typeof c !== 'number') continue;
    if ((b - a) * (c - b) < 0) turns++;
  }
  return turns > (to - from) * ROUGH;
}

function median(values: number[]): number {
  values.sort((a, b) => a - b);
  return values[values.length >> 1] as number;
}

export function paintMiddle(u: uPlot, points: Points, color: string, dash: number[]): void {
  const box = boxOf(u);
  const wide = WIDE * box.ratio;
  const { ctx } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, box.top, box.width, box.height);
  ctx.clip();
  ctx.beginPath();
  let open = false;
  let cell = -1;
  let inside: number[] = [];
  const close = (): void => {
    if (!inside.length) return;
    const x = box.left + (cell + 0.5) * wide;
    const y = u.valToPos(median(inside), 'y', true);
    if (open) ctx.lineTo(x, y);
    else ctx.moveTo(x, y);
    open = true;
    inside = [];
  };
  const first = Math.max(lastBefore(points.t, state.from), 0);
  for (let i = first; i < points.t.length && (points.t[i] as number) <= state.to; i++) {
    const value = points.v[i];
    if (value === null || value === undefined) { close(); open = false; continue; }
    const at = Math.floor((pixelOf(u, points.t[i] as number) - box.left) / wide);
    if (Number.isNaN(at)) continue;
    if (at !== cell) close();
    cell = at;
    inside.push(value);
  }
  close();
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.7 * box.ratio;
  ctx.lineJoin = 'round';
  ctx.setLineDash(dash.map((length) => length * box.ratio));
  ctx.stroke();
  ctx.restore();
}
