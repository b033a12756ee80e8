// SPDX-License-Identifier: Apache-2.0
// Elements made one by one: whatever a run carries becomes text, never markup.

export type Child = Node | string | number | null | undefined | false | Child[];
type Props = Record<string, unknown>;

function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function setProp(element: Element, name: string, value: unknown): void {
  if (value === null || value === undefined || value === false) return;
  if (name === 'style') Object.assign((element as HTMLElement).style, value);
  else if (typeof value === 'function') {
    element.addEventListener(name.slice(2), value as EventListener);
  } else element.setAttribute(name, value === true ? '' : String(value));
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props?: Props | null, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const name in props ?? {}) setProp(element, name, (props as Props)[name]);
  append(element, children);
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg(tag: string, props: Props, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const name in props) setProp(element, name, props[name]);
  append(element, children);
  return element;
}

// Line icons on a 16 x 16 grid.
const ICONS: Record<string, string> = {
  critical: 'M5 1.5h6L14.5 5v6L11 14.5H5L1.5 11V5zM5.5 5.5l5 5m0-5l-5 5',
  warning: 'M8 1.8L15 14H1zM8 6v4m0 1.6v.8',
  info: 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13M8 7.2v4m0-6.7v.8',
  good: 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13M4.8 8.3l2.2 2.2l4.3-4.6',
  print: 'M4 6V1.8h8V6M4 11.5H1.8V6h12.4v5.5H12M4 9.2h8v5H4z',
  table: 'M1.8 2.8h12.4v10.4H1.8zM1.8 6.2h12.4M6 2.8v10.4M1.8 9.7h12.4',
  copy: 'M5.5 5.5V1.8h8.7v8.7h-3.7M1.8 5.5h8.7v8.7H1.8z',
  left: 'M10.5 3L5 8l5.5 5',
  right: 'M5.5 3L11 8l-5.5 5',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  reset: 'M2 8h12M5 4.5L1.5 8L5 11.5M11 4.5L14.5 8L11 11.5',
};

export function icon(name: string): SVGElement {
  return svg('svg', { class: `icon ${name}`, viewBox: '0 0 16 16', 'aria-hidden': 'true' },
    svg('path', { d: ICONS[name] ?? '' }));
}

export function button(label: string, onclick: () => void, props: Props = {}, ...inner: Child[]) {
  const text = inner.length ? inner : [label];
  const title = inner.length ? { title: label, 'aria-label': label } : {};
  return h('button', { type: 'button', onclick, ...title, ...props }, ...text);
}

export interface Cell {
  text: string;
  number?: boolean;
  title?: string;
  node?: Node;
}

// A table with a caption for screen readers; numbers stand right.
export function table(caption: string, heads: Child[], rows: (Cell | string)[][], className = '') {
  const wide = rows.map((row) => row.map((c) => (typeof c === 'string' ? { text: c } : c) as Cell));
  const right = (column: number): boolean => wide.some((row) => row[column]?.number === true);
  return h('div', { class: `scroll ${className}`, tabindex: '0', role: 'region', 'aria-label': caption },
    h('table', null,
      h('caption', { class: 'sr' }, caption),
      h('thead', null, h('tr', null, heads.map((head, i) =>
        h('th', { scope: 'col', class: right(i) ? 'num' : null }, head)))),
      h('tbody', null, wide.map((row) => h('tr', null, row.map((cell, i) =>
        h(i === 0 ? 'th' : 'td', {
          scope: i === 0 ? 'row' : null,
          class: cell.number ? 'num' : null,
          title: cell.title,
        }, cell.node ?? cell.text)))))));
}
