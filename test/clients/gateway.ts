// A gateway on a real socket before the mock upstream, with one key; only the ledger and the database are left out.
import { createGateway } from '../../functions/gateway/app.ts';
import { createUpstream } from '../../infra/adapters/upstream/undici.ts';
import { nodeDependencies } from '../../infra/runtime/node/platform.ts';
import { serve } from '../../infra/runtime/node/serve.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { policiesOf } from '../doubles/policies.ts';
import { entry, keyRecord, keyValueOf, snapshotOf } from '../gateway/instance.ts';
import { createLedgerFake } from '../gateway/ledger.ts';
import { CLAUDE, GPT } from './programs.ts';

export const KEY = keyValueOf('billing');
/** A key whose budget is spent. */
export const SPENT_KEY = keyValueOf('spent');
const PRICE = { input: '3', output: '15' };
/** A fault of silence is over after this time. */
const TIMEOUTS = { connect: 1000, firstByte: 5000, idle: 1500, total: 60_000 };

export async function openGateway(upstreamUrl: string) {
  const ledger = createLedgerFake(Date.now);
  const asked: string[] = [];
  const upstream = createUpstream();
  const node = nodeDependencies();
  const openai = { provider: 'openai', apiBase: `${upstreamUrl}/v1` };
  const models = [
    ...Object.values(GPT).map((model) => entry(model, { ...openai, model, price: PRICE })),
    entry('text-embedding-3-small', { ...openai, model: 'text-embedding-3-small', price: { input: PRICE.input } }),
    ...Object.values(CLAUDE).map((model) =>
      entry(model, { provider: 'anthropic', apiBase: upstreamUrl, model, price: PRICE, maxOutputTokens: 64_000 }),
    ),
  ];
  const snapshot = snapshotOf(models, { timeouts: TIMEOUTS });
  const keys = new Map([
    [node.hash(KEY), keyRecord({ limit: '1000', anchor: Date.now() })],
    [node.hash(SPENT_KEY), keyRecord({ limit: '1000', anchor: Date.now(), scopeId: 'spent' })],
  ]);
  ledger.spendNow('spent', '1000');
  const quiet = () => {};
  const log = createMemoryLog();
  const handle = createGateway({
    ...node,
    ledger,
    upstream,
    snapshots: { current: () => snapshot },
    credentials: { read: () => 'upstream-key' },
    policies: policiesOf((hash) => keys.get(hash)),
    log,
    metrics: { add: quiet, set: quiet, observe: quiet },
  });
  const server = await serve({
    handle: (exchange, path) => {
      asked.push(`${exchange.method} ${exchange.path}`);
      return handle(exchange, path);
    },
    port: 0,
    host: '127.0.0.1',
  });
  return {
    url: server.url,
    ledger,
    asked,
    /** Requests so far, with their models and statuses. */
    requests: () => log.lines.filter(({ message }) => message === 'request').map(({ fields }) => fields),
    close: async () => {
      await server.close(0);
      await upstream.close();
    },
  };
}
