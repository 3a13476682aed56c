// @ts-check
// The frame of the page: which screen is shown, and when it is drawn.

import { ask, follow, live, refusal } from './live.js';
import { account, keepAwake, loadSession, login, loginForm, maySee, session } from './session.js';
import { TURNED, h, morph, span, time } from './show.js';
import { admin } from './admin.js';
import { now } from './now.js';
import { contact, contacts } from './contacts.js';
import { delivery, stream } from './details.js';
import { events } from './events.js';
import { alarms, deliveries, gaps, products, queues } from './lists.js';
import { latency } from './latency.js';
import { lines } from './measures.js';
import { node, nodes, strange } from './nodes.js';
import { passes } from './passes.js';

// A screen says what it asks for (`lists`), and draws the answers.
const SCREENS = [
  { name: 'now', title: 'Now', draw: now, lists: () => [] },
  { name: 'contacts', title: 'Contacts', ...contacts },
  { name: 'passes', title: 'Passes', ...passes },
  { name: 'queues', title: 'Queues', ...queues },
  { name: 'lines', title: 'Lines', ...lines },
  { name: 'nodes', title: 'Nodes', ...nodes },
  { name: 'products', title: 'Products', ...products },
  { name: 'deliveries', title: 'Deliveries', ...deliveries },
  { name: 'gaps', title: 'Gaps', ...gaps },
  { name: 'alarms', title: 'Alarms', ...alarms },
  { name: 'events', title: 'Events', ...events },
  { name: 'latency', title: 'Latency', ...latency },
  { name: 'admin', title: 'Admin', role: 'admin', ...admin },
];
/** Screens of one thing, with the screen that lists such things. */
const DETAILS = [
  { name: 'contact', title: 'Contact', of: 'contacts', ...contact },
  { name: 'delivery', title: 'Delivery', of: 'deliveries', ...delivery },
  { name: 'stream', title: 'Stream', of: 'queues', ...stream },
  { name: 'node', title: 'Node', of: 'nodes', ...node },
];
const LOGIN = { name: 'login', title: 'Log in', ...login };

/** A node that does not answer is asked again who looks. */
const AGAIN = 3000;

/** Lists are asked for again so often. */
const EVERY = 2000;

const shown = { screen: SCREENS[0], argument: '', answers: [], asked: 0, isAsking: false };

function place() {
  return /** @type {HTMLElement} */ (document.getElementById('screen'));
}

function route() {
  const [name, ...rest] = location.hash.slice(1).split('/');
  const screen = [...SCREENS, ...DETAILS, LOGIN].find((one) => one.name === name) || SCREENS[0];
  const argument = decodeURIComponent(rest.join('/'));
  const isOther = screen !== shown.screen || argument !== shown.argument;
  Object.assign(shown, { screen, argument, asked: 0 });
  if (isOther) {
    shown.answers = [];
    place().replaceChildren(h('p', { class: 'none' }, 'Asking the node.'));
    place().focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  const node = live.look ? ` · ${live.look.node.name}` : '';
  document.title = `${screen.title}${node} · Skyhaul`;
  menu();
  refresh();
}

function menu() {
  const current = shown.screen.of || shown.screen.name;
  const counts = live.look ? { alarms: live.look.alarm_count, nodes: strange(live.look) } : {};
  const mine = SCREENS.filter(({ role }) => !role || role === session.role);
  const items = mine.map(({ name, title }) => h('li', {},
    h('a', { href: `#${name}`, 'aria-current': name === current ? 'page' : null },
      counts[name] ? `${title} (${counts[name]})` : title)));
  const list = /** @type {HTMLElement} */ (document.getElementById('screens'));
  morph(list, h('ul', { id: 'screens' }, items));
}

/** Asks for the lists of the screen, when it is time, and draws it. */
async function refresh() {
  const { screen, argument } = shown;
  const wanted = screen.lists(argument);
  const isDue = Date.now() - shown.asked >= (screen.every || EVERY);
  if (wanted.length > 0 && isDue && !shown.isAsking) {
    shown.isAsking = true;
    shown.asked = Date.now();
    const answers = await Promise.all(wanted.map(([list, query]) => ask(list, query)));
    shown.isAsking = false;
    // Meanwhile another screen may have been chosen.
    if (shown.screen !== screen || shown.argument !== argument) return refresh();
    shown.answers = answers;
  }
  draw();
}

function draw() {
  const { screen, argument, answers } = shown;
  const look = live.look;
  if (!look) return;
  head(look);
  menu();
  const lacks = answers.find((answer) => answer.description);
  if (answers.length < screen.lists(argument).length) return;
  const content = lacks ? refusal(lacks) : screen.draw(look, answers, argument, refreshNow);
  morph(place(), h('main', { id: 'screen', tabindex: '-1' }, content));
}

function refreshNow() {
  shown.asked = 0;
  refresh();
}

function head(look) {
  const { name, version, uptime_s: uptime } = look.node;
  const title = document.getElementById('node');
  if (title) title.textContent = name || 'Skyhaul';
  const clock = document.getElementById('clock');
  if (clock) {
    const rest = ` UTC · Skyhaul ${version}, up for ${span(uptime)}`;
    clock.replaceChildren(time(look.at, null), rest);
  }
  document.title = `${shown.screen.title} · ${name} · Skyhaul`;
}

async function begin() {
  if (!await loadSession()) {
    setTimeout(begin, AGAIN);
    return;
  }
  account();
  keepAwake();
  if (!maySee()) {
    document.title = 'Log in · Skyhaul';
    place().replaceChildren(loginForm());
    return;
  }
  addEventListener('hashchange', route);
  addEventListener(TURNED, draw);
  route();
  follow(refresh);
}

begin();
