// How do a hundred thousand keys get into a bench's API server within a minute? As copies of one that it stored itself, put straight into its etcd.

const PER_TRANSACTION = 100;
const AT_A_TIME = 4;

/** Copies the stored object `namespace/name` of `folder` (`group/plural`) as `count` others, each with a name, uid and alias of its own. */
export async function copyInEtcd(etcd: string, original: Original, count: number): Promise<void> {
  const { folder, namespace, name } = original;
  const prefix = `/registry/${folder}/${namespace}/`;
  const { kvs } = (await ask(etcd, 'range', { key: base64(`${prefix}${name}`) })) as { kvs?: Array<{ value: string }> };
  const stored = JSON.parse(Buffer.from(kvs?.[0]?.value ?? '', 'base64').toString());
  const put = (from: number) =>
    ask(etcd, 'txn', {
      success: Array.from({ length: Math.min(PER_TRANSACTION, count - from) }, (_, index) => {
        const copy = structuredClone(stored);
        copy.metadata.name = `copy-${from + index}`;
        copy.metadata.uid = crypto.randomUUID();
        copy.spec.keyAlias = copy.metadata.name;
        const value = base64(`${JSON.stringify(copy)}\n`);
        return { requestPut: { key: base64(`${prefix}${copy.metadata.name}`), value } };
      }),
    });
  for (let from = 0; from < count; from += PER_TRANSACTION * AT_A_TIME) {
    const starts = Array.from({ length: AT_A_TIME }, (_, index) => from + index * PER_TRANSACTION);
    await Promise.all(starts.filter((start) => start < count).map(put));
  }
}

export interface Original {
  readonly folder: string;
  readonly namespace: string;
  readonly name: string;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** etcd's own gateway from JSON to gRPC. */
async function ask(etcd: string, what: 'range' | 'txn', body: object): Promise<unknown> {
  const answer = await fetch(`${etcd}/v3/kv/${what}`, { method: 'POST', body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`etcd: ${answer.status} ${await answer.text()}`);
  return answer.json();
}
