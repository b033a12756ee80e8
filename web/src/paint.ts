// SPDX-License-Identifier: Apache-2.0
// What lies under and over the lines of each chart: epochs, phases, limits and marks.
import type uPlot from 'uplot';
import type { Points } from './decode';
import type { Level } from './marks';
import { page } from './page';
import { inks, Inks } from './palette';

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
  ratio: number;  // device pixels in one of CSS
}

export function boxOf(u: uPlot): Box {
  const { left, top, width, height } = u.bbox;
  return { left, top, width, height, ratio: devicePixelRatio || 1 };
}

// Canvas x of an instant; NaN where the axis does not reach.
export function pixelOf(u: uPlot, ms: number): number {
  return u.valToPos(page.axis.toX(ms), 'x', true);
}

// Canvas ends of a stretch, cut to the chart; null where nothing of it shows.
export function stretch(u: uPlot, begin: number, end: number): [number, number] | null {
  const box = boxOf(u);
  const scale = u.scales['x'];
  if (!scale || scale.min === undefined || scale.max === undefined) return null;
  let a = pixelOf(u, begin);
  let b = pixelOf(u, end);
  if (Number.isNaN(a) && Number.isNaN(b)) return null;
  if (Number.isNaN(a)) a = box.left;
  if (Number.isNaN(b)) b = box.left + box.width;
  const left = Math.max(a, box.left);
  const right = Math.min(b, box.left + box.width);
  return right > left ? [left, right] : null;
}

export function paintBands(u: uPlot): void {
  const ink = inks();
  const box = boxOf(u);
  const { ctx } = u;
  ctx.save();
  const epochs = page.marks.epochs;
  if (epochs.length && epochs.length * 3 * box.ratio < box.width * 2) {
    ctx.fillStyle = ink.band;
    epochs.forEach((span, i) => {
      const ends = i % 2 ? null : stretch(u, span.begin, span.end);
      if (ends) ctx.fillRect(ends[0], box.top, ends[1] - ends[0], box.height);
    });
  }
  const phases = page.marks.phases.map((phase) => ({ phase, ends: stretch(u, phase.begin, phase.end) }))
    .filter((one) => one.ends !== null);
  // Many of them would hide the lines.
  ctx.globalAlpha = Math.min(1, Math.max(0.3, 24 / Math.max(phases.length, 1)));
  for (const { phase, ends } of phases) {
    if (!ends) continue;
    ctx.fillStyle = ink[phase.kind];
    ctx.fillRect(ends[0], box.top, Math.max(ends[1] - ends[0], box.ratio), box.height);
  }
  ctx.restore();
}

const inkOf = (ink: Inks, level: Level): string => ink[level];

// A thin upright line for each failure; warnings and remarks stand in the time line only.
export function paintFailures(u: uPlot): void {
  const ink = inks();
  const box = boxOf(u);
  const { ctx } = u;
  ctx.save();
  ctx.strokeStyle = ink.critical;
  ctx.globalAlpha = 0.55;
  ctx.lineWidth = box.ratio;
  ctx.setLineDash([3 * box.ratio, 3 * box.ratio]);
  let last = -Infinity;
  for (const mark of page.marks.marks) {
    if (mark.level !== 'critical' || mark.ofLog) continue;
    const x = pixelOf(u, mark.t);
    if (!(x >= box.left && x <= box.left + box.width) || x - last < 2) continue;
    ctx.beginPath();
    ctx.moveTo(x, box.top);
    ctx.lineTo(x, box.top + box.height);
    ctx.stroke();
    last = x;
  }
  ctx.restore();
}

// False where the limit lies above what the chart shows.
export function paintLimit(u: uPlot, value: number, label: string): boolean {
  const box = boxOf(u);
  const y = u.valToPos(value, 'y', true);
  if (!(y >= box.top - 1)) return false;
  const ink = inks();
  const { ctx } = u;
  ctx.save();
  ctx.strokeStyle = ink.critical;
  ctx.fillStyle = ink.critical;
  ctx.lineWidth = 1.2 * box.ratio;
  ctx.setLineDash([6 * box.ratio, 4 * box.ratio]);
  ctx.beginPath();
  ctx.moveTo(box.left, y);
  ctx.lineTo(box.left + box.width, y);
  ctx.stroke();
  ctx.font = `${11 * box.ratio}px system-ui, sans-serif`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'top';
  ctx.fillText(label, box.left + box.width - 4 * box.ratio, y + 3 * box.ratio);
  ctx.restore();
  return true;
}

// Small wedges at the top where a value lies above the scale; tells how many do.
export function paintAbove(u: uPlot, cap: number, all: Points[]): number {
  const ink = inks();
  const box = boxOf(u);
  const { ctx } = u;
  const size = 4 * box.ratio;
  let count = 0;
  ctx.save();
  ctx.fillStyle = ink.warning;
  for (const points of all) {
    let last = -Infinity;
    points.v.forEach((value, i) => {
      const x = value !== null && value > cap ? pixelOf(u, points.t[i] as number) : NaN;
      if (!(x >= box.left && x <= box.left + box.width)) return;
      count++;
      if (x - last < size) return;
      last = x;
      ctx.beginPath();
      ctx.moveTo(x, box.top);
      ctx.lineTo(x - size, box.top + 1.6 * size);
      ctx.lineTo(x + size, box.top + 1.6 * size);
      ctx.fill();
    });
  }
  ctx.restore();
  return count;
}

// Crosses at the foot of the chart where a value is no number.
export function paintOdd(u: uPlot, times: number[]): void {
  const ink = inks();
  const box = boxOf(u);
  const { ctx } = u;
  const arm = 3.5 * box.ratio;
  const y = box.top + box.height - arm - 2 * box.ratio;
  ctx.save();
  ctx.strokeStyle = ink.critical;
  ctx.lineWidth = 1.6 * box.ratio;
  ctx.beginPath();
  let last = -Infinity;
  for (const time of times) {
    const x = pixelOf(u, time);
    if (!(x >= box.left && x <= box.left + box.width) || x - last < 2 * arm) continue;
    ctx.moveTo(x - arm, y - arm);
    ctx.lineTo(x + arm, y + arm);
    ctx.moveTo(x - arm, y + arm);
    ctx.lineTo(x + arm, y - arm);
    last = x;
  }
  ctx.stroke();
  ctx.restore();
}

// Signs that differ in shape as well: a cross, a triangle, a dot.
export function paintSign(ctx: CanvasRenderingContext2D, level: Level, x: number, y: number,
                          size: number): void {
  const ink = inks();
  ctx.save();
  ctx.fillStyle = inkOf(ink, level);
  ctx.strokeStyle = inkOf(ink, level);
  ctx.beginPath();
  if (level === 'critical') {
    ctx.lineWidth = size * 0.42;
    ctx.moveTo(x - size * 0.75, y - size * 0.75);
    ctx.lineTo(x + size * 0.75, y + size * 0.75);
    ctx.moveTo(x - size * 0.75, y + size * 0.75);
    ctx.lineTo(x + size * 0.75, y - size * 0.75);
    ctx.stroke();
  } else if (level === 'warning') {
    ctx.moveTo(x, y - size);
    ctx.lineTo(x + size, y + size * 0.8);
    ctx.lineTo(x - size, y + size * 0.8);
    ctx.fill();
  } else {
    ctx.arc(x, y, size * 0.7, 0, 7);
    ctx.fill();
  }
  ctx.restore();
}
