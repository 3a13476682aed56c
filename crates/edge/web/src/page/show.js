// @ts-check
// Elements, quantities and states: how the page shows a value.

const SVG = 'http://www.w3.org/2000/svg';

/** An element of the page. */
export function h(tag, attributes = {}, ...children) {
  return made(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
export function s(tag, attributes = {}, ...children) {
  return made(document.createElementNS(SVG, tag), attributes, children);
}

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === '') continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Makes `old` like `fresh`, and keeps elements, so that focus and selection stay. */
export function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  // What somebody opened stays open, what somebody types stays.
  const kept = old.nodeName === 'DETAILS' ? ['open'] : [];
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !kept.includes(name)) old.setAttribute(name, value);
  }
  if (['INPUT', 'SELECT', 'BUTTON'].includes(old.nodeName)) return;
  morphChildren(old, fresh);
}

function keyOf(node) {
  return node && node.nodeType === Node.ELEMENT_NODE ? node.getAttribute('data-key') : null;
}

function morphChildren(old, fresh) {
  const keys = new Map();
  for (const child of old.children) {
    if (keyOf(child)) keys.set(keyOf(child), child);
  }
  let place = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const key = keyOf(child);
    const unnamed = keyOf(place) ? null : place;
    const known = key ? keys.get(key) : unnamed;
    if (!known) {
      old.insertBefore(child, place);
      continue;
    }
    if (known !== place) old.insertBefore(known, place);
    const next = known.nextSibling;
    morph(known, child);
    place = next;
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

/** `1234567` as `1,234,567`. */
export function count(value) {
  return value === null || value === undefined ? '–' : Math.round(value).toLocaleString('en');
}

/** Bytes in their largest unit. */
export function bytes(value) {
  return scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']);
}

/** A rate in bit/s. */
export function rate(value) {
  return scaled(value, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']);
}

function scaled(value, units) {
  if (value === null || value === undefined) return '–';
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** A span of seconds. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const sign = seconds < 0 ? '−' : '';
  const size = Math.abs(seconds);
  if (size === 0) return '0 s';
  if (size < 0.0995) return `${sign}${(size * 1000).toFixed(size < 0.00995 ? 2 : 1)} ms`;
  if (size < 0.9995) return `${sign}${(size * 1000).toFixed(0)} ms`;
  if (size < 99.5) return `${sign}${size.toFixed(size < 10 ? 1 : 0)} s`;
  if (size < 5970) return `${sign}${(size / 60).toFixed(0)} min`;
  if (size < 172800) return `${sign}${(size / 3600).toFixed(1)} h`;
  return `${sign}${(size / 86400).toFixed(0)} d`;
}

/** A share as percent. */
export function percent(share) {
  if (share === null || share === undefined) return '–';
  return `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 2 : 1)} %`;
}

/** The time of day in UTC; with the date where that is another one than `now`. */
export function time(text, now) {
  if (!text) return '–';
  const utc = text.replace(/\.\d+/, '');
  const day = utc.slice(0, 10);
  const shown = now && day !== now.slice(0, 10) ? `${day} ${utc.slice(11, 19)}` : utc.slice(11, 19);
  const local = new Date(utc);
  const title = Number.isNaN(local.getTime()) ? utc : `${utc}, here ${local.toLocaleString()}`;
  return h('time', { datetime: utc, title }, shown);
}

/** Seconds since 1970 of a time. */
export function seconds(text) {
  return text ? Date.parse(text.replace(/(\.\d{3})\d+/, '$1')) / 1000 : NaN;
}

const SHAPES = { ok: '●', warning: '▲', alarm: '■', idle: '○' };
const LEVELS = {
  ok: ['lock', 'open', 'active', 'ok', 'done', 'sent', 'made', 'accepted', 'filled', 'sealed',
    'streaming', 'recorded', 'placed', 'copying', 'busy'],
  warning: ['search', 'connecting', 'probing', 'requested', 'silent', 'held', 'absent', 'sending'],
  alarm: ['failed', 'down', 'refused', 'full', 'black-hole', 'unrecoverable', 'unanswered',
    'alarm', 'stale'],
};

/** How grave a state is. */
export function level(state) {
  const found = Object.entries(LEVELS).find(([, states]) => states.includes(state));
  return found ? found[0] : 'idle';
}

/** A state, as a word with a shape and a colour. */
export function state(word, grave = level(word)) {
  return h('span', { class: `state ${grave}` }, `${SHAPES[grave]} ${word || '–'}`);
}

/** A link to a contact. */
export function link(id) {
  return h('a', { href: `#contact/${encodeURIComponent(id)}` }, id);
}

/** A state with the reason for it. */
export function because(word, reason) {
  return [state(word), reason ? h('span', { class: 'why' }, reason) : ''];
}

/** The verdict on the node. */
export function verdict({ level: grave, text }) {
  const shape = h('span', { 'aria-hidden': 'true' }, SHAPES[grave]);
  return h('p', { class: `verdict ${grave}`, role: 'status' }, shape, h('span', {}, text));
}

/** A card with a heading. */
export function card(title, ...content) {
  const id = `card-${title.toLowerCase().replace(/\W+/g, '-')}`;
  return h('section', { 'aria-labelledby': id, 'data-key': id }, h('h2', { id }, title), content);
}

/** The same over the whole width. */
export function wide(title, ...content) {
  const made = card(title, ...content);
  made.classList.add('wide');
  return made;
}

/** Rows of a table that are in the page at a time: more would hold up each look. */
export const PAGE_ROWS = 50;
/** Where a list of more rows is, by its caption. */
const turned = new Map();
/** What tells that somebody has turned to other rows. */
export const TURNED = 'turned';

/** Of many rows those that are shown, `size` at a time, and what turns to the others. */
export function turn(caption, rows, size = PAGE_ROWS) {
  const last = Math.max(0, Math.floor((rows.length - 1) / size) * size);
  const from = Math.min(turned.get(caption) || 0, last);
  const shown = rows.slice(from, from + size);
  if (last === 0) return { shown, turns: null };
  const go = (to, text) => {
    const press = () => {
      turned.set(caption, to);
      dispatchEvent(new Event(TURNED));
    };
    return h('button', { type: 'button', 'data-key': `turn-${to}-${text}`, onclick: press }, text);
  };
  const place = `${count(from + 1)} to ${count(from + shown.length)} of ${count(rows.length)}`;
  return { shown, turns: h('p', { class: 'tools', 'data-key': `turns-${caption}` },
    from > 0 ? go(from - size, 'Before') : null, h('span', { class: 'faint' }, place),
    from < last ? go(from + size, 'After') : null) };
}

/** A table. A column is `[head, class, cell of a row]`; a row has an `id`. */
export function table(caption, columns, rows, nothing) {
  if (rows.length === 0) return h('p', { class: 'none' }, nothing);
  const { shown: some, turns } = turn(caption, rows);
  const head = columns.map(([name, kind]) => h('th', { scope: 'col', class: kind }, name));
  const line = (row) => {
    const cells = columns.map(([, kind, cell]) => h('td', { class: kind }, cell(row)));
    return h('tr', { 'data-key': row.id }, cells);
  };
  const shown = h('table', {}, h('caption', {}, caption), h('thead', {}, h('tr', {}, head)),
    h('tbody', {}, some.map(line)));
  return [h('div', { class: 'scroll', role: 'region', 'aria-label': caption, tabindex: '0' },
    shown), turns];
}

/** Facts as names and values. */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return h('dl', {}, shown.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
}

/** A part of a whole as a bar. */
export function bar(part, label) {
  const width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  return s('svg', { class: 'bar', role: 'img', 'aria-label': label },
    s('rect', { width: '100%', height: '100%' }),
    s('rect', { class: 'part', width, height: '100%' }));
}
