// Is a change of ours found, and nothing that is not ours?
import { expect, test } from 'vitest';
import { differences } from './differences.ts';

const wanted = {
  metadata: { labels: { ours: 'yes' } },
  spec: {
    replicas: 2,
    strategy: { type: 'Recreate', rollingUpdate: null },
    containers: [{ name: 'gateway', image: 'a:1', command: ['node', 'x'], emptyDir: {} }],
    items: [{ key: 'a', path: 'b' }],
  },
};
const clone = () => structuredClone(wanted) as typeof wanted & { spec: Record<string, unknown> };

test('defaults, and what others added, are no difference', () => {
  const live = clone();
  Object.assign(live.metadata.labels, { theirs: 'too' });
  Object.assign(live.spec, { defaulted: true, strategy: { type: 'Recreate' } });
  live.spec.containers = [{ name: 'sidecar' }, { ...live.spec.containers[0], terminationMessagePath: '/x' }] as never;
  live.spec.items = [{ key: 'a', path: 'b', mode: 1 }] as never;
  expect(differences(live, wanted)).toEqual([]);
});

test.each<[string, (live: ReturnType<typeof clone>) => void, string]>([
  ['another value', (live) => Object.assign(live.spec, { replicas: 3 }), 'spec.replicas'],
  ['a value that is gone', (live) => Object.assign(live.metadata, { labels: undefined }), 'metadata.labels'],
  [
    'one more word of a command',
    ({ spec }) => spec.containers[0]?.command.push('y'),
    'spec.containers[gateway].command',
  ],
  ['an item that is gone', ({ spec }) => Object.assign(spec, { containers: [] }), 'spec.containers[gateway]'],
  ['an item in another place', ({ spec }) => Object.assign(spec, { items: [] }), 'spec.items'],
  [
    'what should not be there',
    ({ spec }) => Object.assign(spec.strategy, { rollingUpdate: {} }),
    'spec.strategy.rollingUpdate',
  ],
])('%s is', (_, change, path) => {
  const live = clone();
  change(live);
  expect(differences(live, wanted).map((one) => one.path)).toEqual([path]);
});
