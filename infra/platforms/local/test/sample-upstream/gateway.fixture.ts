// A gateway on a real socket before the sample upstream, with only the ledger and the database left out.
import { createGateway } from '../../../../../functions/gateway/app.ts';
import { policiesOf } from '../../../../../test/doubles/policies.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../../../test/gateway/instance.ts';
import { createLedgerFake } from '../../../../../test/gateway/ledger.ts';
import { createUpstream } from '../../../../adapters/upstream/undici.ts';
import { nodeDependencies } from '../../../../runtime/node/platform.ts';
import { serve } from '../../../../runtime/node/serve.ts';
import { createSampleUpstream } from '../../sample-upstream/server.ts';

const PRICE = { input: '0.15', output: '0.60' };
export const MODELS = [
  'compressed',
  'overloaded',
  'sample-small',
  'echo',
  'slow',
  'error-500',
  'rate-limited',
  'refuse-400',
  'cut',
  'no-usage',
  'hang',
  'chatterbox',
];

/** A gateway in front of a sample upstream of its own, whose models all speak this dialect. The key is `KEY`. */
export async function openGateway({ provider, path }: { readonly provider: string; readonly path: string }) {
  const ledger = createLedgerFake(Date.now);
  const lines: Array<Readonly<Record<string, unknown>>> = [];
  const sample = await createSampleUpstream({ port: 0, key: 'upstream-key' });
  const upstream = createUpstream();
  const note = (_: string, fields: Readonly<Record<string, unknown>> = {}) => void lines.push(fields);
  const node = nodeDependencies();
  const entries = MODELS.map((name) => entry(name, { model: name, price: PRICE, maxOutputTokens: 4096 }));
  const wrongKey = entry('wrong-key', { model: 'echo', credentials: { apiKey: { secret: 's', secretKey: 'wrong' } } });
  const snapshot = snapshotOf(
    [...entries, wrongKey].map((one) => ({ ...one, provider, apiBase: `${sample.url}${path}` })),
    { retries: 1 },
  );
  const record = keyRecord({ limit: '1000', anchor: Date.now() });
  const handle = createGateway({
    ...node,
    snapshots: { current: () => snapshot },
    credentials: { read: (_, name) => (name === 'wrong' ? 'not-the-key' : 'upstream-key') },
    policies: policiesOf((hash) => (hash === node.hash(KEY) ? record : undefined)),
    ledger,
    upstream,
    log: { info: note, warn: note, error: note },
    metrics: { add: () => {}, set: () => {}, observe: () => {} },
  });
  const gateway = await serve({ handle, port: 0, host: '127.0.0.1' });
  const close = async () => {
    await gateway.close(0);
    await upstream.close();
    await sample.close();
  };
  return { sample, ledger, lines, url: gateway.url, close };
}
