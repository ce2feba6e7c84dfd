// Does any test of reconcile show a key or a password that it used?
import { afterEach, expect } from 'vitest';
import { takeShown } from './silence.ts';

afterEach(() => {
  expect(takeShown(), 'keys and passwords in reports, logs, events, conditions or snapshots').toEqual([]);
});
