// Faults of the whole stack: users, keys and money when a process is killed or something is missing.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { SampleUpstream } from '../../infra/platforms/local/sample-upstream/server.ts';
import { startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { ASK, answerTo, runStack, slowModel, startTestStack, type TestStack } from '../support/stack.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const running: TestStack[] = [];
const start = async (args: ReadonlyArray<string> = [], folder?: string) => {
  const stack = await startTestStack(args, folder);
  running.push(stack);
  return stack;
};
afterEach(async () => {
  for (const stack of running.splice(0)) await stack.stop();
});

const read = async (stack: TestStack, path: string) =>
  (await stack.kubectl(['get', 'virtualkey', 'example-service', '-o', `jsonpath={${path}}`])).stdout;
type Stats = ReturnType<SampleUpstream['stats']['read']>;
/** The cost in nano-dollars of the sample upstream's reported usage, at the sample's prices. */
const owed = async (stack: TestStack) => {
  const stats = (await (await fetch(`${stack.endpoints.upstream}/stats`)).json()) as Stats;
  const { promptTokens, completionTokens } = stats.models['sample-small'] ?? { promptTokens: 0, completionTokens: 0 };
  return BigInt(promptTokens) * 150n + BigInt(completionTokens) * 600n;
};
const nano = (dollars: string) => {
  const [whole = '0', fraction = ''] = dollars.split('.');
  return BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
};

test('kill -9 in the middle of calls: the key keeps its value, and no spend is lost or booked twice', async () => {
  const first = await start();
  const value = await read(first, '.status.keyValue');
  const openai = await first.client();
  const calls = Array.from({ length: 20 }, () => openai.chat.completions.create(ASK));
  await Promise.all(calls);
  const streams = Array.from({ length: 5 }, () =>
    openai.chat.completions.create({ ...ASK, stream: true }).catch(() => undefined),
  );
  await Promise.race(streams);
  // The sample upstream dies with the stack, so its usage of completed replies is read before.
  const minSpend = await owed(first);
  await first.kill();
  await Promise.allSettled(streams);

  const second = await first.again(['--empty']);
  running.push(second);
  expect(await read(second, '.status.keyValue')).toBe(value);
  await second.resync();
  const spent = nano(await read(second, '.status.currentSpend'));
  expect(spent).toBeGreaterThanOrEqual(minSpend);
  // Reservations in flight at the kill are charged at most their size: 4,096 output tokens each, and a short prompt.
  expect(spent).toBeLessThanOrEqual(minSpend + 6n * (4096n * 600n + 1000n * 150n));
  await second.resync();
  expect(nano(await read(second, '.status.currentSpend'))).toBe(spent);
  expect((await (await second.client()).chat.completions.create(ASK)).choices).toHaveLength(1);
});

test('kill -9 during a start: the next start converges', async () => {
  const folder = join(temporaryFolder(), 'state');
  for (const millis of [300, 900, 1800]) {
    const child = startChild(process.execPath, ['infra/platforms/local/main.ts', '--state', folder, '--port', '0']);
    await pause(millis);
    await child.end('SIGKILL');
  }
  const stack = await start([], folder);
  expect(await read(stack, '.status.isActive')).toBe('true');
});

test('a stop is clean: exit code 0, and a second start finds the same key and the same spend', async () => {
  const first = await start();
  const value = await read(first, '.status.keyValue');
  await (await first.client()).chat.completions.create(ASK);
  await first.resync();
  const spend = await read(first, '.status.currentSpend');
  expect(await first.stop()).toBe(0);
  const second = await first.again(['--empty']);
  running.push(second);
  expect(await read(second, '.status.keyValue')).toBe(value);
  expect(await read(second, '.status.currentSpend')).toBe(spend);
});

test('a stop waits for a call in flight, which ends whole', async () => {
  const stack = await start();
  const { gateway } = stack.endpoints;
  const add = (kind: string, name: string, value: unknown) =>
    stack.kubectl([
      'patch',
      kind,
      name,
      '--type=json',
      '-p',
      JSON.stringify([{ op: 'add', path: '/spec/models/-', value }]),
    ]);
  await add('gatewayinstance', 'sample', slowModel(stack.endpoints));
  await add('virtualkey', 'example-service', 'slow');
  const authorization = `Bearer ${await read(stack, '.status.keyValue')}`;
  const models = async () =>
    await (await fetch(`${gateway}/default/sample/models`, { headers: { authorization } })).text();
  await eventually(models, (text) => text.includes('"slow"'));
  const call = (await stack.client()).chat.completions.create({ ...ASK, model: 'slow' }, { maxRetries: 0 });
  // The sample upstream replies after several seconds.
  await pause(1000);
  const [reply, code] = await Promise.all([call, stack.stop()]);
  expect([reply.choices[0]?.finish_reason, code]).toEqual(['stop', 0]);
});

test('PostgreSQL killed with -9 under the stack: 503 at worst, never 401, and calls work again by themselves', async () => {
  const stack = await start();
  const openai = await stack.client();
  await openai.chat.completions.create(ASK);
  const moved = join(stack.folder, 'postgres.moved');
  const data = existsSync(moved) ? readFileSync(moved, 'utf8').trim() : join(stack.folder, 'postgres');
  process.kill(Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]), 'SIGKILL');
  const seen = new Set<string>();
  await eventually(
    async () => {
      const answer = await answerTo(openai);
      seen.add(answer);
      return answer;
    },
    (answer) => answer === '200',
    30_000,
  );
  expect([...seen].filter((answer) => !/^(200|503)/.test(answer))).toEqual([]);
  expect((await stack.kubectl(['get', 'vk'])).code).toBe(0);
});

test('a second stack on the same state is refused in one sentence, and the first keeps running', async () => {
  const first = await start();
  const { code, stderr } = await runStack(['--state', first.folder, '--port', '0']);
  expect(code).toBe(2);
  expect(stderr.trim()).toBe(
    `Another stack runs on ${first.folder}. Stop it first, or name another folder with --state DIR.`,
  );
  expect((await first.kubectl(['get', 'vk'])).code).toBe(0);
});

test('a taken port: the gateway takes the next free one and says so', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.once('listening', resolve));
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const stack = await start(['--empty', '--port', String(port)]);
  expect(Number(new URL(stack.endpoints.gateway).port)).toBeGreaterThan(port);
  expect(stack.printed()).toContain(`port ${port} is taken`);
  taken.close();
});

test('a state folder that is damaged, or not ours, is refused by name and left as it is', async () => {
  const damaged = temporaryFolder();
  writeFileSync(join(damaged, 'state.json'), '{"databasePassw');
  const first = await runStack(['--state', damaged]);
  expect(first).toMatchObject({ code: 2, stdout: '' });
  expect(first.stderr).toContain(join(damaged, 'state.json'));
  const foreign = temporaryFolder();
  mkdirSync(join(foreign, 'thesis'));
  const second = await runStack(['--state', foreign, '--reset']);
  expect(second).toMatchObject({ code: 2, stdout: '' });
  expect(second.stderr).toContain('holds other files');
});

test('an unreachable database is one clear sentence', async () => {
  const { code, stderr } = await runStack([
    '--state',
    join(temporaryFolder(), 's'),
    '--database',
    'postgres://me@127.0.0.1:1/x',
  ]);
  expect(code).toBe(2);
  expect(stderr.trim()).toMatch(/^--database: PostgreSQL at 127\.0\.0\.1:1\/x cannot be used: .*ECONNREFUSED.*\.$/);
});
