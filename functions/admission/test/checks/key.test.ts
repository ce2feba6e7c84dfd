// Checks of a key: its alias, its Secret, and fields that never change.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { OWNED_LABEL, OWNED_LABEL_VALUE } from '#crds/names/group.ts';
import { createWorld, GOOD, objectOf, secretOf, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews, spare } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review: reviewed } = createReviews(() => world);

describe('the labels and annotations of its Secret', () => {
  const ARGO = 'argocd.argoproj.io/secret-type';
  const REFLECTED = 'reflector.example.com/reflects';
  const allowing = createReviews(() => world, { secretPrefixes: ['reflector.example.com'] });

  test('of other domains are refused: software that acts on them would act for everyone who may create keys', async () => {
    const { refused } = await reviewed('VirtualKey', {
      secretTemplate: { labels: { [ARGO]: 'cluster' }, annotations: { 'kubernetes.io/service-account.name': 'a' } },
    });
    expect(refused).toEqual([
      'VirtualKey "billing" is invalid:',
      `- spec.secretTemplate.labels["${ARGO}"]: Invalid value: "cluster": must have no prefix, or one of these: app.kubernetes.io. Remove it, or ask whoever runs the operator to add its prefix to SECRET_METADATA_PREFIXES`,
      expect.stringContaining('- spec.secretTemplate.annotations["kubernetes.io/service-account.name"]: Invalid value'),
    ]);
  });

  test.each([
    [reviewed, { labels: { app: 'chat', 'app.kubernetes.io/part-of': 'chat' }, annotations: { note: 'x' } }],
    [allowing.review, { annotations: { [REFLECTED]: 'a/b' } }],
  ])('are the author’s own, or of a domain that is allowed', async (review, secretTemplate) => {
    expect(await review('VirtualKey', { secretTemplate })).toEqual({ refused: [], warnings: [] });
  });

  test.each([
    'argoproj.io/x',
    'example.com/x',
    'x.reflector.example.com/x',
    'xapp.kubernetes.io/x',
    'gateway-operator.dev/managed',
  ])('are of an allowed domain only if the prefix is the same: %s', async (name) => {
    expect((await allowing.review('VirtualKey', { secretTemplate: { labels: { [name]: 'a' } } })).refused).toHaveLength(
      1,
    );
  });

  test('that a key had before warn when something else is edited, and are refused when they change', async () => {
    const old = { secretTemplate: { labels: { [ARGO]: 'cluster' } } };
    const oldObject = objectOf('VirtualKey', { ...GOOD.VirtualKey, ...old });
    const edited = await reviewed('VirtualKey', { ...old, blocked: true }, {}, { oldObject });
    expect(edited).toEqual({ refused: [], warnings: [expect.stringContaining(ARGO)] });
    const changed = { secretTemplate: { labels: { [ARGO]: 'repository' } } };
    expect((await reviewed('VirtualKey', changed, {}, { oldObject })).refused).toEqual([expect.stringContaining(ARGO)]);
  });
});

describe('a key', () => {
  const key = (change: object, metadata = {}, more = {}) => reviewed('VirtualKey', change, metadata, more);

  test('whose alias another key of the instance has is refused; the message has no names of other namespaces', async () => {
    await world.put(virtualKeys, spare('first', {}));
    expect((await key({})).refused).toEqual([
      'spec.keyAlias: Duplicate value: "billing-service": is already used by VirtualKey "first" on instance "platform/main"; choose another, or delete the other one first',
    ]);
    await world.drop(virtualKeys, 'team-a', 'first');
    await world.put(virtualKeys, spare('secret-project', {}, 'team-b'));
    expect((await key({})).refused).toEqual([
      'spec.keyAlias: Duplicate value: "billing-service": is already used by a VirtualKey of another namespace on instance "platform/main"; choose another, or delete the other one first',
    ]);
  });

  test('may have an alias that a key of another instance, a key that is being deleted, or the key itself has', async () => {
    await world.put(
      virtualKeys,
      spare('there', { connectionRef: { instanceRef: { name: 'main', namespace: 'team-b' } } }),
    );
    await world.put(virtualKeys, objectOf('VirtualKey', GOOD.VirtualKey, { name: 'going', finalizers: ['a/b'] }));
    await world.drop(virtualKeys, 'team-a', 'going');
    await world.put(virtualKeys, objectOf('VirtualKey'));
    expect(await key({})).toEqual({ refused: [], warnings: [] });
  });

  test('whose Secret would be one of others reads nothing but the metadata of that Secret', async () => {
    await world.put(RESOURCES.secrets, secretOf('billing-key', {}, 'team-a'));
    world.cluster.calls.length = 0;
    await key({});
    const reads = world.cluster.calls.filter(({ resource, verb }) => resource === RESOURCES.secrets && verb === 'get');
    expect(reads.map(({ body }) => body)).toEqual([{ metadataOnly: true }]);
  });

  test('whose Secret would be one of others is refused', async () => {
    await world.put(RESOURCES.secrets, secretOf('billing-key', {}, 'team-a'));
    expect((await key({})).refused).toEqual([
      'metadata.name: Invalid value: "billing": Secret "billing-key" already exists and is not this key\'s; delete it, or name another in spec.secretTemplate.name',
    ]);
    expect((await key({ secretTemplate: { name: 'billing-key' } })).refused).toEqual([
      expect.stringContaining(
        'spec.secretTemplate.name: Invalid value: "billing-key": a Secret of this name already exists and is not',
      ),
    ]);
  });

  test('may have a Secret that is its own, or that was retained', async () => {
    const labels = { [OWNED_LABEL]: OWNED_LABEL_VALUE };
    const metadata = { name: 'own', namespace: 'team-a', labels };
    await world.put(RESOURCES.secrets, { ...secretOf('own', {}, 'team-a'), metadata });
    await world.put(RESOURCES.secrets, secretOf('theirs', {}, 'team-a'));
    const at = (name: string) => key({ secretTemplate: { name } });
    expect((await at('own')).refused).toEqual([]);
    expect((await at('theirs')).refused).toHaveLength(1);
  });

  test('with a changed alias or instance is refused with the reason why they cannot change', async () => {
    const connectionRef = { instanceRef: { name: 'main', namespace: 'other' } };
    const { refused } = await key({ keyAlias: 'new', connectionRef }, {}, { oldObject: objectOf('VirtualKey') });
    expect(refused).toContainEqual(
      expect.stringMatching(/- spec\.keyAlias: Invalid value: "new": cannot be changed; /),
    );
    expect(refused).toContainEqual(expect.stringMatching(/- spec\.connectionRef: Invalid value: cannot be changed; /));
  });
});
