// @ts-check
// Nodes: what others that this one has sessions with report of themselves.

import {
  PAGE_ROWS, bytes, card, count, facts, h, seconds, span, state, table, time,
} from './show.js';

/** What is asked for. */
const wanted = { limit: String(PAGE_ROWS), state: '', after: '' };
const STATES = ['', 'alarm', 'stale', 'unheard', 'ok'];

export const nodes = {
  lists: () => [['nodes', wanted]],
  draw: (look, [page], _, again) => h('section', {}, h('h2', {}, 'Nodes'),
    tools(again), nodeTable(look, page), pages(page, again)),
};

export const node = {
  lists: (name) => [[`nodes/${encodeURIComponent(name)}`, {}]],
  draw: (look, [row], name) => [
    h('p', { class: `verdict ${grave(row)}`, role: 'status' }, sentence(look, row)),
    h('div', { class: 'cards' },
      card(`Node ${name}`, about(look, row)),
      row.report ? card('What it has', has(row.report)) : null,
      row.report ? card('Its worst alarms', alarms(row.report)) : null),
    h('p', {}, h('a', { href: '#nodes' }, 'All nodes')),
  ],
};

/** Nodes that want to be looked at, by the look. */
export function strange(look) {
  return look.nodes ? look.nodes.alarm + look.nodes.stale : 0;
}

function tools(again) {
  const change = (event) => {
    wanted.state = event.target.value;
    wanted.after = '';
    again();
  };
  const options = STATES.map((one) => h('option', { value: one }, one || 'all'));
  return h('div', { class: 'tools', role: 'search' },
    h('label', {}, 'State ', h('select', { name: 'state', onchange: change }, options)));
}

function pages(page, again) {
  const go = (after) => () => {
    wanted.after = after;
    again();
  };
  return h('p', { class: 'tools' },
    wanted.after ? h('button', { 'data-key': 'worst', onclick: go('') }, 'Worst') : null,
    page.next
      ? h('button', { 'data-key': `more-${page.next}`, onclick: go(page.next) }, 'More') : null);
}

function nodeTable(look, page) {
  const columns = [
    ['Node', 'plain', (row) => h('a', { href: `#node/${encodeURIComponent(row.name)}` }, row.name)],
    ['State', 'plain', (row) => [state(row.state, grave(row)), since(look, row)]],
    ['Alarms', 'plain', (row) => of(row, (report) => counts(report.alarms))],
    ['The worst', 'text', (row) => of(row, ({ worst }) => (worst[0] ? worst[0].sentence : ''))],
    ['Role', 'plain', (row) => of(row, role)],
    ['Contacts', 'number', (row) => of(row, (report) => count(report.contacts))],
    ['Waits', 'number', (row) => of(row, ({ spool }) => (spool ? bytes(spool.bytes) : ''))],
    ['Oldest', 'number', (row) => of(row, ({ spool }) => oldest(spool))],
    ['On disk', 'number', (row) => of(row, (report) => bytes(disk(report)))],
    ['Deliveries', 'plain', (row) => of(row, ({ deliveries }) => delivered(deliveries))],
    ['Version', 'plain', (row) => of(row, (report) => report.version)],
    ['Started UTC', 'plain', (row) => time(row.started, look.at)],
    ['Report', 'number', (row) => (row.age_s === null ? 'none' : span(age(look, row)))],
  ];
  return table('The worst first, as they report themselves', columns, page.rows,
    wanted.state ? 'No node is like that.'
      : 'No other node: this one has no destination, and nobody has sent contacts here.');
}

/** A cell of what a node has reported. */
function of(row, cell) {
  return row.report ? cell(row.report) : '';
}

function age(look, row) {
  return Math.max(0, seconds(look.at) - seconds(row.heard));
}

function since(look, row) {
  return row.state === 'stale' ? [' since ', time(row.heard, look.at)] : '';
}

function grave(row) {
  if (row.report && row.report.alarms.critical > 0) return 'alarm';
  if (row.state === 'stale') return 'alarm';
  if (row.state === 'alarm') return row.report.alarms.major > 0 ? 'alarm' : 'warning';
  return row.state === 'unheard' ? 'warning' : 'ok';
}

function counts(of) {
  const some = ['critical', 'major', 'minor'].filter((severity) => of[severity] > 0);
  return some.map((severity) => `${count(of[severity])} ${severity}`).join(', ') || 'none';
}

function role({ sends, receives }) {
  if (sends && receives) return 'relay';
  return receives ? 'centre' : 'station';
}

function oldest(spool) {
  return spool && spool.blocks > 0 ? span(spool.oldest_s) : '';
}

function disk({ spool, store }) {
  return (spool ? spool.disk_bytes : 0) + (store ? store.disk_bytes : 0);
}

function delivered(of) {
  if (!of) return '';
  const parts = [`${count(of.waiting)} waiting`];
  if (of.late > 0) parts.push(`${count(of.late)} late`);
  if (of.failed > 0) parts.push(`${count(of.failed)} failed`);
  return of.failed + of.late > 0 ? state(parts.join(', '), 'warning') : parts.join(', ');
}

function sentence(look, row) {
  if (row.state === 'unheard') {
    return 'It has not reported since this node started.';
  }
  const stale = row.state === 'stale' ? ['Stale since ', time(row.heard, look.at), ' UTC: ',
    row.connected ? 'no report came since. It said: ' : 'there is no session. It said: '] : '';
  const [first] = row.report.worst;
  return [stale, first ? `${first.sentence}.` : 'All is well.'];
}

function about(look, row) {
  const { report } = row;
  return facts([
    ['State', state(row.state, grave(row))],
    ['Session', row.connected ? 'open' : 'none'],
    ['Version', report && report.version],
    ['Role', report && role(report)],
    ['Started UTC', row.started ? time(row.started, look.at) : null],
    ['Last report UTC', row.heard ? time(row.heard, look.at) : null],
    ['The next one within', report ? span(report.every_s) : null],
    ['Reports not taken', row.wrong_reports > 0
      ? state(count(row.wrong_reports), 'warning') : null],
  ]);
}

function has({ contacts, under_way: underWay, spool, store, deliveries }) {
  return facts([
    ['Contacts under way', count(contacts)],
    ['Of them', underWay.join(', ')],
    ['Spool', spool ? state(spool.state) : null],
    ['Blocks that wait', spool ? `${count(spool.blocks)} (${bytes(spool.bytes)})` : null],
    ['The oldest waits for', oldest(spool)],
    ['Spool on disk', spool ? bytes(spool.disk_bytes) : null],
    ['Store', store ? state(store.state) : null],
    ['Store on disk', store ? bytes(store.disk_bytes) : null],
    ['Deliveries', delivered(deliveries)],
  ]);
}

function alarms({ alarms: all, worst }) {
  const lines = worst.map((alarm) => h('li', {},
    state(alarm.severity, alarm.severity === 'minor' ? 'warning' : 'alarm'), ' ', alarm.sentence));
  return [h('p', {}, `Alarms: ${counts(all)}.`), lines.length > 0 ? h('ul', {}, lines) : null];
}
