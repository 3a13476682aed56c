// @ts-check
// Admin: who may come, with which keys, what was ordered, and whether the file is the one in force.

import { ask } from './live.js';
import { orderButton } from './orders.js';
import { card, count, facts, h, span, state, table, time, verdict, wide } from './show.js';

/** Files of the node are read for this screen: they change seldom. */
const EVERY = 10000;

/** What was found when somebody had the audit log checked. */
const checked = { answer: null, isAsking: false };

export const admin = {
  every: EVERY,
  lists: () => [['keys', {}], ['users', {}], ['config', {}], ['audit', {}]],
  draw: (look, [keys, users, config, audit], _, again) => [
    verdict(judgement(look, keys, users, config)),
    h('div', { class: 'cards' },
      wide('Keys', keyTable(look, keys, again)),
      wide('Tokens', tokenTable(look, users.tokens)),
      card('Users', userTable(users.users)),
      card('Version', version(look)),
      wide('Configuration', configuration(look, config)),
      wide('Audit log', auditCheck(again), orderTable(look, audit.rows))),
  ],
};

/** Whether something waits for an admin, in one sentence. */
function judgement(look, keys, users, config) {
  const say = (level, text) => ({ level, text });
  if (config.error) return say('alarm', `The node would refuse its file: ${config.error}.`);
  if (keys.next && keys.next.stuck) {
    return say('alarm', `The key of this node cannot change: ${keys.next.stuck}.`);
  }
  if (config.differences.length > 0) {
    const differ = number(config.differences.length + config.left_out,
      'key of the configuration differs', 'keys of the configuration differ');
    return say('warning',
      `${differ} between the file and what is in force: reload or restart the node.`);
  }
  if (config.waits.length > 0) {
    return say('warning', `${config.waits.join(', ')} waits for a restart of the node.`);
  }
  if (keys.next) return say('warning', `The key of this node changes: ${waits(keys.next)}.`);
  const expired = users.tokens.filter((one) => isOver(one, look.at)).length;
  if (expired > 0) {
    const them = expired === 1 ? 'it' : 'them';
    return say('warning',
      `${number(expired, 'token has', 'tokens have')} expired: remove ${them}.`);
  }
  return say('ok', 'All is in order: no key changes, and the file is the one in force.');
}

function number(of, one, several) {
  return `${count(of)} ${of === 1 ? one : several}`;
}

function waits(next) {
  return next.waits_for.length > 0 ? `${next.waits_for.join(', ')} have to note it`
    : 'the next step comes by itself';
}

function isOver({ expires }, now) {
  return Boolean(expires) && expires <= now;
}

/** Each key once, with what it is to this node. */
function keyRows(keys) {
  const own = (key, word, grave, note) => ({ of: 'this node', key, word, grave, note });
  const rows = [own(keys.key, 'in use', 'ok', `since ${keys.since.slice(0, 10)}`)];
  if (keys.next) {
    const isStaged = keys.next.stage === 'staged';
    const key = isStaged ? keys.next.key : keys.next.former;
    rows.push(own(key, isStaged ? 'staged' : 'switched from', 'warning', waits(keys.next)));
  }
  for (const peer of keys.peers) {
    if (peer.accepted.length === 0) {
      rows.push({ of: peer.name, key: '', word: 'none accepted', grave: 'alarm', note: '' });
    }
    peer.accepted.forEach((key, nth) => {
      const isFormer = nth + 1 < peer.accepted.length;
      rows.push({ of: peer.name, key, word: 'accepted', grave: 'ok', isPeer: true,
        note: isFormer ? 'the newer one follows it' : '' });
    });
    for (const key of peer.out_of_use || []) {
      rows.push({ of: peer.name, key, word: 'out of use', grave: 'idle', note: '' });
    }
  }
  for (const one of keys.revoked || []) {
    rows.push({ of: one.peer || 'not known', key: one.key, word: 'revoked', grave: 'alarm',
      note: [one.at.slice(0, 19).replace('T', ' '), one.reason].filter(Boolean).join(', ') });
  }
  return rows.map((row) => ({ id: `${row.of}-${row.key}-${row.word}`, ...row }));
}

function keyTable(look, keys, again) {
  const columns = [
    ['Node', 'plain', (row) => row.of],
    ['State', 'plain', (row) => state(row.word, row.grave)],
    ['Key', 'text', (row) => h('code', {}, row.key)],
    ['Note', 'text', (row) => row.note],
    ['Order', 'plain', (row) => (row.isPeer ? revoke(row, again) : '')],
  ];
  return [
    table('Keys of this node and of others; skyhaul key show says the same', columns,
      keyRows(keys), 'No keys.'),
    keys.next ? null : h('p', { class: 'tools' },
      orderButton('Change the key', 'Change the key of this node', {
        title: 'Change the key',
        text: 'The node makes its next key and announces it to the nodes of its configuration. '
          + 'When all of them know it, it is used. No session ends, no configuration changes.',
        path: 'keys/rotate',
        done: again,
      })),
  ];
}

function revoke(row, again) {
  return orderButton('Revoke', `Revoke the key ${row.key} of ${row.of}`, {
    title: 'Revoke the key',
    text: `The key ${row.key} of ${row.of} is refused from now on, and its sessions end. Only `
      + 'skyhaul key allow takes that back.',
    field: { name: 'reason', label: 'Why, for the logs', maxlength: 500 },
    path: `keys/${encodeURIComponent(row.key)}/revoke`,
    done: again,
  });
}

function userTable(users) {
  const columns = [
    ['Name', 'plain', (row) => row.name],
    ['Role', 'plain', (row) => row.role],
    ['Here now', 'plain', (row) => (row.sessions > 0
      ? state(number(row.sessions, 'session', 'sessions'), 'ok') : '')],
    ['Made', 'plain', (row) => row.created.slice(0, 10)],
  ];
  return table('skyhaul web user changes them', columns,
    users.map((row) => ({ id: row.name, ...row })), 'No users.');
}

function tokenTable(look, tokens) {
  const columns = [
    ['Name', 'plain', (row) => row.name],
    ['Role', 'plain', (row) => row.role],
    ['Last used UTC', 'plain', (row) => (row.last_used ? time(row.last_used, look.at) : 'never')],
    ['Expires UTC', 'plain', (row) => (isOver(row, look.at) ? state('expired', 'warning')
      : row.expires ? time(row.expires, look.at) : 'never')],
    ['Made', 'plain', (row) => row.created.slice(0, 10)],
  ];
  return table('skyhaul web token changes them', columns,
    tokens.map((row) => ({ id: row.name, ...row })), 'No tokens.');
}

function configuration(look, config) {
  const columns = [
    ['Key', 'text', (row) => h('code', {}, row.id)],
    ['In force', 'text', (row) => value(row.in_force)],
    ['In the file', 'text', (row) => value(row.on_disk)],
  ];
  const rows = config.differences.map((row) => ({ id: row.key, ...row }));
  return [
    facts([
      ['File', h('code', {}, config.file)],
      ['Read UTC', time(config.read, look.at)],
      ['Waits for a restart', config.waits.join(', ')],
      ['Not listed', config.left_out > 0 ? count(config.left_out) : null],
      ['Would be refused now', config.error ? state(config.error, 'alarm') : null],
    ]),
    config.error && rows.length === 0 ? null
      : table('Keys that differ; skyhaul config diff says the same', columns, rows,
        'The file is the one in force.'),
  ];
}

function value(text) {
  return text === null ? 'not set' : h('code', {}, text);
}

/** Has the node read the whole audit log. */
async function check(again) {
  Object.assign(checked, { answer: null, isAsking: true });
  again();
  const answer = await ask('audit/check');
  Object.assign(checked, { answer, isAsking: false });
  again();
}

function auditCheck(again) {
  return [
    h('p', { role: 'status' }, chain()),
    h('p', { class: 'tools' }, h('button', { type: 'button', disabled: checked.isAsking,
      'data-key': 'check', onclick: () => check(again) }, 'Check the chain')),
  ];
}

function chain() {
  const { answer, isAsking } = checked;
  if (isAsking) return 'The node reads its audit log.';
  if (!answer) return 'Whether a line was changed, removed or put in is found by reading all.';
  if (answer.description) return state(`It cannot be read: ${answer.description}`, 'warning');
  const faults = answer.faults.length + answer.more;
  const read = `${number(answer.lines, 'line', 'lines')}, ${count(answer.compared)} compared with `
    + 'hashes of the event log';
  return faults === 0 ? [state('whole', 'ok'), `: ${read}.`]
    : [state(number(faults, 'fault', 'faults'), 'alarm'), `: ${read}. `,
      h('code', {}, 'skyhaul audit verify'), ' names them.'];
}

/** Who ordered what. */
function orderTable(look, rows) {
  return table('Newest first; skyhaul audit list shows all', [
    ['Number', 'number', (row) => row.id],
    ['At UTC', 'plain', (row) => time(row.at, look.at)],
    ['Who', 'text', (row) => [row.name || 'not known',
      h('span', { class: 'why' }, [row.by, row.address].filter(Boolean).join(' at '))]],
    ['Order', 'text', (row) => row.sentence],
    ['Outcome', 'text', (row) => (row.outcome
      ? [state(row.outcome), h('span', { class: 'why' }, row.said || '')]
      : state('not known', 'warning'))],
  ], rows, 'No orders.');
}

function version(look) {
  return facts([
    ['Node', look.node.name],
    ['Skyhaul', look.node.version],
    ['Up for', span(look.node.uptime_s)],
  ]);
}
