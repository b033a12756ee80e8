// SPDX-License-Identifier: Apache-2.0
// Columns of lines as uPlot wants them, and which sample a cursor means.
import uPlot from 'uplot';
import type { Points } from './decode';
import { page } from './page';
import { state } from './state';

// Points in units of the axis, strictly rising; what the axis does not reach is left out. Of a
// logarithmic scale so is what has no logarithm.
export function onAxis(points: Points, log: boolean): [number[], (number | null)[]] {
  const xs: number[] = [];
  const vs: (number | null)[] = [];
  const [low, high] = page.axis.range(0, state.duration);
  const least = Math.max((high - low) * 1e-9, 1e-9);
  let last = -Infinity;
  for (let i = 0; i < points.t.length; i++) {
    let x = page.axis.toX(points.t[i] as number);
    if (Number.isNaN(x)) continue;
    if (x <= last) x = last + least;
    last = x;
    const v = points.v[i] ?? null;
    xs.push(x);
    vs.push(log && v !== null && v <= 0 ? null : v);
  }
  return [xs, vs];
}

export function joined(tables: [number[], (number | null)[]][]): uPlot.AlignedData {
  const first = tables[0];
  if (!first) return [[], []];
  const same = tables.every(([xs]) => xs.length === first[0].length &&
    xs.every((x, i) => x === first[0][i]));
  if (same) return [first[0], ...tables.map((table) => table[1])];
  return uPlot.join(tables as unknown as uPlot.AlignedData[]);
}

// The sample nearest to the cursor: lines that are joined have none at most places.
export function nearest(u: uPlot, index: number, at: number): number | null {
  const values = u.data[index] as ArrayLike<number | null | undefined> | undefined;
  if (!values || index === 0) return at;
  for (let distance = 0; distance < 200; distance++) {
    for (const i of [at - distance, at + distance]) {
      if (typeof values[i] === 'number') return isNear(u, i) ? i : null;
    }
  }
  return null;
}

// A dot far from the cursor would seem to belong to another instant.
function isNear(u: uPlot, index: number): boolean {
  const x = u.valToPos(u.data[0][index] as number, 'x');
  return Math.abs(x - (u.cursor.left ?? -10)) < 14;
}
