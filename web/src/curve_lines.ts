// SPDX-License-Identifier: Apache-2.0
// From curves of the run to lines of charts.
import type { Line } from './chart_spec';
import type { Points } from './decode';
import { fieldLabel } from './fields';
import type { Curve, Rank } from './run';

export const MOST_LINES = 16;

export function reachOf(curve: Curve): number {
  return curve.period_ms > 0 ? 2.5 * curve.period_ms : 5000;
}

export function lineOf(curve: Curve, label = curve.label): Line {
  return {
    key: curve.key, label, points: curve.points, reach: reachOf(curve),
    thinned: curve.exact === false, unit: curve.unit,
  };
}

// One line a curve, told apart by what owns it.
export function byOwner(curves: Curve[]): Line[] {
  return curves.map((curve) => lineOf(curve));
}

// One line a field, told apart by what it measures; the owner is named where there are several.
export function byField(curves: Curve[]): Line[] {
  const owners = new Set(curves.map((curve) => curve.entity));
  return curves.map((curve) => lineOf(curve, owners.size > 1
    ? `${fieldLabel(curve.field)}, ${curve.label}` : fieldLabel(curve.field)));
}

export function stepLine(rank: Rank, field: string, label: string, points: () => Points): Line {
  const steps = rank.raw.steps;
  const every = steps && steps.t.length > 1 ? (rank.t()[steps.t.length - 1] as number) / steps.t.length : 0;
  return {
    key: field ? `${rank.name} ${field}` : '', label, points,
    reach: Math.max(3 * every, 1000), thinned: steps?.thinned === true,
  };
}

export const hasValues = (points: Points): boolean =>
  points.v.some((v) => v !== null) || points.odd.length > 0;
