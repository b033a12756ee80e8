// SPDX-License-Identifier: Apache-2.0
// What a section says of a chart that it wants.
import type uPlot from 'uplot';
import type { Points } from './decode';

export interface Line {
  key: string;     // what evidence calls it; empty: nothing
  label: string;
  points: () => Points;
  reach: number;   // ms within which a sample stands for an instant
  thinned?: boolean;
  color?: number;  // place in the palette; its own place in the chart when absent
  unit?: string;   // where it differs from the chart's
}

export interface ChartSpec {
  id: string;
  title: string;
  unit: string;
  field: string;
  lines: Line[];
  keys?: string[];  // more names of evidence that lead here
  ceiling?: number | null;
  limit?: { value: number; label: string } | null;
  note?: string;
  height?: number;
  logScale?: boolean;  // may be switched to
  wide?: boolean;
  tools?: Node[];
  rows?: () => string[];              // lanes instead of a y axis
  paint?: (u: uPlot) => void;         // draws in place of lines
  brush?: boolean;                    // shows the whole run, and what the others show as a window
  steps?: boolean;                    // a value holds until the next
  extra?: (u: uPlot) => void;         // draws over the lines
  range?: [number, number];           // of the y axis
  zero?: boolean;                     // the y axis begins at nothing
  robust?: boolean;                   // rare spikes are cut at first, and said to be
}
