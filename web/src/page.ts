// SPDX-License-Identifier: Apache-2.0
// What the parts of one drawing of the page share, and the polite voice for screen readers.
import type { Axis } from './axis';
import type { Marks } from './marks';
import type { Run } from './run';

export interface Page {
  run: Run;
  axis: Axis;
  marks: Marks;
}

export let page: Page;

export function setPage(next: Page): void {
  page = next;
}

let voice: HTMLElement | null = null;
let waiting = 0;

export function setVoice(element: HTMLElement): void {
  voice = element;
}

// Says it once the keys rest for a moment.
export function announce(text: string): void {
  window.clearTimeout(waiting);
  waiting = window.setTimeout(() => {
    if (voice) voice.textContent = text;
  }, 120);
}
