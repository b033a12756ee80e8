// SPDX-License-Identifier: Apache-2.0
// GPUs by time as a map of colours, and lanes of the reasons for which clocks were held down.
import type uPlot from 'uplot';
import { Chart } from './chart';
import { lineOf } from './curve_lines';
import { h } from './dom';
import { fieldLabel, HEAT_METRICS, THROTTLE_BITS } from './fields';
import { yTick } from './scales';
import { t as say } from './i18n';
import { page } from './page';
import { boxOf } from './paint';
import { heatColor, inks } from './palette';
import { Curve, lastBefore, largest } from './run';
import { state } from './state';

const CELL = 3;  // CSS pixels

// Mean of the samples from one instant to another, or what the last sample before says; null in a hole.
function cellOf(curve: Curve, from: number, to: number): number | null {
  const { t, v } = curve.points();
  let i = lastBefore(t, from);
  let sum = 0;
  let count = 0;
  for (let k = i + 1; k < t.length && (t[k] as number) <= to; k++) {
    const value = v[k];
    if (value !== null && value !== undefined) { sum += value; count++; }
    i = k;
  }
  if (count) return sum / count;
  const value = v[i];
  const next = t[i + 1];
  if (value === null || value === undefined || next === undefined) return null;
  return from - (t[i] as number) <= Math.max(2.5 * curve.period_ms, next - (t[i] as number)) ? value : null;
}

function eachCell(u: uPlot, draw: (x: number, width: number, from: number, to: number) => void): void {
  const box = boxOf(u);
  const width = CELL * box.ratio;
  for (let x = box.left; x < box.left + box.width; x += width) {
    const wide = Math.min(width, box.left + box.width - x);
    const from = page.axis.toMs(u.posToVal(x, 'x', true));
    const to = page.axis.toMs(u.posToVal(x + wide, 'x', true));
    draw(x, wide + 0.5, from, Math.max(to, from));
  }
}

function hatch(u: uPlot, x: number, y: number, width: number, height: number): void {
  u.ctx.fillStyle = inks().hatch;
  u.ctx.fillRect(x, y + height / 2 - 1, width, 2);
}

function paintHeat(u: uPlot, curves: Curve[], low: number, high: number): void {
  const box = boxOf(u);
  const lane = box.height / curves.length;
  const gap = Math.min(2 * box.ratio, lane * 0.15);
  u.ctx.save();
  curves.forEach((curve, row) => {
    const y = box.top + row * lane;
    eachCell(u, (x, width, from, to) => {
      const value = cellOf(curve, from, to);
      if (value === null) { hatch(u, x, y, width, lane); return; }
      u.ctx.fillStyle = heatColor(high > low ? (value - low) / (high - low) : 0);
      u.ctx.fillRect(x, y + gap / 2, width, lane - gap);
    });
  });
  u.ctx.restore();
}

// Ratios from nothing to all, amounts up to their limit; temperatures and clocks by what was seen.
function spanOf(field: string, curves: Curve[]): [number, number] {
  const ceiling = largest(curves.map((curve) => curve.max));
  if (ceiling !== null) return [0, ceiling];
  let low = Infinity;
  let high = -Infinity;
  for (const curve of curves) {
    for (const value of curve.points().v) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (!(high >= low)) return [0, 1];
  return field === 'temperature_c' || field === 'sm_clock_hz' ? [Math.min(low, high * 0.5), high]
    : [Math.min(0, low), high];
}

function scaleBar(low: string, high: string): HTMLElement {
  const stops = Array.from({ length: 11 }, (_none, i) => heatColor(i / 10)).join(',');
  return h('span', { class: 'scalebar' }, h('span', null, low),
    h('i', { 'aria-hidden': 'true', style: { background: `linear-gradient(90deg,${stops})` } }),
    h('span', null, high));
}

let chosen = '';

export function heatMap(): HTMLElement | null {
  const metrics = HEAT_METRICS.filter((field) => page.run.gpuCurves(field).length > 0);
  if (!metrics.length) return null;
  if (!metrics.includes(chosen)) chosen = metrics[0] as string;
  const holder = h('div', { class: 'heat' });
  const select = h('select', {
    id: 'heat-metric', 'aria-label': say('metric'),
    onchange: () => { chosen = select.value; show(true); },
  }, metrics.map((field) => h('option', { value: field, selected: field === chosen }, gpuField(field))));
  const show = (now: boolean): void => {
    const curves = page.run.gpuCurves(chosen);
    const [low, high] = spanOf(chosen, curves);
    const unit = curves[0]?.unit ?? '1';
    const chart = new Chart({
      id: `heat-${chosen}`, title: say('heat'), unit, field: chosen, wide: true,
      lines: curves.map((curve) => ({ ...lineOf(curve), key: '' })),
      rows: () => curves.map((curve) => curve.label),
      height: Math.max(26 + 8 + curves.length * 24, 84),
      tools: [select, scaleBar(yTick(low, unit, chosen), yTick(high, unit, chosen))],
      paint: (u) => paintHeat(u, curves, low, high),
    });
    holder.replaceChildren(chart.element);
    if (now) { chart.draw(); chart.visible = true; select.focus(); }
  };
  show(false);
  return holder;
}

export function gpuField(field: string): string {
  if (field === 'memory_used_bytes') return say('deviceMemory');
  return fieldLabel(field);
}

export function throttleLanes(): HTMLElement | null {
  const curves = page.run.gpuCurves('throttle_reasons');
  const seen = THROTTLE_BITS.filter(([bit]) => bit !== 1 && curves.some((curve) =>
    curve.points().v.some((v) => v !== null && (v & bit) !== 0)));
  if (!seen.length) return null;
  const rows = (): string[] => seen.map(([, names]) => names[state.lang === 'zh' ? 1 : 0]);
  return new Chart({
    id: 'throttle', title: say('throttle'), unit: '1', field: 'throttle_reasons', wide: true,
    note: say('throttleNote'), rows, lines: [], height: 34 + seen.length * 24,
    keys: curves.map((curve) => curve.key),
    paint: (u) => {
      const box = boxOf(u);
      const lane = box.height / seen.length;
      seen.forEach(([bit], row) => eachCell(u, (x, width, from, to) => {
        const count = curves.filter((curve) => {
          const { t, v } = curve.points();
          for (let i = Math.max(lastBefore(t, from), 0); i < t.length && (t[i] as number) <= to; i++) {
            if ((v[i] ?? 0) & bit) return true;
          }
          return false;
        }).length;
        if (!count) return;
        u.ctx.globalAlpha = 0.25 + 0.75 * count / curves.length;
        u.ctx.fillStyle = inks().warning;
        u.ctx.fillRect(x, box.top + row * lane + lane * 0.2, width, lane * 0.6);
        u.ctx.globalAlpha = 1;
      }));
    },
  }).element;
}
