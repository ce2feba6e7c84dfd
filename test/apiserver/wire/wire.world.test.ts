// Tables and protobuf are what a real API server answers; `--update` records the tables anew.
import { request } from 'node:https';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { decodeProtobuf } from '../../../infra/apiserver/codec/protobuf.ts';
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';
import { whyNoControlPlane } from '../../support/control-plane.ts';
import { eventually } from '../../support/eventually.ts';
import { type SharedControlPlane, sharedControlPlane } from '../../support/shared-servers.ts';
import { describeUnless } from '../../support/skip-unless.ts';
import { columns, gadgets } from './columns.ts';

const why = whyNoControlPlane();
const folder = '/apis/sample.gateway-operator.dev/v1/namespaces/default/gadgets';
const asTable = { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' };

describeUnless(why, 'a real API server', () => {
  let server: SharedControlPlane;
  beforeAll(async () => {
    server = await sharedControlPlane();
  });

  test('shows custom kinds in tables as recorded', async () => {
    const made = await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
    expect(made.code, JSON.stringify(made.body)).toBe(201);
    await eventually(
      () => server.call('GET', folder),
      ({ code }) => code === 200,
    );
    const cells: Record<string, unknown> = {};
    let columnDefinitions: unknown;
    for (const [name, gadget] of Object.entries(gadgets)) {
      const metadata = { ...(gadget.metadata as JsonObject), name };
      await server.call('POST', folder, {
        apiVersion: 'sample.gateway-operator.dev/v1',
        kind: 'Gadget',
        ...gadget,
        metadata,
      });
      const table = (await server.call('GET', `${folder}/${name}`, undefined, asTable)).body as JsonObject;
      columnDefinitions = table.columnDefinitions;
      cells[name] = (table.rows as { cells: unknown[] }[])[0]?.cells.map(ageless);
    }
    const recorded = `${JSON.stringify({ columnDefinitions, cells }, null, 1)}\n`;
    await expect(recorded).toMatchFileSnapshot(join(import.meta.dirname, 'columns.golden.json'));
  });

  // Objects that the API server itself keeps, in kinds with many shapes of fields.
  test.each([
    '/api/v1/namespaces/default',
    '/api/v1/namespaces/default/services/kubernetes',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/admin',
    '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-admin',
    '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/extension-apiserver-authentication-reader',
  ])('%s is the same in protobuf and in JSON', async (path) => {
    const { code, body } = await server.call('GET', path);
    expect(code).toBe(200);
    expect(withoutNulls(decodeProtobuf(await protobufOf(path)))).toEqual(withoutNulls(body));
  });

  function protobufOf(path: string): Promise<Buffer> {
    const headers = { authorization: `Bearer ${server.token}`, accept: 'application/vnd.kubernetes.protobuf' };
    return new Promise((resolve, reject) => {
      const sent = request(`${server.url}${path}`, { ca: server.ca, headers }, (reply) => {
        const chunks: Buffer[] = [];
        reply.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => resolve(Buffer.concat(chunks)));
      });
      sent.on('error', reject).end();
    });
  }
});

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gadgets.sample.gateway-operator.dev' },
  spec: {
    group: 'sample.gateway-operator.dev',
    scope: 'Namespaced',
    names: { kind: 'Gadget', plural: 'gadgets' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        additionalPrinterColumns: columns,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

/** Ages hang on the clock of the run. */
function ageless(cell: unknown): unknown {
  return typeof cell === 'string' && /^\d+[smhdy](\d+[smhd])?$/.test(cell) ? '1s' : cell;
}

/** Protobuf cannot say null. */
function withoutNulls(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, member) => (member === null ? undefined : member)));
}
