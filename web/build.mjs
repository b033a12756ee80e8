// SPDX-License-Identifier: Apache-2.0
// Makes dist/report.html: one file with its script and styles inline, and the place for the payload.
// node build.mjs [--check]   --check compares with what is there instead of writing.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const MARK = '<!--EPOCHMETER_PAYLOAD-->';

async function bundle() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: ['src/main.ts'],
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2020',
    charset: 'utf8',
    legalComments: 'none',
    write: false,
  });
  return result.outputFiles[0].text.trim();
}

async function styles() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: ['src/style.css'],
    bundle: true,
    minify: true,
    charset: 'utf8',
    write: false,
  });
  return result.outputFiles[0].text.trim();
}

// The licence of what is bundled goes with it, as its authors ask.
function notice() {
  const text = readFileSync(join(here, 'node_modules/uplot/LICENSE'), 'utf8').trim();
  return `uPlot 1.6.32, https://github.com/leeoniya/uPlot\n${text}`;
}

const hash = (text) => `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;

function fill(template, parts) {
  return Object.entries(parts).reduce((page, [name, text]) => {
    if (page.split(name).length !== 2) throw new Error(`${name} must stand once in template.html`);
    return page.replace(name, () => text);
  }, template);
}

export async function makePage() {
  const script = await bundle();
  const style = await styles();
  if (/<\/script|<!--/i.test(script)) throw new Error('the script would end its own element');
  if (/<\/style/i.test(style)) throw new Error('the style would end its own element');
  const page = fill(readFileSync(join(here, 'src/template.html'), 'utf8'), {
    '%SCRIPT_HASH%': hash(script),
    '%STYLE_HASH%': hash(style),
    '%NOTICE%': notice(),
    '%STYLE%': style,
    '%SCRIPT%': script,
  });
  if (page.split(MARK).length !== 2) throw new Error(`${MARK} must stand once in the page`);
  return page;
}

async function main() {
  const target = join(here, 'dist/report.html');
  const page = await makePage();
  if (process.argv.includes('--check')) {
    if (readFileSync(target, 'utf8') === page) return;
    console.error('web/dist/report.html is not what web/src makes: cd web && npm ci && npm run build');
    process.exit(1);
  }
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, page);
  console.log(`web/dist/report.html: ${Buffer.byteLength(page)} bytes`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
