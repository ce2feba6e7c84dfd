// Objects that a key refers to: they exist, belong to the same instance, and allow its namespace.
import { beforeEach, describe, expect, test } from 'vitest';
import { gatewayInstances, kinds, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createWorld, GOOD, objectOf, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews, spare } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review, validate } = createReviews(() => world);

describe('a key', () => {
  const key = (change: object, metadata = {}, more = {}) => review('VirtualKey', change, metadata, more);
  const elsewhere = (name: string, namespace: string) => ({ connectionRef: { instanceRef: { name, namespace } } });

  test('of an instance that does not exist is refused', async () => {
    expect((await key(elsewhere('mian', 'platform'))).refused).toEqual([
      'spec.connectionRef.instanceRef: Not found: "platform/mian": no GatewayInstance of this name allows namespace "team-a"; check name and namespace, create it first (earlier in the same file), or ask its owner to allow this namespace',
    ]);
  });

  test.each([
    ['the same namespace only', { from: 'Same' }],
    [
      'namespaces by a label',
      { from: 'Selector', selector: { matchLabels: { 'kubernetes.io/metadata.name': 'team-b' } } },
    ],
  ])('of an instance that allows %s gets exactly the answer of a missing one', async (_, allowedNamespaces) => {
    const spec = { ...GOOD.GatewayInstance, allowedNamespaces };
    await world.put(gatewayInstances, objectOf('GatewayInstance', spec, { name: 'private' }));
    const refused = (await key(elsewhere('private', 'platform'))).refused.join();
    const missing = (await key(elsewhere('nowhere', 'platform'))).refused.join();
    expect(refused.replaceAll('private', 'nowhere')).toBe(missing);
    const admitted = await validate(
      objectOf(
        'VirtualKey',
        { ...GOOD.VirtualKey, ...elsewhere('private', 'platform'), userRef: undefined, teamRef: undefined },
        { namespace: allowedNamespaces.from === 'Same' ? 'platform' : 'team-b' },
      ),
    );
    expect(admitted.allowed).toBe(true);
  });

  test('of an instance that does not allow it gets no finding about its alias, nor does a user about its address', async () => {
    const spec = { ...GOOD.GatewayInstance, allowedNamespaces: { from: 'Same' } };
    await world.put(gatewayInstances, objectOf('GatewayInstance', spec, { name: 'private' }));
    const there = elsewhere('private', 'platform');
    const taken = { ...there, keyAlias: 'taken', userEmail: 'taken@example.com', teamAlias: 'taken' };
    for (const kind of ['VirtualKey', 'User', 'Team'] as const) {
      const resource = kinds.find((one) => one.kind === kind) ?? virtualKeys;
      await world.put(resource, spare('holder', taken, 'platform', kind));
    }
    const free = { keyAlias: 'free', userEmail: 'free@example.com', teamAlias: 'free' };
    for (const kind of ['VirtualKey', 'User', 'Team'] as const) {
      for (const dryRun of [true, false]) {
        const answers = [taken, { ...there, ...free }, { ...taken, ...elsewhere('nowhere', 'platform') }].map(
          (change) => review(kind, change, { name: 'probe' }, { dryRun }),
        );
        const [asTaken, asFree, asMissing] = (await Promise.all(answers)).map((answer) =>
          JSON.stringify(answer).replaceAll('private', 'nowhere'),
        );
        expect([asTaken, asFree]).toEqual([asMissing, asMissing]);
        expect(asTaken).toContain('no GatewayInstance of this name');
      }
    }
  });

  test('of an instance that is being deleted is refused', async () => {
    await world.put(
      gatewayInstances,
      objectOf('GatewayInstance', GOOD.GatewayInstance, { name: 'going', finalizers: ['a/b'] }),
    );
    await world.drop(gatewayInstances, 'platform', 'going');
    expect((await key({ ...elsewhere('going', 'platform'), userRef: undefined, teamRef: undefined })).refused).toEqual([
      expect.stringContaining(
        'spec.connectionRef.instanceRef: Invalid value: "platform/going": this GatewayInstance is being deleted',
      ),
    ]);
  });

  test('with a misspelt instance gets no finding that its user and team belong to another instance', async () => {
    expect((await key(elsewhere('mian', 'platform'))).refused).toHaveLength(1);
  });

  test('with a model that the instance does not serve is refused with the nearest name, or else with all names', async () => {
    expect((await key({ models: ['gpt-4O', 'gpt-4o', 'llama'] })).refused).toEqual([
      'VirtualKey "billing" is invalid:',
      '- spec.models[0]: Not found: "gpt-4O": must be exactly a modelName of instance "platform/main"; did you mean "gpt-4o"?',
      '- spec.models[2]: Not found: "llama": must be exactly a modelName of instance "platform/main"; add a model entry to the instance, or choose one of its models: "gpt-4o", "claude"',
    ]);
  });

  test('that names all models in the way of other gateways gets the right way in the message', async () => {
    expect((await key({ models: ['*'] })).refused).toEqual([
      'spec.models[0]: Not found: "*": must be exactly a modelName of instance "platform/main"; remove it: an empty list means every model of the instance',
    ]);
  });

  test('whose user or team is missing, or of another instance, is refused', async () => {
    const connectionRef = { instanceRef: { name: 'other', namespace: 'platform' } };
    await world.put(users, spare('bob', { connectionRef, userEmail: 'bob@example.com' }, 'team-a', 'User'));
    expect((await key({ userRef: { name: 'bob' }, teamRef: { name: 'nobody' } })).refused).toEqual([
      'VirtualKey "billing" is invalid:',
      '- spec.userRef.name: Invalid value: "bob": must be a User of the same instance, but is of another one (platform/other); choose one of the same',
      '- spec.teamRef.name: Not found: "nobody": no Team of this name is in namespace "team-a"; correct the name, or create it first (earlier in the same file)',
    ]);
  });
});
