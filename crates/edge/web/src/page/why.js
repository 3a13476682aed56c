// @ts-check
// Why something is as slow as it is: the verdict of `skyhaul why`, measured when somebody looks.

import { ask } from './live.js';
import { card, facts, h, time } from './show.js';

/** What was asked last, and the answer. */
const asked = { about: '', answer: null, isAsking: false };

/** Asks for the verdict on something; `changed` is called when it is there. */
async function measure(about, query, changed) {
  Object.assign(asked, { about, answer: null, isAsking: true });
  const answer = await ask('why', query);
  // Meanwhile somebody may look at something else.
  if (asked.about !== about) return;
  Object.assign(asked, { answer, isAsking: false });
  changed();
}

/** A card with the verdict on what `query` names, which is measured when it is shown first. */
export function whyCard(query, at, changed) {
  const about = JSON.stringify(query);
  if (asked.about !== about) measure(about, query, changed);
  const again = () => {
    measure(about, query, changed);
    changed();
  };
  return card('Why', said(asked.answer, at), h('p', { class: 'tools' },
    h('button', { type: 'button', onclick: again, disabled: asked.isAsking }, 'Measure again')));
}

function said(answer, at) {
  if (!answer) return h('p', { role: 'status' }, 'Measuring for 4 s.');
  // What is not under way has no verdict, and the node says so.
  if (answer.description) return h('p', { role: 'status' }, `${sentence(answer.description)}`);
  return [
    h('p', { role: 'status', class: 'said-why' }, sentence(answer.sentence)),
    facts([
      ['To do', answer.what_to_do],
      ['Sure', `${Math.round(answer.confidence * 100)} %`],
      ['Judged', answer.transfer],
      ['At UTC', time(answer.at, at)],
    ]),
    h('details', {}, h('summary', {}, 'The figures behind it'),
      h('ul', {}, answer.evidence.map((one) => h('li', {}, one)),
        answer.others.map((one) => h('li', {}, `Less likely: ${one.sentence}`)))),
  ];
}

function sentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
