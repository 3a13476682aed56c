// @ts-check
// Orders: buttons, and dialogs that ask before an order is given.

import { post, session } from './session.js';
import { h } from './show.js';

/** A button that opens the dialog of an order. */
export function orderButton(text, label, order) {
  const open = () => document.body.append(orderDialog(order));
  return h('button', { type: 'button', 'data-key': `order-${label}`, 'aria-label': label,
    onclick: open }, text);
}

/** A button that says who works on an alarm. */
export function acknowledgeButton(alarm) {
  return orderButton('Acknowledge', `Acknowledge ${alarm.subject}`, {
    title: 'Acknowledge',
    text: alarm.sentence,
    field: { name: 'note', label: 'Note for the others', maxlength: 500 },
    path: `alarms/${encodeURIComponent(alarm.id)}/ack`,
  });
}

/**
 * A dialog that gives an order: `title` is what is done, `text` what that means, `field` what is
 * said with it, `path` where it goes; `done` is called after it.
 */
function orderDialog({ title, text, field = null, path, done = () => {} }) {
  const said = h('p', { class: 'said', role: 'alert' });
  const close = () => dialog.close();
  const give = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const answer = await post(path, field ? { [field.name]: form.get(field.name) } : {});
    if (answer.description) {
      said.textContent = `${answer.description}.`;
      return;
    }
    close();
    done();
  };
  const id = `order-${Date.now()}`;
  const input = field && h('label', {}, h('span', {}, field.label),
    h('input', { name: field.name, maxlength: field.maxlength, size: 40 }));
  const dialog = /** @type {HTMLDialogElement} */ (h('dialog', { 'aria-labelledby': id },
    h('h2', { id }, title),
    h('p', {}, text),
    h('form', { onsubmit: give }, input,
      h('p', { class: 'tools' },
        h('button', { type: 'submit' }, `${title} as ${session.user || session.token}`),
        h('button', { type: 'button', onclick: close }, 'Cancel'))),
    said));
  dialog.addEventListener('close', () => dialog.remove());
  // It has to be in the page before it is shown.
  queueMicrotask(() => dialog.showModal());
  return dialog;
}
