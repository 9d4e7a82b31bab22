// Drives an A2A server with the official JavaScript client, @a2a-js/sdk 1.3.
//
// Usage: client.mjs BASE_URL

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import {
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  Part,
  Role,
  SendMessageRequest,
  SubscribeToTaskRequest,
  TaskState,
} from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { TaskNotFoundError } from '@a2a-js/sdk/errors';

const LIMIT = 10_000; // milliseconds for one check
const TOTAL = 50_000; // milliseconds for all of them
const { TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_REJECTED } = TaskState;
const TERMINAL = [TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_REJECTED];

// Where the text comes in status messages, and a finished turn waits for the next message.
const TALKS = process.env.NUNCIO_TEST_PROFILE === 'iac-code';
const DONE = TALKS ? TaskState.TASK_STATE_INPUT_REQUIRED : TASK_STATE_COMPLETED;
// Where something comes beside the pieces of the text: the whole of it once more, or a summary.
const SUMS_UP = ['proto-agent', 'coding-agent'].includes(process.env.NUNCIO_TEST_PROFILE);

const textOf = (parts) =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
const saidOn = (task) =>
  [...task.history.filter(({ role }) => role === Role.ROLE_AGENT), task.status?.message]
    .map((message) => textOf(message?.parts ?? []))
    .join('');
const outputOf = (task) =>
  TALKS ? saidOn(task) : task.artifacts.map((artifact) => textOf(artifact.parts)).join('');

function expect(condition, why) {
  if (!condition) throw new Error(why);
}

function expectState(task, state) {
  expect(task.status?.state === state, `state is ${TaskState[task.status?.state]}, not ${TaskState[state]}`);
}

// The chunks carry consecutive numbers, so a lost or doubled one shows.
function expectNumbers(text, count) {
  const numbers = (text.match(/\d+/g) ?? []).map(Number);
  const inOrder = numbers.every((number, i) => number === numbers[0] + i) && numbers[0] <= 1;
  expect(numbers.length === count && inOrder, `chunks are not ${count} in order: ${text}`);
}

function request(parts, { wait = true, ...ids } = {}) {
  parts = parts.map((part) => (typeof part === 'string' ? { text: part } : part));
  return SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts, ...ids },
    configuration: { returnImmediately: !wait },
  });
}

// All checks over one transport.
class Checks {
  constructor(client, signal) {
    this.client = client;
    this.options = { signal }; // ends what is still under way when the time of a check is up
  }

  send(parts, how) {
    return this.client.sendMessage(request(parts, how), this.options);
  }

  async task(parts, how) {
    const answer = await this.send(parts, how);
    expect('status' in answer, `answer is no task: ${JSON.stringify(answer)}`);
    return answer;
  }

  get(id, options = {}) {
    return this.client.getTask(GetTaskRequest.fromJSON({ id, ...options }), this.options);
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
    for await (const { payload } of events) {
      expect(!first || payload?.$case === 'task', `first event is a ${payload?.$case}`);
      first = false;
      const event = payload.value;
      if (payload.$case === 'task') {
        state = event.status.state;
        chunks = outputOf(event) ? [outputOf(event)] : [];
        ids = new Set(event.artifacts.map((artifact) => artifact.artifactId));
      } else if (payload.$case === 'statusUpdate') {
        state = event.status.state;
        if (TALKS && event.status.message) chunks.push(textOf(event.status.message.parts));
      } else if (payload.$case === 'artifactUpdate') {
        const text = textOf(event.artifact.parts);
        if (SUMS_UP && (!text || text === chunks.join(''))) continue;
        expect(SUMS_UP || event.append === chunks.length > 0, `append is ${event.append} on a chunk`);
        chunks.push(text);
        ids.add(event.artifact.artifactId);
      }
    }
    expect(state === DONE, `the stream ended in state ${TaskState[state]}`);
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
        this.client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id }), this.options)
      );
      expect(chunks.length > 1, 'nothing came after the snapshot');
      expectNumbers(chunks.join(''), 50);
      expect(outputOf(await this.get(id)) === chunks.join(''), 'the task differs from its stream');
    },

    'follow-up': async () => {
      const task = await this.task(['ask What?']);
      expectState(task, TaskState.TASK_STATE_INPUT_REQUIRED);
      expect(textOf(task.status.message?.parts ?? []).includes('What?'), 'the question is missing');
      const done = await this.task(['because'], { taskId: task.id });
      expectState(done, DONE);
      expect(done.id === task.id && done.contextId === task.contextId, 'another task answered');
      expect(outputOf(done).includes('because'), `echo is ${outputOf(done)}`);
    },

    'history-length': async () => {
      const { id } = await this.task(['ask What?']);
      await this.task(['because'], { taskId: id });
      const { history: whole } = await this.get(id);
      expect(whole.length >= 2, `history has ${whole.length} messages`);
      const { history: none } = await this.get(id, { historyLength: 0 });
      expect(none.length === 0, `0 gave ${none.length} messages`);
      const { history: one } = await this.get(id, { historyLength: 1 });
      expect(isDeepStrictEqual(one, whole.slice(-1)), '1 did not give the newest message');
    },

    'list-pages': async () => {
      const { id, contextId } = await this.task(['one']);
      const created = [id];
      for (const text of ['two', 'three']) created.push((await this.task([text], { contextId })).id);
      let pageToken = '';
      const seen = [];
      const times = [];
      for (const page of [1, 2, 3]) {
        const answer = await this.client.listTasks(
          ListTasksRequest.fromJSON({ contextId, pageSize: 1, pageToken }),
          this.options
        );
        expect(answer.tasks.length === 1, `page ${page} has ${answer.tasks.length} tasks`);
        expect(answer.totalSize === 3 && answer.pageSize === 1, `sizes on page ${page} are wrong`);
        expect(answer.tasks[0].artifacts.length === 0, 'artifacts without being asked for');
        pageToken = answer.nextPageToken;
        expect((pageToken !== '') === page < 3, `token after page ${page} is ${pageToken}`);
        seen.push(answer.tasks[0].id);
        times.push(Date.parse(answer.tasks[0].status.timestamp));
      }
      expect(isDeepStrictEqual(new Set(seen), new Set(created)), 'the pages do not hold the three tasks');
      expect(times[0] >= times[1] && times[1] >= times[2], 'not newest first');
    },

    'list-by-context': async () => {
      const mine = await this.task(['mine']);
      const other = await this.task(['other']);
      const list = (filter) => this.client.listTasks(ListTasksRequest.fromJSON(filter), this.options);
      const { tasks } = await list({ contextId: mine.contextId, includeArtifacts: true });
      expect(tasks.length === 1 && tasks[0].id === mine.id, 'the context holds other tasks');
      expect(TALKS || outputOf(tasks[0]) === 'mine', 'asked for artifacts, got none');
      const every = (await list({ pageSize: 100 })).tasks.map((task) => task.id);
      expect(every.includes(mine.id) && every.includes(other.id), 'a task is not listed');
    },

    'cancel': async () => {
      const { id } = await this.task(['hold'], { wait: false });
      const canceled = await this.client.cancelTask(CancelTaskRequest.fromJSON({ id }), this.options);
      expectState(canceled, TASK_STATE_CANCELED);
      expectState(await this.get(id), TASK_STATE_CANCELED);
    },

    'unknown-task': async () => {
      const error = await this.get(randomUUID()).catch((error) => error);
      expect(error instanceof TaskNotFoundError, `got ${error?.constructor?.name}: ${error?.message}`);
    },

    'subscribe-unknown-task': async () => {
      const missing = SubscribeToTaskRequest.fromJSON({ id: randomUUID() });
      const error = await this.follow(this.client.resubscribeTask(missing, this.options)).catch((e) => e);
      expect(error instanceof TaskNotFoundError, `got ${error?.constructor?.name}: ${error?.message}`);
    },

    'direct-message': async () => {
      const answer = await this.send(['message hi']);
      expect('messageId' in answer, 'answer is a task');
      expect(answer.role === Role.ROLE_AGENT, 'the role is not agent');
      expect(textOf(answer.parts) === 'hi', `text is ${textOf(answer.parts)}`);
    },

    'direct-message-stream': async () => {
      const kinds = [];
      for await (const { payload } of this.client.sendMessageStream(request(['message hi']), this.options)) {
        kinds.push(payload?.$case);
      }
      expect(kinds.join() === 'message', `events: ${kinds}`);
    },

    'failure': async () => {
      const task = await this.task(['fail boom']);
      expectState(task, TASK_STATE_FAILED);
      expect(textOf(task.status.message?.parts ?? []).includes('boom'), 'the text is missing');
    },

    'file-and-data': async () => {
      const raw = Buffer.from([0, 255, 254]).toString('base64');
      const file = { raw, filename: 'a.bin', mediaType: 'application/octet-stream' };
      const data = { data: { a: [1, null, 'x'] } };
      const task = await this.task(['echo me', file, data]);
      expectState(task, DONE);
      expect(outputOf(task).includes('echo me'), `echo is ${outputOf(task)}`);
      const sent = (await this.get(task.id)).history[0].parts.slice(1).map((part) => Part.toJSON(part));
      expect(isDeepStrictEqual(sent, [file, data]), `history holds ${JSON.stringify(sent)}`);
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
  ['grpc', new GrpcTransportFactory()],
]) {
  if (!card) break;
  const client = await run(`${label} connect`, () => {
    const offered = card.supportedInterfaces?.map((i) => `${i.protocolBinding} ${i.protocolVersion}`) ?? [];
    expect(offered.includes(`${transport.protocolName} 1.0`), `the card offers only ${offered}`);
    return new ClientFactory({ transports: [transport] }).createFromAgentCard(card);
  });
  if (!client) continue;
  for (const name of Object.keys(new Checks(client).checks)) {
    await run(`${label} ${name}`, (signal) => new Checks(client, signal).checks[name]());
  }
}

console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
