// An echo agent on the A2A SDK for JavaScript, 0.3. Usage: server.mjs PORT
import { DefaultRequestHandler, InMemoryPushNotificationStore, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

const port = Number(process.argv[2]);
const base = `http://127.0.0.1:${port}`;

const card = {
  name: 'Écho 🔊',
  description: 'Says what it hears',
  version: '1',
  protocolVersion: '0.3.0',
  url: `${base}/rpc`,
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [
    { url: `${base}/rpc`, transport: 'JSONRPC' },
    { url: `${base}/rest`, transport: 'HTTP+JSON' },
  ],
  capabilities: { streaming: true, pushNotifications: true },
  supportsAuthenticatedExtendedCard: true,
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'echo', name: 'Echo', description: 'Says what it hears', tags: ['test'] }],
};

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const canceled = new Set();

const echo = {
  async execute({ userMessage, task, taskId, contextId }, bus) {
    const text = userMessage.parts.map((part) => part.text ?? '').join('');
    const status = (state, final) =>
      bus.publish({
        kind: 'status-update', taskId, contextId, final, status: { state, timestamp: new Date().toISOString() },
      });
    if (!task) {
      const submitted = { state: 'submitted', timestamp: new Date().toISOString() };
      bus.publish({ kind: 'task', id: taskId, contextId, status: submitted, history: [userMessage] });
    }
    status('working', false);
    // Until somebody cancels it, but not for ever.
    for (let i = 0; text.startsWith('wait') && i < 400; i++) {
      if (canceled.delete(taskId)) {
        status('canceled', true);
        bus.finished();
        return;
      }
      await pause(50);
    }
    const words = text.split(' ');
    for (const [i, word] of words.entries()) {
      const parts = [{ kind: 'text', text: i ? ` ${word}` : word }];
      bus.publish({
        kind: 'artifact-update', taskId, contextId, append: i > 0, lastChunk: i + 1 === words.length,
        artifact: { artifactId: 'echo', parts },
      });
      await pause(20);
    }
    status('completed', true);
    bus.finished();
  },
  async cancelTask(taskId) {
    canceled.add(taskId);
  },
};

const handler = new DefaultRequestHandler(
  card, new InMemoryTaskStore(), echo, undefined, new InMemoryPushNotificationStore(), undefined,
  { ...card, name: 'Echo for friends' }
);
const user = { userBuilder: UserBuilder.noAuthentication };
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: handler }));
app.use('/rpc', jsonRpcHandler({ requestHandler: handler, ...user }));
app.use('/rest', restHandler({ requestHandler: handler, ...user }));
app.listen(port, '127.0.0.1');
