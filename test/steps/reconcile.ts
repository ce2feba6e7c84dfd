// Runs over many objects, arranged as an author without good will would arrange them.

import { createHarness, type Harness } from '../reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../reconcile/objects.ts';
import type { Scenario } from './count.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const on = (name: string) => ({ connectionRef: { instanceRef: { name, namespace: 'default' } } });
const OWN = { autoCreateKey: false };

async function createWorld(...objects: Parameters<Harness['apply']>): Promise<Harness> {
  const harness = createHarness();
  await harness.apply(...makeSecrets(), ...objects);
  return harness;
}

export const scenarios: Readonly<Record<string, Scenario>> = {
  'keys of one user whom as many teams list': {
    n: 200,
    prepare: async (n) => {
      const ofTeams = numbers(n).map((index) => makeTeam({ members: [{ name: 'alice' }] }, `team-${index}`));
      const keys = numbers(n).map((index) => makeKey({ userRef: { name: 'alice' } }, `key-${index}`));
      const harness = await createWorld(makeInstance(), makeUser(OWN), ...ofTeams, ...keys);
      return () => harness.resync();
    },
  },
  'keys that want one alias': {
    n: 200,
    prepare: async (n) => {
      const harness = await createWorld(makeInstance());
      // The oldest is the last that is listed.
      for (const index of numbers(n).toReversed()) {
        harness.clock.pass(1000);
        await harness.apply(makeKey({ keyAlias: 'wanted' }, `key-${String(index).padStart(4, '0')}`));
      }
      return () => harness.resync();
    },
  },
  'instances that are one part of the run by way of their members': {
    n: 100,
    prepare: async (n) => {
      const instances = numbers(n).map((index) => makeInstance({}, `main-${index}`));
      const members = numbers(n).flatMap((index) => [
        makeUser({ ...OWN, ...on(`main-${index}`) }, `user-${index}`),
        makeKey({ ...on(`main-${(index + 1) % n}`), userRef: { name: `user-${index}` } }, `key-${index}`),
      ]);
      const harness = await createWorld(...instances, ...members);
      return () => harness.resync();
    },
  },
  'keys whose models were renamed': {
    n: 32,
    prepare: async (n) => {
      const name = (index: number, end: string) => `${'m'.repeat(58)}${end}${index}`;
      const served = (end: string) =>
        numbers(n * 8).map((index) => ({
          modelName: name(index, end),
          identifier: `${index}`,
          requiresAuth: false,
          gatewayParams: { model: 'ollama/free', inputCostPerMillionTokens: '0', outputCostPerMillionTokens: '0' },
        }));
      const models = numbers(8).map((index) => name(index, 'a'));
      const keys = numbers(n).map((index) => makeKey({ models }, `key-${index}`));
      const harness = await createWorld(makeInstance({ models: served('b') }), ...keys);
      return () => harness.resync();
    },
  },
  'keys that are deleted with their users': {
    n: 100,
    prepare: async (n) => {
      const harness = await createWorld(makeInstance(), ...numbers(n).map((index) => makeUser({}, `user-${index}`)));
      await harness.resync();
      for (const index of numbers(n)) await harness.apply(makeUser(OWN, `user-${index}`));
      return () => harness.resync();
    },
  },
  'Secrets that are not there': {
    n: 200,
    prepare: async (n) => {
      const models = numbers(n).map((index) => ({
        modelName: `m${index}`,
        identifier: `m${index}`,
        requiresAuth: true,
        modelCredentials: { nameRef: `none-${index}`, keys: { apiKey: 'apiKey' } },
        gatewayParams: { model: `openroute${index}/m` },
      }));
      const harness = await createWorld(makeInstance({ models }), makeSecret('spare', {}));
      return () => harness.resync();
    },
  },
  'a chain of users and keys, for a trigger': {
    n: 50,
    prepare: async (n) => {
      const users = numbers(n).map((index) => makeUser(OWN, `link-${index}`));
      const keys = numbers(n).map((index) =>
        makeKey({ userRef: { name: `link-${(index + 1) % n}` } }, `link-${index}`),
      );
      const harness = await createWorld(makeInstance(), ...users, ...keys);
      return () => harness.trigger('VirtualKey', 'link-0');
    },
  },
};
