// A million VirtualKeys as rows of PostgreSQL, without objects: copies of the sample's key, each with a User and a Team.
import { createHash } from 'node:crypto';
import { checksum } from '#core/keys/key-value.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import type { TestWorld } from '../../platforms/world.ts';

const USERS = 100_000;
const TEAMS = 1000;
/** Rows of one statement. */
const PORTION = 20_000;

/** Nano-dollars of one request of the booking part. */
export const COST = 15_600n;
/** Each hundredth VirtualKey has a budget of three requests, so budgets really end while rows are booked. */
export const isSmall = (key: number): boolean => key % 100 === 0;
const [LARGE_BUDGET, SMALL_BUDGET] = [10n ** 15n, 3n * COST];

/** The key value of VirtualKey `key`, with the right checksum. */
export function keyValueOf(key: number): string {
  const body = `${key}`.padStart(43, '0');
  return `sk-${body}${checksum(body)}`;
}

const scopeIdOf = (group: string, number: number): string =>
  `00000000-0000-7000-${group}-${number.toString(16).padStart(12, '0')}`;
const keyId = (key: number): string => scopeIdOf('8000', key);

/** The scopes of VirtualKey `key`, as a gateway reads them from PostgreSQL. */
export function scopesOf(key: number, anchor: number): ReadonlyArray<ScopePolicy> {
  const make = (kind: ScopePolicy['kind'], scopeId: string, limit: bigint): ScopePolicy => ({
    scopeId,
    kind,
    name: scopeId,
    blocked: false,
    models: [],
    anchor,
    budget: { limit: limit.toString(), duration: '30d', alignment: 'Rolling' },
  });
  return [
    make('key', keyId(key), isSmall(key) ? SMALL_BUDGET : LARGE_BUDGET),
    make('user', scopeIdOf('9000', key % USERS), LARGE_BUDGET),
    make('team', scopeIdOf('a000', key % TEAMS), LARGE_BUDGET),
  ];
}

/** Inserts `count` VirtualKeys with their Users and Teams beside those of the sample. Returns instance and anchor. */
export async function insertKeys(
  { postgres, database }: Pick<TestWorld, 'postgres' | 'database'>,
  count: number,
): Promise<{ readonly instanceUid: string; readonly anchor: number }> {
  const query = <R extends object>(text: string, values?: unknown[]) => postgres.query<R>(database, text, values);
  const [sample] = await query<{ uid: string; anchor: string }>(
    `select instance_uid as uid, (extract(epoch from created_at) * 1000)::bigint as anchor
     from gateway_operator.claim where kind = 'key' and retired_at is null order by alias limit 1`,
  );
  const [instanceUid, anchor] = [sample?.uid ?? '', Number(sample?.anchor)];
  const insert = async (kind: 'user' | 'team' | 'key', from: number, to: number) => {
    const rows = Array.from({ length: to - from }, (_, offset) => {
      const key = from + offset;
      const [own, user, team] = scopesOf(key, anchor).map(({ scopeId }) => scopeId);
      const scopeId = { key: own, user, team }[kind];
      const limit = (kind === 'key' && isSmall(key) ? SMALL_BUDGET : LARGE_BUDGET).toString();
      const hash = createHash('sha256').update(keyValueOf(key)).digest('hex');
      return { scope_id: scopeId, limit, charged: kind === 'key' ? [user, team] : [], hash };
    });
    await query(INSERT, [JSON.stringify(rows), kind, instanceUid]);
  };
  const totals = { team: Math.min(count, TEAMS), user: Math.min(count, USERS), key: count };
  for (const [kind, total] of Object.entries(totals) as ['user' | 'team' | 'key', number][]) {
    for (let from = 0; from < total; from += PORTION) await insert(kind, from, Math.min(total, from + PORTION));
  }
  await query('vacuum analyze gateway_operator.claim, gateway_operator.key_value');
  return { instanceUid, anchor };
}

const INSERT = `
with wanted as (select * from jsonb_to_recordset($1::jsonb) as w (scope_id uuid, "limit" text, charged uuid[], hash text)),
template as (
  select * from gateway_operator.claim where kind = $2 and instance_uid = $3 and retired_at is null order by created_at limit 1),
claims as (
  insert into gateway_operator.claim (scope_id, instance_uid, kind, alias, holder_uid, holder_namespace, holder_name,
    created_at, policy, digest, generation, charged_scope_ids)
  select w.scope_id, t.instance_uid, t.kind, w.scope_id::text, w.scope_id::text, t.holder_namespace, w.scope_id::text,
    t.created_at, t.policy || jsonb_build_object('scopeId', w.scope_id, 'name', w.scope_id,
      'budget', jsonb_build_object('limit', w."limit", 'duration', '30d', 'alignment', 'Rolling'))
      || case when t.kind = 'key' then jsonb_build_object('chargedScopeIds', w.charged) else '{}'::jsonb end,
    t.digest, t.generation, w.charged
  from wanted w cross join template t returning scope_id, kind)
insert into gateway_operator.key_value (scope_id, hash)
select w.scope_id, w.hash from wanted w join claims c using (scope_id) where c.kind = 'key'`;
