// SPDX-License-Identifier: Apache-2.0
// Colours of lines: Okabe and Ito's eight, made darker or lighter where the background asks, then
// dashes, so that no two lines differ by colour alone.
import { state } from './state';

const LIGHT = ['#0072b2', '#d55e00', '#008060', '#b0528a', '#2f8fc4', '#b87700', '#7a6a00', '#3a3f47'];
const DARK = ['#4ea8e0', '#f0804a', '#2cc79b', '#e08fbd', '#8fd0f5', '#f0b23c', '#f0e442', '#c9ced6'];
const DASHES: number[][] = [[], [7, 3], [2, 2], [9, 3, 2, 3]];

let dark = false;

// After the choice, the system's wish or the medium changed; paper is light.
export function chooseColors(): void {
  dark = !state.printing && (state.theme === 'auto'
    ? matchMedia('(prefers-color-scheme: dark)').matches : state.theme === 'dark');
}

export function isDark(): boolean {
  return dark;
}

export function lineColor(index: number): string {
  const colors = isDark() ? DARK : LIGHT;
  return colors[index % colors.length] as string;
}

// The first four lines are whole, the next four dashed, and so on.
export function lineDash(index: number): number[] {
  return DASHES[Math.floor(index / 4) % DASHES.length] as number[];
}

export interface Inks {
  text: string;
  faint: string;
  grid: string;
  band: string;
  evaluation: string;
  checkpoint: string;
  other: string;
  critical: string;
  warning: string;
  info: string;
  hatch: string;
}

export function inks(): Inks {
  return isDark()
    ? { text: '#c5cbd5', faint: '#97a0ae', grid: '#ffffff14', band: '#ffffff09',
      evaluation: '#4ea8e038', checkpoint: '#f0b23c4d', other: '#e08fbd38', critical: '#ff7b72',
      warning: '#f0b23c', info: '#8fd0f5', hatch: '#ffffff1f' }
    : { text: '#3d4450', faint: '#5d6674', grid: '#0000000f', band: '#00000008',
      evaluation: '#0072b226', checkpoint: '#e69f0045', other: '#cc79a730', critical: '#c62828',
      warning: '#b26a00', info: '#0072b2', hatch: '#0000001a' };
}

// Cividis-like: readable with any colour sight, and rising in lightness.
const STOPS = [[0, 32, 76], [49, 68, 107], [102, 105, 112], [149, 143, 120], [203, 186, 105],
  [255, 234, 70]];

export function heatColor(part: number): string {
  const at = Math.min(Math.max(part, 0), 1) * (STOPS.length - 1);
  const i = Math.min(Math.floor(at), STOPS.length - 2);
  const a = STOPS[i] as number[];
  const b = STOPS[i + 1] as number[];
  const mix = (k: number): number =>
    Math.round((a[k] as number) + (at - i) * ((b[k] as number) - (a[k] as number)));
  return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
}
