// SPDX-License-Identifier: Apache-2.0
// The payload as docs/design/0005-report-page.md says it, and the parts of the report that the page
// reads. Unknown is null or absent, never 0. Times are whole milliseconds after t0_ms.

export type Lang = 'en' | 'zh';
export type Maybe<T> = T | null | undefined;
export type Word = 'nan' | 'inf' | '-inf';
export type Raw = number | null | Word;

export interface Message {
  en?: Maybe<string>;
  zh?: Maybe<string>;
}

export interface CurvePayload {
  entity: string;
  alias?: string;  // what evidence may call the entity
  label: string;
  scope: string;
  gpu: Maybe<number>;
  rank: Maybe<number>;
  field: string;
  unit: string;
  kind: string;
  period_ms: number;
  derived?: boolean;
  exact?: boolean;
  max?: Maybe<number>;
  scale: Maybe<number>;
  t: number[];
  v: Raw[];
}

export interface Column {
  scale: Maybe<number>;
  v: Raw[];
}

export interface StepsPayload {
  count: number;
  thinned: boolean;
  step0?: Maybe<number>;
  t: number[];
  step?: Maybe<Raw[]>;
  epoch?: Maybe<Raw[]>;
  duration?: Maybe<Column>;
  data_wait?: Maybe<Column>;
  scalars?: Maybe<Record<string, Column>>;
}

export interface EpochSpan {
  epoch: number;
  begin: number;
  end: number;
}

export interface PhaseSpan {
  name: string;
  begin: number;
  end: number;
}

export interface RankPayload {
  name: string;
  rank: Maybe<number>;
  pid: Maybe<number>;
  gpus: number[];
  steps: Maybe<StepsPayload>;
  epochs: EpochSpan[];
  phases: PhaseSpan[];
}

export interface EventPayload {
  t: number;
  kind: string;
  rank?: Maybe<number>;
  name: string;
  text: string;
  text_zh?: string;
}

export interface LogLine {
  t: number;
  stream: string;
  text: string;
}

export interface Stat {
  count?: number;
  mean?: Maybe<number>;
  min?: Maybe<number>;
  max?: Maybe<number>;
  p50?: Maybe<number>;
  p95?: Maybe<number>;
  last?: Maybe<number>;
  total?: Maybe<number>;
  at_least?: boolean;
  coverage_ratio?: Maybe<number>;
}

export type StatTable = Record<string, Stat>;

export interface GpuReport {
  gpu: Maybe<number>;
  uuid: Maybe<string>;
  job: Maybe<boolean>;
  energy_j: Maybe<number>;
  energy_source: Maybe<string>;
  [field: string]: unknown;
}

export interface EpochRow {
  rank: Maybe<number>;
  pid: Maybe<number>;
  epoch: Maybe<number>;
  begin: Maybe<string>;
  end: Maybe<string>;
  complete: boolean;
  duration_s: number;
  steps: number;
  samples: Maybe<number>;
  step_s: Stat;
  data_wait_s: Stat;
  data_wait_ratio: Maybe<number>;
  scalars: Record<string, number | string>;
  energy_j: Maybe<number>;
}

export interface Evidence {
  series: string;
  begin: Maybe<string>;
  end: Maybe<string>;
  begin_s?: number;  // since the start of the run
  end_s?: number;
  values: Record<string, number | string>;
  note: Maybe<string>;
  note_zh: Maybe<string>;
  steps: number[];
}

export interface Advice {
  framework: Maybe<string>;
  text: Maybe<string>;
  text_zh: Maybe<string>;
  code: Maybe<string>;
}

export interface Finding {
  rule: string;
  severity: 'info' | 'warning' | 'critical' | 'not_applicable';
  title: Maybe<string>;
  title_zh: Maybe<string>;
  summary: Maybe<string>;
  summary_zh: Maybe<string>;
  explanation: Maybe<string>;
  explanation_zh: Maybe<string>;
  advice: Advice[];
  rank: Maybe<number>;
  pid: Maybe<number>;
  gpu: Maybe<number>;
  confidence: Maybe<number>;
  lost_gpu_s: Maybe<number>;
  gain_ratio: Maybe<number>;
  evidence: Evidence[];
}

export interface Loss {
  time: Maybe<string>;
  kind: string;
  severity: string;
  count: number;
  detail: string;
  help: string;
}

export interface RunReport {
  run_id: Maybe<string>;
  begin: Maybe<string>;
  end: Maybe<string>;
  duration_s: Maybe<number>;
  progress_source: Maybe<string>;
  framework?: Maybe<string>;
  energy_j: Maybe<number>;
  exit: Maybe<{
    reason?: Maybe<string>;
    exit_code?: Maybe<number>;
    signal?: Maybe<number>;
    oom_cgroup?: Maybe<string>;
  }>;
  attributes: Record<string, string>;
}

export interface ReportData {
  run: RunReport;
  epochs: EpochRow[];
  incidents: {
    time: Maybe<string>; since_start_s: Maybe<number>; kind: string; text: string; text_zh?: Maybe<string>;
  }[];
  gpus: GpuReport[];
  host: StatTable;
  process: StatTable;
  findings: Finding[];
  losses: Loss[];
  rules_judged?: string[];
  not_measured: { subject: string; subject_zh?: Maybe<string>; reason: string; reason_zh?: Maybe<string> }[];
  bill?: unknown;
}

export interface Payload {
  payload_version: number;
  lang: Maybe<string>;
  report: {
    schema_version: number;
    tool: { name: string; version: string; revision: string };
    data: ReportData;
    warnings?: string[];
  };
  t0_ms: Maybe<number>;
  duration_ms: number;
  redacted: string[];
  curves: CurvePayload[];
  ranks: RankPayload[];
  events: EventPayload[];
  log: LogLine[];
  log_omitted: number;
  slowest: Maybe<{ t: number[]; rank: number[] }>;
  thinning: Maybe<Message>;
}
