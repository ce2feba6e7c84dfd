// The gateway of the sample as a Worker of a test: what its bindings hold.
import { join } from 'node:path';
import type { KubeObject } from '#core/ports/cluster.ts';
import { type TestUpstash, TOKEN } from '../support/upstash.ts';
import type { WorkerOfTest } from './miniflare.ts';
import type { TestWorld } from './world.ts';

interface Around {
  readonly world: Pick<TestWorld, 'folder' | 'database'>;
  /** What was applied: the Secrets of its models become the binding CREDENTIALS. */
  readonly objects: ReadonlyArray<KubeObject>;
  readonly upstash: Pick<TestUpstash, 'url'>;
  /** By instance. */
  readonly snapshots?: Readonly<Record<string, string>>;
}

export function gatewayWorker({ world, objects, upstash, snapshots = {} }: Around): WorkerOfTest {
  return {
    name: 'gateway',
    scriptPath: join(world.folder, 'cloudflare/gateway.mjs'),
    services: {},
    bindings: {
      INSTANCE: 'default/sample',
      UPSTASH_REDIS_REST_URL: upstash.url,
      UPSTASH_REDIS_REST_TOKEN: TOKEN,
      CREDENTIALS: JSON.stringify(credentialsIn(objects)),
    },
    hyperdrives: { HYPERDRIVE: addressOf(world.database) },
    namespaces: { SNAPSHOTS: snapshots },
  };
}

/** As a person writes them. */
function credentialsIn(objects: ReadonlyArray<KubeObject>) {
  const secrets = objects.filter(({ metadata }) => metadata.name.startsWith('sample-model-'));
  return Object.fromEntries(
    secrets.map(({ metadata, data }) => {
      const entries = Object.entries(data as Readonly<Record<string, string>>);
      return [metadata.name, Object.fromEntries(entries.map(([entry, text]) => [entry, atob(text)]))];
    }),
  );
}

const addressOf = ({ host, port, username, password, dbname }: TestWorld['database']) =>
  `postgres://${username}:${encodeURIComponent(password)}@${host}:${port}/${dbname}`;
