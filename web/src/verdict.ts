// SPDX-License-Identifier: Apache-2.0
// The verdict and the key figures: what a person reads first, and often all that they read.
import { adviceFor, serious } from './findings_data';
import { h, icon } from './dom';
import { billCost } from './bill';
import { percent, seconds, si } from './format';
import { said, t as say } from './i18n';
import { page } from './page';
import { largest, mean, stat } from './run';
import { state } from './state';
import type { Finding } from './types';

const MOST_OTHERS = 8;

function worth(finding: Finding): string {
  const parts: string[] = [];
  if (typeof finding.gain_ratio === 'number' && finding.gain_ratio > 0) {
    parts.push(say('gain', percent(finding.gain_ratio)));
  }
  if (typeof finding.lost_gpu_s === 'number' && finding.lost_gpu_s > 0) {
    parts.push(say('lostGpu', seconds(finding.lost_gpu_s)));
  }
  return parts.join(' · ');
}

function others(findings: Finding[], skip: number): HTMLElement | null {
  const rest = findings.slice(skip, skip + MOST_OTHERS);
  if (!rest.length) return null;
  const more = findings.length - skip - rest.length;
  return h('ul', { class: 'more-findings' },
    rest.map((finding, i) => h('li', { class: finding.severity },
      icon(finding.severity),
      h('a', { href: `#finding-${skip + i}` },
        h('span', { class: 'sr' }, `${say(finding.severity)}: `), said(finding, 'title') || finding.rule),
      h('span', { class: 'quiet' }, said(finding, 'summary')))),
    more > 0 ? h('li', null, h('a', { href: '#findings' }, say('andMore', more))) : null);
}

function calm(findings: Finding[]): HTMLElement {
  const all = page.run.data.findings ?? [];
  const notApplied = all.filter((f) => f.severity === 'not_applicable').length;
  const judged = page.run.data.rules_judged?.length ?? null;
  const none = !judged && all.length === notApplied;
  const words = none ? say(notApplied ? 'notAppliedAll' : 'notJudgedWhy', notApplied)
    : judged === null ? say('notAppliedOnly', notApplied) : say('judgedBy', judged + notApplied, notApplied);
  return h('section', { class: `verdict ${none ? 'neutral' : 'good'}`, id: 'verdict',
    'aria-labelledby': 'verdict-title' },
    h('p', { class: 'tag' }, icon(none ? 'info' : 'good'), h('span', null, say('verdict'))),
    h('h2', { id: 'verdict-title' },
      none ? say('notJudged') : findings.length ? say('onlyRemarks') : say('nothingWrong')),
    h('p', { class: 'lead' }, words),
    others(findings, 0));
}

export function verdict(): HTMLElement {
  const findings = serious(page.run);
  const worst = findings[0];
  if (!worst || worst.severity === 'info') return calm(findings);
  const advice = adviceFor(worst, page.run.framework());
  const gain = worth(worst);
  return h('section', { class: `verdict ${worst.severity}`, id: 'verdict',
    'aria-labelledby': 'verdict-title' },
    h('p', { class: 'tag' }, icon(worst.severity),
      h('span', null, `${say('verdict')} · ${say(worst.severity)}`)),
    h('h2', { id: 'verdict-title' }, said(worst, 'title') || worst.rule),
    h('p', { class: 'lead' }, said(worst, 'summary')),
    advice ? h('div', { class: 'first' },
      h('p', null, h('strong', null, `${say('firstChange')}${state.lang === 'zh' ? '：' : ': '}`), said(advice, 'text')),
      advice.code ? h('pre', null, h('code', null, advice.code)) : null) : null,
    h('p', { class: 'foot' }, gain ? h('span', { class: 'gain' }, gain) : null,
      h('a', { href: '#finding-0' },
        say(!advice && worst.advice?.length ? 'adviceByFramework' : 'showFinding'))),
    others(findings, 1));
}

function tile(label: string, value: string, note = '', tone = '', href = ''): HTMLElement {
  const inner = [h('dt', null, label), h('dd', null, h('span', { class: 'big' }, value),
    note ? h('span', { class: 'quiet' }, note) : null)];
  return h('div', { class: `tile ${tone}` }, href
    ? [h('dt', null, h('a', { href }, label)), inner[1]] : inner);
}

const known = (value: number | null, show: (v: number) => string): string =>
  value === null ? '–' : show(value);

function memoryTile(): HTMLElement {
  const peaks = page.run.jobGpus().map((gpu) => {
    const used = stat(gpu, 'memory_used_bytes')?.max;
    const total = stat(gpu, 'memory_total_bytes')?.max ?? page.run.gpuCurves('memory_used_bytes')
      .find((curve) => curve.gpu === gpu.gpu)?.max;
    return typeof used === 'number' ? { used, total: total ?? null } : null;
  }).filter((peak): peak is { used: number; total: number | null } => peak !== null);
  const most = largest(peaks.map((peak) => peak.used));
  const of = peaks.find((peak) => peak.used === most)?.total ?? null;
  const note = most !== null && of ? say('ofTotal', si(of, 'B'), percent(most / of)) : say('notMeasuredShort');
  const full = most !== null && of !== null && most / of > 0.97;
  return tile(say('memPeak'), known(most, (v) => si(v, 'B')), note, full ? 'warn' : '', '#memory');
}

function weightedMedian(items: [number, number][]): number | null {
  const sorted = [...items].sort((a, b) => a[0] - b[0]);
  const half = sorted.reduce((sum, item) => sum + item[1], 0) / 2;
  let sum = 0;
  for (const [value, weight] of sorted) {
    sum += weight;
    if (sum >= half) return value;
  }
  return null;
}

function quantile(sorted: number[], part: number): number | null {
  if (!sorted.length) return null;
  const at = part * (sorted.length - 1);
  const low = Math.floor(at);
  const a = sorted[low] as number;
  return a + (at - low) * ((sorted[Math.ceil(at)] as number) - a);
}

// Of all steps where the page has them all; else of the epochs that the report worked out.
function stepTile(): HTMLElement {
  const rank = page.axis.rank;
  const steps = rank?.raw.steps;
  if (rank && steps && !steps.thinned && rank.duration().v.length) {
    const all = rank.duration().v.filter((v): v is number => v !== null).sort((a, b) => a - b);
    const note = say('p50p95', known(quantile(all, 0.95), seconds));
    return tile(say('stepTime'), known(quantile(all, 0.5), seconds), note, '', '#training');
  }
  const rows = page.run.data.epochs ?? [];
  const of = (pick: 'p50' | 'p95'): number | null => weightedMedian(rows.flatMap((row) => {
    const value = row.step_s?.[pick];
    return typeof value === 'number' && row.steps > 0 ? [[value, row.steps] as [number, number]] : [];
  }));
  const p50 = of('p50');
  const note = p50 === null ? say('notMeasuredShort') : say('medianEpoch', known(of('p95'), seconds));
  return tile(say('stepTime'), known(p50, seconds), note, '', '#training');
}

// Samples by the time in epochs of each rank, added over the ranks.
function samplesTile(): HTMLElement {
  const byRank = new Map<string, { samples: number; time: number }>();
  for (const row of page.run.data.epochs ?? []) {
    if (typeof row.samples !== 'number' || !(row.duration_s > 0)) continue;
    const name = `${row.rank ?? ''}/${row.pid ?? ''}`;
    const sum = byRank.get(name) ?? { samples: 0, time: 0 };
    byRank.set(name, { samples: sum.samples + row.samples, time: sum.time + row.duration_s });
  }
  if (byRank.size) {
    let rate = 0;
    for (const sum of byRank.values()) rate += sum.samples / sum.time;
    return tile(say('samplesPerS'), si(rate, ''), say('inEpochs'), '', '#training');
  }
  return tile(say('samplesPerS'), '–', say('notMeasuredShort'));
}

function energyTile(): HTMLElement {
  const joules = page.run.data.run.energy_j;
  if (typeof joules !== 'number') return tile(say('energy'), '–', say('notMeasuredShort'));
  const time = page.run.payload.duration_ms / 1000;
  const note = time > 0 ? say('meanPower', si(joules / time, 'W')) : '';
  return tile(say('energy'), si(joules / 3600, 'Wh'), note, '', '#cost');
}

function findingsTile(): HTMLElement {
  const all = serious(page.run);
  const count = (severity: string): number => all.filter((f) => f.severity === severity).length;
  const parts = [
    count('critical') ? say('criticalCount', count('critical')) : '',
    count('warning') ? say('warningCount', count('warning')) : '',
    count('info') ? say('infoCount', count('info')) : '',
  ].filter(Boolean);
  const tone = count('critical') ? 'bad' : count('warning') ? 'warn' : '';
  return tile(say('findingsKpi'), String(all.length), parts.join(' · ') || say('none'), tone, '#findings');
}

function ratioTile(label: 'util' | 'sm', field: string): HTMLElement {
  const value = mean(page.run.jobGpus().map((gpu) => stat(gpu, field)?.mean));
  return tile(say(label), known(value, percent),
    value === null ? say('notMeasuredShort') : say('meanOfJob'), '', '#gpus');
}

export function keyFigures(): HTMLElement {
  const losses = (page.run.data.losses ?? []).filter((loss) => loss.severity !== 'info');
  const cost = billCost(page.run.data.bill);
  return h('section', { class: 'kpi', 'aria-label': say('kpi') }, h('dl', null,
    ratioTile('util', 'utilization_ratio'),
    ratioTile('sm', 'sm_active_ratio'),
    memoryTile(), stepTile(), samplesTile(), energyTile(),
    cost ? tile(say('costKpi'), cost, '', '', '#cost') : null,
    findingsTile(),
    tile(say('lossesKpi'), String(losses.length), losses.length ? say('samplesLost') : say('none'),
      losses.length ? 'warn' : '', '#coverage')));
}
