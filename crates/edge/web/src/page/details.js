// @ts-check
// A delivery, and a stream: where it is, and why it is no further.

import { bytes, card, count, facts, h, state, time } from './show.js';
import { whyCard } from './why.js';

export const delivery = {
  lists: (id) => [[`deliveries/${encodeURIComponent(id)}`, {}]],
  draw: (look, [row], id, again) => [
    h('p', { class: `verdict ${deliveryGrave(row)}`, role: 'status' }, deliverySentence(row)),
    h('div', { class: 'cards' },
      card(`Delivery ${id}`, facts([
        ['Product', row.name],
        ['Type and version', `${row.product}, version ${row.version}`],
        ['To', row.destination],
        ['Subscription', row.subscription],
        ['State', state(row.state)],
        ['Since UTC', time(row.since, look.at)],
        ['Due UTC', row.deadline ? time(row.deadline, look.at) : null],
        ['Attempts', count(row.attempts)],
        ['Next UTC', row.next ? time(row.next, look.at) : null],
        ['Proof', row.proof],
        ['Reason', row.reason],
      ])),
      isUnderWay(row) ? whyCard({ delivery: id }, look.at, again) : null),
    h('p', {}, h('a', { href: '#deliveries' }, 'All deliveries')),
  ],
};

function isUnderWay(row) {
  return ['waiting', 'sending'].includes(row.state);
}

function deliveryGrave(row) {
  if (row.is_late || ['failed', 'refused', 'unanswered'].includes(row.state)) return 'alarm';
  return isUnderWay(row) || row.state === 'held' ? 'warning' : 'ok';
}

function deliverySentence(row) {
  const words = {
    waiting: 'It waits', held: 'An operator holds it', sending: 'Its files are on their way',
    placed: 'Its files are there', recorded: 'It is there', accepted: 'It is there',
    refused: 'The consumer has refused it', unanswered: 'The consumer does not answer',
    failed: 'It does not go there', replaced: 'A newer version took its place',
    cancelled: 'An operator has cancelled it',
  };
  const late = row.is_late ? ', and it is late' : '';
  const reason = row.reason ? `: ${row.reason}` : '';
  return `${words[row.state] || row.state}${late}${reason}.`;
}

export const stream = {
  lists: (id) => [[`queues/${encodeURIComponent(id)}`, {}]],
  draw: (look, [row], id, again) => [
    h('p', { class: `verdict ${streamGrave(row)}`, role: 'status' }, streamSentence(row)),
    h('div', { class: 'cards' },
      card('Stream', facts([
        ['From', row.name],
        ['To', row.to],
        ['State', state(row.state)],
        ['Frames in time', count(row.done)],
        ['Frames lost or late', count(row.lost)],
        ['Bytes waiting', row.waiting_bytes === undefined ? null : bytes(row.waiting_bytes)],
        ['Reason', row.why],
      ])),
      whyCard({ stream: id }, look.at, again)),
    h('p', {}, h('a', { href: '#queues' }, 'All queues')),
  ],
};

function streamGrave(row) {
  if (row.state === 'failed') return 'alarm';
  return row.lost > 0 || row.state === 'waiting' ? 'warning' : 'ok';
}

function streamSentence(row) {
  const words = {
    waiting: 'It waits for the line', source: 'It waits for its source', streaming: 'It runs',
    ended: 'It is complete', failed: 'It failed and is tried again',
  };
  const all = row.done + row.lost;
  const lost = row.lost > 0 ? `: ${count(row.lost)} of ${count(all)} frames did not come in time`
    : '';
  return `${words[row.state] || row.state}${row.why ? ` (${row.why})` : ''}${lost}.`;
}
