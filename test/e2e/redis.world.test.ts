// The whole stack with its counters in Redis, also while Redis is away.
import { APIError, type OpenAI } from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { inTime } from '../support/in-time.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { ASK, startTestStack, type TestStack } from '../support/stack.ts';

describeUnless(whyNoRedis(), 'with a Redis as store', () => {
  let redis: TestRedis;
  let stack: TestStack;
  let openai: OpenAI;

  const storeReady = async (): Promise<string> => {
    await stack.resync();
    const path = '{.status.conditions[?(@.type=="StoreReady")]}';
    const { status, reason, message } = JSON.parse(await stack.ok('get', 'gwi', 'sample', '-o', `jsonpath=${path}`));
    return `${status} ${reason} ${message}`;
  };
  const spend = async (): Promise<string> => {
    await stack.resync();
    return stack.ok('get', 'virtualkey', 'example-service', '-o', 'jsonpath={.status.currentSpend}');
  };
  const refusal = async () => {
    const error: unknown = await inTime(openai.chat.completions.create(ASK).catch((error: unknown) => error));
    return error instanceof APIError ? { status: error.status, code: error.code } : { status: 200 };
  };
  /** What the gateway has set aside admits for a second more. */
  const refuses = () => eventually(refusal, ({ status }) => status === 503);
  const paysAgain = () => eventually(refusal, ({ status }) => status === 200);

  beforeAll(async () => {
    [redis, stack] = await Promise.all([startRedis(['--requirepass', 'secret'], 'secret'), startTestStack()]);
    const { host, port, password } = redis.connection;
    const patch = JSON.stringify({ stringData: { host, port: `${port}`, password } });
    await stack.ok('patch', 'secret', 'sample-store', '--type=merge', '-p', patch);
    openai = await stack.client();
  });
  afterAll(async () => {
    await stack?.stop();
    await redis?.stop();
  });

  test('an instance moves to it, a completion is paid, and the spend continues', async () => {
    await eventually(storeReady, (seen) => seen.startsWith('True') && seen.includes(`Redis at 127.0.0.1:`));
    const before = await spend();
    expect(Number(before)).toBeGreaterThan(0);
    expect((await openai.chat.completions.create(ASK)).choices).toHaveLength(1);
    expect(Number(await spend())).toBeGreaterThan(Number(before));
    // The gateway really counts there: without Redis no request is admitted.
    await redis.kill();
    expect(await refuses()).toMatchObject({ code: 'ledger_unavailable' });
  });

  test('gone: 503 after a second, StoreReady says why, and it works again by itself', async () => {
    await redis.kill();
    await refuses();
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect((await refusal()).status).toBe(503);
    }
    expect(await storeReady()).toMatch(/^False StoreUnreachable .*ECONNREFUSED.*check the host and port/);
    const before = await spend();
    await redis.start();
    await paysAgain();
    expect(await eventually(storeReady, (seen) => seen.startsWith('True'))).toContain('Redis at');
    expect(Number(await spend())).toBeGreaterThan(Number(before));
  });

  test('frozen: 503 within two seconds, and it works again by itself', async () => {
    await paysAgain();
    const thaw = redis.freeze();
    await refuses();
    for (let attempt = 0; attempt < 2; attempt += 1) {
      expect((await refusal()).status).toBe(503);
    }
    thaw();
    await paysAgain();
  });
});
