// SPDX-License-Identifier: Apache-2.0
// A headless Chromium that lets nothing out: every request but the page's own file is noted and ended.
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const PLACES = [process.env.EPOCHMETER_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome'];

export function chromiumPath() {
  return PLACES.find((path) => path && existsSync(path));
}

export async function launch() {
  return chromium.launch({
    executablePath: chromiumPath(), headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'],
  });
}

// Opens a page of a file; `faults` collects what must not happen.
export async function open(browser, path, options = {}) {
  const context = await browser.newContext({
    viewport: options.viewport ?? { width: 1280, height: 900 },
    colorScheme: options.dark ? 'dark' : 'light',
    reducedMotion: options.motion ? 'no-preference' : 'reduce',
    timezoneId: 'UTC', locale: 'en-GB',
  });
  const page = await context.newPage();
  const faults = [];
  const address = pathToFileURL(path).href;
  await page.route('**/*', (route) => {
    if (route.request().url().split('#')[0] === address) return route.continue();
    faults.push(`request: ${route.request().url().slice(0, 200)}`);
    return route.abort();
  });
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`));
  await page.goto(address);
  await page.waitForFunction(() => document.documentElement.dataset.ready, null, { timeout: 30000 });
  if (await page.evaluate(() => document.documentElement.dataset.ready) !== 'yes') {
    faults.push('the page says that it is broken');
  }
  return { page, context, faults };
}

// When the first charts stood and every control worked, after the page was asked for.
export const readyMs = (page) =>
  page.evaluate(() => performance.getEntriesByName('epochmeter-interactive')[0]?.startTime ?? NaN);
