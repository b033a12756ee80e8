// SPDX-License-Identifier: Apache-2.0
// Puts a payload into the built template as the program does, or takes one out of a page.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const MARK = '<!--EPOCHMETER_PAYLOAD-->';

export function pageOf(payload) {
  const packed = gzipSync(Buffer.from(JSON.stringify(payload))).toString('base64');
  const template = readFileSync(join(ROOT, 'dist/report.html'), 'utf8');
  return template.replace(MARK, () =>
    `<script id="epm-payload" type="application/octet-stream">${packed}</script>`);
}

export function payloadOf(path) {
  const text = readFileSync(path, 'utf8');
  if (path.endsWith('.json')) return JSON.parse(text);
  const found = /<script id="epm-payload"[^>]*>([^<]*)<\/script>/.exec(text);
  if (!found) throw new Error(`${path} holds no payload`);
  return JSON.parse(gunzipSync(Buffer.from(found[1], 'base64')).toString('utf8'));
}

export function writePage(path, payload) {
  const page = pageOf(payload);
  writeFileSync(path, page);
  return Buffer.byteLength(page);
}
