// @ts-check
// Lines and latency.

import { live } from './live.js';
import { series } from './now.js';
import { lines as plot, stages } from './plot.js';
import {
  because, bytes, count, h, percent, rate, seconds, span, state, table, time,
} from './show.js';

/** Bytes that each path had sent, and when: for its rate. */
const sent = new Map();

export const lines = {
  lists: () => [['paths', { limit: '1000' }]],
  draw: (look, [page]) => {
    const nodes = [...new Set(page.rows.map((row) => row.node))];
    return [
      h('section', { 'data-key': 'plot' }, h('h2', {}, 'Rates of all lines'),
        plot('Rates', live.history, series(look), rate)),
      nodes.length === 0 ? h('p', { class: 'none' }, 'No line has a path.') : null,
      nodes.map((node) => h('section', { 'data-key': `node-${node}` }, h('h2', {}, node),
        paths(page, node))),
    ];
  },
};

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

export const latency = {
  lists: () => [['latency', {}]],
  draw: (look, [page]) => h('section', {}, h('h2', {}, 'Where the time goes'),
    h('p', { class: 'faint' }, 'Each bar is from the median to 99 of 100 frames, since the node ',
      'started. The stages of the line are as good as the clocks of the two nodes agree.'),
    page.rows.length > 0 ? stages(page.rows) : null,
    table('Frames by stage', [
      ['Stage', 'plain', (row) => row.stage],
      ['Frames', 'number', (row) => count(row.frames)],
      ['Shortest', 'number', (row) => span(row.min_s)],
      ['Median', 'number', (row) => span(row.p50_s)],
      ['99 of 100', 'number', (row) => span(row.p99_s)],
      ['Longest', 'number', (row) => span(row.max_s)],
    ], page.rows, 'No frame was measured: a node that receives measures them.')),
};
