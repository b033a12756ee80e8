// SPDX-License-Identifier: Apache-2.0
// From the text in the page to columns: base64, gzip, JSON, running sums.
import type { Column, Payload, Raw } from './types';

// NaN and infinities of a training are values, not holes; `odd` keeps where they stand.
export interface Points {
  t: Float64Array;
  v: (number | null)[];
  odd: { t: number; word: string }[];
}

export const NO_POINTS: Points = { t: new Float64Array(0), v: [], odd: [] };

function bytesOf(base64: string): Uint8Array {
  const binary = atob(base64.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export async function readPayload(): Promise<Payload> {
  const element = document.getElementById('epm-payload');
  if (!element || !element.textContent) {
    throw new Error('This page holds no run: it is the template that epochmeter fills.');
  }
  if (typeof DecompressionStream === 'undefined') {
    throw new Error('This browser is too old: Chrome 80, Firefox 113 or Safari 16.4 is needed.');
  }
  const bytes = bytesOf(element.textContent);
  element.textContent = '';
  const blob = new Blob([bytes as unknown as BlobPart]);
  const stream = blob.stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text()) as Payload;
}

// Differences to sums; the first is from 0.
export function timesOf(deltas: number[] | null | undefined): Float64Array {
  const times = new Float64Array(deltas ? deltas.length : 0);
  let sum = 0;
  for (let i = 0; i < times.length; i++) {
    const delta = (deltas as number[])[i];
    if (typeof delta === 'number' && Number.isFinite(delta)) sum += delta;
    times[i] = sum;
  }
  return times;
}

// One column of values: running sums times scale, or plain numbers where the scale is null.
export function columnOf(raw: Raw[], scale: number | null | undefined, t: Float64Array): Points {
  const length = Math.min(raw.length, t.length);
  const v: (number | null)[] = new Array<number | null>(length);
  const odd: { t: number; word: string }[] = [];
  let sum = 0;
  for (let i = 0; i < length; i++) {
    const item = raw[i];
    if (typeof item === 'number' && Number.isFinite(item)) {
      sum += item;
      v[i] = typeof scale === 'number' ? sum * scale : item;
    } else {
      v[i] = null;
      if (typeof item === 'string') odd.push({ t: t[i] as number, word: item });
    }
  }
  return { t: t.length === length ? t : t.slice(0, length), v, odd };
}

// A column of steps, in which null is no hole but a step that told nothing.
export function toldOf(column: Column | null | undefined, t: Float64Array): Points {
  if (!column || !Array.isArray(column.v)) return NO_POINTS;
  const all = columnOf(column.v, column.scale, t);
  const keep: number[] = [];
  for (let i = 0; i < all.v.length; i++) {
    if (all.v[i] !== null || typeof column.v[i] === 'string') keep.push(i);
  }
  if (keep.length === all.v.length) return all;
  return {
    t: Float64Array.from(keep, (i) => all.t[i] as number),
    v: keep.map((i) => all.v[i] as number | null),
    odd: all.odd,
  };
}

// Deltas that may hold nulls: step and epoch numbers. A null stays null.
export function numbersOf(raw: Raw[] | null | undefined): (number | null)[] {
  let sum = 0;
  return (raw ?? []).map((item) => {
    if (typeof item !== 'number' || !Number.isFinite(item)) return null;
    sum += item;
    return sum;
  });
}
