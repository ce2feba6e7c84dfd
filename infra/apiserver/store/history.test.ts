import { expect, test } from 'vitest';
import { createHistory, type StoredEvent } from './history.ts';

const event = (revision: number): StoredEvent => ({
  revision,
  type: 'ADDED',
  resource: '/configmaps',
  namespace: 'default',
  name: `n${revision}`,
  object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `n${revision}` } },
});

function filled(length: number, events: number) {
  const history = createHistory(length, 0);
  for (let revision = 1; revision <= events; revision++) history.add(event(revision));
  return history;
}

test('a history tells what came after a revision', () => {
  const history = filled(10, 5);
  expect(history.since(3)?.map(({ revision }) => revision)).toEqual([4, 5]);
  expect(history.since(5)).toEqual([]);
  expect(history.since(0)).toHaveLength(5);
});

test('a history is compacted in larger steps, and tells up to where', () => {
  const history = filled(100, 110);
  expect(history.compactable()).toBe(0);
  history.add(event(111));
  expect(history.compactable()).toBe(11);
  history.compact(11);
  expect(history.compactedRevision()).toBe(11);
  expect(history.since(10)).toBeUndefined();
  expect(history.since(11)).toHaveLength(100);
});

test('a history that begins later knows nothing of what was before', () => {
  const history = createHistory(10, 2);
  history.add(event(3));
  history.add(event(4));
  expect(history.since(1)).toBeUndefined();
  expect(history.since(2)).toHaveLength(2);
  expect(history.since(3)?.map(({ revision }) => revision)).toEqual([4]);
});
