// SPDX-License-Identifier: Apache-2.0
// What stands on the time line: stretches (epochs, phases) and instants (failures, marks, errors).
import type { Axis } from './axis';
import { said, t as say } from './i18n';
import type { Rank, Run } from './run';

export type Level = 'critical' | 'warning' | 'info';

export interface Mark {
  t: number;
  level: Level;
  kind: string;
  text: string;
  ofLog: boolean;
}

export interface Phase {
  begin: number;
  end: number;
  kind: 'evaluation' | 'checkpoint' | 'other';
}

export interface Marks {
  marks: Mark[];    // in the order of time
  epochs: { epoch: number; begin: number; end: number }[];
  phases: Phase[];
}

const MOST_LOG_ERRORS = 300;

export function levelOfLine(text: string, stream: string): Level {
  if (/\b(error|exception|traceback|fatal|critical|failed|oom|out of memory|nan)\b/i.test(text)) {
    return 'critical';
  }
  return /\bwarn(ing)?\b/i.test(text) || (stream === 'stderr' && /^\s*W\d{4}/.test(text))
    ? 'warning' : 'info';
}

function levelOfEvent(kind: string, name: string, text: string): Level {
  if (kind === 'exception' || kind === 'incident') return 'critical';
  if (/oom|out.of.memory|xid|hang|stall|\bnan\b|lost/i.test(`${name} ${text}`)) return 'critical';
  return ['loss', 'alert', 'finding', 'source'].includes(kind) ? 'warning' : 'info';
}

function phaseKind(name: string): Phase['kind'] {
  if (/eval|valid|test|predict/i.test(name)) return 'evaluation';
  return /check|ckpt|save/i.test(name) ? 'checkpoint' : 'other';
}

// The first value that is no number, of each scalar of a rank.
function notFinite(rank: Rank): Mark[] {
  const found: Mark[] = [];
  for (const name of rank.scalarNames) {
    const first = rank.scalar(name).odd[0];
    if (!first) continue;
    const text = say('firstNan', name, rank.name, first.word);
    found.push({ t: first.t, level: 'critical', kind: 'nan', text, ofLog: false });
  }
  return found;
}

export function marksOf(run: Run, axis: Axis): Marks {
  const marks: Mark[] = (run.payload.events ?? []).map((event) => ({
    t: event.t,
    level: levelOfEvent(event.kind, event.name ?? '', event.text ?? ''),
    kind: event.name ? `${event.kind}: ${event.name}` : event.kind,
    text: said(event, 'text'),
    ofLog: false,
  }));
  run.ranks.slice(0, 64).forEach((rank) => marks.push(...notFinite(rank)));
  let errors = 0;
  for (const line of run.payload.log ?? []) {
    if (levelOfLine(line.text, line.stream) !== 'critical' || ++errors > MOST_LOG_ERRORS) continue;
    marks.push({ t: line.t, level: 'critical', kind: say('logError'), text: line.text, ofLog: true });
  }
  marks.sort((a, b) => a.t - b.t);
  return {
    marks: marks.filter((mark) => Number.isFinite(mark.t)),
    epochs: axis.rank?.raw.epochs ?? [],
    phases: (axis.rank?.raw.phases ?? []).map((phase) => ({
      begin: phase.begin, end: phase.end, kind: phaseKind(phase.name),
    })),
  };
}
