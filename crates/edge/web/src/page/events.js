// @ts-check
// Events: what happened at the node, newest first.

import { PAGE_ROWS, h, state, table, time } from './show.js';

/** What is asked for by the fields above the table. */
const wanted = { limit: String(PAGE_ROWS), types: '', subject: '', before: '' };

const GRAVE = { info: 'idle', minor: 'warning', major: 'alarm', critical: 'alarm' };
/** Where the subjects of a group of events are shown. */
const PLACES = {
  pass: 'passes', contact: 'contacts', gap: 'gaps', product: 'products', delivery: 'deliveries',
  spool: 'queues', store: 'queues', alarm: 'alarms', path: 'lines', peer: 'lines',
};
const GROUPS = [['', 'all'], ['major+', 'grave ones'], ...Object.keys(PLACES)
  .map((group) => [`${group}.*`, group])];

export const events = {
  // With a number as its argument, the screen begins with that event, of whatever type it is.
  lists: (number) => [['events',
    number ? { limit: wanted.limit, before: behind(number) } : wanted]],
  draw: (look, [page], number, again) => h('section', {}, h('h2', {}, 'Events'),
    tools(again), eventTable(look, page), pages(page, number, again)),
};

/** The number behind that of an event. */
function behind(number) {
  return String((Number.parseInt(number, 10) || 0) + 1);
}

function tools(again) {
  const change = (event) => {
    wanted[event.target.name] = event.target.value.trim();
    wanted.before = '';
    if (location.hash !== '#events') location.hash = '#events';
    else again();
  };
  const options = GROUPS.map(([value, name]) => h('option', { value }, name));
  return h('div', { class: 'tools', role: 'search' },
    h('label', {}, 'Type ', h('select', { name: 'types', onchange: change }, options)),
    h('label', {}, 'Subject ', h('input', { name: 'subject', size: 20, onchange: change })));
}

function eventTable(look, page) {
  const holes = page.holes.map(({ from, to }) => ({ id: `hole-${to}`, number: to, from, to }));
  const rows = [...page.rows.map((row) => ({ ...row, id: String(row.number) })), ...holes]
    .sort((one, other) => other.number - one.number);
  const isHole = (row) => row.from !== undefined;
  const columns = [
    ['Number', 'number', (row) => (isHole(row) ? `${row.from} to ${row.to}` : row.number)],
    ['UTC', 'plain', (row) => (isHole(row) ? '' : time(row.time, look.at))],
    ['Severity', 'plain', (row) => (isHole(row) ? state('hole', 'warning')
      : state(row.severity, GRAVE[row.severity]))],
    ['Kind', 'plain', (row) => row.kind || ''],
    ['Subject', 'text', (row) => (isHole(row) ? '' : subject(row))],
    ['What', 'text', (row) => (isHole(row) ? 'These events are not kept.' : row.sentence)],
    ['Because of', 'text', (row) => (row.cause ? because(row, row.cause) : '')],
  ];
  return table('Newest first', columns, rows, 'No event is like that.');
}

/** The event that explains another one, with the way to it. */
function because(row, { number, kind, subject: text }) {
  const about = text === row.subject ? '' : `, ${text}`;
  return h('a', { href: `#events/${number}` }, `${number} ${kind}${about}`);
}

/** The subject of an event, with the way to it. */
function subject({ kind, subject: text }) {
  const place = PLACES[kind.split('.')[0]];
  const contact = /(?:^|contact )([\w.-]+-\d+)$/.exec(text);
  if (contact && ['contact', 'gap'].includes(kind.split('.')[0])) {
    return h('a', { href: `#contact/${encodeURIComponent(contact[1])}` }, text);
  }
  return place ? h('a', { href: `#${place}` }, text) : text;
}

function pages(page, number, again) {
  const go = (before) => () => {
    wanted.before = before;
    // The argument of the screen is where it began.
    if (number) location.hash = '#events';
    else again();
  };
  const older = page.next === null ? null
    : h('button', { 'data-key': `older-${page.next}`, onclick: go(String(page.next)) }, 'Older');
  return h('p', { class: 'tools' },
    wanted.before || number
      ? h('button', { 'data-key': 'newest', onclick: go('') }, 'Newest') : null, older);
}
