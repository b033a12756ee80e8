// SPDX-License-Identifier: Apache-2.0
// What the training wrote: searched, filtered, and tied to the time line.
import { h } from './dom';
import { elapsed, grouped, since } from './format';
import { t as say, TextKey } from './i18n';
import { Level, levelOfLine } from './marks';
import { page } from './page';
import { goTo, on, state } from './state';
import type { LogLine } from './types';

const HEAD = 200;  // lines before those that were left out

interface Row {
  line: LogLine;
  level: Level;
  element: HTMLElement;
}

function rowOf(line: LogLine): Row {
  const level = levelOfLine(line.text, line.stream);
  const element = h('div', {
    class: `line ${level} ${line.stream === 'stderr' ? 'err' : ''}`, tabindex: '-1', role: 'button',
    onclick: () => goTo(line.t),
    onkeydown: (e: KeyboardEvent) => {
      if (e.key !== 'Enter' && e.key !== ' ') return;
      e.preventDefault();
      goTo(line.t);
    },
  }, h('span', { class: 'when' }, since(line.t, elapsed(Math.abs(line.t) / 1000, 1))),
  h('span', { class: 'text' }, line.text || ' '));
  return { line, level, element };
}

// Up and down go from line to line; one stop of the tab key for all of them.
function walk(list: HTMLElement): void {
  list.addEventListener('keydown', (event) => {
    const from = document.activeElement;
    if (!(from instanceof HTMLElement) || from.parentElement !== list) return;
    const way = event.key === 'ArrowDown' ? 'nextElementSibling'
      : event.key === 'ArrowUp' ? 'previousElementSibling' : null;
    if (!way) return;
    let next = from[way] as HTMLElement | null;
    while (next && (next.hidden || !next.hasAttribute('tabindex'))) next = next[way] as HTMLElement | null;
    if (!next) return;
    event.preventDefault();
    from.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

function filterOf(level: string): (row: Row) => boolean {
  if (level === 'error') return (row) => row.level === 'critical';
  if (level === 'warn') return (row) => row.level !== 'info';
  return () => true;
}

let build: (() => void) | null = null;

// The lines come when they are about to be seen, or printed.
export function showLog(): void {
  build?.();
}

export function logSection(): HTMLElement[] {
  const lines = page.run.payload.log ?? [];
  build = null;
  if (!lines.length) return [h('p', { class: 'empty' }, say('noLog'))];
  const holder = h('div', { class: 'logholder' });
  const soon = new IntersectionObserver((seen) => {
    if (seen.some((one) => one.isIntersecting)) showLog();
  }, { rootMargin: '600px' });
  build = () => {
    build = null;
    soon.disconnect();
    holder.classList.add('built');
    holder.replaceChildren(...logBox(lines));
  };
  soon.observe(holder);
  return [holder];
}

function logBox(lines: LogLine[]): HTMLElement[] {
  const rows = lines.map(rowOf);
  const list = h('div', { class: 'log', role: 'group', 'aria-label': say('log') });
  const omitted = page.run.payload.log_omitted ?? 0;
  rows.forEach((row, i) => {
    if (omitted > 0 && i === Math.min(HEAD, rows.length)) {
      list.appendChild(h('div', { class: 'cut' }, say('omitted', grouped(omitted))));
    }
    list.appendChild(row.element);
  });
  walk(list);
  on('cursor', () => follow(rows));
  follow(rows);
  return [
    filterBar(rows),
    h('p', { class: 'note' }, say('logHelp'),
      omitted > 0 ? ` ${say('omittedTotal', grouped(omitted))}.` : ''),
    list,
  ];
}

function filterBar(rows: Row[]): HTMLElement {
  const search = h('input', { type: 'search', 'aria-label': say('search'), placeholder: say('search') });
  const levels: [string, TextKey][] = [['all', 'levelAll'], ['warn', 'levelWarn'], ['error', 'levelError']];
  const level = h('select', { 'aria-label': say('level') },
    levels.map(([value, text]) => h('option', { value }, say(text))));
  const count = h('span', { class: 'quiet', role: 'status' });
  const apply = (): void => {
    const words = search.value.toLowerCase();
    const fits = filterOf(level.value);
    let first: Row | null = null;
    let shown = 0;
    for (const row of rows) {
      const fit = fits(row) && row.line.text.toLowerCase().includes(words);
      row.element.hidden = !fit;
      row.element.tabIndex = -1;
      if (fit) { first ??= row; shown++; }
    }
    if (first) first.element.tabIndex = 0;
    count.textContent = say('lines', grouped(shown), grouped(rows.length));
  };
  search.addEventListener('input', apply);
  level.addEventListener('change', apply);
  apply();
  return h('div', { class: 'logbar' }, search, level, count);
}

let marked: HTMLElement | null = null;

// Marks the last line before the cursor.
function follow(rows: Row[]): void {
  marked?.classList.remove('now');
  marked = null;
  if (state.cursor === null) return;
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle] as Row).line.t <= state.cursor) low = middle + 1;
    else high = middle;
  }
  marked = rows[low - 1]?.element ?? null;
  marked?.classList.add('now');
}
