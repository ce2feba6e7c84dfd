import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { eventName, keySecretName, MAX_NAME, snapshotName } from '../keys/object-names.ts';

const hash = (text: string) => createHash('sha256').update(text).digest('hex');
const VALID = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

test("a key's Secret is named after it, unless the template names it", () => {
  expect(keySecretName('chat', undefined, hash)).toBe('chat-key');
  expect(keySecretName('chat', 'mine', hash)).toBe('mine');
  expect(snapshotName('main', 'abc')).toBe('main-abc');
});

test('a name that would get too long is cut, stays valid, and differs from similar names', () => {
  for (const length of [248, 249, 250, 251, 252, 253]) {
    for (const letter of ['k', '1']) {
      const names = ['x', 'y', '0'].map((end) => keySecretName(letter.repeat(length - 1) + end, undefined, hash));
      for (const name of names) {
        expect(name.length).toBeLessThanOrEqual(MAX_NAME);
        expect(name).toMatch(VALID);
        expect(name).toMatch(/-key$/);
      }
      expect(new Set(names).size).toBe(3);
    }
  }
  const dotted = `${'a.'.repeat(126)}a`;
  expect(keySecretName(dotted, undefined, hash)).toMatch(VALID);
});

test('the same event about the same object has the same name, another has another', () => {
  const name = (uid: string, what: string) => eventName('chat', uid, what, hash);
  expect(name('1', 'Ready')).toBe(name('1', 'Ready'));
  expect(new Set([name('1', 'Ready'), name('2', 'Ready'), name('1', 'Expired')]).size).toBe(3);
  expect(eventName('k'.repeat(253), '1', 'Ready', hash)).toMatch(VALID);
  expect(eventName('k'.repeat(253), '1', 'Ready', hash).length).toBeLessThanOrEqual(MAX_NAME);
});
