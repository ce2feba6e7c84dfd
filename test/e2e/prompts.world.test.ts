// Prompts and replies are stored nowhere: not in the log, in metrics, PostgreSQL, Redis, the journal or the cluster.
import { globSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { query } from '../support/postgres.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';

const PROMPT = 'the-prompt-of-nobody';
const REPLY = 'the-reply-of-nobody';

const USAGE = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
const chunk = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;
const completion = {
  id: 'c',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: REPLY }, finish_reason: 'stop' }],
  usage: USAGE,
};
/** Error texts of providers often repeat the prompt. */
const failure = JSON.stringify({ error: { message: `cannot read: ${PROMPT}`, type: 'error', code: 'bad' } });

/** What the provider does, by the model that it is asked for. */
const BEHAVIORS: Readonly<Record<string, { readonly status: number; readonly body: string; readonly breaks?: true }>> =
  {
    plain: { status: 200, body: JSON.stringify(completion) },
    refuses: { status: 400, body: failure },
    fails: { status: 500, body: failure },
    'no-json': { status: 200, body: `{"id": ${REPLY} ${PROMPT}` },
    streams: { status: 200, body: `${chunk({ content: REPLY })}${chunk({}, { usage: USAGE })}data: [DONE]\n\n` },
    breaks: { status: 200, body: chunk({ content: REPLY }), breaks: true },
    'stream-fails': { status: 200, body: `${chunk({ content: REPLY })}data: ${failure}\n\n` },
  };

/** The text of a reply, also of one that breaks off. */
async function readAll(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  try {
    for await (const part of response.body ?? []) parts.push(part);
  } catch {}
  return Buffer.concat(parts).toString();
}

describeUnless(whyNoRedis(), 'prompts and replies with a marker', () => {
  let provider: Server;
  let redis: TestRedis;
  let monitor: Redis;
  let stack: TestStack;
  let key: string;
  const commands: string[] = [];
  const bodies: string[] = [];

  const call = async (path: string, body: string) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const address = `${stack.endpoints.gateway}/default/sample/v1/${path}`;
    const response = await fetch(address, { method: 'POST', headers, body });
    const id = response.headers.get('x-request-id') ?? '';
    return { status: response.status, id, text: await readAll(response) };
  };
  const ask = (model: string, more: object = {}, path = 'chat/completions') =>
    call(path, JSON.stringify({ model, max_tokens: 50, messages: [{ role: 'user', content: PROMPT }], ...more }));

  beforeAll(async () => {
    provider = createServer(async (request, response) => {
      const body = await text(request);
      bodies.push(body);
      const { status, body: reply, breaks } = BEHAVIORS[JSON.parse(body).model] ?? { status: 404, body: '{}' };
      const type = reply.startsWith('data:') ? 'text/event-stream' : 'application/json';
      response.writeHead(status, { 'content-type': type }).write(reply, () => {
        if (breaks) response.destroy();
        else response.end();
      });
    }).listen(0, '127.0.0.1');
    [redis, stack] = await Promise.all([startRedis(), startTestStack()]);
    const { host, port } = redis.connection;
    monitor = await new Redis({ host, port }).monitor();
    monitor.on('monitor', (_time: string, args: ReadonlyArray<string>) => commands.push(args.join(' ')));
    const patch = JSON.stringify({ stringData: { host, port: `${port}`, password: '' } });
    await stack.ok('patch', 'secret', 'sample-store', '--type=merge', '-p', patch);
    const apiBase = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`;
    const cost = { inputCostPerMillionTokens: '1', outputCostPerMillionTokens: '1' };
    const entries = Object.keys(BEHAVIORS).map((name) => ({
      op: 'add',
      path: '/spec/models/-',
      value: {
        modelName: name,
        identifier: name,
        requiresAuth: false,
        gatewayParams: { model: `openai/${name}`, apiBase, ...cost },
      },
    }));
    await stack.ok('patch', 'gwi', 'sample', '--type=json', '-p', JSON.stringify(entries));
    const models = JSON.stringify({ spec: { models: Object.keys(BEHAVIORS) } });
    await stack.ok('patch', 'virtualkey', 'example-service', '--type=merge', '-p', models);
    key = await stack.ok('get', 'virtualkey', 'example-service', '-o', 'jsonpath={.status.keyValue}');
    // Until the edits and the Redis are in force.
    await eventually(
      () => ask('plain'),
      ({ status }) => status === 200 && commands.length > 0,
    );
  });
  afterAll(async () => {
    monitor?.disconnect();
    await stack?.stop();
    await redis?.stop();
    provider?.close();
  });

  /** Every file of the stack: log, journal, database, and objects of the cluster. */
  const filesWith = (marker: string) =>
    globSync('**/*', { cwd: stack.folder })
      .filter((name) => statSync(join(stack.folder, name), { throwIfNoEntry: false })?.isFile())
      .filter((name) => readFileSync(join(stack.folder, name)).includes(marker));
  const rows = async () => {
    const { database } = stack.endpoints;
    const tables = await query<{ name: string }>(
      database,
      "select tablename as name from pg_tables where schemaname = 'gateway_operator'",
    );
    const each = tables.map(({ name }) => query(database, `select t::text from gateway_operator."${name}" t`));
    return JSON.stringify(await Promise.all(each));
  };
  const metrics = async () => (await fetch(new URL('/metrics', stack.endpoints.gateway))).text();

  test('none of them is stored, however the request ends', async () => {
    const answers = [
      await ask('plain'),
      await ask('streams', { stream: true }),
      await ask('plain', { system: PROMPT }, 'messages'),
      await ask('streams', { stream: true }, 'messages'),
      await ask('breaks', { stream: true }),
      await ask('stream-fails', { stream: true }),
      await ask('refuses'),
      await ask('fails'),
      await ask('no-json'),
      await ask('plain', { messages: PROMPT }),
      await call('chat/completions', `{"model": "plain", ${PROMPT}`),
    ];
    const texts = answers.map((answer) => answer.text);
    expect(texts.slice(0, 6).filter((reply) => !reply.includes(REPLY))).toEqual([]);
    expect(bodies.filter((body) => !body.includes(PROMPT))).toEqual([]);
    expect(answers.slice(6).map(({ status }) => status)).toEqual([400, 502, 502, 400, 400]);

    const ids = answers.map(({ id }) => id);
    const [first = ''] = ids;
    const booked = await eventually(rows, (found) => found.includes(first));
    await eventually(
      () => filesWith(first),
      (found) => found.includes('stack.log') && found.some((name) => name.startsWith('journal/')),
    );
    for (const id of ids)
      await eventually(
        () => filesWith(id),
        (found) => found.includes('stack.log'),
      );
    // The searches find what is stored.
    expect(filesWith('example-service').join()).toContain('cluster.db');
    const uid = await stack.ok('get', 'gwi', 'sample', '-o', 'jsonpath={.metadata.uid}');
    expect(commands.join('\n')).toContain(uid);
    expect(await metrics()).toContain('gateway_operator_requests_total');
    for (const marker of [PROMPT, REPLY]) {
      expect(filesWith(marker)).toEqual([]);
      expect(`${booked}${await rows()}`).not.toContain(marker);
      expect(commands.join('\n')).not.toContain(marker);
      expect(await metrics()).not.toContain(marker);
      expect(stack.printed()).not.toContain(marker);
    }
  });
});
