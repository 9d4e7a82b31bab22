// An echo agent on the A2A SDK for JavaScript, 1.3. Usage: server.mjs PORT
import { generateAgentCardSignature, AgentCard, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryPushNotificationStore, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { exportJWK, generateKeyPair } from 'jose';

const port = Number(process.argv[2]);
const base = `http://127.0.0.1:${port}`;
const SECRET = 'a secret of at least thirty-two bytes';

const plain = {
  name: 'Écho 🔊',
  description: 'Says what it hears',
  version: '1',
  supportedInterfaces: [
    { url: `${base}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: `${base}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { url: `${base}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    { url: `${base}/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
  ],
  capabilities: {
    streaming: true,
    pushNotifications: true,
    extendedAgentCard: true,
    extensions: [{ uri: 'urn:test:tuning', params: { depth: 3, gain: 0.000001, none: '' } }],
  },
  securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'x-key' } } },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'echo', name: 'Echo', description: '', tags: ['test'] }],
};

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const canceled = new Set();

const echo = {
  async execute({ userMessage, task, taskId, contextId }, bus) {
    const text = userMessage.parts.map((part) => part.content?.value ?? '').join('');
    const status = (state) =>
      bus.publish(
        AgentEvent.statusUpdate({
          taskId, contextId, status: { state, message: undefined, timestamp: new Date().toISOString() }, metadata: undefined,
        })
      );
    if (!task) {
      bus.publish(
        AgentEvent.task({
          id: taskId, contextId, artifacts: [], history: [userMessage], metadata: undefined,
          status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() },
        })
      );
    }
    status(TaskState.TASK_STATE_WORKING);
    // Until somebody cancels it, but not for ever.
    for (let i = 0; text.startsWith('wait') && i < 400; i++) {
      if (canceled.delete(taskId)) {
        status(TaskState.TASK_STATE_CANCELED);
        bus.finished();
        return;
      }
      await pause(50);
    }
    const words = text.split(' ');
    for (const [i, word] of words.entries()) {
      const part = {
        content: { $case: 'text', value: i ? ` ${word}` : word }, metadata: undefined, filename: '', mediaType: '',
      };
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId, contextId, append: i > 0, lastChunk: i + 1 === words.length, metadata: undefined,
          artifact: { artifactId: 'echo', name: '', description: '', parts: [part], metadata: undefined, extensions: [] },
        })
      );
      await pause(20);
    }
    status(TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  },
  async cancelTask(taskId) {
    canceled.add(taskId);
  },
};

const keys = {};
for (const alg of ['ES256', 'RS256', 'EdDSA']) keys[alg] = await generateKeyPair(alg, { extractable: true });

const signed = (alg, extra = {}) => {
  const key = alg === 'HS256' ? new TextEncoder().encode(SECRET) : keys[alg].privateKey;
  const header = { alg, kid: alg.toLowerCase(), typ: 'JOSE' };
  return generateAgentCardSignature(key, header)(AgentCard.fromJSON({ ...plain, ...extra }));
};

const handler = new DefaultRequestHandler(
  await signed('ES256'),
  new InMemoryTaskStore(),
  echo,
  undefined,
  new InMemoryPushNotificationStore(),
  undefined,
  await signed('ES256', { name: 'Echo for friends' })
);

const user = { userBuilder: UserBuilder.noAuthentication };
const legacyCompat = { enabled: true };
const app = express();
app.get('/jwks.json', async (_request, response) => {
  const list = Object.entries(keys).map(async ([alg, { publicKey }]) => ({
    ...(await exportJWK(publicKey)), kid: alg.toLowerCase(), use: 'sig', alg,
  }));
  response.json({ keys: await Promise.all(list) });
});
for (const alg of ['HS256', ...Object.keys(keys)]) {
  const card = await signed(alg);
  app.use(`/cards/${alg}.json`, agentCardHandler({ agentCardProvider: async () => card }));
}
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: handler, legacyCompat }));
app.use('/rpc', jsonRpcHandler({ requestHandler: handler, legacyCompat, ...user }));
app.use('/rest', restHandler({ requestHandler: handler, legacyCompat, ...user }));
app.listen(port, '127.0.0.1');
