// What does the kubelet make of the Pods that reconcile asks for? The same files, from a cluster, in a folder; and the
// same environment.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Cluster, RESOURCES } from '#core/ports/cluster.ts';
import { type GatewayInstance, GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { desiredParts } from '../../functions/reconcile/workload/desired-objects.ts';
import { resourceOf } from '../../infra/packaging/manifests/apply.ts';

export interface Mounts {
  readonly SNAPSHOT_FILE: string;
  readonly CREDENTIALS_DIR: string;
  readonly DATABASE_DIR: string;
  readonly STORE_DIR: string;
  readonly JOURNAL_DIR: string;
}

interface Items {
  readonly items?: ReadonlyArray<{ readonly key: string; readonly path: string }>;
  readonly optional?: boolean;
}
interface Volume {
  readonly name: string;
  readonly configMap?: Items & { readonly name: string };
  readonly secret?: Items & { readonly secretName: string };
  readonly projected?: { readonly sources: ReadonlyArray<{ readonly secret: Items & { readonly name: string } }> };
  readonly emptyDir?: object;
}
interface Pod {
  readonly volumes: readonly Volume[];
  readonly containers: ReadonlyArray<{
    readonly command: readonly string[];
    readonly resources: { readonly limits: { readonly memory: string } };
    readonly env: ReadonlyArray<{ readonly name: string; readonly value: string }>;
    readonly volumeMounts: ReadonlyArray<{ readonly name: string; readonly mountPath: string }>;
  }>;
}

/**
 * Mounts what the Pods of the sample's gateway ask for, below `folder`; answers the environment of its container, moved
 * there.
 */
export async function mountSample(cluster: Cluster, folder: string): Promise<Mounts> {
  const { volumes, containers } = await podOf(cluster);
  const [container] = containers;
  if (container === undefined) throw new Error('the Pod has no container');
  for (const { name, mountPath } of container.volumeMounts) {
    const volume = volumes.find((one) => one.name === name);
    if (volume === undefined) throw new Error(`there is no volume ${name}`);
    await mount(cluster, volume, join(folder, mountPath));
  }
  const environment = Object.fromEntries(container.env.map(({ name, value }) => [name, join(folder, value)]));
  return environment as unknown as Mounts;
}

/** The Pod of the sample's gateway. */
export async function podOf(cluster: Cluster): Promise<Pod> {
  const found = await cluster.get(resourceOf('GatewayInstance'), 'default', 'sample');
  if (found === undefined) throw new Error('there is no instance');
  const instance = { ...found, spec: GatewayInstanceSpec.parse(found.spec) } as GatewayInstance;
  const hash = instance.status?.snapshotHash ?? '';
  const snapshot = { hash, name: `sample-${hash}` };
  const order = {
    instance,
    snapshot,
    store: 'memory',
    storeFiles: ['host'],
    connections: '',
    logins: 'l1',
    image: 'gateway',
    pullSecrets: [],
    version: '0.1.0',
  } as const;
  const [made] = desiredParts('Deployment', order);
  if (made === undefined) throw new Error('nothing would be made for it');
  return (made.object.spec as { readonly template: { readonly spec: Pod } }).template.spec;
}

async function mount(cluster: Cluster, { name, configMap, secret, projected }: Volume, at: string): Promise<void> {
  mkdirSync(at, { recursive: true });
  const data = async (kind: 'configMaps' | 'secrets', object: string) =>
    (await cluster.get(RESOURCES[kind], 'default', object))?.data as Record<string, string> | undefined;
  const put = (path: string, content: string | Buffer) => {
    mkdirSync(join(at, path, '..'), { recursive: true });
    writeFileSync(join(at, path), content);
  };
  if (configMap !== undefined) {
    for (const [entry, text] of Object.entries((await data('configMaps', configMap.name)) ?? {})) put(entry, text);
  }
  const sources =
    secret === undefined
      ? (projected?.sources ?? []).map((one) => one.secret)
      : [{ ...secret, name: secret.secretName }];
  for (const { name: from, items = [], optional } of sources) {
    const found = await data('secrets', from);
    for (const { key, path } of items) {
      const value = found?.[key];
      if (value !== undefined) put(path, Buffer.from(value, 'base64'));
      else if (optional !== true)
        throw new Error(`volume ${name}: Secret ${from} has no ${key}: the Pod would not start`);
    }
  }
}
