// @ts-check
// Drawings: lines over time, lanes of contacts, stages, margins. Each has a table of its figures.

import { h, s, seconds, span, table } from './show.js';

const WIDTH = 900;
const LEFT = 80;
const KINDS = ['one', 'two', 'three'];

/** A time of day as the axis has it. */
function clock(at) {
  return new Date(at * 1000).toISOString().slice(11, 19);
}

/** The next figure of the form 1, 2 or 5 times a power of ten. */
function round(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

/** Lines over time. A series is `{name, of}`; `show` writes a value. */
export function lines(title, rows, series, show) {
  if (rows.length < 2) return h('p', { class: 'none' }, 'Figures come each second.');
  const height = 190;
  const bottom = height - 24;
  const [from, to] = [seconds(rows[0].at), seconds(rows[rows.length - 1].at)];
  const most = Math.max(0, ...rows.flatMap((row) => series.map(({ of }) => of(row))));
  const top = most > 0 ? round(most) : 1;
  const x = (at) => LEFT + ((at - from) / Math.max(1, to - from)) * (WIDTH - LEFT - 10);
  const y = (value) => bottom - (value / top) * (bottom - 12);
  const grid = [0, 0.5, 1].map((part) => [
    s('line', { class: 'axis', x1: LEFT, x2: WIDTH - 10, y1: y(part * top), y2: y(part * top) }),
    s('text', { x: LEFT - 6, y: y(part * top) + 4, 'text-anchor': 'end' }, show(part * top)),
  ]);
  const ticks = [[from, 'start'], [(from + to) / 2, 'middle'], [to, 'end']];
  const times = ticks.map(([at, anchor]) =>
    s('text', { x: x(at), y: height - 6, 'text-anchor': anchor }, clock(at)));
  const drawn = series.map(({ of }, nth) => {
    const points = rows.map((row) => `${x(seconds(row.at)).toFixed(1)},${y(of(row)).toFixed(1)}`);
    return s('polyline', { class: KINDS[nth], points: points.join(' ') });
  });
  const label = `${title}, ${clock(from)} to ${clock(to)} UTC; the table below has the figures`;
  const plot = s('svg', { class: 'plot', viewBox: `0 0 ${WIDTH} ${height}`, role: 'img',
    'aria-label': label }, grid, times, drawn);
  return [legend(series), plot, figures(title, rows, series, show)];
}

function legend(series) {
  const item = ({ name }, nth) => h('span', {},
    s('svg', { class: 'plot', viewBox: '0 0 30 10', 'aria-hidden': 'true' },
      s('polyline', { class: KINDS[nth], points: '0,5 30,5' })), name);
  return h('p', { class: 'legend' }, series.map(item));
}

/** The table of a plot: a row for each half minute. */
function figures(title, rows, series, show) {
  const some = rows.filter((_, nth) => (rows.length - 1 - nth) % 30 === 0).reverse();
  const columns = [
    ['UTC', 'plain', (row) => clock(seconds(row.at))],
    ...series.map(({ name, of }) => [name, 'number', (row) => show(of(row))]),
  ];
  const named = some.map((row) => ({ ...row, id: row.at }));
  return h('details', {}, h('summary', {}, 'The figures as a table'),
    table(`${title}, every 30 s`, columns, named, 'No figures.'));
}

/** A lane for each input, with its contacts over time. */
export function lanes(contacts, now) {
  const known = contacts.filter((contact) => contact.opened);
  if (known.length === 0) return null;
  const names = [...new Set(known.map((one) => `${one.station} ${one.channel}`))].sort();
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
    if (stop < from) return null;
    const kind = one.state === 'failed' ? 'failed' : one.state === 'open' ? 'open' : 'one';
    const nth = names.indexOf(`${one.station} ${one.channel}`);
    return s('a', { href: `#contact/${encodeURIComponent(one.id)}` },
      s('rect', { class: kind, x: x(start), y: nth * 26 + 6, height: 15,
        width: Math.max(4, x(stop) - x(start)) }),
      s('title', {}, `${one.id}, ${one.mission}, ${one.state}`));
  });
  const label = `Contacts of the last ${span(wanted)}; the table below names them`;
  return s('svg', { class: 'plot', viewBox: `0 0 ${WIDTH} ${height}`, role: 'group',
    'aria-label': label }, rows, boxes,
  s('text', { x: left, y: height - 6 }, `${span(wanted)} ago`),
  s('text', { x: WIDTH - 10, y: height - 6, 'text-anchor': 'end' }, 'now'));
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
