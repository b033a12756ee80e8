// SPDX-License-Identifier: Apache-2.0
// Drives pages in a headless browser and says what it found as JSON on stdout, one object a case:
// node test/run.mjs FOLDER [PAGE.html...]. FOLDER takes the pages that are made here. The exit status
// is 0 when the cases ran; whether they passed stands in "failures".
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS } from './make_payload.mjs';
import { launch, open, readyMs } from './browser.mjs';
import { ROOT, writePage } from './page.mjs';

const AXE = readFileSync(join(ROOT, 'node_modules/axe-core/axe.min.js'), 'utf8');

function need(failures, holds, words) {
  if (!holds) failures.push(words);
}

const rangeOf = (page, id) => page.$eval(`[id="${id}"]`, (figure) => [Number(figure.dataset.from), Number(figure.dataset.to)]);

// What must hold of every page, whatever it carries.
async function anyPage(browser, path, dark) {
  const failures = [];
  const { page, context, faults } = await open(browser, path, { dark });
  const ready = await readyMs(page);
  await scrollThrough(page);
  for (const fault of faults) failures.push(fault);
  need(failures, !(await page.$('#app img, #app script, #app iframe')), 'markup of the run became elements');
  need(failures, !(await page.$('main > .empty')), 'a part of the page broke');
  const broken = await page.$$eval('section > .empty', (all) => all.map((one) => one.textContent)
    .filter((text) => /can't be shown|无法显示/.test(text)));
  for (const text of broken) failures.push(text);
  await context.close();
  return { ready_ms: Math.round(ready), failures };
}

async function scrollThrough(page) {
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let y = 0; y < height; y += 700) {
    await page.evaluate((top) => window.scrollTo(0, top), y);
    await page.waitForTimeout(15);
  }
  await page.evaluate(() => window.scrollTo(0, 0));
}

// axe-core runs through the debugger, which the page's own policy does not bind.
async function accessible(browser, path, dark, lang) {
  const failures = [];
  const { page, context } = await open(browser, path, { dark });
  if (lang === 'zh') await page.click('[data-lang-choice=zh]');
  await scrollThrough(page);
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const result = await window.axe.run(document, { resultTypes: ['violations'] });
    return result.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) =>
      `axe ${v.id}: ${v.nodes.length} × ${v.nodes[0].html.slice(0, 160)} ${v.nodes[0].failureSummary ?? ''}`);
  });
  await context.close();
  return { failures: [...failures, ...found] };
}

async function language(browser, path) {
  const failures = [];
  const { page, context, faults } = await open(browser, path);
  need(failures, (await page.getAttribute('html', 'lang')) === 'en', 'the page does not begin in English');
  const english = await page.textContent('#verdict');
  await page.click('[data-lang-choice=zh]');
  need(failures, (await page.getAttribute('html', 'lang')) === 'zh-CN', 'html lang did not follow');
  const chinese = await page.textContent('#verdict');
  need(failures, chinese !== english && /[\u4e00-\u9fff]/.test(chinese), 'the verdict stayed English');
  const left = await page.$$eval('main h2', (all) => all.map((one) => one.textContent)
    .filter((text) => !/[\u4e00-\u9fff]/.test(text) && text !== 'GPU'));
  need(failures, left.length === 0, `headings without Chinese: ${left.join(' | ')}`);
  need(failures, await page.evaluate(() => document.activeElement?.getAttribute('data-lang-choice')) === 'zh',
    'the focus was lost');
  await page.click('[data-lang-choice=en]');
  need(failures, (await page.textContent('#verdict')) === english, 'English did not come back');
  await context.close();
  return { failures: [...failures, ...faults] };
}

async function brush(browser, path) {
  const failures = [];
  const { page, context, faults } = await open(browser, path);
  await page.locator('#overview .u-over').scrollIntoViewIfNeeded();
  const box = await page.locator('#overview .u-over').boundingBox();
  const before = await rangeOf(page, 'overview');
  await page.mouse.move(box.x + box.width * 0.25, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 22, { steps: 5 });
  await page.mouse.up();
  const width = before[1] - before[0];
  await scrollThrough(page);
  const ranges = await page.$$eval('figure[data-from]', (all) => all.filter((one) => one.id !== 'overview')
    .map((one) => [one.id, Number(one.dataset.from), Number(one.dataset.to)]));
  need(failures, ranges.length >= 3, 'fewer than three charts took a range');
  for (const [id, from, to] of ranges) {
    need(failures, Math.abs(from - before[0] - width * 0.25) < width * 0.03 &&
      Math.abs(to - before[0] - width * 0.5) < width * 0.03, `${id} shows ${from} to ${to}`);
  }
  await page.keyboard.press('Escape');
  await page.waitForTimeout(50);
  const after = await rangeOf(page, 'overview');
  need(failures, after[0] === before[0] && after[1] === before[1], 'Escape did not show the whole run');
  await context.close();
  return { failures: [...failures, ...faults] };
}

async function proof(browser, path) {
  const failures = [];
  const { page, context, faults } = await open(browser, path);
  const links = await page.$$('a.proof');
  need(failures, links.length > 0, 'no evidence to follow');
  for (const link of links.slice(0, 6)) {
    const series = await link.getAttribute('data-series');
    const href = await link.getAttribute('href');
    await link.click();
    await page.waitForTimeout(120);
    const id = href.slice(1);
    need(failures, id !== 'overview', `${series} has no chart of its own`);
    const [from, to] = await rangeOf(page, id);
    const whole = await page.evaluate(() => document.getElementById('reset').hidden);
    need(failures, to > from && !whole, `${series}: not zoomed (${from} to ${to})`);
    const seen = await page.$eval(`[id="${id}"]`, (figure) => {
      const box = figure.getBoundingClientRect();
      return box.bottom > 0 && box.top < innerHeight && figure.querySelector('canvas') !== null;
    });
    need(failures, seen, `${series}: its chart is not in sight`);
    await page.keyboard.press('Escape');
  }
  await context.close();
  return { failures: [...failures, ...faults] };
}

async function keyboard(browser, path) {
  const failures = [];
  const { page, context, faults } = await open(browser, path);
  await page.locator('figure.chart .plot').nth(1).focus();
  await page.keyboard.press('ArrowRight');
  const first = await page.textContent('#cursor');
  for (let i = 0; i < 5; i++) await page.keyboard.press('Shift+ArrowRight');
  const second = await page.textContent('#cursor');
  need(failures, first && second && first !== second, `the cursor did not move: ${first} / ${second}`);
  await page.waitForTimeout(300);
  const spoken = await page.textContent('#voice');
  need(failures, Boolean(spoken), 'nothing was said to a screen reader');
  await page.keyboard.press('+');
  need(failures, !(await page.$eval('#reset', (one) => one.hidden)), 'plus did not zoom');
  await page.keyboard.press('Escape');
  need(failures, await page.$eval('#reset', (one) => one.hidden), 'Escape did not reset');
  const label = await page.locator('figure.chart .plot').nth(1).getAttribute('aria-label');
  need(failures, /lowest .* mean .* highest/.test(label ?? ''), `no sentence of figures: ${label}`);
  // Every control can be reached and has a name.
  const nameless = await page.$$eval('button, a, input, select, [tabindex="0"]', (all) => all.filter((one) =>
    !(one.textContent.trim() || one.getAttribute('aria-label') || one.title)).map((one) => one.outerHTML.slice(0, 120)));
  need(failures, nameless.length === 0, `controls without a name: ${nameless.slice(0, 3).join(' ')}`);
  await context.close();
  return { failures: [...failures, ...faults] };
}

async function axes(browser, path) {
  const failures = [];
  const { page, context, faults } = await open(browser, path);
  for (const mode of ['step', 'epoch', 'time']) {
    const choice = page.locator(`[data-axis=${mode}]`);
    if (await choice.isDisabled()) continue;
    await choice.click();
    need(failures, (await choice.getAttribute('aria-pressed')) === 'true', `${mode} was not taken`);
    await scrollThrough(page);
  }
  await page.click('#tables');
  await scrollThrough(page);
  const tables = await page.$$eval('figure .numbers table', (all) => all.length);
  need(failures, tables >= 3, `only ${tables} charts gave a table`);
  await context.close();
  return { failures: [...failures, ...faults] };
}

async function paper(browser, path) {
  const failures = [];
  const { page, context, faults } = await open(browser, path, { dark: true });
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await page.waitForTimeout(600);
  const state = await page.evaluate(() => ({
    theme: document.documentElement.dataset.theme,
    empty: [...document.querySelectorAll('figure.chart')].filter((one) =>
      one.getClientRects().length && !one.querySelector('canvas')).length,
    wide: Math.max(...[...document.querySelectorAll('canvas')].map((one) => one.getBoundingClientRect().right)),
    width: document.documentElement.clientWidth,
  }));
  need(failures, state.theme === 'light', 'paper is dark');
  need(failures, state.empty === 0, `${state.empty} charts were not drawn for paper`);
  need(failures, state.wide <= state.width + 1, 'a chart is wider than the paper');
  const pdf = await page.pdf({ format: 'A4' });
  need(failures, pdf.length > 20000, 'the printed file is empty');
  await context.close();
  return { failures: [...failures, ...faults] };
}

async function logOf(browser, path) {
  const failures = [];
  const { page, context, faults } = await open(browser, path);
  await page.locator('#log').scrollIntoViewIfNeeded();
  await page.waitForTimeout(300);
  if (!(await page.$('.log'))) { await context.close(); return { failures, skipped: true }; }
  await page.selectOption('.logbar select', 'error');
  const errors = await page.$$eval('.log .line:not([hidden])', (all) => all.length);
  const all = await page.$$eval('.log .line', (lines) => lines.length);
  need(failures, all > 0, 'no lines');
  need(failures, errors < all, 'the level does not filter');
  await page.selectOption('.logbar select', 'all');
  await page.fill('.logbar input', 'zzz no such line');
  need(failures, (await page.$$eval('.log .line:not([hidden])', (l) => l.length)) === 0, 'the search does not filter');
  await page.fill('.logbar input', '');
  await page.locator('.log .line').nth(5).click();
  need(failures, Boolean(await page.textContent('#cursor')), 'a click on a line moved no cursor');
  await context.close();
  return { failures: [...failures, ...faults] };
}

// Without a wall clock and a known framework: evidence still zooms, and no framework is pretended.
async function unknown(browser, folder) {
  const failures = [];
  const made = KINDS.big();
  made.t0_ms = null;
  const { data } = made.report;
  data.run.framework = null;
  for (const one of data.findings.flatMap((found) => found.evidence)) Object.assign(one, { begin: null, end: null });
  const path = join(folder, 'unknown.html');
  writePage(path, made);
  const { page, context, faults } = await open(browser, path);
  await page.locator('a.proof').first().click();
  need(failures, !(await page.$eval('#reset', (one) => one.hidden)), 'evidence without a clock did not zoom');
  const chosen = await page.$$eval('[role=tab][aria-selected=true]', (all) => all.map((one) => one.textContent));
  need(failures, chosen.length === 0, `a framework was chosen: ${chosen.join()}`);
  const tab = page.locator('[role=tab]').first();
  await tab.click();
  need(failures, (await tab.getAttribute('aria-selected')) === 'true', 'a tab could not be chosen');
  await context.close();
  return { failures: [...failures, ...faults] };
}

const CASES = { language, brush, proof, keyboard, axes, paper, log: logOf };

async function main() {
  const [folder, ...pages] = process.argv.slice(2);
  const browser = await launch();
  const say = (name, result) => console.log(JSON.stringify({ case: name, ...result }));
  const attempt = async (name, job) => {
    try {
      say(name, await job());
    } catch (error) {
      say(name, { failures: [String(error?.stack ?? error).slice(0, 600)] });
    }
  };
  const made = Object.entries(KINDS).map(([kind, make]) => {
    const path = join(folder, `${kind}.html`);
    writePage(path, make());
    return [kind, path];
  });
  // How soon a page can be used: the best of three, for other work on the machine is not its fault.
  const soonest = async (path) => {
    const first = await anyPage(browser, path, false);
    for (let again = 0; again < 2 && first.ready_ms > 1500; again++) {
      const next = await anyPage(browser, path, false);
      first.ready_ms = Math.min(first.ready_ms, next.ready_ms);
    }
    return first;
  };
  const all = [...made, ...pages.map((path) => [path.replace(/^.*\//, '').replace(/\.html$/, ''), path])];
  for (const [name, path] of all) await attempt(`page ${name}`, () => soonest(path));
  const [, bigPage] = made.find(([kind]) => kind === 'big');
  for (const [name, job] of Object.entries(CASES)) await attempt(name, () => job(browser, bigPage));
  await attempt('unknown', () => unknown(browser, folder));
  for (const [kind, path] of made.filter(([kind]) => ['big', 'hostile', 'fine', 'empty'].includes(kind))) {
    for (const dark of [false, true]) {
      await attempt(`axe ${kind} ${dark ? 'dark' : 'light'}`, () => accessible(browser, path, dark, dark ? 'zh' : 'en'));
    }
  }
  await browser.close();
}

await main();
