// Our four kinds on an API server, for tests.
import { kinds } from '#crds/kinds/kinds.ts';
import { customResourceDefinitions } from '../../infra/packaging/manifests/apply.ts';
import type { TestControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';

/** Applies the generated CRDs, and waits until every kind is served. */
export async function installCustomResources(server: TestControlPlane): Promise<void> {
  for (const definition of customResourceDefinitions()) {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const { code, body } = await server.call('POST', path, definition);
    if (code !== 201)
      throw new Error(`the API server does not take ${definition.metadata.name}: ${JSON.stringify(body)}`);
  }
  for (const { group, version, plural } of kinds) {
    await eventually(
      () => server.call('GET', `/apis/${group}/${version}/${plural}`),
      ({ code }) => code === 200,
    );
  }
}
