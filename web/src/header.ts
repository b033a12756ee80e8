// SPDX-License-Identifier: Apache-2.0
// The head of the page: what ran, how it ended, and how to look at it.
import { button, h, icon } from './dom';
import { grouped, local, seconds } from './format';
import { t as say } from './i18n';
import { page } from './page';
import type { RunReport } from './types';
import { state, Theme } from './state';
import type { Lang } from './types';

export function runName(run: RunReport): string {
  const has = run.attributes ?? {};
  return has['name'] || has['command'] || run.run_id || say('title');
}

function statusOf(run: RunReport): [string, string] {
  const exit = run.exit;
  if (!exit) return ['neutral', say('noEnd')];
  if (exit.oom_cgroup) return ['bad', say('oomKilled', exit.oom_cgroup)];
  if (typeof exit.signal === 'number') return ['bad', say('signal', exit.signal)];
  if (typeof exit.exit_code === 'number') {
    return exit.exit_code === 0 ? ['fine', say('finished')]
      : ['bad', `${say('failed')} · ${say('exitCode', exit.exit_code)}`];
  }
  if (exit.reason === 'detached') return ['neutral', say('detached')];
  if (exit.reason === 'lost') return ['warn', say('lost')];
  return ['neutral', exit.reason ? `${say('unknownEnd')} (${exit.reason})` : say('unknownEnd')];
}

function gpuWords(): string {
  const gpus = page.run.gpuIndexes();
  if (!gpus.length) return say('noGpu');
  const model = page.run.data.run.attributes?.['gpu_model'] ?? page.run.data.run.attributes?.['gpu_name'];
  if (model) return say('gpuCount', gpus.length, model);
  return gpus.length === 1 ? say('oneGpu') : say('gpus', gpus.length);
}

function progressWords(): string {
  const epochs = new Set((page.run.data.epochs ?? []).map((row) => row.epoch)
    .filter((epoch) => typeof epoch === 'number'));
  const steps = Math.max(0, ...page.run.ranks.map((rank) => rank.count));
  const parts: string[] = [];
  if (epochs.size) parts.push(epochs.size === 1 ? say('oneEpoch') : say('epochs', epochs.size));
  if (steps) parts.push(say('stepsCount', grouped(steps)));
  if (page.run.ranks.length > 1) parts.push(say('ranksCount', grouped(page.run.ranks.length)));
  return parts.join(' · ') || say('noProgress');
}

export interface Actions {
  theme(next: Theme): void;
  lang(next: Lang): void;
  tables(): void;
  print(): void;
}

function controls(actions: Actions): HTMLElement {
  const themes: [Theme, string][] = [
    ['auto', say('auto')], ['light', say('light')], ['dark', say('dark')]];
  const langs: [Lang, string, string][] = [['en', 'EN', 'English'], ['zh', '中文', '简体中文']];
  return h('div', { class: 'controls' },
    h('div', { class: 'segments', role: 'group', 'aria-label': say('theme') },
      themes.map(([theme, label]) => button(label, () => actions.theme(theme), {
        'aria-pressed': String(state.theme === theme), 'data-theme-choice': theme,
      }))),
    h('div', { class: 'segments', role: 'group', 'aria-label': say('language') },
      langs.map(([lang, label, full]) => button(label, () => actions.lang(lang), {
        'aria-pressed': String(state.lang === lang), lang: lang === 'zh' ? 'zh-CN' : 'en',
        title: full, 'data-lang-choice': lang,
      }))),
    button(say('tables'), actions.tables, {
      class: 'plain', 'aria-pressed': String(state.tables), id: 'tables',
    }, icon('table'), h('span', null, say('tables'))),
    button(say('print'), actions.print, { class: 'plain' }, icon('print'), h('span', null, say('print'))));
}

export function header(actions: Actions): HTMLElement {
  const { run } = page.run.data;
  const [tone, words] = statusOf(run);
  const t0 = page.run.payload.t0_ms;
  const name = runName(run);
  const facts = [
    gpuWords(),
    seconds(run.duration_s ?? page.run.payload.duration_ms / 1000),
    progressWords(),
    typeof t0 === 'number' ? local(t0) : null,
    run.run_id && run.run_id !== name ? run.run_id : null,
  ];
  return h('header', { class: 'top' },
    h('div', { class: 'name' },
      h('h1', { title: name }, name),
      h('p', { class: 'facts' }, h('span', { class: `status ${tone}` }, words),
        facts.map((fact) => (fact ? h('span', null, fact) : null)))),
    controls(actions));
}
