// SPDX-License-Identifier: Apache-2.0
// The machine under the training: CPU, disks, pressure, network, the tree of processes.
import { Chart } from './chart';
import { byField, byOwner, MOST_LINES } from './curve_lines';
import { h } from './dom';
import { fieldLabel, Group, HOST_GROUPS, HOST_MEMORY_GROUPS, titleOf } from './fields';
import { t as say } from './i18n';
import { page } from './page';
import { Curve, largest } from './run';

const SCOPES = ['host', 'process', 'cgroup', 'run'];

// A process of one GPU, such as "gpu:0/939", is told of by the GPU.
const ofHost = (curve: Curve): boolean =>
  SCOPES.includes(curve.scope) && typeof curve.gpu !== 'number' && !/^gpu/.test(curve.entity);

function active(curve: Curve): boolean {
  return curve.points().v.some((v) => v !== null && v !== 0);
}

// What never moved from zero is left out when there is more than a chart can hold.
function fitting(curves: Curve[]): Curve[] {
  if (curves.length <= MOST_LINES) return curves;
  const moving = curves.filter(active);
  return (moving.length ? moving : curves).slice(0, MOST_LINES);
}

export function groupChart(group: Group, taken: Set<string>): HTMLElement | null {
  const all = page.run.curves.filter((c) => ofHost(c) && group.fields.includes(c.field));
  for (const curve of all) taken.add(curve.key);
  const curves = fitting(all);
  const first = curves[0];
  if (!first) return null;
  const ratio = first.field.endsWith('_ratio');
  const limit = ratio ? null : largest(curves.map((curve) => curve.max));
  return new Chart({
    id: `host-${group.id}`, title: titleOf(group), unit: first.unit, field: first.field,
    lines: byField(curves), keys: all.map((curve) => curve.key),
    ceiling: ratio && group.id === 'cpu' ? 1 : null,
    limit: limit === null ? null : { value: limit, label: say('limit') },
    ...(curves.length < all.length ? { note: say('linesLeft', curves.length, all.length) } : {}),
  }).element;
}

function restCharts(taken: Set<string>): HTMLElement[] {
  const byFieldName = new Map<string, Curve[]>();
  for (const curve of page.run.curves) {
    if (!ofHost(curve) || taken.has(curve.key) || curve.field === 'memory_total_bytes') continue;
    const place = `${curve.scope} ${curve.field}`;
    const known = byFieldName.get(place);
    if (known) known.push(curve);
    else byFieldName.set(place, [curve]);
  }
  return [...byFieldName.values()].map((curves, i) => {
    const first = curves[0] as Curve;
    const shown = fitting(curves);
    return new Chart({
      id: `rest-${i}`, title: fieldLabel(first.field), unit: first.unit, field: first.field,
      lines: byOwner(shown), keys: curves.map((curve) => curve.key),
      ...(shown.length < curves.length ? { note: say('linesLeft', shown.length, curves.length) } : {}),
    }).element;
  });
}

// `taken` are the curves that other sections have drawn.
export function hostSection(taken: Set<string>): HTMLElement[] {
  const charts = HOST_GROUPS.map((group) => groupChart(group, taken))
    .filter((one): one is HTMLElement => one !== null);
  const rest = restCharts(taken);
  if (!charts.length && !rest.length) return [h('p', { class: 'empty' }, say('noHost'))];
  const parts: HTMLElement[] = [h('div', { class: 'grid' }, charts)];
  if (rest.length) {
    parts.push(h('details', { class: 'fold' }, h('summary', null, say('more', rest.length)),
      h('div', { class: 'grid' }, rest)));
  }
  return parts;
}

export function hostMemoryCharts(taken: Set<string>): HTMLElement[] {
  return HOST_MEMORY_GROUPS.map((group) => groupChart(group, taken))
    .filter((one): one is HTMLElement => one !== null);
}
