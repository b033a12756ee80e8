// SPDX-License-Identifier: Apache-2.0
// The GPUs of the job: the map of all, then a chart for each metric with one line a GPU.
import { Chart } from './chart';
import type { ChartSpec } from './chart_spec';
import { byOwner } from './curve_lines';
import { h } from './dom';
import { GPU_CHARTS, GPU_ELSEWHERE } from './fields';
import { gpuField, heatMap, throttleLanes } from './heat';
import { t as say } from './i18n';
import { page } from './page';
import { Curve, largest } from './run';

export function metricChart(field: string, curves: Curve[], more: Partial<ChartSpec> = {}): HTMLElement {
  const first = curves[0] as Curve;
  const ratio = field.endsWith('_ratio');
  const limit = ratio ? null : largest(curves.map((curve) => curve.max));
  return new Chart({
    id: `gpu-${field}`, title: gpuField(field), unit: first.unit, field, lines: byOwner(curves),
    ceiling: ratio && (first.max ?? 1) === 1 ? 1 : null,
    limit: limit === null ? null : { value: limit, label: say('limit') },
    steps: first.kind === 'state', ...more,
  }).element;
}

const constant = (curves: Curve[]): boolean => curves.every((curve) => {
  const known = curve.points().v.filter((v) => v !== null);
  return known.every((v) => v === known[0]);
});

export function gpuSection(): HTMLElement[] {
  const fields = new Set(page.run.curves.filter((c) => c.scope === 'gpu').map((c) => c.field));
  if (!fields.size) return [h('p', { class: 'empty' }, say('noGpuSection'))];
  const first: HTMLElement[] = [];
  for (const field of GPU_CHARTS) {
    const curves = page.run.gpuCurves(field);
    if (!fields.delete(field) || !curves.length) continue;
    first.push(metricChart(field, curves));
  }
  for (const field of GPU_ELSEWHERE) fields.delete(field);
  const parts = [heatMap(), h('div', { class: 'grid' }, first), throttleLanes()]
    .filter((one): one is HTMLElement => one !== null);
  const rest = [...fields].sort();
  if (rest.length) parts.push(moreMetrics(rest));
  return parts;
}

// Charts of what never changed say little: they come last.
function moreMetrics(fields: string[]): HTMLElement {
  const grid = h('div', { class: 'grid' });
  const details = h('details', { class: 'fold' },
    h('summary', null, say('more', fields.length)), grid);
  const groups = fields.map((field) => ({ field, curves: page.run.gpuCurves(field) }))
    .filter((group) => group.curves.length > 0);
  const charts = groups.map((group) => ({ ...group, element: metricChart(group.field, group.curves) }));
  grid.replaceChildren(...charts.map((chart) => chart.element));
  details.addEventListener('toggle', () => {
    const sorted = [...charts].sort((a, b) => Number(constant(a.curves)) - Number(constant(b.curves)));
    for (const chart of sorted) grid.appendChild(chart.element);
  }, { once: true });
  return details;
}
