import { expect, test } from 'vitest';
import { toFieldSelector } from '../cluster.ts';

test('an alias with commas, equal signs and backslashes selects only itself', () => {
  expect(toFieldSelector({ 'spec.keyAlias': 'a,metadata.name=b\\', 'metadata.name': 'x' })).toBe(
    'spec.keyAlias=a\\,metadata.name\\=b\\\\,metadata.name=x',
  );
});
