// Where did a world end up? As text without what differs between two histories that mean the same: ids, values, times.
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { type Harness, sha256 } from '../harness.ts';

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;
const MILLIS = /\b1[78]\d{11}\b/g;

/**
 * `all`: with the values that work on for a while beside the one that is published. `Published`: the current ones among
 * these hashes.
 */
type PublishedSnapshots = ReadonlySet<string>;
type Values = 'current' | 'all' | PublishedSnapshots;

/**
 * Objects but their events, claims with their live values and policies, and whether each published key works. One line
 * each.
 */
export async function endOf(harness: Harness, values: Values = 'current'): Promise<ReadonlyArray<string>> {
  const objects = harness.cluster.objects();
  const lines = objects.filter(({ kind }) => kind !== 'Event').map(toLine);
  const databases = await Promise.all(
    harness.cluster.objects(gatewayInstances).map((instance) => claimsOf(harness, instance, values)),
  );
  const keys = await Promise.all(
    harness.cluster.objects(RESOURCES.secrets).flatMap(({ metadata, data }) => {
      const { key } = (data ?? {}) as { readonly key?: string };
      return key === undefined ? [] : [stateOf(harness, `${metadata.namespace}/${metadata.name}`, atob(key))];
    }),
  );
  const anonymous = anonymize(objects);
  return [...lines, ...databases.flat(), ...keys].map(anonymous).sort();
}

/** Hashes of the key values that Secrets hold now. */
export const publishedIn = (harness: Harness): ReadonlyArray<string> =>
  harness.cluster.objects(RESOURCES.secrets).flatMap(({ data }) => {
    const { key } = (data ?? {}) as { readonly key?: string };
    return key === undefined ? [] : [sha256(atob(key))];
  });

/** Each line that only one of them has, from where it differs from the other's of the same beginning. */
export function differenceOf(found: ReadonlyArray<string>, wanted: ReadonlyArray<string>): string[] {
  const [more, less] = [found.filter((line) => !wanted.includes(line)), wanted.filter((line) => !found.includes(line))];
  const about = (line: string) => line.split(' ', 2).join(' ');
  const from = (line: string, other = '') => {
    let at = 0;
    while (at < line.length && line[at] === other[at]) at += 1;
    return `${about(line)}: …${line.slice(Math.max(0, at - 40), at + 120)}`;
  };
  const twin = (line: string, lines: ReadonlyArray<string>) => lines.find((other) => about(other) === about(line));
  return [
    ...more.map((line) => `+ ${from(line, twin(line, less))}`),
    ...less.map((line) => `- ${from(line, twin(line, more))}`),
  ];
}

function toLine({ kind, metadata, ...rest }: KubeObject): string {
  const { namespace, name, labels, annotations, finalizers, ownerReferences, deletionTimestamp, generation } = metadata;
  const { observedGeneration, lastSyncTime: _, ...status } = (rest.status ?? {}) as Record<string, unknown>;
  const isSeen = (of: unknown) => (of === undefined ? undefined : of === generation);
  const seen = isSeen(observedGeneration);
  const conditions = (status.conditions ?? []) as ReadonlyArray<{ readonly observedGeneration?: number }>;
  if (conditions.length > 0)
    status.conditions = conditions.map((one) => ({ ...one, observedGeneration: isSeen(one.observedGeneration) }));
  const kept = { labels, annotations, finalizers, ownerReferences, deletionTimestamp, ...rest, status, seen };
  return `${kind} ${namespace}/${name} ${JSON.stringify(sorted(kept))}`;
}

async function claimsOf(harness: Harness, { metadata }: KubeObject, which: Values): Promise<string[]> {
  const claims = await harness.database().claims(metadata.uid ?? '');
  const scopes = new Map(claims.map(({ scopeId, kind, alias }) => [scopeId, `<${kind} ${alias}>`]));
  return claims.map(({ kind, alias, holder, values, policy }) => {
    const live = values.flatMap(({ hash, notAfter }) => {
      if (typeof which === 'object' && !which.has(hash)) return [];
      return notAfter === undefined ? [hash] : which === 'all' ? [`${hash} for a while`] : [];
    });
    // Of members of a policy, as of those of any JSON, PostgreSQL keeps no order.
    const named = JSON.stringify(policy ?? null).replaceAll(/[0-9a-f-]{36}/g, (id) => scopes.get(id) ?? id);
    const text = JSON.stringify(sorted(JSON.parse(named)));
    return `claim on ${metadata.name}: ${kind} ${alias} of ${JSON.stringify(holder)} ${live} ${text}`;
  });
}

const nameOf = (item: unknown): string => (item as { readonly type?: string } | null)?.type ?? JSON.stringify(item);

/** Of a list of conditions, too, the order says nothing. */
const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([name, member]) => [name, sorted(member)]),
        )
      : value;

async function stateOf(harness: Harness, secret: string, value: string): Promise<string> {
  const instances = harness.cluster.objects(gatewayInstances).map(({ metadata }) => metadata.name);
  const works = await Promise.all(instances.map((name) => harness.works(value, name)));
  return `the key in ${secret} works on [${instances.filter((_, index) => works[index])}]`;
}

/** Ids, values and hashes by what they are of; what is of nothing that is there any more is `<gone>`. */
function anonymize(objects: ReadonlyArray<KubeObject>): (line: string) => string {
  const names = new Map<string, string>();
  for (const { kind, metadata, data } of objects) {
    const at = `${kind} ${metadata.namespace}/${metadata.name}`;
    names.set(metadata.uid ?? '', `<uid of ${at}>`);
    const { key } = (data ?? {}) as { readonly key?: string };
    if (kind !== 'Secret' || key === undefined) continue;
    const value = atob(key);
    names.set(value, `<value of ${at}>`).set(key, `<value of ${at}>`).set(sha256(value), `<hash of ${at}>`);
    names.set(`${value.slice(0, 3)}...${value.slice(-4)}`, `<display of ${at}>`);
  }
  const known = [...names].filter(([text]) => text !== '').sort(([a], [b]) => b.length - a.length);
  return (line) =>
    known
      .reduce((text, [from, to]) => text.replaceAll(from, to), line)
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{64}\b/g, '<gone>')
      .replaceAll(TIME, '<time>')
      .replaceAll(MILLIS, '<time>');
}
