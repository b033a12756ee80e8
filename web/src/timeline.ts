// SPDX-License-Identifier: Apache-2.0
// The strip that stays in sight: which axis, which part of the run, what happened when.
import type uPlot from 'uplot';
import { Chart } from './chart';
import type { Line } from './chart_spec';
import type { Points } from './decode';
import { button, h, icon, table } from './dom';
import { seconds, since } from './format';
import { t as say, TextKey } from './i18n';
import type { Mark } from './marks';
import { page } from './page';
import { boxOf, paintSign, pixelOf, stretch } from './paint';
import { inks } from './palette';
import { Curve, valueAt } from './run';
import { AxisMode, goTo, isWhole, on, pan, resetView, state, zoom } from './state';
import { cursorWords } from './words';

const BINS = 500;
const MOST_EVENTS = 500;

function meanOf(curves: Curve[]): Points {
  const t = new Float64Array(BINS);
  const v: (number | null)[] = [];
  const width = state.duration / BINS;
  const reach = Math.max(width, ...curves.map((curve) => 2.5 * curve.period_ms));
  for (let i = 0; i < BINS; i++) {
    const at = (i + 0.5) * width;
    t[i] = at;
    let sum = 0;
    let known = 0;
    for (const curve of curves) {
      const value = valueAt(curve.points(), at, reach);
      if (value !== null) { sum += value; known++; }
    }
    v.push(known ? sum / known : null);
  }
  return { t, v, odd: [] };
}

// What the strip shows as a line: the GPUs' utilisation, else the steps.
function overviewLine(): { line: Line; field: string; range?: [number, number] } | null {
  const util = page.run.gpuCurves('utilization_ratio');
  if (util.length) {
    const points = meanOf(util);
    return {
      line: { key: '', label: say('meanUtil'), points: () => points, reach: state.duration / BINS },
      field: 'utilization_ratio', range: [-0.42, 1.5],
    };
  }
  const rank = page.axis.rank;
  const cpu = page.run.curve('host', 'cpu_ratio');
  if (cpu) {
    return {
      line: { key: '', label: cpu.label, points: cpu.points, reach: 2.5 * cpu.period_ms },
      field: 'cpu_ratio', range: [-0.42, 1.5],
    };
  }
  if (!rank) return null;
  const points = rank.duration();
  return {
    line: { key: '', label: say('stepTimeLine'), points: () => points, reach: state.duration / 50 },
    field: 'duration_s',
  };
}

function paintEpochNumbers(u: uPlot): void {
  const box = boxOf(u);
  const { ctx } = u;
  ctx.save();
  ctx.fillStyle = inks().faint;
  ctx.font = `${10 * box.ratio}px system-ui, sans-serif`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'top';
  let free = -Infinity;
  for (const span of page.marks.epochs) {
    const ends = stretch(u, span.begin, span.end);
    if (!ends || ends[0] < free) continue;
    const text = String(span.epoch);
    const width = ctx.measureText(text).width;
    ctx.fillText(text, ends[0] + 3 * box.ratio, box.top + box.ratio);
    free = ends[0] + width + 22 * box.ratio;
  }
  ctx.restore();
}

function paintSigns(u: uPlot): void {
  const box = boxOf(u);
  const y = box.top + box.height - 7 * box.ratio;
  const size = 4.2 * box.ratio;
  const order: Mark['level'][] = ['info', 'warning', 'critical'];
  for (const level of order) {
    let last = -Infinity;
    for (const mark of page.marks.marks) {
      if (mark.level !== level) continue;
      const x = pixelOf(u, mark.t);
      if (!(x >= box.left && x <= box.left + box.width) || x - last < size) continue;
      paintSign(u.ctx, level, x, y, size);
      last = x;
    }
  }
}

function axisSwitch(choose: (mode: AxisMode) => void): HTMLElement {
  const modes: [AxisMode, TextKey][] = [
    ['time', 'axisTime'], ['step', 'axisStep'], ['epoch', 'axisEpoch']];
  return h('div', { class: 'segments', role: 'group', 'aria-label': say('axisLabel') },
    modes.map(([mode, label]) => button(say(label), () => choose(mode), {
      'aria-pressed': String(state.axis === mode),
      disabled: !page.axis.has(mode),
      title: page.axis.has(mode) ? null : say('notTold'),
      'data-axis': mode,
    })));
}

function rangeWords(): string {
  const width = seconds((state.to - state.from) / 1000);
  if (isWhole()) return say('rangeWhole', seconds(page.run.payload.duration_ms / 1000));
  return say('rangePart', seconds(state.from / 1000), seconds(state.to / 1000), width);
}

function nearMark(at: number): Mark | null {
  const reach = (state.to - state.from) / 150;
  let best: Mark | null = null;
  for (const mark of page.marks.marks) {
    const distance = Math.abs(mark.t - at);
    if (distance <= reach && (!best || distance < Math.abs(best.t - at))) best = mark;
  }
  return best;
}

function readout(): HTMLElement {
  const range = h('span', { class: 'range', id: 'range' }, rangeWords());
  const cursor = h('span', { class: 'at', id: 'cursor' });
  const reset = button(say('resetZoom'), resetView, { class: 'small', id: 'reset', hidden: true },
    icon('reset'), h('span', null, say('resetZoom')));
  const show = (): void => {
    range.textContent = rangeWords();
    reset.hidden = isWhole();
    const at = state.cursor;
    const mark = at === null ? null : nearMark(at);
    cursor.textContent = at === null ? ''
      : cursorWords(at) + (mark ? ` · ${mark.kind}: ${mark.text}`.slice(0, 160) : '');
  };
  on('view', show);
  on('cursor', show);
  show();
  return h('div', { class: 'readout' }, range, reset, cursor);
}

function key(className: string, text: TextKey): HTMLElement {
  return h('span', { class: `mark ${className}` }, h('i', { 'aria-hidden': 'true' }), say(text));
}

function markKey(): HTMLElement {
  const kinds = new Set(page.marks.phases.map((phase) => phase.kind));
  const levels = new Set(page.marks.marks.map((mark) => mark.level));
  return h('div', { class: 'markkey' },
    page.marks.epochs.length ? key('epochs', 'epochBand') : null,
    kinds.has('evaluation') ? key('evaluation', 'evalPhase') : null,
    kinds.has('checkpoint') ? key('checkpoint', 'checkpointPhase') : null,
    kinds.has('other') ? key('other', 'otherPhase') : null,
    levels.has('critical') ? key('crit', 'markCritical') : null,
    levels.has('warning') ? key('warn', 'markWarning') : null,
    levels.has('info') ? key('dot', 'markInfo') : null);
}

export function timeline(choose: (mode: AxisMode) => void): HTMLElement {
  const over = overviewLine();
  const chart = new Chart({
    id: 'overview', title: say('overviewTitle'), unit: '1', field: over?.field ?? '',
    lines: over ? [over.line] : [], height: 84, brush: true, wide: true,
    extra: (u) => { paintEpochNumbers(u); paintSigns(u); },
    ...(over?.range ? { range: over.range } : {}),
  });
  return h('div', { class: 'timeline', role: 'region', 'aria-label': say('timeline') },
    h('div', { class: 'bar' }, axisSwitch(choose), readout(),
      h('div', { class: 'segments zoom', role: 'group', 'aria-label': say('zoomIn') }, [
        button(say('panLeft'), () => pan(-0.5), {}, icon('left')),
        button(say('zoomIn'), () => zoom(0.5), {}, icon('plus')),
        button(say('zoomOut'), () => zoom(2), {}, icon('minus')),
        button(say('panRight'), () => pan(0.5), {}, icon('right')),
      ])),
    chart.element, markKey());
}

// Every mark as a row, for those who can't point at a sign of four pixels.
export function eventList(): HTMLElement {
  const marks = page.marks.marks;
  if (!marks.length) return h('p', { class: 'note' }, say('noEvents'));
  const shown = marks.slice(0, MOST_EVENTS);
  const rows = shown.map((mark) => [
    { text: '', node: button(since(mark.t), () => goTo(mark.t), { class: 'link' }) },
    { text: `${say(mark.level)} · ${mark.kind}` },
    { text: mark.text },
  ]);
  return h('details', { class: 'fold' },
    h('summary', null, say('events', marks.length)),
    shown.length < marks.length
      ? h('p', { class: 'note' }, say('eventsShort', shown.length, marks.length)) : null,
    table(say('events', marks.length), [say('when'), say('kind'), say('what')], rows));
}
