// The health check for Argo CD, run by Redis' Lua, which is of the version that Argo CD's is.
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRedis, type TestRedis, whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';

describeUnless(whyNoRedis(), 'the health check of Argo CD', () => {
  let server: TestRedis;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.connection.port, server.connection.host);
  });
  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
  });

  const source = readFileSync('infra/packaging/argocd/health.lua', 'utf8');
  const script = `local function health(obj)\n${source}\nend\nreturn cjson.encode(health(cjson.decode(ARGV[1])))`;
  const healthOf = async (ready: object | undefined, metadata: object = {}) => {
    const conditions = [{ type: 'SpecValid', status: 'True' }, ...(ready ? [{ type: 'Ready', ...ready }] : [])];
    const object = { metadata: { generation: 2, ...metadata }, ...(ready && { status: { conditions } }) };
    return JSON.parse(String(await redis.eval(script, 0, JSON.stringify(object)))) as object;
  };
  const isReady = { status: 'True', reason: 'Ready', message: 'it serves', observedGeneration: 2 };
  const isNot = (reason: string) => ({ status: 'False', reason, message: 'why', observedGeneration: 2 });

  test.each([
    ['that is ready', isReady, {}, { status: 'Healthy', message: 'it serves' }],
    ['without a status', undefined, {}, { status: 'Progressing', message: 'the reconciler has not looked at it yet' }],
    [
      'that was edited',
      isReady,
      { generation: 3 },
      { status: 'Progressing', message: 'the reconciler has not looked at it yet' },
    ],
    [
      'that is being deleted',
      isReady,
      { deletionTimestamp: '2026-11-23T10:00:00Z' },
      { status: 'Progressing', message: 'it serves' },
    ],
    ['that is blocked', isNot('Blocked'), {}, { status: 'Healthy', message: 'why' }],
    ['that has spent its budget', isNot('BudgetExceeded'), {}, { status: 'Healthy', message: 'why' }],
    [
      'whose gateway starts',
      isNot('WorkloadNotReady'),
      {},
      { status: 'Progressing', message: 'WorkloadNotReady: why' },
    ],
    [
      'whose database is away',
      isNot('DatabaseUnreachable'),
      {},
      { status: 'Degraded', message: 'DatabaseUnreachable: why' },
    ],
  ])('an object %s', async (_, ready, metadata, health) => {
    expect(await healthOf(ready, metadata)).toEqual(health);
  });
});
