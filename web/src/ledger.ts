// SPDX-License-Identifier: Apache-2.0
// The memory ledger of one GPU at one instant: device used = allocated + cached + outside of the
// framework + others. What can't be told apart stays together, with the reason beside it.
import { t as say, TextKey } from './i18n';
import { page } from './page';
import { Curve, lastBefore, valueAt } from './run';
import { reachOf } from './curve_lines';

export interface Part {
  id: string;
  label: TextKey;
  value: number | null;
  why: string;  // why the value is absent, or a remark on it
}

export interface Ledger {
  at: number;
  used: number | null;
  total: number | null;
  parts: Part[];     // that add up to `used`
  absent: Part[];
  remark: string;
}

function at(curve: Curve | undefined, time: number, least = 0): number | null {
  return curve ? valueAt(curve.points(), time, Math.max(reachOf(curve), least)) : null;
}

// Of the ranks that use the GPU, together; null when one of them does not tell.
function ofRanks(gpu: number, field: string, time: number): number | null {
  const names = page.run.ranks.filter((rank) => (rank.raw.gpus ?? []).includes(gpu))
    .map((rank) => rank.name);
  if (!names.length) return null;
  let sum = 0;
  for (const name of names) {
    const curve = page.run.curve(name, field);
    // The allocator speaks at steps: what it said last holds for a while.
    const value = at(curve, time, Math.max(60000, page.run.duration / 200));
    if (value === null) return null;
    sum += value;
  }
  return sum;
}

const hasRank = (gpu: number): boolean =>
  page.run.ranks.some((rank) => (rank.raw.gpus ?? []).includes(gpu));

export function peakTime(gpu: number): number | null {
  const points = page.run.curve(`gpu${gpu}`, 'memory_used_bytes')?.points();
  if (!points) return null;
  let best: number | null = null;
  let most = -Infinity;
  points.v.forEach((value, i) => {
    if (value !== null && value > most) { most = value; best = points.t[i] as number; }
  });
  return best;
}

export function gpuOfPeak(gpus: number[]): number | null {
  let best: number | null = null;
  let most = -Infinity;
  for (const gpu of gpus) {
    const time = peakTime(gpu);
    const value = time === null ? null : at(page.run.curve(`gpu${gpu}`, 'memory_used_bytes'), time);
    if (value !== null && value > most) { most = value; best = gpu; }
  }
  return best;
}

class Builder {
  parts: Part[] = [];
  absent: Part[] = [];
  constructor(private left: number) {}

  // Takes a part out of what is left; the readings are of different moments, so that it may not fit.
  take(id: string, label: TextKey, value: number, why = ''): void {
    this.parts.push({ id, label, value: Math.max(value, 0), why });
    this.left -= Math.max(value, 0);
  }
  lack(id: string, label: TextKey, why: string): void {
    this.absent.push({ id, label, value: null, why });
  }
  get rest(): number {
    return this.left;
  }
}

function takeFramework(build: Builder, gpu: number, time: number): number | null {
  const allocated = ofRanks(gpu, 'allocated_bytes', time);
  const reserved = ofRanks(gpu, 'reserved_bytes', time);
  const why = hasRank(gpu) ? say('noAllocator') : say('noRankOfGpu');
  if (allocated === null) build.lack('allocated', 'ledgerAllocated', why);
  else build.take('allocated', 'ledgerAllocated', allocated);
  if (reserved === null) build.lack('cached', 'ledgerCached', why);
  else if (allocated === null) build.take('cached', 'ledgerReserved', reserved);
  else build.take('cached', 'ledgerCached', reserved - allocated);
  return reserved ?? allocated;
}

const slackOf = (used: number): number => Math.max(used * 0.01, 16e6);

// Processes may be read far less often than the device. What was read while the device held another
// amount says nothing of this instant; null then.
function heldAt(gpu: number, field: string, time: number): number | null {
  const curve = page.run.curve(`gpu${gpu}`, field);
  const device = page.run.curve(`gpu${gpu}`, 'memory_used_bytes');
  const value = at(curve, time);
  if (!curve || value === null) return null;
  const points = curve.points();
  const before = lastBefore(points.t, time);
  const around = [before, before + 1].filter((i) => points.v[i] === value);
  const used = at(device, time) ?? 0;
  const like = (i: number): boolean =>
    Math.abs((at(device, points.t[i] as number) ?? -Infinity) - used) <= slackOf(used);
  return around.length === 2 || around.some(like) ? value : null;
}

function takeProcesses(build: Builder, gpu: number, time: number, told: number | null): boolean {
  const of = (field: string): number | null => heldAt(gpu, field, time);
  const framework = told ?? 0;
  const earlier = at(page.run.curve(`gpu${gpu}`, 'own_memory_bytes'), time) !== null;
  const own = of('own_memory_bytes');
  const others = of('others_memory_bytes');
  const all = of('process_memory_bytes');
  if (own !== null) {
    build.take('outside', told === null ? 'ledgerOwn' : 'ledgerNonFramework', own - framework);
    if (others !== null) build.take('others', 'ledgerOthers', others);
    else if (all !== null) build.take('others', 'ledgerOthers', all - own);
    else build.lack('others', 'ledgerOthers', say('noProcesses'));
    return true;
  }
  if (all !== null) {
    build.take('outside', told === null ? 'ledgerAllProcesses' : 'ledgerProcesses', all - framework,
      say('processesTogether'));
    build.lack('others', 'ledgerOthers', say('processesTogether'));
    return true;
  }
  const why = say(earlier ? 'processesEarlier' : 'noProcesses');
  build.lack('outside', 'ledgerNonFramework', why);
  build.lack('others', 'ledgerOthers', why);
  return false;
}

export function ledgerOf(gpu: number, time: number): Ledger {
  const usedCurve = page.run.curve(`gpu${gpu}`, 'memory_used_bytes');
  const used = at(usedCurve, time);
  const total = at(page.run.curve(`gpu${gpu}`, 'memory_total_bytes'), time) ?? usedCurve?.max ?? null;
  if (used === null) {
    return { at: time, used, total, parts: [], remark: '',
      absent: [{ id: 'used', label: 'ledgerUsed', value: null, why: say('noUsed') }] };
  }
  const build = new Builder(used);
  const framework = takeFramework(build, gpu, time);
  const told = takeProcesses(build, gpu, time, framework);
  const slack = Math.max(used * 0.005, 1e6);
  let remark = '';
  if (build.rest > 0) build.take('rest', told ? 'ledgerUnexplained' : 'ledgerRest', build.rest);
  else if (build.rest < -slack) remark = String(-build.rest);
  return { at: time, used, total, parts: build.parts, absent: build.absent, remark };
}
