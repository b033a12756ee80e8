// SPDX-License-Identifier: Apache-2.0
// One chart: drawn when it comes into sight, kept in step with the others, usable without a mouse.
import uPlot from 'uplot';
import { button, h } from './dom';
import { withUnit } from './format';
import type { ChartSpec, Line } from './chart_spec';
import { joined, nearest, onAxis } from './chart_data';
import { chartTable } from './chart_table';
import { sentence, statOf } from './chart_words';
import { legendOf, Legend } from './legend';
import { t as say } from './i18n';
import { announce, page } from './page';
import { crowded, paintMiddle } from './middle';
import { paintAbove, paintBands, paintFailures, paintLimit, paintOdd } from './paint';
import { inks, lineColor, lineDash } from './palette';
import { GUTTER, spikeCap, xSteps, xTick, yRange, yTick } from './scales';
import { goTo, isWhole, pan, resetView, setCursor, setView, state, zoom } from './state';
import { valueAt } from './run';
import { cursorWords } from './words';

const EMPTY = -10;
const drawn = new Set<Chart>();
const all = new Map<string, Chart>();
const byKey = new Map<string, Chart>();
let observer: IntersectionObserver | null = null;
let hovered: Chart | null = null;
let firstDrawn: (() => void) | null = null;

export class Chart {
  readonly element: HTMLElement;
  readonly plot: HTMLElement;
  private u: uPlot | null = null;
  private legend: Legend;
  private tableBox: HTMLElement;
  private tableShown = state.tables;
  private tableButton: HTMLElement;
  private log = false;
  private full = false;
  private cap: number | null = null;  // above it values are cut
  private dense = false;              // more samples than pixels
  private above = h('span', { class: 'quiet above' });
  private painting = false;
  visible = false;

  constructor(readonly spec: ChartSpec) {
    this.legend = legendOf(spec, (index, show) => this.u?.setSeries(index + 1, { show }));
    this.plot = h('div', {
      class: 'plot', tabindex: '0', role: 'img', 'aria-label': spec.title,
      'aria-describedby': 'chart-help', onkeydown: (e: KeyboardEvent) => this.key(e),
      style: { height: `${this.height()}px` },
    });
    this.tableBox = h('div', { class: 'numbers', hidden: !this.tableShown });
    this.tableButton = button(say('data'), () => this.toggleTable(), {
      class: 'small', 'aria-expanded': String(this.tableShown), 'aria-label': say('dataOf', spec.title),
    });
    this.element = h('figure', { class: `chart${spec.wide ? ' wide' : ''}`, id: spec.id },
      h('figcaption', null,
        h('h3', null, spec.title),
        h('div', { class: 'tools' }, spec.tools ?? [], this.above, spec.robust ? this.fullButton() : null,
          spec.logScale ? this.logButton() : null, spec.lines.length ? this.tableButton : null)),
      spec.note ? h('p', { class: 'note' }, spec.note) : null,
      spec.lines.length ? this.legend.element : null, this.plot, this.tableBox);
    all.set(spec.id, this);
    for (const key of [...spec.lines.map((line) => line.key), ...(spec.keys ?? [])]) {
      if (key && !byKey.has(key)) byKey.set(key, this);
    }
    observer?.observe(this.element);
  }
  private height(): number {
    return this.spec.height ?? 190;
  }
  private logButton(): HTMLElement {
    const toggle = button(say('logScale'), () => {
      this.log = !this.log;
      toggle.setAttribute('aria-pressed', String(this.log));
      this.redraw();
    }, { class: 'small', 'aria-pressed': 'false', 'aria-label': say('logScaleOf', this.spec.title) });
    return toggle;
  }
  private fullButton(): HTMLElement {
    const toggle = button(say('fullScale'), () => {
      this.full = !this.full;
      toggle.setAttribute('aria-pressed', String(this.full));
      this.redraw();
    }, { class: 'small', 'aria-pressed': 'false', 'aria-label': say('fullScaleOf', this.spec.title) });
    return toggle;
  }
  private toggleTable(): void {
    this.tableShown = !this.tableShown;
    this.tableButton.setAttribute('aria-expanded', String(this.tableShown));
    this.tableBox.hidden = !this.tableShown;
    this.fillTable();
  }
  private fillTable(): void {
    if (this.tableShown) this.tableBox.replaceChildren(chartTable(this.spec));
  }

  draw(): void {
    if (this.u) return;
    const width = this.plot.clientWidth;
    if (width < 40) return;
    const [data, series] = this.spec.paint ? this.noLines() : this.lines();
    this.u = new uPlot(this.options(width, series), data, this.plot);
    drawn.add(this);
    this.plot.setAttribute('aria-label', say('chartOf', this.spec.title, sentence(this.spec)));
    this.legend.rest(this.spec.lines.map((line) => statOf(line)));
    this.fillTable();
    this.follow();
    this.showCursor();
    if (firstDrawn) firstDrawn();
  }
  redraw(): void {
    this.erase();
    this.draw();
  }
  erase(): void {
    this.u?.destroy();
    this.u = null;
    drawn.delete(this);
  }

  private noLines(): [uPlot.AlignedData, uPlot.Series[]] {
    const [low, high] = page.axis.range(0, state.duration);
    return [[[low, high], [null, null]], [{}, { show: true, stroke: 'transparent' }]];
  }
  private lines(): [uPlot.AlignedData, uPlot.Series[]] {
    const tables = this.spec.lines.map((line) => onAxis(line.points(), this.log));
    const series: uPlot.Series[] = [{}];
    this.spec.lines.forEach((line, i) => {
      const few = (tables[i]?.[0] as number[]).length < 2;
      const color = line.color ?? i;
      series.push({
        label: line.label, width: 1.4, dash: lineDash(color),
        stroke: () => lineColor(color) + (!this.dense ? '' : this.spec.lines.length > 2 ? '24' : '48'),
        show: this.legend.shown(i),
        points: few ? { show: true, size: 7 } : { show: false },
        ...(this.spec.steps ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
      });
    });
    return [joined(tables), series];
  }
  private options(width: number, series: uPlot.Series[]): uPlot.Options {
    const [min, max] = this.spec.brush ? page.axis.range(0, state.duration) : page.axis.range();
    const spec = this.spec;
    return {
      width, height: this.height(), series, legend: { show: false }, padding: [8, 26, 0, 0],
      scales: {
        x: { time: false, auto: false, min, max },
        y: spec.rows ? { auto: false, min: 0, max: Math.max(spec.rows().length, 1) }
          : this.log ? { distr: 3 }
            : spec.range ? { auto: false, min: spec.range[0], max: spec.range[1] }
            : { range: (_u, low, high) => this.yLimits(low, high) },
      },
      axes: [this.xAxis(), spec.rows ? this.rowAxis(spec.rows()) : this.yAxis()],
      cursor: {
        y: false, points: { size: 6, width: 1.5 }, drag: { x: true, y: false, setScale: false },
        dataIdx: (u, index, at) => nearest(u, index, at),
        bind: { dblclick: () => () => { resetView(); return null; } },
      },
      hooks: {
        drawClear: [(u) => { this.dense = this.isDense(u); paintBands(u); }],
        draw: [(u) => this.over(u)],
        setCursor: [(u) => this.moved(u)],
        setSelect: [(u) => this.selected(u)],
        ready: [(u) => {
          u.over.addEventListener('mouseenter', () => { hovered = this; });
          u.over.addEventListener('mouseleave', () => { hovered = null; });
        }],
      },
    };
  }
  private yLimits(low: number | null, high: number | null): [number, number] {
    const { spec } = this;
    this.cap = spec.robust && !this.full && high !== null
      ? spikeCap(spec.lines.filter((_line, i) => this.legend.shown(i)), high) : null;
    const limit = spec.limit?.value ?? null;
    const near = limit !== null && high !== null && high >= limit * 0.3 ? limit : null;
    return yRange(spec.zero && low !== null ? Math.min(0, low) : low, this.cap ?? high,
      near ?? spec.ceiling ?? null);
  }
  private xAxis(): uPlot.Axis {
    const ink = inks();
    return {
      stroke: ink.faint, font: FONT, grid: { stroke: ink.grid, width: 1 }, incrs: xSteps(),
      ticks: { show: false }, space: 78, size: 26, gap: 4,
      values: (_u, splits, _i, _space, step) => splits.map((value) => xTick(value, step)),
    };
  }
  private yAxis(): uPlot.Axis {
    const ink = inks();
    const { unit, field } = this.spec;
    return {
      stroke: ink.faint, font: FONT, grid: { stroke: ink.grid, width: 1 }, size: GUTTER, space: 34,
      ticks: { show: false }, gap: 6,
      ...(this.spec.brush ? { show: true, splits: () => [] } : {}),
      values: (_u, splits) => splits.map((v) => (v === null ? '' : yTick(v, unit, field))),
    };
  }
  private rowAxis(rows: string[]): uPlot.Axis {
    return {
      stroke: inks().faint, font: FONT, grid: { show: false }, ticks: { show: false }, size: GUTTER,
      gap: 6, splits: () => rows.map((_row, i) => rows.length - i - 0.5),
      values: () => rows.map((row) => (row.length > 10 ? `${row.slice(0, 9)}…` : row)), filter: (_u, splits) => splits,
    };
  }
  private over(u: uPlot): void {
    this.spec.paint?.(u);
    this.spec.extra?.(u);
    const said: string[] = [];
    const { limit } = this.spec;
    if (limit) {
      const words = `${limit.label} ${withUnit(limit.value, this.spec.unit, this.spec.field)}`;
      if (this.log || !paintLimit(u, limit.value, words)) said.push(say('limitAbove', words));
    }
    if (this.dense) this.middles(u);
    const above = this.cap === null ? 0
      : paintAbove(u, this.cap, this.spec.lines.map((line) => line.points()));
    if (above) said.push(say('aboveScale', above));
    if (this.dense) said.push(say('denseNote'));
    this.above.textContent = said.join(' · ');
    if (!this.spec.brush) paintFailures(u);
    const odd = this.spec.paint ? [] : this.spec.lines.flatMap((line) => line.points().odd);
    if (odd.length) paintOdd(u, odd.map((one) => one.t).sort((a, b) => a - b));
  }

  private isDense(u: uPlot): boolean {
    const { spec } = this;
    if (spec.paint || spec.brush || spec.steps) return false;
    return spec.lines.some((line) => crowded(line.points(), u.over.clientWidth));
  }
  private middles(u: uPlot): void {
    this.spec.lines.forEach((line, i) => {
      const color = line.color ?? i;
      if (this.legend.shown(i)) paintMiddle(u, line.points(), lineColor(color), lineDash(color));
    });
  }

  private moved(u: uPlot): void {
    const left = u.cursor.left ?? EMPTY;
    if (hovered === this && left >= 0) setCursor(page.axis.toMs(u.posToVal(left, 'x')));
  }
  private selected(u: uPlot): void {
    if (this.painting) return;
    const { left, width } = u.select;
    if (width >= 3) {
      const from = page.axis.toMs(u.posToVal(left, 'x'));
      setView(from, page.axis.toMs(u.posToVal(left + width, 'x')));
    }
    if (this.spec.brush) this.follow();
    else if (width > 0) u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }
  // Takes the range that all charts show.
  follow(): void {
    const [min, max] = page.axis.range();
    this.element.dataset['from'] = String(Math.round(state.from));
    this.element.dataset['to'] = String(Math.round(state.to));
    if (!this.u) return;
    if (!this.spec.brush) this.u.setScale('x', { min, max });
    else this.window(min, max);
    this.fillTable();
  }
  private window(min: number, max: number): void {
    const u = this.u as uPlot;
    const left = u.valToPos(min, 'x');
    const width = isWhole() ? 0 : Math.max(u.valToPos(max, 'x') - left, 2);
    u.root.classList.toggle('whole', isWhole());
    this.painting = true;
    u.setSelect({ left, width, top: 0, height: u.over.clientHeight }, false);
    this.painting = false;
  }
  showCursor(): void {
    if (!this.u) return;
    const at = state.cursor;
    if (hovered !== this) {
      const left = at === null ? NaN : this.u.valToPos(page.axis.toX(at), 'x');
      const inside = left >= 0 && left <= this.u.over.clientWidth;
      this.u.setCursor({ left: inside ? left : EMPTY, top: inside ? 1 : EMPTY }, false);
    }
    if (at === null) this.legend.rest(this.spec.lines.map((line) => statOf(line)));
    else this.legend.values(this.spec.lines.map((line) => this.valueText(line, at)));
  }
  private valueText(line: Line, at: number): string {
    const reach = Math.max(line.reach, (state.to - state.from) / 300);
    return withUnit(valueAt(line.points(), at, reach), line.unit ?? this.spec.unit, this.spec.field);
  }
  resize(): void {
    if (this.u && this.plot.clientWidth > 40) {
      this.u.setSize({ width: this.plot.clientWidth, height: this.height() });
      this.follow();
    }
  }

  private key(event: KeyboardEvent): void {
    const width = state.to - state.from;
    const step = width / (event.shiftKey ? 10 : 100);
    const at = state.cursor ?? state.from;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    switch (event.key) {
      case 'ArrowLeft': goTo(state.cursor === null ? state.to : at - step); break;
      case 'ArrowRight': goTo(state.cursor === null ? state.from : at + step); break;
      case 'Home': goTo(state.from); break;
      case 'End': goTo(state.to); break;
      case 'PageUp': pan(-0.5); break;
      case 'PageDown': pan(0.5); break;
      case '+': case '=': zoom(0.5); break;
      case '-': zoom(2); break;
      default: return;
    }
    event.preventDefault();
    this.speak();
  }
  private speak(): void {
    const at = state.cursor;
    if (at === null) return;
    const few = this.spec.lines.slice(0, 6).map((line) => `${line.label} ${this.valueText(line, at)}`);
    const rest = this.spec.lines.length - few.length;
    if (rest > 0) few.push(say('chartMore', rest));
    announce(`${cursorWords(at)}: ${few.join(', ')}`);
  }
  // Brings it into sight; opens what folds it away.
  reveal(): void {
    for (let box = this.element.parentElement; box; box = box.parentElement) {
      if (box instanceof HTMLDetailsElement) box.open = true;
    }
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.element.scrollIntoView({ behavior: calm ? 'auto' : 'smooth', block: 'center' });
    this.draw();
    this.element.classList.add('flash');
    window.setTimeout(() => this.element.classList.remove('flash'), 1600);
    this.plot.focus({ preventScroll: true });
  }
}

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

export function beginCharts(onFirst: () => void): void {
  for (const chart of drawn) chart.erase();
  observer?.disconnect();
  all.clear();
  byKey.clear();
  hovered = null;
  firstDrawn = () => { firstDrawn = null; onFirst(); };
  observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const chart = all.get(entry.target.id);
      if (!chart) continue;
      chart.visible = entry.isIntersecting;
      if (!chart.visible) continue;
      chart.draw();
      chart.follow();
      chart.showCursor();
    }
  }, { rootMargin: '150px' });
}

export function chartFor(key: string): Chart | undefined {
  return byKey.get(key);
}

export function followView(): void {
  for (const chart of all.values()) if (chart.visible || chart.spec.brush) chart.follow();
}

export function followCursor(): void {
  for (const chart of drawn) if (chart.visible || chart.spec.brush) chart.showCursor();
}

export function resizeCharts(): void {
  for (const chart of drawn) chart.resize();
}

// For paper: all of them, whether seen or not.
export function drawAll(): void {
  for (const chart of all.values()) {
    chart.redraw();
    chart.follow();
  }
}

export function forgetCursor(): void {
  hovered = null;
  setCursor(null);
}

