// An instance with a hundred thousand keys, in a cluster and a real PostgreSQL, for the resync bench.

import pg from 'pg';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createIds } from '#adapters/process/ids.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { sha256 } from '../../reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../reconcile/objects.ts';
import { bookLedgerRows } from '../../support/book-rows.ts';
import { silentLog } from '../../support/silent-log.ts';
import { NAMESPACES, type Place } from './place.ts';

const BATCH = 10_000;

const namespaceOf = (index: number): string => NAMESPACES[index % NAMESPACES.length] ?? '';

/** An instance and `count` keys that were never reconciled. */
export async function fill(place: Place, connection: DatabaseConnection, count: number): Promise<void> {
  await place.put(RESOURCES.secrets, [...makeSecrets().slice(1), databaseSecret('db', connection)]);
  await place.put(gatewayInstances, [makeInstance()]);
  await putKeys(place, 0, count);
}

export function databaseSecret(name: string, connection: DatabaseConnection): KubeObject {
  const { host, port, username, password, dbname } = connection;
  return makeSecret(name, { host: `${host}:${port}`, username, password, dbname });
}

/** A key as just applied. */
export function putKeys(place: Place, from: number, count: number): Promise<void> {
  const keys = Array.from({ length: count }, (_, offset) => {
    const index = from + offset;
    const key = makeKey({ models: ['small', 'free'] }, `service-${index}`, namespaceOf(index));
    // The annotation of kubectl apply.
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': `${JSON.stringify(key)}\n` };
    return { ...key, metadata: { ...key.metadata, annotations } };
  });
  return place.put(virtualKeys, keys);
}

/** Copies of the first reconciled key: a hundred thousand one by one would take the night. */
export async function multiply(
  place: Place,
  { host, port, username, password, dbname }: DatabaseConnection,
  { from: first, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const template = await place.get(virtualKeys, 'team-0', 'service-0');
  const text = JSON.stringify(template);
  const secret = JSON.stringify(await place.get(RESOURCES.secrets, 'team-0', 'service-0-key'));
  const { keyValue, keyID } = template.status as { keyValue: string; keyID: string };
  const pool = new pg.Pool({ host, port, user: username, password, database: dbname });
  for (let from = first; from < to; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, to - from) }, (_, offset) => {
      const index = from + offset;
      const [name, namespace, value] = [`service-${index}`, namespaceOf(index), `sk-copy-${index}`];
      const [uid, scopeId, hash] = [crypto.randomUUID(), crypto.randomUUID(), sha256(value)];
      const copyOf = (original: string) => {
        const copied = original
          .replaceAll(keyValue, value)
          .replaceAll(btoa(keyValue), btoa(value))
          .replaceAll(keyID, hash)
          .replaceAll(template.metadata.uid ?? '', uid)
          .replaceAll('service-0', name)
          .replaceAll('team-0', namespace);
        return JSON.parse(copied) as KubeObject;
      };
      return { name, namespace, uid, scopeId, hash, key: copyOf(text), secret: copyOf(secret) };
    });
    await place.copy(
      virtualKeys,
      batch.map(({ key }) => key),
    );
    await place.copy(
      RESOURCES.secrets,
      batch.map((copy) => copy.secret),
    );
    const column = (of: 'name' | 'namespace' | 'uid' | 'scopeId' | 'hash') => batch.map((row) => row[of]);
    await pool.query(COPY, [column('name'), column('namespace'), column('uid'), column('scopeId'), column('hash')]);
  }
  await pool.query('analyze');
  await pool.end();
}

const COPY = `
with copy as (select * from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[]) as c (name, namespace, uid, scope_id, hash)),
template as (select * from gateway_operator.claim where alias = 'service-0'),
claims as (
  insert into gateway_operator.claim (scope_id, instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, created_at, policy, digest, generation,
    charged_scope_ids)
  select c.scope_id, t.instance_uid, t.kind, c.name, c.uid, c.namespace, c.name, t.created_at, t.policy || own, t.digest || own,
    t.generation, t.charged_scope_ids
  from copy c cross join template t cross join lateral (select jsonb_build_object('scopeId', c.scope_id, 'name', c.name,
    'object', jsonb_build_object('namespace', c.namespace, 'name', c.name)) as own) as of_copy returning scope_id),
key_values as (insert into gateway_operator.key_value (scope_id, hash) select c.scope_id, c.hash from copy c join claims using (scope_id))
insert into gateway_operator.claim (scope_id, instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, created_at, policy, digest)
select n.scope_id, t.instance_uid, t.kind, n.namespace, t.holder_uid, n.namespace, n.namespace, t.created_at,
  t.policy || jsonb_build_object('scopeId', n.scope_id, 'name', n.namespace),
  t.digest || jsonb_build_object('scopeId', n.scope_id, 'name', n.namespace)
from (select gen_random_uuid() as scope_id, namespace from (select distinct namespace from copy) as of_copy) as n,
  (select * from gateway_operator.claim where kind = 'namespace' limit 1) as t
on conflict do nothing`;

/** Makes `count` keys spend once more. */
export async function spend(connection: DatabaseConnection, count: number): Promise<void> {
  const { host, port, username, password, dbname } = connection;
  const pool = new pg.Pool({ host, port, user: username, password, database: dbname });
  const { rows } = await pool.query<{ scope_id: string; uid: string; anchor: string }>(
    `select scope_id, instance_uid as uid, (extract(epoch from created_at) * 1000)::bigint as anchor
     from gateway_operator.claim order by alias limit ${count}`,
  );
  await pool.end();
  const database = createDatabase(connection, { log: silentLog });
  const ids = createIds({ clock: Date, random: (size) => crypto.getRandomValues(new Uint8Array(size)) });
  await bookLedgerRows(
    database,
    rows[0]?.uid ?? '',
    rows.map(({ scope_id: scopeId, anchor }) => ({
      id: ids.next(),
      kind: 'settled' as const,
      scopeWindows: [{ scopeId, window: { start: Number(anchor), end: Number(anchor) + 30 * 86_400_000 } }],
      cost: 1_234_567n,
      tokens: { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 },
      model: 'small',
      identifier: 'small',
      estimated: false,
      settledAt: Date.now(),
    })),
  );
  await database.close();
}
