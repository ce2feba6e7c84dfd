// How do tests teach an API server our four kinds?
import { setTimeout as pause } from 'node:timers/promises';
import { kinds } from '#crds/kinds.ts';
import { customResourceDefinitions } from '../../infra/local/cluster/manifests.ts';
import type { TestControlPlane } from '../control-plane.ts';

/** Applies the generated CRDs, and waits until every kind is served. */
export async function installCustomResources(server: TestControlPlane): Promise<void> {
  for (const definition of customResourceDefinitions()) {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const { code, body } = await server.call('POST', path, definition);
    if (code !== 201)
      throw new Error(`the API server does not take ${definition.metadata.name}: ${JSON.stringify(body)}`);
  }
  for (const { group, version, plural } of kinds) {
    for (const until = Date.now() + 30_000; ; await pause(100)) {
      if ((await server.call('GET', `/apis/${group}/${version}/${plural}`)).code === 200) break;
      if (Date.now() > until) throw new Error(`${plural} is not served`);
    }
  }
}
