// SPDX-License-Identifier: Apache-2.0
// Each finding in full: what, why, the proof with a way into its chart, and what to type.
import { Chart, chartFor } from './chart';
import { button, h, icon, table } from './dom';
import { serious } from './findings_data';
import { fieldLabel } from './fields';
import { byName, percent, seconds, since } from './format';
import { said, t as say } from './i18n';
import { page } from './page';
import { setCursor, setView, state } from './state';
import type { Advice, Evidence, Finding } from './types';

const NAMES: Record<string, string> = { paddle: 'PaddlePaddle', tensorflow: 'TensorFlow', pytorch: 'PyTorch' };
const ORDER = ['paddle', 'tensorflow', 'pytorch'];
const MOST_STEPS = 12;

// The chart of a series; of a counter that is the chart of its rate.
export function chartOfSeries(series: string): Chart | undefined {
  const cut = series.lastIndexOf(' ');
  const entity = series.slice(0, cut);
  const field = series.slice(cut + 1);
  const stem = field.replace(/_s$/, '');
  const names = [series, `${series}_per_s`, `${entity} ${stem}_cores`, `${entity} ${stem}_ratio`,
    `${entity} scalar.${field}`];
  for (const name of names) {
    const chart = chartFor(name);
    if (chart) return chart;
  }
  const called = page.run.curve(entity, field);
  if (called && called.key !== series) return chartOfSeries(called.key);
  const near = page.run.curves.find((curve) => curve.entity === entity &&
    (curve.field.startsWith(stem) || field.startsWith(curve.field.replace(/_ratio$/, ''))));
  if (near) return chartFor(near.key);
  // A phase, or what else only its rank is known of: the steps about it.
  return page.run.ranks.some((rank) => rank.name === entity) ? chartFor(`${entity} duration_s`) : undefined;
}

// Begin and end in ms of the page; by the start of the run, which needs no wall clock.
function intervalOf(evidence: Evidence): [number, number] | null {
  const { begin_s: from, end_s: to } = evidence;
  if (typeof from === 'number' && typeof to === 'number') return to >= from ? [from * 1000, to * 1000] : null;
  const begin = page.run.timeOf(evidence.begin);
  const end = page.run.timeOf(evidence.end);
  return begin !== null && end !== null && end >= begin ? [begin, end] : null;
}

// Zooms to the interval with some room about it, and brings the chart into sight.
function showEvidence(evidence: Evidence): void {
  const interval = intervalOf(evidence);
  if (interval) {
    const [begin, end] = interval;
    const room = Math.max((end - begin) * 0.1, Math.min(state.duration / 50, 10000));
    setView(begin - room, end + room);
    setCursor(end);
  }
  const chart = chartOfSeries(evidence.series);
  if (chart) chart.reveal();
  else document.getElementById('overview')?.scrollIntoView({ block: 'center' });
}

function intervalWords(evidence: Evidence): string {
  const interval = intervalOf(evidence);
  return interval ? `${since(interval[0])} – ${since(interval[1])}` : '';
}

function stepWords(evidence: Evidence): string {
  const steps = evidence.steps ?? [];
  if (!steps.length) return '';
  const rest = steps.length - MOST_STEPS;
  const text = say('stepsWord', steps.slice(0, MOST_STEPS).join(', '));
  return rest > 0 ? `${text} ${say('andMore', rest)}` : text;
}

function valueName(name: string): string {
  return name.replace(/_bytes_(per_(step|epoch))$/, '_$1').replace(/_(bytes_per_s|per_s|bytes|ratio|gpu_s|s|w|c|hz|j)$/, '').replace(/_/g, ' ');
}

function evidenceRow(evidence: Evidence): HTMLElement {
  const note = said(evidence, 'note');
  const facts = [intervalWords(evidence), stepWords(evidence)].filter(Boolean).join(' · ');
  return h('li', null,
    evidence.series ? h('a', {
      href: `#${chartOfSeries(evidence.series)?.spec.id ?? 'overview'}`, class: 'proof',
      title: say('showEvidence', evidence.series), 'data-series': evidence.series,
      onclick: (event: Event) => { event.preventDefault(); showEvidence(evidence); },
    }, seriesWords(evidence.series)) : null,
    note ? h('span', null, note) : null,
    h('span', { class: 'values' }, Object.entries(evidence.values ?? {}).map(([name, value]) =>
      h('span', { class: 'pair', title: name }, h('span', { class: 'quiet' }, valueName(name)), ' ', h('b', null, byName(name, value))))),
    facts ? h('span', { class: 'quiet' }, facts) : null);
}

function seriesWords(series: string): string {
  const cut = series.lastIndexOf(' ');
  if (cut < 0) return series;
  const entity = series.slice(0, cut);
  const field = series.slice(cut + 1);
  const label = page.run.curve(entity, field)?.label ?? entity;
  return `${label} · ${fieldLabel(field)}`;
}

function codeBox(code: string): HTMLElement {
  const copy = button(say('copy'), () => {
    const done = (text: string): void => {
      words.textContent = text;
      window.setTimeout(() => { words.textContent = say('copy'); }, 1800);
    };
    if (!navigator.clipboard) { done(say('copyFailed')); return; }
    navigator.clipboard.writeText(code).then(() => done(say('copied')), () => done(say('copyFailed')));
  }, { class: 'small copy' });
  const words = h('span', { 'aria-live': 'polite' }, say('copy'));
  copy.replaceChildren(icon('copy'), words);
  return h('div', { class: 'code' },
    h('pre', { tabindex: '0', role: 'region', 'aria-label': say('advice') }, h('code', null, code)), copy);
}

function advicePanel(list: Advice[]): HTMLElement {
  return h('div', null, list.map((one) => h('div', { class: 'advice' },
    h('p', null, said(one, 'text')), one.code ? codeBox(one.code) : null)));
}

function adviceBox(finding: Finding, index: number): HTMLElement | null {
  const all = finding.advice ?? [];
  if (!all.length) return null;
  const general = all.filter((one) => !one.framework);
  const names = [...new Set(all.map((one) => one.framework).filter((n): n is string => Boolean(n)))];
  const own = page.run.framework();
  names.sort((a, b) => Number(b === own) - Number(a === own) || ORDER.indexOf(a) - ORDER.indexOf(b));
  const box = h('div', { class: 'what' }, h('h4', null, say('advice')),
    general.length ? advicePanel(general) : null);
  if (names.length && !own) box.appendChild(h('p', { class: 'note' }, say('chooseFramework')));
  if (names.length) box.appendChild(tabs(names, index, (name) =>
    advicePanel(all.filter((one) => one.framework === name))));
  return box;
}

// Where the framework of the run is not known none is open until the reader chooses.
function tabs(names: string[], index: number, panelOf: (name: string) => HTMLElement): HTMLElement {
  const first = names.includes(state.framework) ? state.framework : page.run.framework() ? names[0] : '';
  const heads: HTMLElement[] = [];
  const panels: HTMLElement[] = [];
  const choose = (at: number, focus: boolean): void => {
    heads.forEach((head, i) => {
      head.setAttribute('aria-selected', String(i === at));
      head.tabIndex = i === Math.max(at, 0) ? 0 : -1;
      (panels[i] as HTMLElement).hidden = i !== at;
    });
    state.framework = names[at] ?? '';
    if (focus) heads[at]?.focus();
  };
  names.forEach((name, i) => {
    const id = `advice-${index}-${i}`;
    heads.push(h('button', {
      type: 'button', role: 'tab', id: `${id}-tab`, 'aria-controls': id, 'aria-selected': 'false',
      onclick: () => choose(i, false),
      onkeydown: (event: KeyboardEvent) => {
        const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
        if (!step) return;
        event.preventDefault();
        choose((i + step + names.length) % names.length, true);
      },
    }, NAMES[name] ?? name));
    panels.push(h('div', { role: 'tabpanel', id, 'aria-labelledby': `${id}-tab` },
      h('p', { class: 'printname' }, NAMES[name] ?? name), panelOf(name)));
  });
  const chosen = state.framework;
  choose(names.indexOf(first ?? ''), false);
  state.framework = chosen;
  return h('div', { class: 'tabs' },
    h('div', { role: 'tablist', 'aria-label': say('advice') }, heads), panels);
}

function whom(finding: Finding): string {
  const parts: string[] = [];
  if (typeof finding.rank === 'number') parts.push(`rank ${finding.rank}`);
  if (typeof finding.pid === 'number') parts.push(`pid ${finding.pid}`);
  if (typeof finding.gpu === 'number') parts.push(`GPU ${finding.gpu}`);
  return parts.join(' · ');
}

function findingBox(finding: Finding, index: number): HTMLElement {
  const facts = [
    whom(finding),
    typeof finding.gain_ratio === 'number' ? say('gain', percent(finding.gain_ratio)) : '',
    typeof finding.lost_gpu_s === 'number' ? say('lostGpu', seconds(finding.lost_gpu_s)) : '',
    typeof finding.confidence === 'number' ? say('confidence', percent(finding.confidence)) : '',
    finding.rule,
  ].filter(Boolean);
  const explanation = said(finding, 'explanation');
  return h('article', { class: `finding ${finding.severity}`, id: `finding-${index}`, tabindex: '-1',
    'aria-labelledby': `finding-${index}-title` },
  h('header', null,
    h('p', { class: 'tag' }, icon(finding.severity), h('span', null, say(finding.severity))),
    h('h3', { id: `finding-${index}-title` }, said(finding, 'title') || finding.rule)),
  h('p', { class: 'lead' }, said(finding, 'summary')),
  explanation ? h('p', null, explanation) : null,
  h('p', { class: 'facts' }, facts.map((fact) => h('span', null, fact))),
  finding.evidence?.length ? h('div', { class: 'evidence' }, h('h4', null, say('evidence')),
    h('ul', null, finding.evidence.map(evidenceRow))) : null,
  adviceBox(finding, index));
}

export function findingsSection(): HTMLElement[] {
  const findings = serious(page.run);
  const idle = (page.run.data.findings ?? []).filter((f) => f.severity === 'not_applicable');
  const parts: HTMLElement[] = findings.length ? findings.map(findingBox)
    : [h('p', { class: 'empty' }, say(idle.length ? 'noFindings' : 'notJudgedWhy'))];
  if (idle.length) {
    parts.push(h('details', { class: 'fold' },
      h('summary', null, say('notApplicable', idle.length)),
      table(say('notApplicable', idle.length), [say('rule'), say('why')],
        idle.map((finding) => [{
          text: finding.rule,
          node: h('span', null, said(finding, 'title') || finding.rule, h('span', { class: 'quiet block' }, finding.rule)),
        }, said(finding, 'summary')]))));
  }
  return parts;
}
