// @ts-check
// Lines: the paths of all sessions.

import { RANGES, over, ranges } from './history.js';
import { ratesOver } from './now.js';
import { timed } from './plot.js';
import {
  because, bytes, count, h, percent, rate, seconds, span, state, table, time, turn,
} from './show.js';

/** Bytes that each path had sent, and when: for its rate. */
const sent = new Map();
/** The range that is drawn, and the paths of which somebody wants to see it. */
const chosen = { range: RANGES[0] };
const opened = new Set();
/** Paths of one node that can be drawn over time. */
const DRAWN_MAX = 16;
/** Nodes that are shown at a time. */
const NODES = 12;
/** Paths are asked for by the page, behind this one. */
const wanted = { limit: '200', after: '' };

export const lines = {
  lists: () => [['paths', wanted]],
  draw: (look, [page], _, again) => {
    const { shown, turns } = turn('nodes', [...new Set(page.rows.map((row) => row.node))], NODES);
    return [
      ranges(RANGES, chosen, again),
      h('section', { 'data-key': 'plot' }, h('h2', {}, 'Rates of all lines'),
        timed('Rates', chosen.range, ratesOver(look, chosen.range), rate)),
      shown.length === 0 ? h('p', { class: 'none' }, 'No line has a path.') : null,
      shown.map((node) => h('section', { 'data-key': `node-${node}` }, h('h2', {}, node),
        paths(page, node), page.rows.filter((row) => row.node === node).slice(0, DRAWN_MAX)
          .map((row) => overTime(row, again)))),
      turns,
      pages(page, again),
    ];
  },
};

/** More paths than one answer has. */
function pages(page, again) {
  const go = (after, text) => {
    const press = () => {
      wanted.after = after;
      again();
    };
    return h('button', { type: 'button', 'data-key': `paths-${after}`, onclick: press }, text);
  };
  return h('p', { class: 'tools', 'data-key': 'pages' },
    wanted.after ? go('', 'First paths') : null, page.next ? go(page.next, 'More paths') : null);
}

/** The rate, round trip and loss of a path over the range, on one axis of time. */
function overTime(row, again) {
  const name = row.name || row.local;
  const of = (figure) => over(`path/${row.id}/${figure}`, chosen.range);
  const both = (figure) => [
    { name: 'mean', rows: of(figure) }, { name: 'greatest', rows: of(figure), of: 'max' },
  ];
  const content = () => [
    h('h3', {}, 'Rate'),
    timed(`Rate of ${name}`, chosen.range, [{ name: 'sent', rows: of('sent_bps') }], rate),
    h('h3', {}, 'Round trip'), timed(`Round trip of ${name}`, chosen.range, both('rtt_s'), span),
    h('h3', {}, 'Loss'), timed(`Loss of ${name}`, chosen.range, both('loss'), percent),
  ];
  const toggle = (event) => {
    if (event.target.open === opened.has(row.id)) return;
    if (event.target.open) opened.add(row.id);
    else opened.delete(row.id);
    again();
  };
  return h('details', { 'data-key': `path-${row.id}`, ontoggle: toggle },
    h('summary', {}, `${name} (${row.over}) over time`), opened.has(row.id) ? content() : null);
}

function paths(page, node) {
  const columns = [
    ['Path', 'plain', (row) => `${row.name || row.local} (${row.over})`],
    ['State', 'plain', (row) => because(row.state, row.reason)],
    ['Sends', 'number', (row) => rate(rateOf(page, row))],
    ['Allowed', 'number', (row) => rate(row.rate_bps)],
    ['Declared', 'number', (row) => rate(row.declared_bps)],
    ['Round trip', 'number', (row) => span(row.rtt_s)],
    ['Smallest', 'number', (row) => span(row.min_rtt_s)],
    ['Loss', 'number', (row) => percent(row.loss)],
    ['Sent', 'number', (row) => bytes(row.bytes_sent)],
    ['Repair used', 'number', (row) => count(row.repair_used)],
    ['Repair wasted', 'number', (row) => count(row.repair_wasted)],
    ['Stalls', 'number', (row) => count(row.stalls)],
    ['Controller', 'plain', (row) => row.controller],
    ['Known from outside', 'text', (row) => outlook(row)],
  ];
  const rows = page.rows.filter((row) => row.node === node);
  return table(`Paths to ${node}`, columns, rows, 'No paths.');
}

function rateOf(page, row) {
  const at = seconds(page.at);
  const known = sent.get(row.id);
  if (!known || at > known.at) {
    const since = known ? at - known.at : 0;
    const bits = known ? (row.bytes_sent - known.bytes) * 8 : 0;
    const value = since > 0 && bits >= 0 ? bits / since : null;
    sent.set(row.id, { at, bytes: row.bytes_sent, value });
  }
  return sent.get(row.id).value;
}

function outlook(row) {
  const hints = (row.hints || []).map((hint) => {
    const what = hint.rate_bps !== undefined ? rate(hint.rate_bps)
      : hint.loss !== undefined ? `loss ${percent(hint.loss)}` : 'out';
    return [`${what} by ${hint.by}`, hint.until ? [' until ', time(hint.until, null)] : '', ' '];
  });
  const stale = row.feed && row.feed.stale ? state('feed is stale', 'warning') : null;
  return [hints, stale];
}
