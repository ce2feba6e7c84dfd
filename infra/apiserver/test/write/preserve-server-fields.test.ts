import { expect, test } from 'vitest';
import type { KubeObject } from '../../object.ts';
import { coreResources } from '../../resources/core-resources.ts';
import { preserveServerFields } from '../../write/preserve-server-fields.ts';

const deployments = coreResources.find(({ plural }) => plural === 'deployments');
if (deployments === undefined) throw new Error('no deployments');

const old: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {
    name: 'a',
    namespace: 'n',
    uid: 'u',
    resourceVersion: '5',
    generation: 3,
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: { replicas: 1 },
  status: { readyReplicas: 1 },
};

const preserve = (subresource: string | undefined) => preserveServerFields({ resource: deployments, subresource }, old);

test('an update keeps the status and what the server wrote, and counts a changed spec', () => {
  const next = preserve(undefined)({
    ...old,
    metadata: { name: 'a', labels: { x: 'y' }, generation: 99, deletionTimestamp: 'now', managedFields: [{}] },
    spec: { replicas: 2 },
    status: { readyReplicas: 9 },
  });
  expect(next).toMatchObject({
    spec: { replicas: 2 },
    status: { readyReplicas: 1 },
    metadata: { uid: 'u', generation: 4, labels: { x: 'y' }, creationTimestamp: '2026-01-01T00:00:00Z' },
  });
  expect(next.metadata).not.toHaveProperty('deletionTimestamp');
  expect(next.metadata).not.toHaveProperty('managedFields');
});

test('labels and status count as no generation', () => {
  const next = preserve(undefined)({ ...old, metadata: { ...old.metadata, labels: { x: 'y' } }, status: {} });
  expect(next.metadata.generation).toBe(3);
});

test('an update of the status changes nothing else', () => {
  const next = preserve('status')({ ...old, spec: { replicas: 7 }, status: { readyReplicas: 2 } });
  expect(next).toEqual({ ...old, status: { readyReplicas: 2 } });
});
