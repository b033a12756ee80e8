// SPDX-License-Identifier: Apache-2.0
// Reads the payload, draws the page, and draws it anew when language, colours or axis change.
import { coverageSection, environmentSection, foot } from './about';
import { Axis } from './axis';
import { billSection } from './bill';
import { beginCharts, drawAll, followCursor, followView, forgetCursor, resizeCharts } from './chart';
import { readPayload } from './decode';
import { h } from './dom';
import { findingsSection } from './findings';
import { gpuSection } from './gpus';
import { header, runName } from './header';
import { hostSection } from './host';
import { isTextKey, t as say, TextKey } from './i18n';
import { logSection, showLog } from './log';
import { marksOf } from './marks';
import { memorySection } from './memory';
import { page, setPage, setVoice } from './page';
import { chooseColors, isDark } from './palette';
import { ranksSection } from './ranks';
import { Run } from './run';
import { AxisMode, forgetListeners, on, resetView, state } from './state';
import { eventList, timeline } from './timeline';
import { trainingSection } from './training';
import { keyFigures, verdict } from './verdict';

const app = document.getElementById('app') as HTMLElement;

const SECTIONS: [string, TextKey][] = [
  ['training', 'training'], ['gpus', 'gpuSection'], ['memory', 'memory'], ['host', 'host'],
  ['ranks', 'ranks'], ['log', 'log'], ['findings', 'findings'], ['cost', 'cost'],
  ['environment', 'environment'], ['coverage', 'coverage'],
];

// A part that fails says so in its place; the rest of the page stays.
function guarded(make: () => HTMLElement[]): HTMLElement[] {
  try {
    return make();
  } catch (error) {
    console.error(error);
    return [h('p', { class: 'empty' }, say('sectionBroken', String(error)))];
  }
}

function sections(): HTMLElement[] {
  const taken = new Set<string>();
  const makers: Record<string, () => HTMLElement[]> = {
    training: trainingSection, gpus: gpuSection, memory: () => memorySection(taken),
    host: () => hostSection(taken), ranks: ranksSection, log: logSection, findings: findingsSection,
    cost: billSection, environment: environmentSection, coverage: coverageSection,
  };
  return SECTIONS.map(([id, title]) => h('section', { id, 'aria-labelledby': `${id}-title` },
    h('h2', { id: `${id}-title` }, say(title)), guarded(makers[id] as () => HTMLElement[])));
}

function navigation(): HTMLElement {
  return h('nav', { 'aria-label': say('nav') },
    [['verdict', 'verdict'] as [string, TextKey], ...SECTIONS]
      .map(([id, title]) => h('a', { href: `#${id}` }, say(title))));
}

function applyLook(): void {
  chooseColors();
  const root = document.documentElement;
  root.lang = state.lang === 'zh' ? 'zh-CN' : 'en';
  root.dataset['theme'] = isDark() ? 'dark' : 'light';
  document.title = `${runName(page.run.data.run)} · ${say('title')}`;
}

function render(): void {
  const scroll = window.scrollY;
  const focus = document.activeElement?.getAttribute('data-keep') ?? keepOf(document.activeElement);
  applyLook();
  setPage({ ...page, marks: marksOf(page.run, page.axis) });
  forgetListeners();
  beginCharts(interactive);
  on('view', followView);
  on('cursor', followCursor);
  const voice = h('div', { class: 'sr', 'aria-live': 'polite', id: 'voice' });
  setVoice(voice);
  app.replaceChildren(
    h('a', { class: 'skip', href: '#verdict' }, say('skip')),
    h('div', { class: 'page' },
      header({ theme: (theme) => { state.theme = theme; remember(); render(); },
        lang: (lang) => { state.lang = lang; render(); },
        tables: () => { state.tables = !state.tables; render(); },
        print: () => window.print() }),
      h('main', null,
        ...guarded(() => [verdict()]), ...guarded(() => [keyFigures()]),
        h('div', { class: 'sticky' }, navigation(), guarded(() => [timeline(chooseAxis)])),
        h('p', { class: 'note', id: 'chart-help' }, `${say('brushHelp')} ${say('chartHelp')}`),
        guarded(() => [eventList()]), sections()),
      foot(), voice));
  window.scrollTo(0, scroll);
  if (focus) app.querySelector<HTMLElement>(focus)?.focus({ preventScroll: true });
  if (!app.querySelector('figure')) interactive();
}

// A selector by which the focus finds its button again after a new drawing.
function keepOf(element: Element | null): string | null {
  for (const name of ['data-theme-choice', 'data-lang-choice', 'data-axis']) {
    const value = element?.getAttribute(name);
    if (value && isTextKey('title')) return `[${name}="${CSS.escape(value)}"]`;
  }
  return element?.id === 'tables' ? '#tables' : null;
}

function chooseAxis(mode: AxisMode): void {
  state.axis = mode;
  render();
}

let told = false;

// The first charts stand and every control works.
function interactive(): void {
  if (told) return;
  told = true;
  performance.mark('epochmeter-interactive');
  document.documentElement.dataset['ready'] = 'yes';
}

const STORE = 'epochmeter-theme';

function remember(): void {
  try {
    localStorage.setItem(STORE, state.theme);
  } catch {
    // A page from a file may have no store.
  }
}

function recall(): void {
  try {
    const theme = localStorage.getItem(STORE);
    if (theme === 'light' || theme === 'dark') state.theme = theme;
  } catch {
    // As above.
  }
}

function toPaper(printing: boolean): void {
  if (state.printing === printing) return;
  state.printing = printing;
  document.documentElement.classList.toggle('printing', printing);
  applyLook();
  if (printing) showLog();
  drawAll();
}

function listen(): void {
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    forgetCursor();
    resetView();
  });
  let waiting = 0;
  window.addEventListener('resize', () => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(resizeCharts, 80);
  });
  window.addEventListener('beforeprint', () => toPaper(true));
  window.addEventListener('afterprint', () => toPaper(false));
  matchMedia('print').addEventListener('change', (media) => toPaper(media.matches));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    if (state.theme === 'auto' && !state.printing) render();
  });
}

async function begin(): Promise<void> {
  const payload = await readPayload();
  const run = new Run(payload);
  state.lang = payload.lang === 'zh' ? 'zh' : 'en';
  state.duration = run.duration;
  state.from = 0;
  state.to = run.duration;
  recall();
  setPage({ run, axis: new Axis(run), marks: { marks: [], epochs: [], phases: [] } });
  listen();
  render();
}

begin().catch((error: unknown) => {
  console.error(error);
  const words = error instanceof Error ? error.message : String(error);
  app.replaceChildren(h('main', { class: 'page' }, h('h1', null, say('broken')), h('p', null, words)));
  document.documentElement.dataset['ready'] = 'broken';
});
