// Drives an A2A server with the official JavaScript client, @a2a-js/sdk 0.3.
//
// Usage: client.mjs BASE_URL

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  TaskNotFoundError,
} from '@a2a-js/sdk/client';

const LIMIT = 10_000; // milliseconds for one check
const TOTAL = 50_000; // milliseconds for all of them
const TERMINAL = ['completed', 'failed', 'canceled', 'rejected'];

// Where the text comes in status messages, and a finished turn waits for the next message.
const TALKS = process.env.NUNCIO_TEST_PROFILE === 'iac-code';
const DONE = TALKS ? 'input-required' : 'completed';
// Where something comes beside the pieces of the text: the whole of it once more, or a summary.
const SUMS_UP = ['proto-agent', 'coding-agent'].includes(process.env.NUNCIO_TEST_PROFILE);

class Skip extends Error {} // this SDK has no way to do it

const textOf = (parts = []) => parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
const saidOn = (task) =>
  [...(task.history ?? []).filter(({ role }) => role === 'agent'), task.status?.message]
    .map((message) => textOf(message?.parts))
    .join('');
const outputOf = (task) =>
  TALKS ? saidOn(task) : (task.artifacts ?? []).map((artifact) => textOf(artifact.parts)).join('');

function expect(condition, why) {
  if (!condition) throw new Error(why);
}

function expectState(task, state) {
  expect(task.status?.state === state, `state is ${task.status?.state}, not ${state}`);
}

// The chunks carry consecutive numbers, so a lost or doubled one shows.
function expectNumbers(text, count) {
  const numbers = (text.match(/\d+/g) ?? []).map(Number);
  const inOrder = numbers.every((number, i) => number === numbers[0] + i) && numbers[0] <= 1;
  expect(numbers.length === count && inOrder, `chunks are not ${count} in order: ${text}`);
}

function request(parts, { wait = true, ...ids } = {}) {
  parts = parts.map((part) => (typeof part === 'string' ? { kind: 'text', text: part } : part));
  return {
    message: { kind: 'message', messageId: randomUUID(), role: 'user', parts, ...ids },
    configuration: { blocking: wait },
  };
}

// All checks over one transport.
class Checks {
  constructor(label, client, signal) {
    this.label = label;
    this.client = client;
    this.options = { signal }; // ends what is still under way when the time of a check is up
  }

  send(parts, how) {
    return this.client.sendMessage(request(parts, how), this.options);
  }

  async task(parts, how) {
    const answer = await this.send(parts, how);
    expect(answer.kind === 'task', `answer is no task: ${JSON.stringify(answer)}`);
    return answer;
  }

  get(id, options = {}) {
    return this.client.getTask({ id, ...options }, this.options);
  }

  async finished(id) {
    for (;;) {
      const task = await this.get(id); // fails once the time of the check is up
      if (TERMINAL.includes(task.status.state) || task.status.state === DONE) return task;
      await pause(50);
    }
  }

  // Follows a stream to its end and returns the text of each chunk.
  async follow(events) {
    let chunks = [];
    let ids = new Set();
    let state;
    let first = true;
    let final = false;
    for await (const event of events) {
      expect(!first || event.kind === 'task', `first event is a ${event.kind}`);
      first = false;
      if (event.kind === 'task') {
        state = event.status.state;
        chunks = outputOf(event) ? [outputOf(event)] : [];
        ids = new Set(event.artifacts?.map((artifact) => artifact.artifactId));
      } else if (event.kind === 'status-update') {
        state = event.status.state;
        final = event.final;
        if (TALKS && event.status.message) chunks.push(textOf(event.status.message.parts));
      } else if (event.kind === 'artifact-update') {
        const text = textOf(event.artifact.parts);
        if (SUMS_UP && (!text || text === chunks.join(''))) continue;
        // This SDK drops the flag over REST.
        const appended = SUMS_UP || this.label === 'rest' || Boolean(event.append) === chunks.length > 0;
        expect(appended, `append is ${event.append} on a chunk`);
        chunks.push(text);
        ids.add(event.artifact.artifactId);
      }
    }
    expect(state === DONE, `the stream ended in state ${state}`);
    expect(final, 'the last status is not final');
    expect(ids.size === (TALKS ? 0 : 1), `artifacts: ${[...ids]}`);
    return chunks;
  }

  checks = {
    'send': async () => {
      const task = await this.task(['hello there']);
      expectState(task, DONE);
      expect(outputOf(task) === 'hello there', `echo is ${outputOf(task)}`);
    },

    'send-without-waiting': async () => {
      const task = await this.task(['stream 5 50'], { wait: false });
      expect(!TERMINAL.includes(task.status.state), 'the answer came after the work');
      const done = await this.finished(task.id);
      expectState(done, DONE);
      expectNumbers(outputOf(done), 5);
    },

    'stream': async () => {
      const chunks = await this.follow(
        this.client.sendMessageStream(request(['stream 5 10']), this.options)
      );
      expect(chunks.length === 5, `${chunks.length} chunks`);
      expectNumbers(chunks.join(''), 5);
    },

    'subscribe': async () => {
      const { id } = await this.task(['stream 50 20'], { wait: false });
      await pause(300);
      const chunks = await this.follow(
        this.client.resubscribeTask({ id }, this.options)
      );
      expect(chunks.length > 1, 'nothing came after the snapshot');
      expectNumbers(chunks.join(''), 50);
      expect(outputOf(await this.get(id)) === chunks.join(''), 'the task differs from its stream');
    },

    'follow-up': async () => {
      const task = await this.task(['ask What?']);
      expectState(task, 'input-required');
      expect(textOf(task.status.message?.parts).includes('What?'), 'the question is missing');
      const { id: taskId, contextId } = task;
      const done = await this.task(['because'], { taskId, contextId });
      expectState(done, DONE);
      expect(done.id === task.id && done.contextId === task.contextId, 'another task answered');
      expect(outputOf(done).includes('because'), `echo is ${outputOf(done)}`);
    },

    'history-length': async () => {
      const { id, contextId } = await this.task(['ask What?']);
      await this.task(['because'], { taskId: id, contextId });
      const { history: whole = [] } = await this.get(id);
      expect(whole.length >= 2, `history has ${whole.length} messages`);
      const { history: none = [] } = await this.get(id, { historyLength: 0 });
      // 0.3 leaves open which of them.
      expect(none.length === 0 || isDeepStrictEqual(none, whole), `0 gave ${none.length} messages`);
      const { history: one } = await this.get(id, { historyLength: 1 });
      expect(isDeepStrictEqual(one, whole.slice(-1)), '1 did not give the newest message');
    },

    'list': async () => {
      throw new Skip('this SDK cannot list tasks');
    },

    'cancel': async () => {
      const { id } = await this.task(['hold'], { wait: false });
      const canceled = await this.client.cancelTask({ id }, this.options);
      expectState(canceled, 'canceled');
      expectState(await this.get(id), 'canceled');
    },

    'unknown-task': async () => {
      const error = await this.get(randomUUID()).catch((error) => error);
      expect(error instanceof TaskNotFoundError, `got ${error?.constructor?.name}: ${error?.message}`);
    },

    'subscribe-unknown-task': async () => {
      const missing = { id: randomUUID() };
      let error = await this.follow(this.client.resubscribeTask(missing, this.options)).catch((e) => e);
      // Over JSON-RPC this SDK reads errors only from a stream, and wraps them.
      if (this.label === 'jsonrpc') error = error.cause ?? error;
      expect(error instanceof TaskNotFoundError, `got ${error?.constructor?.name}: ${error?.message}`);
    },

    'direct-message': async () => {
      const answer = await this.send(['message hi']);
      expect(answer.kind === 'message', `answer is a ${answer.kind}`);
      expect(answer.role === 'agent', 'the role is not agent');
      expect(textOf(answer.parts) === 'hi', `text is ${textOf(answer.parts)}`);
    },

    'direct-message-stream': async () => {
      const kinds = [];
      for await (const { kind } of this.client.sendMessageStream(request(['message hi']), this.options)) {
        kinds.push(kind);
      }
      expect(kinds.join() === 'message', `events: ${kinds}`);
    },

    'failure': async () => {
      const task = await this.task(['fail boom']);
      expectState(task, 'failed');
      expect(textOf(task.status.message?.parts).includes('boom'), 'the text is missing');
    },

    'file-and-data': async () => {
      const bytes = Buffer.from([0, 255, 254]).toString('base64');
      const file = { kind: 'file', file: { bytes, mimeType: 'application/octet-stream' } };
      const data = { kind: 'data', data: { a: [1, null, 'x'] } };
      const task = await this.task(['echo me', file, data]);
      expectState(task, DONE);
      expect(outputOf(task).includes('echo me'), `echo is ${outputOf(task)}`);
      const sent = (await this.get(task.id)).history[0].parts;
      expect(isDeepStrictEqual(sent[2], data), `history holds ${JSON.stringify(sent)}`);
      expect(sent[1].kind === 'file', `history holds ${JSON.stringify(sent)}`);
      // Over REST, 0.3 SDKs disagree on how bytes are encoded, so only JSON-RPC can be compared.
      if (this.label === 'rest') return;
      expect(isDeepStrictEqual(sent[1], file), `history holds ${JSON.stringify(sent)}`);
    },
  };
}

const [baseUrl] = process.argv.slice(2);
if (!baseUrl) {
  console.error('usage: client.mjs BASE_URL');
  process.exit(2);
}

const started = performance.now();
let passed = 0;
let failed = 0;
let skipped = 0;

async function run(name, work) {
  const left = Math.max(10, Math.min(LIMIT, TOTAL - (performance.now() - started)));
  const stop = new AbortController();
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error('no result in time'));
      stop.abort();
    }, left);
  });
  try {
    const result = await Promise.race([work(stop.signal), late]);
    passed++;
    console.log(`ok ${name}`);
    return result;
  } catch (error) {
    if (error instanceof Skip) {
      skipped++;
      console.log(`SKIP ${name}: ${error.message}`);
      return;
    }
    failed++;
    console.log(`FAIL ${name}: ${error.message}`.replaceAll('\n', ' '));
  } finally {
    clearTimeout(timer);
  }
}

const card = await run('card', () => new DefaultAgentCardResolver().resolve(baseUrl));
for (const [label, transport] of [
  ['jsonrpc', new JsonRpcTransportFactory()],
  ['rest', new RestTransportFactory()],
]) {
  if (!card) break;
  const client = await run(`${label} connect`, () => {
    const others = card.additionalInterfaces?.map((i) => i.transport) ?? [];
    const offered = [card.preferredTransport ?? 'JSONRPC', ...others];
    expect(offered.includes(transport.protocolName), `the card offers only ${offered}`);
    return new ClientFactory({ transports: [transport] }).createFromAgentCard(card);
  });
  if (!client) continue;
  for (const name of Object.keys(new Checks(label, client).checks)) {
    await run(`${label} ${name}`, (signal) => new Checks(label, client, signal).checks[name]());
  }
}

console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed ? 1 : 0);
