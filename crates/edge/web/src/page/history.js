// @ts-check
// Figures over time: which range is shown, and what the node keeps of it.

import { ask } from './live.js';
import { h } from './show.js';

/** A range: how much is shown, in what steps, and how often it is asked for again. */
export const RANGES = [
  { name: '10 min', seconds: 600, step: '1 s', every: 5000 },
  { name: '48 h', seconds: 172800, step: '5 min', every: 60000 },
  { name: '400 d', seconds: 34560000, step: '1 d', every: 300000 },
];

/** Of what is judged by the week. */
export const SPANS = [
  { name: '48 h', seconds: 172800, step: '1 h', every: 60000 },
  { name: '7 d', seconds: 604800, step: '6 h', every: 60000 },
  { name: '400 d', seconds: 34560000, step: '5 d', every: 300000 },
];

/** Answers that were asked for, by range and series. */
const kept = new Map();
/** More series than a node keeps, in each range. */
const KEPT_MAX = 1000;

/** The names of the series that the node keeps, and when they were asked for. */
const known = { names: new Set(), asked: 0 };
/** A node that has begun has more of them soon. */
const LIST_EVERY = 10000;

/** Whether the node keeps a series, as far as is known. */
function isKept(series) {
  if (Date.now() - known.asked >= LIST_EVERY) {
    known.asked = Date.now();
    ask('history').then(({ series: all }) => {
      if (all) known.names = new Set(all.map(({ name }) => name));
    });
  }
  return known.names.has(series);
}

/** What the node keeps of a series in a range; nothing until it has answered. */
export function over(series, range) {
  if (!isKept(series)) return [];
  const key = `${range.name} ${range.step} ${series}`;
  if (!kept.has(key) && kept.size >= KEPT_MAX) kept.clear();
  const one = kept.get(key) || { rows: [], asked: 0, isAsking: false };
  kept.set(key, one);
  if (!one.isAsking && Date.now() - one.asked >= range.every) {
    one.isAsking = true;
    one.asked = Date.now();
    ask('history', { series, last: range.name, step: range.step }).then((answer) => {
      one.isAsking = false;
      if (answer.rows) one.rows = answer.rows;
    });
  }
  return one.rows;
}

/** Buttons for the ranges. `chosen` has a `range`; `again` draws the screen. */
export function ranges(all, chosen, again) {
  const button = (range) => h('button', {
    'data-key': `range-${range.name}`, type: 'button',
    'aria-pressed': String(range.name === chosen.range.name),
    onclick: () => {
      chosen.range = range;
      again();
    },
  }, range.name);
  return h('div', { class: 'tools', role: 'group', 'aria-label': 'Time range' },
    all.map(button));
}
