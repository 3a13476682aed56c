// @ts-check
// Now: whether everything is on its way, and will be there in time.

import { RANGES, over } from './history.js';
import { live } from './live.js';
import { acknowledgeButton } from './orders.js';
import { passName, passState, when } from './passes.js';
import { timed } from './plot.js';
import { mayOrder } from './session.js';
import {
  bar, because, bytes, card, count, facts, h, link, percent, rate, seconds, span, state, table,
  time, verdict, wide,
} from './show.js';

export function now(look) {
  return [
    verdict(look.verdict),
    h('div', { class: 'cards' },
      look.alarms.length > 0 ? alarms(look) : null,
      wide('Contacts', underWay(look)),
      look.passes.length > 0 ? wide('Passes', nextPasses(look)) : null,
      look.node.sends ? card('Inputs', inputs(look)) : null,
      look.node.sends ? card('Lines', destinations(look)) : null,
      look.node.receives ? card('Connected nodes', stations(look)) : null,
      card('What waits', waits(look)),
      wide('The last ten minutes', timed('Rates', TEN, rates(look), rate))),
  ];
}

const TEN = RANGES[0];
/** Alarms of this screen: what is under way is to be seen below them. */
const ALARMS = 8;

/** The rates of a node in the last ten minutes. */
function rates(look) {
  return ratesBy(look, (name) => live.rates.filter((row) => row[name] !== undefined)
    .map((row) => ({ at: row.at, mean: row[name] })));
}

/** The rates of a node in a range. */
export function ratesOver(look, range) {
  return range === TEN ? rates(look) : ratesBy(look, (name) => over(`node/all/${name}`, range));
}

function ratesBy(look, rows) {
  return [
    look.node.sends && { name: 'captured', rows: rows('captured_bps') },
    look.node.sends && { name: 'sent', rows: rows('sent_bps') },
    look.node.receives && { name: 'received', rows: rows('received_bps') },
  ].filter(Boolean);
}

function alarms(look) {
  const worst = look.alarms.slice(0, ALARMS);
  const more = look.alarms.length > ALARMS
    ? h('p', {}, h('a', { href: '#alarms' }, `All ${count(look.alarm_count)} alarms`)) : null;
  return wide('Alarms', alarmTable(look, worst, ''), more);
}

const GRAVE = { info: 'idle', minor: 'warning', major: 'alarm', critical: 'alarm' };

/** A table of alarms; those that others explain come last. */
export function alarmTable(look, rows, nothing) {
  const columns = [
    ['About', 'text', (row) => state(row.subject, row.caused_by ? 'idle' : GRAVE[row.severity])],
    ['Severity', 'plain', (row) => row.severity],
    ['What', 'text', (row) => [row.reason,
      row.caused_by ? h('span', { class: 'why' }, `because of ${row.caused_by.subject}`) : '']],
    ['Since UTC', 'plain', (row) => time(row.since, look.at)],
    ['Acknowledged', 'text', (row) => (row.acknowledged
      ? [`${row.acknowledged.by}, `, time(row.acknowledged.at, look.at),
        row.acknowledged.note ? `: ${row.acknowledged.note}` : '']
      : mayOrder() ? acknowledgeButton(row) : '')],
    ['Kind', 'plain', (row) => row.kind],
  ];
  return table('What an operator must act on', columns, rows, nothing);
}

function underWay(look) {
  const columns = [
    ['Contact', 'plain', (row) => link(row.id)],
    ['State', 'plain', (row) => state(row.state)],
    ['Mission', 'plain', (row) => row.mission || 'not known yet'],
    ['Input', 'plain', (row) => row.channel],
    ['Opened UTC', 'plain', (row) => time(row.opened, look.at)],
    ['Good frames', 'number', (row) => count(row.frames)],
    ['Lacks', 'plain', (row) => lacks(row)],
    ['On its way', '', (row) => progress(row)],
    ['There', 'plain', (row) => there(row, look.at)],
  ];
  return table('Under way first, then the newest that ended', columns, order(look.contacts),
    'No contact since the node started.');
}

function nextPasses(look) {
  const columns = [
    ['Pass', 'text', (row) => passName(row)],
    ['State', 'plain', (row) => passState(row)],
    ['When', 'plain', (row) => when(row, look.at)],
    ['Station', 'plain', (row) => row.station || 'any'],
    ['Start UTC', 'plain', (row) => time(row.start, look.at)],
  ];
  return table('Under way, and next', columns, look.passes, 'No pass is planned.');
}

function order(contacts) {
  const isUnderWay = (row) => row.state === 'open' || row.state === 'closed';
  return [...contacts.filter(isUnderWay), ...contacts.filter((row) => !isUnderWay(row))];
}

/** What a contact lacks, in words. */
export function lacks(row) {
  const parts = [];
  if (row.missing) parts.push(`${count(row.missing)} missing`);
  if (row.unaccounted) parts.push(`${count(row.unaccounted)} unaccounted`);
  if (row.set_aside) parts.push(`${count(row.set_aside)} set aside`);
  if (row.damaged_blocks) parts.push(`${count(row.damaged_blocks)} blocks damaged`);
  return parts.length > 0 ? state(parts.join(', '), 'warning') : state('nothing', 'ok');
}

function progress(row) {
  if (row.side !== 'captured') return '';
  const whole = Math.max(1, row.bytes_captured - row.bytes_saved);
  const part = Math.max(0, 1 - row.unsent_bytes / whole);
  const text = row.unsent_bytes > 0 ? `${bytes(row.unsent_bytes)} left` : 'all sent';
  return [bar(row.unsent_bytes > 0 ? part : 1, `${percent(part)} sent`), text];
}

function there(row, at) {
  if (row.side !== 'captured') {
    const late = row.last_bit_to_product_s;
    return late === null || late === undefined ? '' : `${span(late)} after its last bit`;
  }
  if (row.unsent_bytes === 0) return row.state === 'open' ? 'up to date' : state('all', 'ok');
  if (row.done_s === null) return state('not known', 'warning');
  const when = new Date((seconds(at) + row.done_s) * 1000).toISOString();
  return [time(when, at), spare(row.spare_s)];
}

/** The time to spare until a deadline, in words. */
export function spare(left) {
  if (left === null || left === undefined) return '';
  return left < 0
    ? [' ', state(`${span(-left)} late`, 'alarm')]
    : `, ${span(left)} to spare`;
}

function inputs(look) {
  const columns = [
    ['Input', 'plain', (row) => row.name],
    ['State', 'plain', (row) => state(row.state)],
    ['Mission', 'plain', (row) => row.mission || '–'],
    ['Good frames', 'number', (row) => count(row.frames)],
    ['Set aside', 'number', (row) => count(row.set_aside)],
  ];
  return table('Since the node started', columns, look.channels, 'The node has no inputs.');
}

function destinations(look) {
  const columns = [
    ['To', 'plain', (row) => row.name],
    ['Line', 'plain', (row) => because(row.state, row.reason)],
    ['Waits', 'number', (row) => bytes(row.waiting_bytes)],
    ['Clear in', 'number', (row) => (row.waiting_bytes ? span(row.clear_s) : 'clear')],
    ['Loss', 'number', (row) => percent(row.loss)],
  ];
  return table('Lines to destinations', columns, look.destinations, 'No destinations.');
}

function stations(look) {
  const columns = [
    ['Node', 'plain', (row) => row.name],
    ['State', 'plain', () => state('connected', 'ok')],
    ['Delivered', 'number', (row) => bytes(row.bytes_delivered)],
    ['Paths', 'number', (row) => count(row.paths)],
  ];
  return table('In this connection', columns, look.stations, 'No node is connected.');
}

function waits(look) {
  const { spool, store, gaps, deliveries } = look;
  const clear = look.destinations.map((one) => one.clear_s).filter((one) => one > 0);
  const until = clear.length > 0 ? `, clear in ${span(Math.max(...clear))}` : '';
  return facts([
    ['Spool', spool && [state(spool.state), `, ${bytes(spool.bytes)} wait${until}`]],
    ['Spool on disk', spool && bytes(spool.disk_bytes)],
    ['Store', store && [state(store.state), `, ${bytes(store.disk_bytes)} on disk`]],
    ['Missing frames', gaps && (gaps.missing_frames > 0
      ? h('a', { href: '#gaps' }, count(gaps.missing_frames)) : state('none', 'ok'))],
    ['Deliveries', deliveries && deliveryWords(deliveries)],
  ]);
}

function deliveryWords({ waiting, late, failed, there: done }) {
  const bad = [late && `${late} late`, failed && `${failed} failed`].filter(Boolean).join(', ');
  const rest = `${count(done)} there, ${count(waiting)} on their way`;
  return bad ? [state(bad, 'alarm'), `, ${rest}`] : rest;
}
