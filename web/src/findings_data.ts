// SPDX-License-Identifier: Apache-2.0
// Findings in the order to show, and the advice that fits the run.
import type { Run } from './run';
import type { Advice, Finding } from './types';

const ORDER = ['critical', 'warning', 'info'];

// What a person should read, worst first; rules that could not be applied are not among it.
export function serious(run: Run): Finding[] {
  const all = run.data.findings ?? [];
  return ORDER.flatMap((severity) => all.filter((finding) => finding.severity === severity));
}

// Of the run's framework, else what holds for any. Where there is only advice for others: their
// words, if they all say the same, without anybody's code.
export function adviceFor(finding: Finding, framework: string): Advice | undefined {
  const all = finding.advice ?? [];
  const fit = all.find((one) => framework && one.framework === framework) ??
    all.find((one) => !one.framework);
  const first = all[0];
  if (fit || !first || all.some((one) => one.text !== first.text)) return fit;
  return { ...first, framework: null, code: null };
}
