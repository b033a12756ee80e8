// SPDX-License-Identifier: Apache-2.0
// Pictures of a page to look at: node test/shots.mjs PAGE.html FOLDER NAME [dark] [zh] [print] [WIDTH]
import { join } from 'node:path';
import { launch, open, readyMs } from './browser.mjs';

const [path, folder, name, ...flags] = process.argv.slice(2);
const width = Number(flags.find((flag) => /^\d+$/.test(flag)) ?? 1280);
const browser = await launch();
const { page, faults } = await open(browser, path, {
  dark: flags.includes('dark'), viewport: { width, height: 900 },
});
if (flags.includes('zh')) await page.click('[data-lang-choice=zh]');
if (flags.includes('print')) {
  await page.emulateMedia({ media: 'print' });
  await page.waitForTimeout(800);
}
if (flags.includes('print')) await page.pdf({ path: join(folder, `${name}.pdf`), format: 'A4' });
const height = await page.evaluate(() => document.documentElement.scrollHeight);
for (let y = 0; y < height && !flags.includes('print'); y += 600) {
  await page.mouse.wheel(0, 600);
  await page.waitForTimeout(40);
}
await page.evaluate(() => window.scrollTo(0, 0));
await page.waitForTimeout(200);
// In pieces: a picture taller than 16,384 pixels is cut by the browser.
await page.addStyleTag({ content: '' }).catch(() => {});
const piece = 2400;
let part = 0;
for (let y = 0; y < height; y += piece) {
  await page.setViewportSize({ width, height: piece });
  await page.evaluate((top) => window.scrollTo(0, top), y);
  await page.waitForTimeout(250);
  await page.screenshot({ path: join(folder, `${name}-${part++}.png`) });
}
console.log(`${name}: ${part} pictures, interactive after ${Math.round(await readyMs(page))} ms`, faults);
await browser.close();
