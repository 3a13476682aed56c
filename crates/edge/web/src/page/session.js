// @ts-check
// Who looks at the page: logging in and out, and how orders go to the node.

import { h } from './show.js';

/** Who looks, as the node says. */
export const session = { user: null, token: null, role: null, login: false };

/** A person who does something says so at most this often. */
const KEEP_EVERY = 60000;
let kept = 0;

/** Asks the node who looks. Returns whether it answered. */
export async function loadSession() {
  try {
    const answer = await fetch('api/v1/session');
    if (!answer.ok) return false;
    Object.assign(session, await answer.json());
    return true;
  } catch (error) {
    return false;
  }
}

/** Whether the figures of the node are shown to who looks. */
export function maySee() {
  return ['viewer', 'operator', 'admin'].includes(session.role);
}

/** Whether who looks gives orders. */
export function mayOrder() {
  return ['operator', 'admin'].includes(session.role);
}

/** Sends an order. Returns what became of it, with `description` where it was refused. */
export async function post(path, body) {
  try {
    const answer = await fetch(`api/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    const said = text ? JSON.parse(text) : {};
    return answer.ok ? said : { description: said.description || 'the node refused it' };
  } catch (error) {
    return { description: 'the node does not answer' };
  }
}

/** Keeps the session while a person does something. */
export function keepAwake() {
  const keep = () => {
    if (!session.user || Date.now() - kept < KEEP_EVERY) return;
    kept = Date.now();
    post('session/keep', {});
  };
  addEventListener('pointerdown', keep);
  addEventListener('keydown', keep);
}

/** Says in the head of the page who looks. */
export function account() {
  const place = document.getElementById('account');
  // Where the form is all there is, nothing leads to it.
  if (!place || !session.login || !(session.user || maySee())) return;
  const out = async () => {
    await post('session/end', {});
    location.reload();
  };
  place.replaceChildren(...(session.user
    ? [`${session.user} (${session.role}) `,
      h('button', { type: 'button', id: 'logout', onclick: out }, 'Log out')]
    : [h('a', { href: '#login' }, 'Log in')]));
}

function field(label, attributes) {
  return h('label', {}, h('span', {}, label), h('input', { required: true, ...attributes }));
}

/** The form of a login. */
export function loginForm() {
  const said = h('p', { class: 'said', role: 'alert', id: 'login-said' });
  const enter = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const answer = await post('session', {
      name: form.get('name'), password: form.get('password'),
    });
    if (answer.description) {
      // The form that stands: the screen may have been drawn again.
      const place = document.getElementById('login-said');
      if (place) place.textContent = `${answer.description}.`;
      return;
    }
    if (location.hash === '#login') location.hash = '#now';
    location.reload();
  };
  return h('section', { 'aria-labelledby': 'login-title', class: 'login', 'data-key': 'login' },
    h('h2', { id: 'login-title' }, 'Log in'),
    h('form', { onsubmit: enter },
      field('Name', { name: 'name', autocomplete: 'username', maxlength: 64 }),
      field('Password', {
        name: 'password', type: 'password', autocomplete: 'current-password', maxlength: 256,
      }),
      h('button', { type: 'submit' }, 'Log in')),
    said);
}

/** The screen of a login. */
export const login = { lists: () => [], draw: () => loginForm() };
