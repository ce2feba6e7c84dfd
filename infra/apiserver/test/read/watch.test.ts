import { expect, test } from 'vitest';
import type { Deps } from '../../deps.ts';
import { type Watch, watch } from '../../read/watch.ts';
import type { ApiRequest } from '../../request/request.ts';
import { createStore } from '../../store/store.ts';

const log = { warn: () => undefined, error: () => undefined };

test('a watch that misses a change ends, and the write and the other watches do not notice', () => {
  const store = createStore({ file: ':memory:', log });
  store.open();
  const resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', storedAs: '/configmaps' };
  const request = { resource, namespace: undefined, query: new URLSearchParams('resourceVersion=0') };
  const form = { isTable: false, include: 'None' } as const;
  const open = watch({ store } as unknown as Deps, request as unknown as ApiRequest, form) as Watch;
  const [sent, ended]: [string[], string[]] = [[], []];
  open(
    () => {
      throw new Error('a broken connection');
    },
    () => void ended.push('broken'),
  );
  const stop = open(
    ({ type }) => void sent.push(type),
    () => void ended.push('whole'),
  );
  const write = (name: string) => {
    const metadata = { namespace: 'default', name };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
    return store.write({ do: 'create', resource: '/configmaps', namespace: 'default', name, object });
  };
  expect(write('a')).toMatchObject({ object: {} });
  expect(write('b')).toMatchObject({ object: {} });
  expect([sent, ended]).toEqual([['ADDED', 'ADDED'], ['broken']]);
  stop();
  store.close();
});
