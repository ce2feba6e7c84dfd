// Promises of every registry, in memory or in PostgreSQL.
import { describe, expect, test } from 'vitest';
import { describeInstances } from './registry.instances.promises.ts';
import { describeNamespaces } from './registry.namespaces.promises.ts';
import { describePolicies } from './registry.policies.promises.ts';
import type { RegistryUnderTest } from './registry.scenario.promises.ts';
import { describeScopes } from './registry.scopes.promises.ts';
import { describeKeyValues } from './registry.values.promises.ts';

/** `make` returns an empty, migrated registry; it is called once per test. */
export function describeRegistry(name: string, make: () => Promise<RegistryUnderTest>): void {
  describe(`the registry in ${name}`, () => {
    describeScopes(make);
    describeKeyValues(make);
    describePolicies(make);
    describeInstances(make);
    describeNamespaces(make);

    test('the schema may be migrated again and again', async () => {
      const { registry } = await make();
      const { to } = await registry.migrate();
      expect(await registry.migrate()).toEqual({ from: to, to });
    });
  });
}
