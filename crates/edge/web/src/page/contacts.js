// @ts-check
// Contacts: what came, and what each one lacks.

import { lacks, spare } from './now.js';
import { lanes, margin } from './plot.js';
import {
  PAGE_ROWS, because, bytes, card, count, facts, h, link, seconds, span, state, table, time, wide,
} from './show.js';
import { whyCard } from './why.js';

const BINS = ['clean', '1 symbol', '2', '3 to 4', '5 to 8', '9 to 12', '13 to 16', 'lost'];

/** What is asked for by the fields above the table. */
const wanted = { station: '', mission: '', state: '', after: '' };

export const contacts = {
  lists: () => [['contacts', { limit: String(PAGE_ROWS), ...wanted }]],
  draw: (look, [page], _, again) => [
    h('section', { 'data-key': 'lanes' }, h('h2', {}, 'Contacts by input'),
      lanes(page.rows, look.at) || h('p', { class: 'none' }, 'No contact since the node started.')),
    h('section', { 'data-key': 'list' }, tools(again), list(look, page.rows), pages(page, again)),
  ],
};

function tools(again) {
  const field = (name, label) => {
    const change = (event) => {
      wanted[name] = event.target.value.trim();
      wanted.after = '';
      again();
    };
    return h('label', {}, `${label} `, h('input', { name, size: 12, onchange: change }));
  };
  return h('div', { class: 'tools', role: 'search' }, field('station', 'Station'),
    field('mission', 'Mission'), field('state', 'State'));
}

function pages(page, again) {
  const go = (after) => () => {
    wanted.after = after;
    again();
  };
  return h('p', { class: 'tools' },
    wanted.after ? h('button', { 'data-key': 'newest', onclick: go('') }, 'Newest') : null,
    page.next
      ? h('button', { 'data-key': `older-${page.next}`, onclick: go(page.next) }, 'Older') : null);
}

function list(look, rows) {
  const columns = [
    ['Contact', 'plain', (row) => link(row.id)],
    ['State', 'plain', (row) => state(row.state)],
    ['Mission', 'plain', (row) => row.mission || 'not known yet'],
    ['Input', 'plain', (row) => row.channel],
    ['Opened UTC', 'plain', (row) => time(row.opened, look.at)],
    ['Closed UTC', 'plain', (row) => time(row.closed, look.at)],
    ['Good frames', 'number', (row) => count(row.frames)],
    ['Lacks', 'plain', (row) => lacks(row)],
    ['Products', 'number', (row) => (row.products ? count(row.products.length) : '')],
    ['Last bit to product', 'number', (row) => span(row.last_bit_to_product_s)],
  ];
  return table('Newest first', columns, rows, 'No contact is like that.');
}

export const contact = {
  lists: (id) => [
    [`contacts/${encodeURIComponent(id)}`, {}],
    ['gaps', { contact: id, limit: '200' }],
  ],
  draw: (look, [row, gaps], id, again) => [
    h('p', { class: 'verdict ' + grave(row), role: 'status' }, sentence(row)),
    h('div', { class: 'cards' },
      card(`Contact ${id}`, about(look, row)),
      card('Reception', reception(row)),
      isUnderWay(row) ? whyCard({ contact: id }, look.at, again) : null,
      row.forecasts && row.forecasts.length > 0 ? wide('On its way', forecasts(row)) : null,
      row.margin && row.margin.minutes.length > 0 ? wide('Margin', margins(row.margin)) : null,
      row.products ? wide('Products', products(row.products)) : null,
      look.node.receives ? wide('Gaps', gapTable(gaps.rows)) : null),
    h('p', {}, h('a', { href: '#contacts' }, 'All contacts')),
  ],
};

/** Whether something of it is still on its way to this node, or from it. */
function isUnderWay(row) {
  return row.state === 'open' || (row.side === 'captured' && row.state === 'closed');
}

function isWhole(row) {
  return !row.missing && !row.unaccounted && !row.damaged_blocks && !row.set_aside;
}

function grave(row) {
  if (row.state === 'failed' || row.spare_s < 0) return 'alarm';
  return isWhole(row) ? 'ok' : 'warning';
}

function sentence(row) {
  const frames = `${count(row.frames)} good frames`;
  const bad = [
    row.missing && `${count(row.missing)} frames are missing`,
    row.unaccounted && `${count(row.unaccounted)} frames are unaccounted for`,
    row.set_aside && `${count(row.set_aside)} frames are set aside`,
    row.damaged_blocks && `${count(row.damaged_blocks)} blocks are damaged`,
  ].filter(Boolean);
  const lack = bad.length > 0 ? bad.join(', ') : 'nothing is missing';
  const number = row.products ? row.products.length : 0;
  const made = number > 0 ? `; ${number} ${number === 1 ? 'product' : 'products'} made` : '';
  const late = row.last_bit_to_product_s
    ? `, ${span(row.last_bit_to_product_s)} after the last bit` : '';
  const words = { open: 'Under way', closed: 'Closed', done: 'Done', sent: 'Sent',
    failed: 'Its products could not be made', refused: 'Refused' };
  return `${words[row.state] || row.state}: ${frames}, ${lack}${made}${late}.`;
}

function about(look, row) {
  const via = (row.via || []).map((hop) => `${hop.node} (${hop.flow})`).join(', ');
  const length = row.closed ? span(seconds(row.closed) - seconds(row.opened)) : null;
  return facts([
    ['Station', row.station],
    ['Input', row.channel],
    ['Mission', row.mission],
    ['Spacecraft', row.scid],
    ['State', state(row.state)],
    ['Opened UTC', row.opened ? time(row.opened, look.at) : null],
    ['Closed UTC', row.closed ? time(row.closed, look.at) : null],
    ['Length', length],
    ['Came through', via],
    ['Goes to', (row.to || []).join(', ')],
    ['SHA-256 of its frames', row.frames_sha256],
  ]);
}

function reception(row) {
  return facts([
    ['Good frames', count(row.frames)],
    ['Set aside', count(row.set_aside)],
    ['Missing', row.missing === undefined ? null : count(row.missing)],
    ['Unaccounted for', row.unaccounted === undefined ? null : count(row.unaccounted)],
    ['Symbols corrected', count(row.corrected_symbols)],
    ['Codewords corrected',
      row.corrected_codewords === undefined ? null : count(row.corrected_codewords)],
    ['Codewords lost',
      row.uncorrectable_codewords === undefined ? null : count(row.uncorrectable_codewords)],
    ['Blocks damaged', row.damaged_blocks ? count(row.damaged_blocks) : null],
    ['Captured', row.bytes_captured === undefined ? null : bytes(row.bytes_captured)],
    ['Not sent, because coded or compressed',
      row.bytes_saved === undefined ? null : bytes(row.bytes_saved)],
  ]);
}

function forecasts(row) {
  const columns = [
    ['To', 'plain', (one) => one.to],
    ['Left', 'number', (one) => bytes(one.unsent_bytes)],
    ['There in', 'plain', (one) => [span(one.done_s), spare(one.spare_s)]],
  ];
  const rows = row.forecasts.map((one) => ({ id: one.to, ...one }));
  return table('At the present rates', columns, rows, '');
}

function margins(of) {
  const columns = [
    ['Minute UTC', 'plain', (one) => new Date(one.unix_s * 1000).toISOString().slice(11, 16)],
    ...BINS.map((name, bin) => [name, 'number', (one) => count(one.codewords[bin])]),
  ];
  const rows = of.minutes.map((one) => ({ id: one.unix_s, ...one }));
  return [margin(of.minutes, BINS), h('details', {}, h('summary', {}, 'The figures as a table'),
    table('Codewords by symbols corrected', columns, rows, ''))];
}

function products(all) {
  const columns = [
    ['Product', 'text', (one) => one.path.split('/').pop()],
    ['Packets', 'number', (one) => count(one.packets)],
    ['Gaps', 'number', (one) => count(one.gaps)],
    ['SHA-256', 'text', (one) => h('code', {}, one.sha256)],
  ];
  const rows = all.map((one) => ({ id: one.path, ...one }));
  return table('Its products', columns, rows, 'No product is made yet.');
}

/** A table of gaps. */
export function gapTable(rows) {
  const columns = [
    ['Contact', 'plain', (row) => link(row.contact)],
    ['State', 'plain', (row) => because(row.state, row.why)],
    ['Of', 'plain', (row) => (row.apid === null ? 'frames' : `packets of ${row.apid}`)],
    ['Virtual channel', 'plain', (row) => row.vcids.join(', ')],
    ['First', 'number', (row) => count(row.first)],
    ['Missed', 'number', (row) => count(row.missed)],
    ['Missing now', 'number', (row) => (row.missing === null ? '' : count(row.missing))],
    ['Asked', 'number', (row) => count(row.asked)],
    ['After UTC', 'plain', (row) => time(row.from, row.to)],
  ];
  return table('Newest contact first', columns, rows, 'Nothing is missing.');
}
