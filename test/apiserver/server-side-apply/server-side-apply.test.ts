// Server-side apply leaves the objects that a real API server leaves: the golden file is its answers.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCluster } from '../../support/clusters.ts';
import type { TestControlPlane } from '../../support/control-plane.ts';
import { applyCases, applyKinds, type StepAnswer, widgetDefinition } from './cases.ts';
import { play } from './play.ts';

const golden: Record<string, StepAnswer[]> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'apply.golden.json'), 'utf8'),
);

describe('server-side apply', () => {
  let server: TestControlPlane;
  beforeAll(async () => {
    server = await startCluster('embedded');
    await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition);
  });
  afterAll(() => server?.stop());

  test.each(applyCases)('$name', async (one) => {
    const recorded = golden[one.name] ?? [];
    const answers = await play(server.call, one, `case-${applyCases.indexOf(one)}`);
    // Core kinds have no defaults here: the real server's object has more, and nothing else.
    if (one.of === 'Widget' || one.of === 'ConfigMap') expect(answers).toEqual(recorded);
    else expect(recorded).toMatchObject(answers);
  });

  test('managedFields remember what each manager applied, and an apply of the same is no write', async () => {
    const { path } = applyKinds.ConfigMap;
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'managed' }, data: { a: '1' } };
    const headers = { 'content-type': 'application/apply-patch+yaml' };
    const apply = async (by: string) =>
      (await server.call('PATCH', `${path}/managed?fieldManager=${by}`, body, headers)).body as {
        metadata: { managedFields: object[]; resourceVersion: string };
      };
    const [first, again] = [await apply('me'), await apply('me')];
    expect(again.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    const { metadata } = await apply('you');
    const entry = {
      operation: 'Apply',
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { 'f:a': {} } },
    };
    expect(metadata.managedFields).toMatchObject([
      { ...entry, manager: 'me' },
      { ...entry, manager: 'you' },
    ]);
  });
});
