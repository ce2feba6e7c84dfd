// Decisions: accepted, with warnings, or refused; also on a dry run and on update.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import {
  ask,
  createWorld,
  depsOf,
  GOOD,
  modelEntry,
  objectOf,
  requestOf,
  type World,
} from '../../../test/admission/fixtures.ts';
import { createReviews } from '../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review, validate } = createReviews(() => world);

test('valid objects are accepted without warnings', async () => {
  for (const kind of ['GatewayInstance', 'VirtualKey', 'User', 'Team'] as const) {
    expect(await validate(objectOf(kind))).toEqual({ uid: expect.any(String), allowed: true });
  }
});

describe('a dry run', () => {
  test('of a file that would create the missing objects warns instead of refusing', async () => {
    for (const name of ['database', 'store', 'creds-claude']) await world.drop(RESOURCES.secrets, 'platform', name);
    const instance = await review('GatewayInstance', {}, {}, { dryRun: true });
    expect(instance.refused).toEqual([]);
    expect(instance.warnings).toHaveLength(3);
    const key = await review(
      'VirtualKey',
      {
        connectionRef: { instanceRef: { name: 'new', namespace: 'platform' } },
        userRef: { name: 'new' },
        teamRef: { name: 'new' },
      },
      {},
      { dryRun: true },
    );
    expect(key.refused).toEqual([]);
    expect(key.warnings).toHaveLength(3);
  });

  test('still refuses violations that no other object of the file can correct', async () => {
    expect(
      (await review('VirtualKey', { softBudget: '11', models: ['llama'] }, {}, { dryRun: true })).refused,
    ).toHaveLength(3);
  });
});

describe('on update', () => {
  test('an old violation is a warning: a label, a budget or a block can always be changed', async () => {
    const bad = { ...GOOD.VirtualKey, models: ['withdrawn', 'gpt-4o'], userRef: { name: 'gone' } };
    const oldObject = objectOf('VirtualKey', bad);
    const labelled = await validate(objectOf('VirtualKey', bad, { labels: { a: 'b' } }), { oldObject });
    expect(labelled.allowed).toBe(true);
    expect(labelled.warnings).toEqual([
      expect.stringContaining('spec.models[0]: Not found: "withdrawn"'),
      expect.stringContaining('spec.userRef.name: Not found: "gone"'),
    ]);
    const blocked = await review(
      'VirtualKey',
      { ...bad, blocked: true, models: ['gpt-4o', 'withdrawn'] },
      {},
      { oldObject },
    );
    expect(blocked.refused).toEqual([]);
  });

  test('a new violation is refused although there is an old one, and so is an old value in a new place', async () => {
    const oldObject = objectOf('VirtualKey', { ...GOOD.VirtualKey, models: ['withdrawn'] });
    expect((await review('VirtualKey', { models: ['withdrawn', 'llama'] }, {}, { oldObject })).refused).toEqual([
      expect.stringContaining('spec.models[1]: Not found: "llama"'),
    ]);
    expect(
      (await review('VirtualKey', { models: ['withdrawn'], userRef: { name: 'gone' } }, {}, { oldObject })).refused,
    ).toEqual([expect.stringContaining('spec.userRef.name: Not found: "gone"')]);
  });

  test('entries are identified by their identifier, so after reordering an old violation is still old', async () => {
    await world.drop(RESOURCES.secrets, 'platform', 'creds-claude');
    const oldObject = objectOf('GatewayInstance');
    // The Secret of a model entry is read if something changed that its credentials must fit.
    const gatewayParams = { ...(modelEntry('claude').gatewayParams as object), apiBase: 'https://host.example/v1' };
    const reversed = { models: [modelEntry('claude', { gatewayParams }), modelEntry('gpt-4o')] };
    const { refused, warnings } = await review('GatewayInstance', reversed, {}, { oldObject });
    expect(refused).toEqual([]);
    expect(warnings).toEqual([
      expect.stringContaining('spec.models[0].modelCredentials.nameRef: Not found: "creds-claude"'),
    ]);
    const renamed = { models: [modelEntry('claude', { identifier: 'new' }), modelEntry('gpt-4o')] };
    expect((await review('GatewayInstance', renamed, {}, { oldObject })).refused).toHaveLength(1);
  });

  test('an old violation of the schema is a warning too', async () => {
    const bad = { ...GOOD.VirtualKey, maxBudget: 'ten' };
    const oldObject = objectOf('VirtualKey', bad);
    expect((await review('VirtualKey', { ...bad, blocked: true }, {}, { oldObject })).refused).toEqual([]);
    expect((await review('VirtualKey', { ...bad, maxBudget: 'eleven' }, {}, { oldObject })).refused).toHaveLength(1);
    const mutated = await ask(
      depsOf(world.cluster),
      '/mutate',
      requestOf(objectOf('VirtualKey', { ...bad, blocked: true }), { oldObject }),
    );
    expect(mutated.allowed).toBe(true);
  });
});
