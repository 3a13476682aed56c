// @ts-check
// The looks of the node as they come, and what is asked for beside them.

import { loadSession, maySee } from './session.js';
import { h, time } from './show.js';

/** The newest look, and the stream of which it came. */
export const live = { look: null, came: 0, isStale: false, rates: [], stream: null };

/** Without a look for so long the page is stale. */
const STALE = 4000;
/** Seconds whose rates are kept: ten minutes. */
const SECONDS = 600;
/** The rates of a look, and the series that the node keeps of each. */
const RATES = {
  captured_bps: 'node/all/captured_bps',
  sent_bps: 'node/all/sent_bps',
  received_bps: 'node/all/received_bps',
  waiting_bytes: 'spool/all/waiting_bytes',
};
/** After a refusal the stream is asked for again. */
const AGAIN = 3000;

/** Follows the node; `changed` is called after each look, and when the page gets stale. */
export function follow(changed) {
  connect(changed);
  loadRates();
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      disconnect();
    } else {
      connect(changed);
      live.rates = [];
      loadRates();
    }
  });
  setInterval(() => {
    if (document.hidden) return;
    const isStale = Date.now() - live.came > STALE;
    if (isStale !== live.isStale) {
      live.isStale = isStale;
      sayStale();
      if (!isStale) {
        live.rates = [];
        loadRates();
      }
    }
  }, 500);
}

/**
 * Opens the stream of looks. A browser opens six connections to a node at the most, for all its
 * tabs: one that nobody sees holds none of them.
 */
function connect(changed) {
  if (document.hidden || live.stream) return;
  const stream = new EventSource('api/v1/stream');
  live.stream = stream;
  stream.addEventListener('look', (event) => {
    take(JSON.parse(event.data));
    changed();
  });
  stream.addEventListener('error', () => {
    if (stream.readyState !== EventSource.CLOSED || live.stream !== stream) return;
    live.stream = null;
    setTimeout(() => again(changed), AGAIN);
  });
}

function disconnect() {
  live.stream?.close();
  live.stream = null;
}

/** Refused: who looks may have to log in again. */
async function again(changed) {
  if (await loadSession() && !maySee()) location.reload();
  else connect(changed);
}

function take(look) {
  live.look = look;
  live.came = Date.now();
  const row = { at: look.at, ...look.rates };
  const last = live.rates.at(-1);
  if (!last || row.at > last.at) live.rates.push(row);
  if (live.rates.length > SECONDS) live.rates.splice(0, live.rates.length - SECONDS);
}

/** Loads the rates of the seconds before the page was there. */
async function loadRates() {
  const { series = [] } = await ask('history');
  const names = Object.keys(RATES).filter((name) => series.some((one) => one.name === RATES[name]));
  const wanted = names.map((name) => ask('history',
    { series: RATES[name], last: '10 min', step: '1 s' }));
  const answers = await Promise.all(wanted);
  const seconds = new Map();
  answers.forEach(({ rows = [] }, nth) => rows.forEach(({ at, mean }) => {
    seconds.set(at, { ...seconds.get(at), at, [names[nth]]: mean });
  }));
  const first = live.rates.length > 0 ? live.rates[0].at : '~';
  const before = [...seconds.values()].filter(({ at }) => at < first);
  before.sort((one, other) => (one.at < other.at ? -1 : 1));
  live.rates = [...before, ...live.rates].slice(-SECONDS);
}

function sayStale() {
  const place = document.getElementById('stale');
  if (!place) return;
  place.hidden = !live.isStale;
  const since = live.look ? time(live.look.at, null) : null;
  place.replaceChildren(...(since
    ? ['■ Stale since ', since, ' UTC: the node does not answer. What is below is from then.']
    : ['■ The node does not answer.']));
  document.body.classList.toggle('is-stale', live.isStale);
}

/** A page of a list; an object with `description` where it is refused. */
export async function ask(list, query = {}) {
  const wanted = Object.entries(query).filter(([, value]) => value);
  const text = new URLSearchParams(wanted).toString();
  try {
    const answer = await fetch(`api/v1/${list}${text ? `?${text}` : ''}`);
    return await answer.json();
  } catch (error) {
    return { description: 'the node does not answer' };
  }
}

/** What is shown in place of an answer that did not come. */
export function refusal(answer) {
  return h('p', { class: 'none' }, `No answer: ${answer.description || 'nothing came'}.`);
}
