// A hundred thousand keys in a bench's API server within a minute: copies of a stored one, written directly to its
// etcd.
import type { KubeObject } from '#core/ports/cluster.ts';

const PER_TRANSACTION = 100;
const AT_A_TIME = 4;

/**
 * Copies the stored object `namespace/name` of `folder` (`group/plural`) `count` times, each with its own name, uid and
 * alias.
 */
export async function copyInEtcd(etcd: string, original: Original, count: number): Promise<void> {
  const { folder, namespace, name } = original;
  const key = base64(`/registry/${folder}/${namespace}/${name}`);
  const { kvs } = (await askEtcd(etcd, 'kv/range', { key })) as { kvs?: Array<{ value: string }> };
  const stored = JSON.parse(Buffer.from(kvs?.[0]?.value ?? '', 'base64').toString());
  const copyOf = (_: unknown, index: number) => {
    const copy = structuredClone(stored);
    copy.metadata.name = `copy-${index}`;
    copy.metadata.uid = crypto.randomUUID();
    copy.spec.keyAlias = copy.metadata.name;
    return copy;
  };
  await putInEtcd(etcd, folder, Array.from({ length: count }, copyOf));
}

/** Writes custom resources, which the API server keeps as JSON, unchanged. */
export async function putInEtcd(etcd: string, folder: string, objects: ReadonlyArray<KubeObject>): Promise<void> {
  const put = (from: number) =>
    askEtcd(etcd, 'kv/txn', {
      success: objects.slice(from, from + PER_TRANSACTION).map((object) => {
        const key = base64(`/registry/${folder}/${object.metadata.namespace}/${object.metadata.name}`);
        return { requestPut: { key, value: base64(`${JSON.stringify(object)}\n`) } };
      }),
    });
  for (let from = 0; from < objects.length; from += PER_TRANSACTION * AT_A_TIME) {
    const starts = Array.from({ length: AT_A_TIME }, (_, index) => from + index * PER_TRANSACTION);
    await Promise.all(starts.filter((start) => start < objects.length).map(put));
  }
}

export interface Original {
  readonly folder: string;
  readonly namespace: string;
  readonly name: string;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** etcd's own gateway from JSON to gRPC. */
export async function askEtcd(
  etcd: string,
  what: 'kv/range' | 'kv/txn' | 'maintenance/status',
  body: object,
): Promise<unknown> {
  const answer = await fetch(`${etcd}/v3/${what}`, { method: 'POST', body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`etcd: ${answer.status} ${await answer.text()}`);
  return answer.json();
}
