// @ts-check
// Queues, products, deliveries, gaps, alarms.

import { gapTable } from './contacts.js';
import { RANGES, over, ranges } from './history.js';
import { alarmTable } from './now.js';
import { timed } from './plot.js';
import { mayOrder, session } from './session.js';
import {
  PAGE_ROWS, because, bytes, card, count, facts, h, link, span, state, table, time, verdict,
} from './show.js';

/** The range of the queues. */
const queued = { range: RANGES[0] };

export const queues = {
  lists: () => [['queues', { limit: '1000' }]],
  draw: (look, [page], _, again) => [
    h('section', { 'data-key': 'list' }, h('h2', {}, 'What waits'), queueTable(page.rows)),
    ranges(RANGES, queued, again),
    depths(look, page.rows).map(([title, series]) =>
      h('section', { 'data-key': `plot-${title}` }, h('h2', {}, title),
        timed(title, queued.range, series, bytes))),
  ],
};

/** What is drawn of the queues over time: titles, and the series of each. */
function depths(look, rows) {
  const of = (series) => over(series, queued.range);
  const destinations = rows.filter((row) => row.kind === 'destination').slice(0, 3);
  return [
    look.node.sends && ['Bytes in the spool', [
      { name: 'wait', rows: of('spool/all/waiting_bytes') },
      { name: 'on disk', rows: of('spool/all/disk_bytes') },
    ]],
    destinations.length > 1 && ['Bytes that wait for each destination', destinations.map((row) =>
      ({ name: row.name, rows: of(`destination/${row.name}/waiting_bytes`) }))],
    look.node.receives && ['Bytes in the store', [
      { name: 'on disk', rows: of('store/all/disk_bytes') },
    ]],
  ].filter(Boolean);
}

function queueTable(rows) {
  const columns = [
    ['Queue', 'text', (row) => queueName(row)],
    ['Kind', 'plain', (row) => row.kind],
    ['State', 'plain', (row) => because(row.state, row.why)],
    ['Waits', 'number', (row) => (row.waiting === undefined ? '' : count(row.waiting))],
    ['Bytes', 'number', (row) => (row.waiting_bytes === undefined ? '' : bytes(row.waiting_bytes))],
    ['On disk', 'number', (row) => (row.disk_bytes === undefined ? '' : bytes(row.disk_bytes))],
    ['Clear in', 'number', (row) => clear(row)],
    ['Done', 'number', (row) => (row.done === undefined ? '' : count(row.done))],
    ['Lost', 'number', (row) => (row.lost ? count(row.lost) : '')],
  ];
  return table('Blocks, files or frames since the node started', columns, rows, 'No queues.');
}

/** The name of a queue; that of a stream leads to its screen. */
function queueName(row) {
  const text = row.to ? `${row.name} to ${row.to}` : row.name;
  return row.kind === 'stream'
    ? h('a', { href: `#stream/${encodeURIComponent(row.id)}` }, text) : text;
}

function clear(row) {
  if (row.clear_s === undefined) return '';
  return row.waiting_bytes ? span(row.clear_s) : 'clear';
}

/** What is asked for by the fields above the tables. */
const wanted = { products: {}, deliveries: {}, gaps: {}, alarms: {} };

/** What is called the first page of a list, and the next: most begin with the newest row. */
const PAGES = { alarms: ['Worst', 'More'] };

function tools(list, names, again) {
  const field = (name) => {
    const change = (event) => {
      wanted[list][name] = event.target.value.trim();
      wanted[list].after = '';
      again();
    };
    const label = name[0].toUpperCase() + name.slice(1);
    return h('label', {}, `${label} `, h('input', { name, size: 14, onchange: change }));
  };
  return h('div', { class: 'tools', role: 'search' }, names.map(field));
}

function pages(list, page, again) {
  const [first, next] = PAGES[list] || ['Newest', 'Older'];
  const go = (after) => () => {
    wanted[list].after = after;
    again();
  };
  return h('p', { class: 'tools' },
    wanted[list].after ? h('button', { 'data-key': 'newest', onclick: go('') }, first) : null,
    page.next
      ? h('button', { 'data-key': `older-${page.next}`, onclick: go(page.next) }, next) : null);
}

export const products = {
  lists: () => [['products', { limit: String(PAGE_ROWS), ...wanted.products }]],
  draw: (look, [page], _, again) => h('section', {}, h('h2', {}, 'Products'),
    tools('products', ['mission', 'station', 'contact', 'state'], again),
    productTable(look, page.rows), pages('products', page, again)),
};

function productTable(look, rows) {
  const columns = [
    ['Product', 'text', (row) => row.name || row.product || 'not made yet'],
    ['State', 'plain', (row) => state(row.state)],
    ['Mission', 'plain', (row) => row.mission],
    ['Contact', 'plain', (row) => (row.contact ? link(row.contact) : `${row.contacts} contacts`)],
    ['From UTC', 'plain', (row) => time(row.from, look.at)],
    ['To UTC', 'plain', (row) => time(row.to, look.at)],
    ['Packets', 'number', (row) => count(row.packets)],
    ['Gaps', 'number', (row) => (row.gaps > 0 ? state(count(row.gaps), 'warning') : '0')],
    ['Version', 'number', (row) => row.version || ''],
    ['Deliveries', 'plain', (row) => h('a', { href: '#deliveries' }, row.path ? 'show' : '')],
    ['SHA-256', 'plain', (row) => h('code', { title: row.sha256 }, row.sha256.slice(0, 12))],
  ];
  return table('Newest first; of the last 1,000 contacts', columns, rows,
    'No product is like that.');
}

export const deliveries = {
  lists: () => [['deliveries', { limit: String(PAGE_ROWS), ...wanted.deliveries }]],
  draw: (look, [page], _, again) => h('section', {}, h('h2', {}, 'Deliveries'),
    tools('deliveries', ['destination', 'subscription', 'state', 'product'], again),
    deliveryTable(look, page.rows), pages('deliveries', page, again)),
};

function deliveryTable(look, rows) {
  const columns = [
    ['Number', 'number', (row) => h('a', { href: `#delivery/${row.id}` }, row.id)],
    ['To', 'plain', (row) => row.destination],
    ['State', 'plain', (row) => [row.is_late ? [state('late', 'alarm'), ' '] : '',
      because(row.state, row.reason)]],
    ['Product', 'text', (row) => `${row.name} (${row.product}, version ${row.version})`],
    ['Since UTC', 'plain', (row) => time(row.since, look.at)],
    ['Due UTC', 'plain', (row) => time(row.deadline, look.at)],
    ['Attempts', 'number', (row) => count(row.attempts)],
    ['Next UTC', 'plain', (row) => time(row.next, look.at)],
    ['Proof', 'plain', (row) => row.proof || ''],
  ];
  return table('Newest first; of the newest 1,000', columns, rows, 'No delivery is like that.');
}

export const gaps = {
  lists: () => [['gaps', { limit: String(PAGE_ROWS), ...wanted.gaps }]],
  draw: (look, [page], _, again) => [
    look.gaps ? h('section', { 'data-key': 'sum' }, h('h2', {}, 'Gaps'), counts(look.gaps)) : null,
    h('section', { 'data-key': 'list' },
      tools('gaps', ['station', 'mission', 'contact', 'state'], again),
      gapTable(page.rows), pages('gaps', page, again)),
  ],
};

function counts(of) {
  return facts([
    ['Frames missing now', count(of.missing_frames)],
    ['Open: the station is to be asked', count(of.open)],
    ['Requested: the station searches', count(of.requested)],
    ['Filled', count(of.filled)],
    ['Unrecoverable', of.unrecoverable > 0
      ? state(count(of.unrecoverable), 'warning') : '0'],
    ['Not followed', of.overflow + of.unfollowed > 0
      ? state(count(of.overflow + of.unfollowed), 'warning') : null],
  ]);
}

export const alarms = {
  lists: () => [['alarms', { limit: String(PAGE_ROWS), ...wanted.alarms }]],
  draw: (look, [page], _, again) => [
    verdict(look.verdict),
    card('Alarms', alarmTable(look, page.rows, 'No alarm stands.'), pages('alarms', page, again),
      mayOrder() ? null : h('p', { class: 'faint' },
        session.login ? 'Operators who log in acknowledge alarms here; others with '
          : 'Say who works on one with ',
        h('code', {}, 'skyhaul alarms ack KIND SUBJECT --by NAME'), '.')),
  ],
};
