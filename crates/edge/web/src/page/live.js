// @ts-check
// The looks of the node as they come, and what is asked for beside them.

import { loadSession, maySee } from './session.js';
import { h, time } from './show.js';

/** The newest look. */
export const live = { look: null, came: 0, isStale: false, history: [] };

/** Without a look for so long the page is stale. */
const STALE = 4000;
/** Rows of history that are kept: ten minutes. */
const HISTORY = 600;
/** After a refusal the stream is asked for again. */
const AGAIN = 3000;

/** Follows the node; `changed` is called after each look, and when the page gets stale. */
export function follow(changed) {
  connect(changed);
  loadHistory();
  setInterval(() => {
    const isStale = Date.now() - live.came > STALE;
    if (isStale !== live.isStale) {
      live.isStale = isStale;
      sayStale();
      if (!isStale) loadHistory();
    }
  }, 500);
}

function connect(changed) {
  const stream = new EventSource('api/v1/stream');
  stream.addEventListener('look', (event) => {
    take(JSON.parse(event.data));
    changed();
  });
  stream.addEventListener('error', () => {
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => again(changed), AGAIN);
  });
}

/** Refused: who looks may have to log in again. */
async function again(changed) {
  if (await loadSession() && !maySee()) location.reload();
  else connect(changed);
}

function take(look) {
  live.look = look;
  live.came = Date.now();
  const row = look.history;
  const last = live.history.at(-1);
  if (row && (!last || row.at > last.at)) live.history.push(row);
  if (live.history.length > HISTORY) live.history.splice(0, live.history.length - HISTORY);
}

async function loadHistory() {
  const answer = await ask('history', { limit: '1000' });
  if (answer.rows) live.history = answer.rows;
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
