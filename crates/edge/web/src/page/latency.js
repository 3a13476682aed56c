// @ts-check
// Latency: whether the budget was kept, and which element of the way is to blame.

import { SPANS, over, ranges } from './history.js';
import { stages, timed } from './plot.js';
import { count, h, link, percent, s, seconds, span, state, table, verdict } from './show.js';

/** The elements of the way, in its order. */
const ELEMENTS = ['downlink', 'capture', 'spool', 'queue', 'line', 'repair', 'store', 'level0',
  'publish', 'unaccounted', 'deliver'];
const WIDTH = 900;
const LEFT = 90;
const DAY = 86400;
/** The height of a day. */
const ROW = 22;
/** The heat is of a week, by the hour. */
const WEEK = { name: '7 d', seconds: 7 * DAY, step: '1 h', every: 60000 };
/** A share on time below this is grave. */
const GRAVE = 0.9;

const chosen = { range: SPANS[1] };

export const latency = {
  lists: () => [['latency', {}], ['history', {}]],
  draw: (look, [page, list], _, again) => {
    const missions = list.series.map(({ name }) => name.split('/'))
      .filter(([kind, , figure]) => kind === 'delivery' && figure === 'total_s')
      .map(([, mission]) => mission);
    const found = missions.map(judged);
    return [
      look.node.receives ? verdict(judgement(found)) : null,
      ranges(SPANS, chosen, again),
      found.map(drawn),
      frames(page),
    ];
  },
};

/** The sum over rows of a figure, each row counting as often as it has values. */
function sum(rows, of) {
  return rows.reduce((all, row) => all + (of(row) || 0) * row.count, 0);
}

/** What is known of a mission in the range. */
function judged(mission) {
  const of = (figure, range) => over(`delivery/${mission}/${figure}`, range);
  const total = of('total_s', chosen.range);
  const budget = of('of_budget', chosen.range);
  const handed = sum(total, () => 1);
  const counted = sum(budget, () => 1);
  const elements = ELEMENTS.map((name) => {
    const rows = of(`${name}_s`, chosen.range);
    const mean = sum(rows, (row) => row.mean) / Math.max(1, handed);
    return { id: name, name, mean, max: Math.max(0, ...rows.map((row) => row.max)),
      isKnown: rows.length > 0 };
  }).filter((one) => one.isKnown);
  const greater = (figure) => (most, one) => (one[figure] > most[figure] ? one : most);
  return {
    mission,
    total,
    handed,
    counted,
    onTime: counted > 0 ? sum(budget, (row) => row.on_time) / counted : null,
    elements,
    longest: elements.reduce(greater('mean'), { name: '', mean: 0 }),
    worst: total.reduce(greater('max'), { max: -1 }),
    limit: of('budget_s', chosen.range),
    week: of('of_budget', WEEK),
  };
}

/** Whether the budget was kept, in one sentence. */
function judgement(found) {
  const all = (figure) => found.reduce((sofar, one) => sofar + one[figure], 0);
  const [handed, counted] = [all('handed'), all('counted')];
  const within = `in the last ${chosen.range.name}`;
  if (handed === 0) return { level: 'warning', text: `Nothing was handed over ${within}.` };
  if (counted === 0) {
    const were = handed === 1 ? 'product was' : 'products were';
    const text = `${count(handed)} ${were} handed over ${within}; no [[budget]] judges that.`;
    return { level: 'warning', text };
  }
  const late = found.filter((one) => one.onTime !== null && one.onTime < 1);
  if (late.length === 0) {
    const text = `The budget was kept: each of ${count(counted)} products ${within} was on time.`;
    return { level: 'ok', text };
  }
  const share = found.reduce((sofar, one) => sofar + one.counted * (one.onTime || 0), 0) / counted;
  const bad = late.reduce((worst, one) => (one.onTime < worst.onTime ? one : worst));
  const text = `${percent(share)} of ${count(counted)} products ${within} were on time. Of `
    + `${bad.mission} most of the time goes in ${bad.longest.name}, ${span(bad.longest.mean)} on `
    + `average${bad.worst.worst ? `; the worst contact is ${bad.worst.worst}` : ''}.`;
  return { level: share < GRAVE ? 'alarm' : 'warning', text };
}

/** How grave it is that this share is on time. */
function grave(share) {
  if (share >= 1) return 'ok';
  return share >= GRAVE ? 'warning' : 'alarm';
}

function drawn(one) {
  const series = [
    { name: 'half of them within', rows: one.total, of: 'p50' },
    { name: '95 of 100 within', rows: one.total, of: 'p95' },
    { name: 'budget', rows: one.limit, of: 'max' },
  ].filter(({ rows }) => rows.length > 0);
  const onTime = one.onTime === null ? state('no budget', 'idle')
    : state(`${percent(one.onTime)} on time`, grave(one.onTime));
  return h('section', { 'data-key': `mission-${one.mission}` },
    h('h2', {}, one.mission), h('p', {}, `${count(one.handed)} handed over, `, onTime),
    h('h3', {}, 'From the observation to the hand-over'),
    timed(`Latency of ${one.mission}`, chosen.range, series, span),
    h('h3', {}, 'Where the time goes'), stack(one),
    h('h3', {}, 'On time by day and hour, UTC'), heat(one));
}

/** The mean of each element, one behind the other: together they are the mean of the whole. */
function stack({ mission, elements, worst }) {
  const all = elements.reduce((sofar, one) => sofar + Math.max(0, one.mean), 0);
  if (all <= 0) return h('p', { class: 'none' }, 'The elements are not known yet.');
  let left = 0;
  const boxes = elements.map((one) => {
    const [x, width] = [left, (Math.max(0, one.mean) / all) * WIDTH];
    left += width;
    const box = { class: `element element-${ELEMENTS.indexOf(one.name)}`, x, y: 4, width,
      height: 30 };
    const name = s('text', { class: 'inside', x: x + width / 2, y: 24, 'text-anchor': 'middle' },
      one.name);
    return s('g', {}, s('rect', box), width > 12 * one.name.length ? name : null,
      s('title', {}, `${one.name}: ${span(one.mean)} on average`));
  });
  const columns = [
    ['Element', 'plain', (row) => row.name],
    ['On average', 'number', (row) => span(row.mean)],
    ['Of the whole', 'number', (row) => percent(Math.max(0, row.mean) / all)],
    ['Longest', 'number', (row) => span(row.max)],
  ];
  return [
    s('svg', { class: 'plot', viewBox: `0 0 ${WIDTH} 38`, role: 'img',
      'aria-label': `Elements of the way of ${mission}; the table below has the figures` }, boxes),
    table(`Elements, ${span(all)} together`, columns, elements, 'No figures.'),
    worst.worst
      ? h('p', {}, `The longest took ${span(worst.max)}: contact `, link(worst.worst)) : null,
  ];
}

const MARKS = { ok: '', warning: '▲', alarm: '■' };

/** A row a day, a column an hour. A bad cell leads to its worst contact. */
function heat({ mission, week }) {
  if (week.length === 0) return h('p', { class: 'none' }, 'No [[budget]] judged anything.');
  const first = Math.floor(Date.now() / 1000 / DAY) - 7;
  const step = (WIDTH - LEFT - 10) / 24;
  const days = [...Array(8).keys()].map((nth) => s('text',
    { x: LEFT - 8, y: nth * ROW + 16, 'text-anchor': 'end' },
    new Date((first + nth) * DAY * 1000).toISOString().slice(5, 10)));
  const hours = [0, 6, 12, 18].map((hour) => s('text',
    { x: LEFT + (hour + 0.5) * step, y: 8 * ROW + 16, 'text-anchor': 'middle' },
    `${String(hour).padStart(2, '0')} h`));
  const cells = week.map((row) => {
    const at = seconds(row.at);
    const [x, y] = [LEFT + (Math.floor(at / 3600) % 24) * step,
      (Math.floor(at / DAY) - first) * ROW];
    return y < 0 ? null : cell(row, x, y, step);
  });
  const bad = week.filter((row) => row.on_time < 1).reverse();
  const columns = [
    ['Hour UTC', 'plain', (row) => row.at.replace('T', ' ').slice(0, 16)],
    ['On time', 'plain', (row) => state(percent(row.on_time), grave(row.on_time))],
    ['Products', 'number', (row) => count(row.count)],
    ['Longest, of the budget', 'number', (row) => percent(row.max)],
    ['Worst contact', 'plain', (row) => (row.worst ? link(row.worst) : '–')],
  ];
  return [
    s('svg', { class: 'plot', viewBox: `0 0 ${WIDTH} ${8 * ROW + 22}`, role: 'group',
      'aria-label': `Share on time of ${mission} by day and hour; the table below names what was `
        + 'late' }, days, hours, cells),
    table('Hours in which something was late, newest first', columns,
      bad.map((row) => ({ ...row, id: row.at })), 'Nothing was late in the last 7 days.'),
  ];
}

function cell(row, x, y, step) {
  const level = grave(row.on_time);
  const mark = { class: 'inside', x: x + step / 2, y: y + 15, 'text-anchor': 'middle' };
  const parts = [
    s('rect', { class: `heat-${level}`, x: x + 1, y: y + 1, width: step - 2, height: ROW - 2 }),
    MARKS[level] ? s('text', mark, MARKS[level]) : null,
    s('title', {}, `${row.at}: ${percent(row.on_time)} of ${count(row.count)} on time`
      + `${row.worst ? `, worst contact ${row.worst}` : ''}`),
  ];
  if (level === 'ok' || !row.worst) return s('g', {}, parts);
  return s('a', { href: `#contact/${encodeURIComponent(row.worst)}`,
    'aria-label': `${row.at}, worst contact ${row.worst}` }, parts);
}

/** The stages of frames since the node started. */
function frames(page) {
  return h('section', { 'data-key': 'frames' }, h('h2', {}, 'Frames by stage'),
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
    ], page.rows, 'No frame was measured: a node that receives measures them.'));
}
