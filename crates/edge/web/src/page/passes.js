// @ts-check
// Planned passes: what comes, what came, what was missed.

import { lanesOf } from './plot.js';
import { h, link, s, seconds, span, state, table, time } from './show.js';

const WIDTH = 900;
const LEFT = 170;
const ROW = 26;
const DAY = 86400;

const GRAVE = {
  ahead: 'idle', due: 'warning', 'no-lock': 'alarm', 'under-way': 'ok', came: 'ok',
  missed: 'alarm', unknown: 'idle',
};
const WORDS = { 'no-lock': 'no lock', 'under-way': 'under way' };

export const passes = {
  lists: () => [['passes', { limit: '1000' }]],
  draw: (look, [page]) => {
    const rows = page.rows;
    const isOver = (row) => seconds(row.end) < seconds(look.at) && row.state !== 'under-way';
    return [
      h('section', { 'data-key': 'lanes' }, h('h2', {}, 'A day behind and ahead'),
        rows.length > 0 ? drawn(rows, seconds(look.at)) : h('p', { class: 'none' },
          'No pass is planned. The node reads plans from the files of [[plan]].')),
      h('section', { 'data-key': 'next' }, h('h2', {}, 'Now and next'),
        passTable(look, rows.filter((row) => !isOver(row)), 'Soonest first',
          'No pass is planned for the next day.')),
      h('section', { 'data-key': 'over' }, h('h2', {}, 'Over'),
        passTable(look, rows.filter(isOver).reverse(), 'Newest first',
          'No pass ended within the last day.')),
    ];
  },
};

/** The state of a pass, as a word with its shape. */
export function passState(row) {
  return state(WORDS[row.state] || row.state, GRAVE[row.state] || 'idle');
}

/** What a pass is called. */
export function passName(row) {
  return [row.name, row.mission].filter(Boolean).join(', ') || 'not named';
}

/** When a pass begins or ends, as a span from now. */
export function when(row, at) {
  const left = seconds(row.start) - seconds(at);
  if (left > 0) return `in ${span(left)}`;
  const rest = seconds(row.end) - seconds(at);
  return rest > 0 ? `ends in ${span(rest)}` : `ended ${span(-rest)} ago`;
}

function passTable(look, rows, title, nothing) {
  const columns = [
    ['Pass', 'text', (row) => passName(row)],
    ['State', 'plain', (row) => passState(row)],
    ['When', 'plain', (row) => when(row, look.at)],
    ['Station and input', 'plain', (row) => place(row)],
    ['Max. elevation', 'plain', (row) => (row.peak === undefined ? '' : `${row.peak}°`)],
    ['Start UTC', 'plain', (row) => time(row.start, look.at)],
    ['End UTC', 'plain', (row) => time(row.end, look.at)],
    ['First frame', 'plain', (row) => (row.locked ? late(row) : '')],
    ['Contacts', 'plain', (row) => row.contacts.map((id) => [link(id), ' '])],
  ];
  return table(title, columns, rows, nothing);
}

function late(row) {
  const by = seconds(row.locked) - seconds(row.start);
  return by >= 0 ? `${span(by)} after the start` : `${span(-by)} before the start`;
}

function place(row) {
  return [row.station, row.channel].filter(Boolean).join(' ') || 'any station';
}

/** A lane for each station and input, with the passes of it; a line is now. */
function drawn(rows, now) {
  const { names, more } = lanesOf(rows.map(place));
  const height = names.length * ROW + 26;
  const x = (at) => LEFT + ((at - now + DAY) / (2 * DAY)) * (WIDTH - LEFT - 10);
  const inside = (at) => Math.min(WIDTH - 10, Math.max(LEFT, x(at)));
  const grid = names.map((name, nth) => [
    s('text', { x: LEFT - 8, y: nth * ROW + 18, 'text-anchor': 'end' }, name),
    s('line', { class: 'axis', x1: LEFT, x2: WIDTH - 10, y1: nth * ROW + 25,
      y2: nth * ROW + 25 }),
  ]);
  const boxes = rows.filter((row) => names.includes(place(row))).map((row) => {
    const left = inside(seconds(row.start));
    const width = Math.max(5, inside(seconds(row.end)) - left);
    const box = { class: `pass-${row.state}`, x: left, y: names.indexOf(place(row)) * ROW + 5,
      width, height: 16 };
    const title = s('title', {}, `${passName(row)}, ${WORDS[row.state] || row.state}, `
      + `${row.start} to ${row.end}`);
    const mark = row.state === 'missed' || row.state === 'no-lock'
      ? s('text', { class: 'cross', x: left + width / 2, y: box.y + 13, 'text-anchor': 'middle' },
        '\u00d7') : null;
    const parts = [s('rect', box), mark, title];
    return row.contacts.length > 0
      ? s('a', { href: `#contact/${encodeURIComponent(row.contacts[0])}` }, parts)
      : s('g', {}, parts);
  });
  const clock = s('line', { class: 'now', x1: x(now), x2: x(now), y1: 0, y2: height - 22 });
  const foot = [[now - DAY, 'start', '24 h ago'], [now, 'middle', 'now'],
    [now + DAY, 'end', 'in 24 h']];
  return [s('svg', { class: 'plot', viewBox: `0 0 ${WIDTH} ${height}`, role: 'group',
    'aria-label': 'Passes of a day behind and ahead; the tables below name them' },
  grid, boxes, clock,
  foot.map(([at, anchor, text]) =>
    s('text', { x: x(at), y: height - 6, 'text-anchor': anchor }, text))), more];
}
