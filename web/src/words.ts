// SPDX-License-Identifier: Apache-2.0
// Instants in words: elapsed, clock, step and epoch.
import { grouped, local, since } from './format';
import { t as say } from './i18n';
import { page } from './page';

export function cursorWords(at: number): string {
  const parts = [since(at)];
  const t0 = page.run.payload.t0_ms;
  if (typeof t0 === 'number') parts.push(local(t0 + at));
  const epoch = page.axis.numberAt('epoch', at);
  const step = page.axis.numberAt('step', at);
  if (epoch !== null) parts.push(`${say('axisEpoch')} ${grouped(epoch)}`);
  if (step !== null) parts.push(`${say('axisStep')} ${grouped(step)}`);
  return parts.join(' · ');
}
