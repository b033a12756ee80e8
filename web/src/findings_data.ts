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

export function adviceFor(finding: Finding, framework: string): Advice | undefined {
  const all = finding.advice ?? [];
  return all.find((one) => framework && one.framework === framework) ??
    all.find((one) => !one.framework) ?? all[0];
}
