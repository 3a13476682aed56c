// @ts-check
// Drawings: lines over time, lanes of contacts, stages, margins. Each has a table of its figures.

import { h, s, seconds, span, table } from './show.js';

const WIDTH = 900;
const LEFT = 80;
const KINDS = ['one', 'two', 'three'];

/** A time as the axis of a range has it. */
function clock(at, range) {
  const text = new Date(at * 1000).toISOString();
  if (range.seconds > 2 * 86400) return text.slice(0, 10);
  if (range.seconds > 3600) return text.slice(5, 16).replace('T', ' ');
  return text.slice(11, 19);
}

/** The next figure of the form 1, 2 or 5 times a power of ten. */
function round(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

/** Spans that people count in, each of which and its half is a plain one: up to two days. */
const SPANS = [60, 120, 240, 600, 1200, 3600, 7200, 14400, 43200, 86400, 172800];

/** The next span that people count in: seconds, minutes, hours, and days by the powers of ten. */
function roundSpan(value) {
  if (value <= 50) return round(value);
  const known = SPANS.find((one) => one >= value);
  if (known) return known;
  // Not 1 or 5 days: the half of it would be shown as another number.
  const days = value / 86400;
  const power = 10 ** Math.floor(Math.log10(days));
  return 86400 * [2, 4, 10, 20].map((step) => step * power).find((step) => step >= days);
}

/** Where a plot has lines: not where two of them would be called the same. */
function levels(top, show) {
  const shown = [0, 0.5, 1].map((part) => [part, show(part * top)]);
  const names = shown.map(([, name]) => name);
  return shown.filter(([part, name]) => part !== 0.5
    || (name !== names[0] && name !== names[2]));
}

/** The seconds of a step such as `5 min`. */
function stepSeconds({ step }) {
  const [count, unit] = step.split(' ');
  return Number(count) * { s: 1, min: 60, h: 3600, d: 86400 }[unit];
}

/**
 * Lines over the time of a range, which ends now: all plots of a screen have one axis. A series is
 * `{name, rows}`, or `{name, rows, of}` where another member than the mean is drawn. Where nothing
 * was kept a line is broken. `show` writes a value.
 */
export function timed(title, range, series, show) {
  const drawable = series.filter(({ rows }) => rows.length > 0);
  if (drawable.length === 0) {
    return h('p', { class: 'none' }, `Nothing is kept of this in the last ${range.name}.`);
  }
  const step = stepSeconds(range);
  const newest = Math.max(...drawable.map(({ rows }) => seconds(rows[rows.length - 1].at)));
  const to = Math.max(newest + step, Math.floor(Date.now() / 1000 / step) * step);
  const from = to - range.seconds;
  const height = 190;
  const bottom = height - 24;
  const most = Math.max(0, ...drawable.flatMap((one) => one.rows.map((row) => value(one, row))));
  const top = most > 0 ? (show === span ? roundSpan(most) : round(most)) : 1;
  const x = (at) => LEFT + ((at - from) / (to - from)) * (WIDTH - LEFT - 10);
  const y = (at) => bottom - (Math.max(0, at) / top) * (bottom - 12);
  // Where all is zero, there is one line to name.
  const named = most > 0 ? levels(top, show) : [[0, show(0)]];
  const grid = named.map(([part, name]) => [
    s('line', { class: 'axis', x1: LEFT, x2: WIDTH - 10, y1: y(part * top), y2: y(part * top) }),
    s('text', { x: LEFT - 6, y: y(part * top) + 4, 'text-anchor': 'end' }, name),
  ]);
  const ticks = [[from, 'start'], [(from + to) / 2, 'middle'], [to, 'end']];
  const times = ticks.map(([at, anchor]) =>
    s('text', { x: x(at), y: height - 6, 'text-anchor': anchor }, clock(at, range)));
  const place = (one) => (row) => [x(seconds(row.at)), y(value(one, row))];
  const drawn = series.map((one, nth) => parts(one.rows, step).map((part) =>
    run(KINDS[nth % KINDS.length], part.map(place(one)).filter(([at]) => at >= LEFT))));
  const label = `${title}, ${clock(from, range)} to ${clock(to, range)} UTC; the table below has `
    + 'the figures';
  const plot = s('svg', { class: 'plot', viewBox: `0 0 ${WIDTH} ${height}`, role: 'img',
    'aria-label': label }, grid, times, drawn);
  return [legend(series), plot, figures(title, range, series, show)];
}

function value({ of = 'mean' }, row) {
  return row[of] === undefined ? 0 : row[of];
}

/** A run of points; one alone is a dot. */
function run(kind, points) {
  if (points.length === 1) {
    const [cx, cy] = points[0];
    return s('circle', { class: kind, cx, cy, r: 3 });
  }
  const shown = points.map(([at, level]) => `${at.toFixed(1)},${level.toFixed(1)}`);
  return s('polyline', { class: kind, points: shown.join(' ') });
}

/** The runs of rows between which nothing is missing. */
function parts(rows, step) {
  const found = [];
  rows.forEach((row, nth) => {
    const since = nth > 0 ? seconds(row.at) - seconds(rows[nth - 1].at) : Infinity;
    if (since > 3 * step) found.push([]);
    found[found.length - 1].push(row);
  });
  return found;
}

function legend(series) {
  const item = ({ name }, nth) => h('span', {},
    s('svg', { class: 'plot', viewBox: '0 0 30 10', 'aria-hidden': 'true' },
      s('polyline', { class: KINDS[nth % KINDS.length], points: '0,5 30,5' })), name);
  return h('p', { class: 'legend' }, series.map(item));
}

/** Rows of the table of a plot. */
const FIGURES = 24;

/** The table of a plot: the newest row, and those before it at even distances. */
function figures(title, range, series, show) {
  const all = new Map();
  series.forEach((one, nth) => one.rows.forEach((row) => {
    const known = all.get(row.at) || { id: row.at, values: [] };
    known.values[nth] = value(one, row);
    all.set(row.at, known);
  }));
  const rows = [...all.values()].sort((one, other) => (one.id < other.id ? 1 : -1));
  const every = Math.max(1, Math.ceil(rows.length / FIGURES));
  const columns = [
    ['UTC', 'plain', (row) => row.id.slice(0, 19).replace('T', ' ')],
    ...series.map(({ name }, nth) => [name, 'number',
      (row) => (row.values[nth] === undefined ? '–' : show(row.values[nth]))]),
  ];
  const shown = rows.filter((_, nth) => nth % every === 0);
  return h('details', {}, h('summary', {}, 'The figures as a table'),
    table(`${title}, by ${range.step}${every > 1 ? `, one row of ${every}` : ''}`, columns, shown,
      'No figures.'));
}

/** Lanes of a drawing: a person compares no more. */
const LANES = 24;

/** The lanes of a drawing, in order of their names, and what says how many are left out. */
export function lanesOf(all) {
  const names = [...new Set(all)].sort();
  const left = names.length - LANES;
  const more = left > 0 ? h('p', { class: 'faint' },
    `${left} more are in the table alone.`) : null;
  return { names: names.slice(0, LANES), more };
}

/** A lane for each input, with its contacts over time. */
export function lanes(contacts, now) {
  const known = contacts.filter((contact) => contact.opened);
  if (known.length === 0) return null;
  const lane = (one) => `${one.station} ${one.channel}`;
  const { names, more } = lanesOf(known.map(lane));
  const end = seconds(now);
  const first = Math.min(...known.map((one) => seconds(one.opened)));
  // Round spans, so that the axis does not move each second.
  const spans = [600, 3600, 21600, 86400, 259200];
  const wanted = spans.find((one) => end - first <= one) || 259200;
  const from = end - wanted;
  const left = 170;
  const height = names.length * 26 + 26;
  const x = (at) => left + (Math.max(0, at - from) / wanted) * (WIDTH - left - 10);
  const rows = names.map((name, nth) => [
    s('text', { x: left - 8, y: nth * 26 + 18, 'text-anchor': 'end' }, name),
    s('line', { class: 'axis', x1: left, x2: WIDTH - 10, y1: nth * 26 + 25, y2: nth * 26 + 25 }),
  ]);
  const boxes = known.map((one) => {
    const [start, stop] = [seconds(one.opened), one.closed ? seconds(one.closed) : end];
    if (stop < from || !names.includes(lane(one))) return null;
    const kind = one.state === 'failed' ? 'failed' : one.state === 'open' ? 'open' : 'one';
    const nth = names.indexOf(lane(one));
    return s('a', { href: `#contact/${encodeURIComponent(one.id)}` },
      s('rect', { class: kind, x: x(start), y: nth * 26 + 6, height: 15,
        width: Math.max(4, x(stop) - x(start)) }),
      s('title', {}, `${one.id}, ${one.mission}, ${one.state}`));
  });
  const label = `Contacts of the last ${span(wanted)}; the table below names them`;
  return [s('svg', { class: 'plot', viewBox: `0 0 ${WIDTH} ${height}`, role: 'group',
    'aria-label': label }, rows, boxes,
  s('text', { x: left, y: height - 6 }, `${span(wanted)} ago`),
  s('text', { x: WIDTH - 10, y: height - 6, 'text-anchor': 'end' }, 'now')), more];
}

/** Spans of stages on a logarithmic axis: from the median to one in a hundred. */
export function stages(rows) {
  const [low, high] = [-4, 5];
  const left = 90;
  const x = (value) => {
    const power = Math.log10(Math.max(value, 1e-4));
    return left + ((power - low) / (high - low)) * (WIDTH - left - 20);
  };
  const height = rows.length * 28 + 28;
  const ticks = [1e-3, 1, 60, 3600];
  const grid = ticks.map((value) => [
    s('line', { class: 'axis', x1: x(value), x2: x(value), y1: 0, y2: height - 22 }),
    s('text', { x: x(value), y: height - 6, 'text-anchor': 'middle' }, span(value)),
  ]);
  const bars = rows.map((row, nth) => [
    s('text', { x: left - 8, y: nth * 28 + 18, 'text-anchor': 'end' }, row.stage),
    s('rect', { class: row.stage === 'total' ? 'two' : 'one', x: x(row.p50_s), y: nth * 28 + 6,
      height: 14, width: Math.max(3, x(row.p99_s) - x(row.p50_s)) }),
  ]);
  return s('svg', { class: 'plot', viewBox: `0 0 ${WIDTH} ${height}`, role: 'img',
    'aria-label': 'Stages from the median to 99 of 100 frames; the table below has the figures' },
  grid, bars);
}

/** Codewords by symbols corrected, a bar a minute. */
export function margin(minutes, names) {
  const height = 120;
  const step = Math.min(40, (WIDTH - 20) / minutes.length);
  const bars = minutes.map((minute, nth) => {
    const all = Math.max(1, minute.codewords.reduce((sum, one) => sum + one, 0));
    let below = 0;
    return minute.codewords.map((one, bin) => {
      const part = (one / all) * height;
      below += part;
      return one > 0 ? s('rect', { class: `margin-${bin}`, x: 10 + nth * step,
        y: height - below, width: Math.max(1, step - 2), height: part }) : null;
    });
  });
  const key = names.map((name, bin) => h('span', {},
    s('svg', { viewBox: '0 0 30 10', 'aria-hidden': 'true' },
      s('rect', { class: `margin-${bin}`, width: 30, height: 10 })), name));
  return [h('p', { class: 'legend' }, key), s('svg', { class: 'plot', role: 'img',
    viewBox: `0 0 ${WIDTH} ${height + 4}`,
    'aria-label': 'Codewords by symbols corrected, a bar a minute; the table has the figures' },
  bars)];
}
