// SPDX-License-Identifier: Apache-2.0
// What the reader has chosen, and who wants to know when it changes.
import type { Lang } from './types';

export type AxisMode = 'time' | 'step' | 'epoch';
export type Theme = 'auto' | 'light' | 'dark';
export type Topic = 'view' | 'cursor';

export interface State {
  lang: Lang;
  theme: Theme;
  axis: AxisMode;
  duration: number;  // ms of the whole run, at least 1
  from: number;      // ms, what all charts show
  to: number;
  cursor: number | null;  // ms, where the line stands in all charts
  tables: boolean;        // every chart shows its numbers as well
  printing: boolean;
  framework: string;      // tab of advice
}

export const state: State = {
  lang: 'en', theme: 'auto', axis: 'time', duration: 1, from: 0, to: 1, cursor: null,
  tables: false, printing: false, framework: '',
};

let listeners: { topic: Topic; call: () => void }[] = [];

export function on(topic: Topic, call: () => void): void {
  listeners.push({ topic, call });
}

// Before the page is drawn anew: those who listened are gone.
export function forgetListeners(): void {
  listeners = [];
}

function tell(topic: Topic): void {
  for (const listener of listeners) if (listener.topic === topic) listener.call();
}

export function setView(from: number, to: number): void {
  const least = Math.max(state.duration / 20000, 1);
  let width = Math.min(Math.max(to - from, least), state.duration);
  if (!Number.isFinite(width)) width = state.duration;
  const begin = Math.min(Math.max(from, 0), state.duration - width);
  if (begin === state.from && begin + width === state.to) return;
  state.from = begin;
  state.to = begin + width;
  tell('view');
}

export function resetView(): void {
  setView(0, state.duration);
}

export function zoom(factor: number): void {
  const middle = state.cursor !== null && state.cursor >= state.from && state.cursor <= state.to
    ? state.cursor : (state.from + state.to) / 2;
  const width = (state.to - state.from) * factor;
  const part = (middle - state.from) / (state.to - state.from);
  setView(middle - width * part, middle + width * (1 - part));
}

export function pan(part: number): void {
  const shift = (state.to - state.from) * part;
  setView(state.from + shift, state.to + shift);
}

export function setCursor(t: number | null): void {
  const at = t === null ? null : Math.min(Math.max(t, 0), state.duration);
  if (at === state.cursor) return;
  state.cursor = at;
  tell('cursor');
}

// Moves the cursor there, and the view when it doesn't show that instant.
export function goTo(t: number): void {
  if (t < state.from || t > state.to) {
    const width = state.to - state.from;
    setView(t - width / 2, t + width / 2);
  }
  setCursor(t);
}

export function isWhole(): boolean {
  return state.from <= 0 && state.to >= state.duration;
}
